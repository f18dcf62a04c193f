package completions

import (
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/sse"
)

// WriteAnswer writes a text_completion. Thoughts, and whatever else is not text, are
// left out.
func WriteAnswer(a *ir.Answer, d *ir.Writer, opt *ir.Options) {
	openCompletion(d, opt, a.ID, a.Model)
	text := ir.Joiner{}
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; {
		case b.Kind == ir.TextBlock, b.Kind == ir.RefusalBlock:
			text.Add("", b.Text)
		case opt.Lost == nil:
		case b.Kind == ir.ToolCallBlock:
			opt.Lost("tool_calls")
		case b.Kind == ir.ThinkingBlock:
			opt.Lost("reasoning")
		}
	}
	d.Open("choices", '[')
	d.Open("", '{')
	d.Str("text", text.Text())
	d.Int("index", 0)
	d.Null("logprobs")
	d.Str("finish_reason", finishName(a.Finish))
	d.Close('}')
	d.Close(']')
	if a.Usage.Known {
		d.Key("usage")
		writeUsage(d, &a.Usage)
	}
	d.Close('}')
}

func openCompletion(d *ir.Writer, opt *ir.Options, id, model string) {
	d.Open("", '{')
	d.Str("id", opt.AnswerID("cmpl-", id))
	d.Str("object", "text_completion")
	d.Int("created", opt.Now)
	d.Str("model", opt.ModelOr(model))
}

func finishName(f ir.Finish) string {
	switch f {
	case ir.FinishLength, ir.FinishWindow:
		return "length"
	case ir.FinishFilter:
		return "content_filter"
	}
	return "stop"
}

func writeUsage(d *ir.Writer, u *ir.Usage) {
	d.Buf = append(d.Buf, '{')
	d.Int("prompt_tokens", u.Input)
	d.Int("completion_tokens", u.Output)
	d.Int("total_tokens", u.Input+u.Output)
	d.Close('}')
}

// sink writes the chunks of a stream.
type sink struct {
	out    []byte
	opt    *ir.Options
	head   []byte // beginning of a chunk, up to its choices
	finish ir.Finish
	usage  ir.Usage
}

// NewSink returns the sink of a client's stream.
func NewSink(opt *ir.Options) ir.StreamSink { return &sink{opt: opt} }

func (s *sink) Buffer() *[]byte { return &s.out }

// Event writes an event.
func (s *sink) Event(e *ir.Event) {
	if s.head == nil && e.Kind != ir.EventFail {
		d := ir.Writer{Buf: []byte("data: ")}
		openCompletion(&d, s.opt, e.ID, e.Name)
		s.head = append(d.Buf, `,"choices":[`...)
	}
	switch e.Kind {
	case ir.EventText, ir.EventRefusal:
		s.chunk(e.Text, "null")
	case ir.EventUsage:
		s.usage = e.Usage
	case ir.EventFinish:
		s.finish = e.Finish
		if e.Explanation != "" {
			s.chunk(ir.Escape(strings.Clone(e.Explanation)), "null")
		}
	case ir.EventEnd:
		s.chunk("", `"`+finishName(s.finish)+`"`)
		if s.opt.StreamUsage && s.usage.Known {
			d := ir.Writer{Buf: append(append(s.out, s.head...), `],"usage":`...)}
			writeUsage(&d, &s.usage)
			s.out = append(d.Buf, "}\n\n"...)
		}
		s.out = sse.Done(s.out)
	case ir.EventFail:
		s.out = ir.AppendOpenAIFailure(s.out, e.Failure)
	}
}

// chunk writes a choice; text is escaped.
func (s *sink) chunk(text, finish string) {
	s.out = append(append(append(s.out, s.head...), `{"text":"`...), text...)
	s.out = append(append(s.out, `","index":0,"logprobs":null,"finish_reason":`...), finish...)
	s.out = append(s.out, "}]}\n\n"...)
}
