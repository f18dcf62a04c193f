package llm

import (
	"strconv"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
)

// chatSink writes the chunks of a chat stream.
type chatSink struct {
	out     []byte
	opt     *Options
	head    []byte      // of a chunk, up to the delta
	tail    string      // of a chunk without finish reason
	tools   map[int]int // the index of each block that is a tool call
	old     bool        // calls are written as function_call
	finish  finish
	seen    bool // finish came
	explain string
	usage   Usage
	thought []byte // the current thought, escaped: its signature comes at its end
	details int    // entries of reasoning_details so far
	points  int    // code points of the text so far
	before  int    // those before the current block
}

// maxThought is the size of the longest thought that is repeated with its
// signature. The text of a longer one is only in its pieces.
const maxThought = 4 << 20

func newChatSink(opt *Options) streamSink { return &chatSink{opt: opt} }

func (s *chatSink) buffer() *[]byte { return &s.out }

func (s *chatSink) begin(e *event) {
	if s.head != nil {
		return
	}
	d := doc{}
	d.open("", '{')
	d.str("id", s.opt.made("chatcmpl-", e.id))
	d.str("object", "chat.completion.chunk")
	d.int("created", s.opt.Now)
	d.str("model", s.opt.shown(e.name))
	d.b = append(d.b, `,"choices":[`...)
	s.head = append([]byte("data: "), d.b...)
	s.tail = "]}\n\n"
	if s.opt.StreamUsage {
		s.tail = `],"usage":null}` + "\n\n"
	}
	s.chunk(`"role":"assistant","content":""`)
}

func (s *chatSink) open() {
	s.out = append(append(s.out, s.head...), `{"index":0,"delta":{`...)
}

func (s *chatSink) end() {
	s.out = append(append(s.out, `},"finish_reason":null}`...), s.tail...)
}

func (s *chatSink) chunk(delta string) {
	s.open()
	s.out = append(s.out, delta...)
	s.end()
}

func (s *chatSink) text(name, text string) {
	s.open()
	s.out = append(append(append(append(append(s.out, '"'), name...), `":"`...), text...), '"')
	s.end()
}

func (s *chatSink) event(e *event) {
	if e.kind != evFail {
		s.begin(e)
	}
	switch e.kind {
	case evText:
		s.thought = s.thought[:0]
		s.points += points(e.text)
		s.text("content", e.text)
	case evThinking:
		if s.thought = append(s.thought, e.text...); len(s.thought) > maxThought {
			s.thought = s.thought[:0]
		}
		s.text("reasoning_content", e.text)
	case evRefusal:
		s.text("refusal", e.text)
	case evClose:
		s.thought = s.thought[:0]
		s.before = s.points
	case evSignature, evRedacted:
		if e.sig == "" {
			return
		}
		s.open()
		d := doc{b: s.out}
		d.open("reasoning_details", '[')
		writeReasoningDetail(&d, e.kind == evRedacted, view(s.thought), e.sig, e.issuer, s.details)
		d.close(']')
		s.out = d.b
		s.end()
		s.details++
		s.thought = s.thought[:0]
	case evTool:
		s.thought = s.thought[:0]
		index := s.tool(e.block)
		if s.old = s.old || e.old; s.old {
			if index == 0 { // there can be one only
				s.open()
				d := doc{b: s.out}
				d.open("function_call", '{')
				d.str("name", e.name)
				d.str("arguments", "")
				d.close('}')
				s.out = d.b
				s.end()
			}
			return
		}
		s.open()
		d := doc{b: s.out}
		d.open("tool_calls", '[')
		d.open("", '{')
		d.int("index", int64(index))
		id := e.id
		if id == "" {
			id = s.opt.callID(index)
		}
		d.str("id", id)
		kind, text := "function", "arguments"
		if e.custom {
			kind, text = "custom", "input"
		}
		d.str("type", kind)
		d.open(kind, '{')
		d.str("name", e.name)
		d.str(text, "")
		d.close('}')
		if e.sig != "" {
			d.open("extra_content", '{')
			d.open("google", '{')
			d.str("thought_signature", e.sig)
			d.close('}')
			d.close('}')
		}
		d.close('}')
		d.close(']')
		s.out = d.b
		s.end()
	case evArgs:
		if s.old {
			if s.tool(e.block) == 0 {
				s.open()
				s.out = append(append(append(s.out, `"function_call":{"arguments":"`...), e.text...), `"}`...)
				s.end()
			}
			return
		}
		s.open()
		s.out = append(s.out, `"tool_calls":[{"index":`...)
		s.out = strconv.AppendInt(s.out, int64(s.tool(e.block)), 10)
		if e.custom {
			s.out = append(s.out, `,"custom":{"input":"`...)
		} else {
			s.out = append(s.out, `,"function":{"arguments":"`...)
		}
		s.out = append(append(s.out, e.text...), `"}}]`...)
		s.end()
	case evCite:
		s.open()
		d := doc{b: s.out}
		d.open("annotations", '[')
		writeChatCite(&d, e.cite.moved(s.before))
		d.close(']')
		s.out = d.b
		s.end()
	case evImage:
		s.open()
		d := doc{b: s.out}
		d.open("images", '[')
		writeChatImage(&d, e.sig)
		d.close(']')
		s.out = d.b
		s.end()
	case evLogprobs:
		s.open()
		s.out = append(append(append(s.out, `},"logprobs":`...), oneLine(e.sig)...), `,"finish_reason":null}`...)
		s.out = append(s.out, s.tail...)
	case evUsage:
		s.usage = e.usage
	case evFinish:
		s.finish, s.seen = e.finish, true
		s.explain = e.explain
	case evEnd:
		if s.explain != "" {
			s.text("refusal", escape(s.explain))
		}
		s.open()
		s.out = append(s.out, `},"finish_reason":"`...)
		s.out = append(append(s.out, finishName(settle(s.finish, len(s.tools) > 0), s.old)...), `"}`...)
		s.out = append(s.out, s.tail...)
		if s.opt.StreamUsage && s.usage.Known {
			s.out = append(append(s.out, s.head...), `],"usage":`...)
			d := doc{b: s.out}
			writeChatUsage(&d, &s.usage)
			s.out = append(d.b, "}\n\n"...)
		}
		s.out = sse.Done(s.out)
	case evFail:
		s.out = appendChatFailure(s.out, e.failure)
	}
}

// tool gives the index of a tool call, in order of appearance.
func (s *chatSink) tool(block int) int {
	i, known := s.tools[block]
	if !known {
		if s.tools == nil {
			s.tools = map[int]int{}
		}
		i = len(s.tools)
		s.tools[block] = i
	}
	return i
}

// appendChatFailure is the end of a stream that failed: an error, then [DONE].
func appendChatFailure(out []byte, e *apierr.Error) []byte {
	d := doc{b: append(out, "data: "...)}
	d.open("", '{')
	d.open("error", '{')
	writeChatError(&d, e)
	d.close('}')
	d.close('}')
	return sse.Done(append(d.b, "\n\n"...))
}
