package llm

import "github.com/tidwall/gjson"

// cohereSource reads the events of a v2 chat stream, which message-end ends.
type cohereSource struct {
	opt   *Options
	began bool
	args  bool // of the call that goes on
	e     event
}

func newCohereSource(opt *Options) source { return &cohereSource{opt: opt} }

func (s *cohereSource) clean() bool { return false }

func (s *cohereSource) read(name, data []byte, to sink) {
	if string(data) == "[DONE]" {
		return
	}
	root := gjson.Parse(view(data))
	index := int(root.Get("index").Int())
	delta := root.Get("delta")
	message := delta.Get("message")
	kind := str(root.Get("type"))
	if kind != "message-start" && kind != "" && !s.began {
		s.began = true
		to.event(&event{kind: evStart, name: s.opt.Model})
	}
	switch kind {
	case "message-start":
		if !s.began {
			s.began = true
			to.event(&event{kind: evStart, id: str(root.Get("id")), name: s.opt.Model})
		}
	case "content-start", "content-delta":
		c := message.Get("content")
		s.piece(evThinking, index, c.Get("thinking"), to)
		s.piece(evText, index, c.Get("text"), to)
	case "content-end":
		to.event(&event{kind: evClose, block: index})
	case "tool-plan-delta":
		s.piece(evThinking, index, message.Get("tool_plan"), to)
	case "tool-call-start":
		c := message.Get("tool_calls")
		s.args = false
		to.event(&event{kind: evTool, block: index, id: str(c.Get("id")), name: str(c.Get("function.name"))})
		s.piece(evArgs, index, c.Get("function.arguments"), to)
	case "tool-call-delta":
		s.piece(evArgs, index, message.Get("tool_calls.function.arguments"), to)
	case "tool-call-end":
		if !s.args {
			to.event(&event{kind: evArgs, block: index, text: "{}"})
		}
		to.event(&event{kind: evClose, block: index})
	case "message-end":
		if u := cohereUsage(delta.Get("usage")); u.Known {
			to.event(&event{kind: evUsage, usage: u})
		}
		f, fail := cohereFinish(str(delta.Get("finish_reason")))
		if e := str(delta.Get("error")); e != "" && fail == nil {
			fail = ofStatus(502)
			fail.Message = limit(e)
		}
		if fail != nil {
			to.event(&event{kind: evFail, failure: fail})
			return
		}
		to.event(&event{kind: evFinish, finish: f})
		to.event(&event{kind: evEnd})
	case "":
		e := failureIn(root)
		if m := str(root.Get("message")); e == nil && m != "" {
			e = ofStatus(500)
			e.Message = limit(m)
		}
		if e != nil {
			to.event(&event{kind: evFail, failure: e})
		}
	}
}

func (s *cohereSource) piece(kind eventKind, index int, v gjson.Result, to sink) {
	if text := inner(v); text != "" {
		s.args = s.args || kind == evArgs
		s.e = event{kind: kind, block: index, text: text}
		to.event(&s.e)
	}
}
