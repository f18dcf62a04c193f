package ir

import "weir/pkg/wire/apierr"

// sequencer orders the deltas of an answer for dialects whose blocks follow
// each other: one block is open at a time, and the deltas of others wait. A
// text or thinking block is closed by the next event; a tool call only when its
// arguments are complete, since deltas of other calls may come in between. The
// next sink receives all EventText, EventThinking, EventRefusal or
// EventArguments of one block in a row, and an EventClose after each block.
type sequencer struct {
	next      Sink
	fail      Sink         // receives the failure of an answer that is too long
	open      pendingBlock // its text is stored for tool calls only
	isOpen    bool
	waiting   []pendingBlock
	heldBytes int // bytes stored

	imageBytes int  // bytes of images
	all        bool // the next sink stores every text
}

// NewSequencer returns a sink that orders events for next. fail receives the
// failure of an answer that is too long. all reports that next stores every
// text, so that all texts count.
func NewSequencer(next, fail Sink, all bool) Sink {
	return &sequencer{next: next, fail: fail, all: all}
}

// maxHeld and maxWaiting bound what an answer may make the sequencer store.
const (
	maxHeld    = 8 << 20
	maxWaiting = 1 << 10

	maxImageBytes = 32 << 20
)

// pendingBlock is a block whose deltas wait.
type pendingBlock struct {
	start  Event // EventTool, or the kind of a text
	tool   bool
	closed bool // EventClose arrived: nothing follows
	text   []byte
}

func (p *pendingBlock) is(e *Event) bool {
	if p.tool {
		return (e.Kind == EventArguments || e.Kind == EventTool) && p.start.Block == e.Block
	}
	return p.start.Kind == e.Kind
}

// complete reports whether nothing can follow. A text is always complete,
// arguments are if they are a JSON object.
func (p *pendingBlock) complete() bool {
	if !p.tool {
		return true
	}
	if p.start.Custom {
		return p.closed
	}
	_, ok := Object(Unescape(string(p.text)))
	return ok && len(p.text) > 0
}

func (s *sequencer) Event(e *Event) {
	switch e.Kind {
	case EventText, EventThinking, EventRefusal, EventArguments, EventTool:
		s.piece(e)
	case EventSignature:
		// It belongs to the open thinking block, or has no text.
		if !s.isOpen || s.open.start.Kind != EventThinking {
			s.piece(&Event{Kind: EventThinking})
		}
		if s.isOpen && s.open.start.Kind == EventThinking {
			s.next.Event(e)
			s.closeOpen()
		}
	case EventRedacted, EventImage:
		if s.imageBytes += len(e.Signature); s.imageBytes > maxImageBytes {
			s.heldBytes = maxHeld
			s.tooLong(e)
			return
		}
		s.advance()
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

// close ends a block that the upstream has completed. While other blocks wait,
// a text ends with the next event, and a call when it is its turn.
func (s *sequencer) close(block int) {
	if s.isOpen && s.open.tool && s.open.start.Block != block {
		for i := range s.waiting {
			if p := &s.waiting[i]; p.tool && p.start.Block == block {
				p.closed = true
			}
		}
		return
	}
	if !s.isOpen {
		return
	}
	s.open.closed = true
	if len(s.waiting) == 0 {
		s.closeOpen()
	} else {
		s.advance()
	}
}

func (s *sequencer) piece(e *Event) {
	if s.all && s.tooLong(e) {
		return
	}
	if s.isOpen && s.open.is(e) && e.Kind != EventTool {
		if s.open.tool && !s.store(&s.open, e) {
			return
		}
		s.next.Event(e)
		return
	}
	for i := range s.waiting {
		if s.waiting[i].is(e) && e.Kind != EventTool {
			s.store(&s.waiting[i], e)
			return
		}
	}
	if e.Kind == EventArguments {
		return // arguments of a call that did not begin
	}
	if e.Kind == EventTool && s.known(e.Block) {
		return // some servers repeat the name
	}
	s.advance()
	p := pendingBlock{start: *e, tool: e.Kind == EventTool}
	p.start.Text = ""
	if s.isOpen {
		// The open call is not complete: this one waits.
		s.clone(&p.start)
		if len(s.waiting) >= maxWaiting {
			s.heldBytes = maxHeld // too many calls
		}
		if s.store(&p, e) {
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

// clone copies the strings that outlive the call.
func (s *sequencer) clone(e *Event) {
	e.ID, e.Name, e.Signature = string([]byte(e.ID)), string([]byte(e.Name)), string([]byte(e.Signature))
	e.Namespace = string([]byte(e.Namespace))
}

// tooLong counts the stored bytes and reports whether they exceed the limit,
// which fails the stream.
func (s *sequencer) tooLong(e *Event) bool {
	if s.heldBytes += len(e.Text) + 32; s.heldBytes <= maxHeld {
		return false
	}
	s.waiting = nil
	s.fail.Event(&Event{Kind: EventFail, Failure: apierr.New(502, "upstream_too_large",
		"The provider's answer is over the size limit. Ask for a shorter one.")})
	return true
}

func (s *sequencer) store(p *pendingBlock, e *Event) bool {
	if !s.all && s.tooLong(e) {
		return false
	}
	p.text = append(p.text, e.Text...)
	return true
}

// begin opens a block.
func (s *sequencer) begin(p pendingBlock) {
	s.isOpen, s.open = true, p
	if p.tool {
		s.clone(&s.open.start)
		s.next.Event(&s.open.start)
	}
}

// closeOpen closes the open block.
func (s *sequencer) closeOpen() {
	if s.isOpen {
		s.isOpen = false
		s.next.Event(&Event{Kind: EventClose, Block: s.open.start.Block})
	}
}

// advance closes complete blocks and releases those that waited.
func (s *sequencer) advance() {
	for s.isOpen && s.open.complete() {
		s.closeOpen()
		if len(s.waiting) == 0 {
			return
		}
		p := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.release(p)
	}
}

// release writes a block that waited and leaves it open.
func (s *sequencer) release(p pendingBlock) {
	s.begin(p)
	if len(p.text) > 0 {
		kind := p.start.Kind
		if p.tool {
			kind = EventArguments
		}
		s.next.Event(&Event{Kind: kind, Block: p.start.Block, Custom: p.start.Custom, Text: string(p.text)})
	}
}

// flush closes all blocks at the end of the answer.
func (s *sequencer) flush() {
	s.closeOpen()
	for _, p := range s.waiting {
		s.release(p)
		s.closeOpen()
	}
	s.waiting = nil
}
