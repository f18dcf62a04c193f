package ir

import "weir/pkg/wire/apierr"

// sequencer puts the pieces of an answer in order for dialects whose blocks
// follow each other: one block is open at a time, the pieces of others wait.
// A text or thought is closed by whatever comes next; a tool call only when
// its arguments are complete, since its pieces may still come between those of
// other calls. The next sink gets every evText, evThinking, evRefusal, evArgs
// of one block in a row, and an evClose after each block.
type sequencer struct {
	next    Sink
	fail    Sink    // gets the failure of an answer that is too long
	open    pending // its text is kept for tool calls only
	isOpen  bool
	waiting []pending
	held    int // bytes kept

	pictures int  // bytes of them
	all      bool // the next sink keeps every text
}

func NewSequencer(next, fail Sink, all bool) Sink {
	return &sequencer{next: next, fail: fail, all: all}
}

// maxHeld bounds what an answer may make the sequencer keep.
const (
	maxHeld    = 8 << 20
	maxWaiting = 1 << 10

	maxPictures = 32 << 20
)

// pending is a block whose pieces wait.
type pending struct {
	start Event // evTool, or the kind of a text
	tool  bool
	whole bool // evClose came: nothing follows
	text  []byte
}

func (p *pending) is(e *Event) bool {
	if p.tool {
		return (e.Kind == EventArguments || e.Kind == EventTool) && p.start.Block == e.Block
	}
	return p.start.Kind == e.Kind
}

// complete tells whether nothing can follow: a text never has to be waited
// for, arguments are whole when they are JSON.
func (p *pending) complete() bool {
	if !p.tool {
		return true
	}
	if p.start.Custom {
		return p.whole
	}
	_, ok := Object(Unescape(string(p.text)))
	return ok && len(p.text) > 0
}

func (s *sequencer) Event(e *Event) {
	switch e.Kind {
	case EventText, EventThinking, EventRefusal, EventArguments, EventTool:
		s.piece(e)
	case EventSignature:
		// It belongs to the open thought, else it stands alone.
		if !s.isOpen || s.open.start.Kind != EventThinking {
			s.piece(&Event{Kind: EventThinking})
		}
		if s.isOpen && s.open.start.Kind == EventThinking {
			s.next.Event(e)
			s.shut()
		}
	case EventRedacted, EventImage:
		if s.pictures += len(e.Sig); s.pictures > maxPictures {
			s.held = maxHeld
			s.over(e)
			return
		}
		s.settle()
		s.next.Event(e)
	case EventClose:
		s.close(e.Block)
	case EventFinish, EventEnd:
		s.flush()
		s.next.Event(e)
	case EventFail:
		s.isOpen, s.waiting = false, nil
		s.next.Event(e)
	default:
		s.next.Event(e)
	}
}

// close ends a block that the upstream has completed. While other blocks wait, a
// text ends with the next event, and a call when it is its turn.
func (s *sequencer) close(block int) {
	if s.isOpen && s.open.tool && s.open.start.Block != block {
		for i := range s.waiting {
			if p := &s.waiting[i]; p.tool && p.start.Block == block {
				p.whole = true
			}
		}
		return
	}
	if !s.isOpen {
		return
	}
	s.open.whole = true
	if len(s.waiting) == 0 {
		s.shut()
	} else {
		s.settle()
	}
}

func (s *sequencer) piece(e *Event) {
	if s.all && s.over(e) {
		return
	}
	if s.isOpen && s.open.is(e) && e.Kind != EventTool {
		if s.open.tool && !s.keep(&s.open, e) {
			return
		}
		s.next.Event(e)
		return
	}
	for i := range s.waiting {
		if s.waiting[i].is(e) && e.Kind != EventTool {
			s.keep(&s.waiting[i], e)
			return
		}
	}
	if e.Kind == EventArguments {
		return // of a call that never began
	}
	if e.Kind == EventTool && s.known(e.Block) {
		return // some servers repeat the name
	}
	s.settle()
	p := pending{start: *e, tool: e.Kind == EventTool}
	p.start.Text = ""
	if s.isOpen {
		// The open call is not complete: this one waits.
		s.own(&p.start)
		if len(s.waiting) >= maxWaiting {
			s.held = maxHeld // so many calls are none
		}
		if s.keep(&p, e) {
			s.waiting = append(s.waiting, p)
		}
		return
	}
	s.begin(p)
	if e.Kind != EventTool && e.Text != "" {
		s.next.Event(e)
	}
}

func (s *sequencer) known(block int) bool {
	if s.isOpen && s.open.tool && s.open.start.Block == block {
		return true
	}
	for i := range s.waiting {
		if s.waiting[i].tool && s.waiting[i].start.Block == block {
			return true
		}
	}
	return false
}

// own copies the strings that outlive the call.
func (s *sequencer) own(e *Event) {
	e.Id, e.Name, e.Sig = string([]byte(e.Id)), string([]byte(e.Name)), string([]byte(e.Sig))
	e.Space = string([]byte(e.Space))
}

// over counts what is kept and gives the stream up when it is too much.
func (s *sequencer) over(e *Event) bool {
	if s.held += len(e.Text) + 32; s.held <= maxHeld {
		return false
	}
	s.waiting = nil
	s.fail.Event(&Event{Kind: EventFail, Failure: apierr.New(502, "upstream_too_large", "The provider's answer is over the size limit.")})
	return true
}

func (s *sequencer) keep(p *pending, e *Event) bool {
	if !s.all && s.over(e) {
		return false
	}
	p.text = append(p.text, e.Text...)
	return true
}

// begin opens a block.
func (s *sequencer) begin(p pending) {
	s.isOpen, s.open = true, p
	if p.tool {
		s.own(&s.open.start)
		s.next.Event(&s.open.start)
	}
}

// shut closes the open block.
func (s *sequencer) shut() {
	if s.isOpen {
		s.isOpen = false
		s.next.Event(&Event{Kind: EventClose, Block: s.open.start.Block})
	}
}

// settle closes what is complete, and lets those that waited follow.
func (s *sequencer) settle() {
	for s.isOpen && s.open.complete() {
		s.shut()
		if len(s.waiting) == 0 {
			return
		}
		p := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.release(p)
	}
}

// release writes a block that waited and leaves it open.
func (s *sequencer) release(p pending) {
	s.begin(p)
	if len(p.text) > 0 {
		kind := p.start.Kind
		if p.tool {
			kind = EventArguments
		}
		s.next.Event(&Event{Kind: kind, Block: p.start.Block, Custom: p.start.Custom, Text: string(p.text)})
	}
}

// flush closes everything: no more pieces come.
func (s *sequencer) flush() {
	s.shut()
	for _, p := range s.waiting {
		s.release(p)
		s.shut()
	}
	s.waiting = nil
}
