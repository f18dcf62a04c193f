package cohere

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// source reads the events of a v2 chat stream. message-end is the last one.
type source struct {
	opt   *ir.Options
	began bool
	args  bool // arguments of the current call arrived
	e     ir.Event
}

// NewSource returns the source of an upstream's stream.
func NewSource(opt *ir.Options) ir.Source { return &source{opt: opt} }

func (s *source) CleanEnd() bool { return false }

func (s *source) Read(name, data []byte, to ir.Sink) {
	if string(data) == "[DONE]" {
		return
	}
	root := gjson.Parse(ir.View(data))
	index := int(root.Get("index").Int())
	delta := root.Get("delta")
	message := delta.Get("message")
	kind := ir.Str(root.Get("type"))
	if kind != "message-start" && kind != "" && !s.began {
		s.began = true
		to.Event(&ir.Event{Kind: ir.EventStart, Name: s.opt.Model})
	}
	switch kind {
	case "message-start":
		if !s.began {
			s.began = true
			to.Event(&ir.Event{Kind: ir.EventStart, ID: ir.Str(root.Get("id")), Name: s.opt.Model})
		}
	case "content-start", "content-delta":
		c := message.Get("content")
		s.piece(ir.EventThinking, index, c.Get("thinking"), to)
		s.piece(ir.EventText, index, c.Get("text"), to)
	case "content-end":
		to.Event(&ir.Event{Kind: ir.EventClose, Block: index})
	case "tool-plan-delta":
		s.piece(ir.EventThinking, index, message.Get("tool_plan"), to)
	case "tool-call-start":
		c := message.Get("tool_calls")
		s.args = false
		to.Event(&ir.Event{Kind: ir.EventTool, Block: index, ID: ir.Str(c.Get("id")), Name: ir.Str(c.Get("function.name"))})
		s.piece(ir.EventArguments, index, c.Get("function.arguments"), to)
	case "tool-call-delta":
		s.piece(ir.EventArguments, index, message.Get("tool_calls.function.arguments"), to)
	case "tool-call-end":
		if !s.args {
			to.Event(&ir.Event{Kind: ir.EventArguments, Block: index, Text: "{}"})
		}
		to.Event(&ir.Event{Kind: ir.EventClose, Block: index})
	case "message-end":
		if u := usageOf(delta.Get("usage")); u.Known {
			to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
		}
		f, fail := finishOf(ir.Str(delta.Get("finish_reason")))
		if e := ir.Str(delta.Get("error")); e != "" && fail == nil {
			fail = ir.StatusError(502)
			fail.Message, fail.Said = ir.Truncate(e), true
		}
		if fail != nil {
			to.Event(&ir.Event{Kind: ir.EventFail, Failure: fail})
			return
		}
		to.Event(&ir.Event{Kind: ir.EventFinish, Finish: f})
		to.Event(&ir.Event{Kind: ir.EventEnd})
	case "":
		e := ir.ErrorIn(root)
		if m := ir.Str(root.Get("message")); e == nil && m != "" {
			e = ir.StatusError(500)
			e.Message, e.Said = ir.Truncate(m), true
		}
		if e != nil {
			to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
		}
	}
}

func (s *source) piece(kind ir.EventKind, index int, v gjson.Result, to ir.Sink) {
	if text := ir.EscapedText(v); text != "" {
		s.args = s.args || kind == ir.EventArguments
		s.e = ir.Event{Kind: kind, Block: index, Text: text}
		to.Event(&s.e)
	}
}
