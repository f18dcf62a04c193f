package chat

import (
	"strconv"
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/sse"
)

// sink writes the chunks of a chat stream.
type sink struct {
	out         []byte
	opt         *ir.Options
	head        []byte      // beginning of a chunk, up to the delta
	tail        string      // end of a chunk without a finish reason
	tools       map[int]int // the index of each block that is a tool call
	legacy      bool        // calls are written as function_call
	finish      ir.Finish
	explanation string
	usage       ir.Usage
	thought     []byte // the current thinking text, escaped, which is repeated with its signature
	details     int    // entries of reasoning_details so far
	points      int    // code points of the text so far
	before      int    // code points before the current block
}

// maxThought is the maximum length of a thinking text that is repeated with its
// signature. A longer text is only in its deltas.
const maxThought = 4 << 20

// NewSink returns the sink of a client's stream.
func NewSink(opt *ir.Options) ir.StreamSink { return &sink{opt: opt} }

func (s *sink) Buffer() *[]byte { return &s.out }

func (s *sink) begin(e *ir.Event) {
	if s.head != nil {
		return
	}
	d := ir.Writer{}
	d.Open("", '{')
	d.Str("id", s.opt.AnswerID("chatcmpl-", e.ID))
	d.Str("object", "chat.completion.chunk")
	d.Int("created", s.opt.Now)
	d.Str("model", s.opt.ModelOr(e.Name))
	d.Buf = append(d.Buf, `,"choices":[`...)
	s.head = append([]byte("data: "), d.Buf...)
	s.tail = "]}\n\n"
	if s.opt.StreamUsage {
		s.tail = `],"usage":null}` + "\n\n"
	}
	s.chunk(`"role":"assistant","content":""`)
}

func (s *sink) open() {
	s.out = append(append(s.out, s.head...), `{"index":0,"delta":{`...)
}

func (s *sink) end() {
	s.out = append(append(s.out, `},"finish_reason":null}`...), s.tail...)
}

func (s *sink) chunk(delta string) {
	s.open()
	s.out = append(s.out, delta...)
	s.end()
}

func (s *sink) text(name, text string) {
	s.open()
	s.out = append(append(append(append(append(s.out, '"'), name...), `":"`...), text...), '"')
	s.end()
}

func (s *sink) Event(e *ir.Event) {
	if e.Kind != ir.EventFail {
		s.begin(e)
	}
	switch e.Kind {
	case ir.EventText:
		s.thought = s.thought[:0]
		s.points += ir.CodePoints(e.Text)
		s.text("content", e.Text)
	case ir.EventThinking:
		if s.thought = append(s.thought, e.Text...); len(s.thought) > maxThought {
			s.thought = s.thought[:0]
		}
		s.text("reasoning_content", e.Text)
	case ir.EventRefusal:
		s.text("refusal", e.Text)
	case ir.EventClose:
		s.thought = s.thought[:0]
		s.before = s.points
	case ir.EventSignature, ir.EventRedacted:
		if e.Signature == "" {
			return
		}
		s.open()
		d := ir.Writer{Buf: s.out}
		d.Open("reasoning_details", '[')
		writeReasoningDetail(&d, e.Kind == ir.EventRedacted, ir.View(s.thought), e.Signature, e.Issuer, s.details)
		d.Close(']')
		s.out = d.Buf
		s.end()
		s.details++
		s.thought = s.thought[:0]
	case ir.EventTool:
		s.thought = s.thought[:0]
		index := s.tool(e.Block)
		if s.legacy = s.legacy || e.Legacy; s.legacy {
			if index == 0 { // a message has one function_call
				s.open()
				d := ir.Writer{Buf: s.out}
				d.Open("function_call", '{')
				d.Str("name", e.Name)
				d.Str("arguments", "")
				d.Close('}')
				s.out = d.Buf
				s.end()
			}
			return
		}
		s.open()
		d := ir.Writer{Buf: s.out}
		d.Open("tool_calls", '[')
		d.Open("", '{')
		d.Int("index", int64(index))
		id := e.ID
		if id == "" {
			id = s.opt.CallID(index)
		}
		d.Str("id", id)
		kind, text := "function", "arguments"
		if e.Custom {
			kind, text = "custom", "input"
		}
		d.Str("type", kind)
		d.Open(kind, '{')
		d.Str("name", e.Name)
		d.Str(text, "")
		d.Close('}')
		if e.Signature != "" {
			d.Open("extra_content", '{')
			d.Open("google", '{')
			d.Str("thought_signature", e.Signature)
			d.Close('}')
			d.Close('}')
		}
		d.Close('}')
		d.Close(']')
		s.out = d.Buf
		s.end()
	case ir.EventArguments:
		if s.legacy {
			if s.tool(e.Block) == 0 {
				s.open()
				s.out = append(append(append(s.out, `"function_call":{"arguments":"`...), e.Text...), `"}`...)
				s.end()
			}
			return
		}
		s.open()
		s.out = append(s.out, `"tool_calls":[{"index":`...)
		s.out = strconv.AppendInt(s.out, int64(s.tool(e.Block)), 10)
		if e.Custom {
			s.out = append(s.out, `,"custom":{"input":"`...)
		} else {
			s.out = append(s.out, `,"function":{"arguments":"`...)
		}
		s.out = append(append(s.out, e.Text...), `"}}]`...)
		s.end()
	case ir.EventCitation:
		s.open()
		d := ir.Writer{Buf: s.out}
		d.Open("annotations", '[')
		writeCitation(&d, e.Citation.Shift(s.before))
		d.Close(']')
		s.out = d.Buf
		s.end()
	case ir.EventImage:
		s.open()
		d := ir.Writer{Buf: s.out}
		d.Open("images", '[')
		writeImage(&d, e.Signature)
		d.Close(']')
		s.out = d.Buf
		s.end()
	case ir.EventLogprobs:
		s.open()
		s.out = append(append(append(s.out, `},"logprobs":`...), ir.OneLine(e.Signature)...), `,"finish_reason":null}`...)
		s.out = append(s.out, s.tail...)
	case ir.EventUsage:
		s.usage = e.Usage
	case ir.EventFinish:
		s.finish = e.Finish
		s.explanation = strings.Clone(e.Explanation)
	case ir.EventEnd:
		if s.explanation != "" {
			s.text("refusal", ir.Escape(s.explanation))
		}
		s.open()
		s.out = append(s.out, `},"finish_reason":"`...)
		s.out = append(append(s.out, finishName(ir.SettleFinish(s.finish, len(s.tools) > 0), s.legacy)...), `"}`...)
		s.out = append(s.out, s.tail...)
		if s.opt.StreamUsage && s.usage.Known {
			s.out = append(append(s.out, s.head...), `],"usage":`...)
			d := ir.Writer{Buf: s.out}
			writeUsage(&d, &s.usage)
			s.out = append(d.Buf, "}\n\n"...)
		}
		s.out = sse.Done(s.out)
	case ir.EventFail:
		s.out = ir.AppendOpenAIFailure(s.out, e.Failure)
	}
}

// tool returns the index of a tool call, in order of appearance.
func (s *sink) tool(block int) int {
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
