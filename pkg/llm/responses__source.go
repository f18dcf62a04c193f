package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// responsesSource reads the events of a Responses stream
// (docs/reference/api-shapes.md, 4.3).
type responsesSource struct {
	opt   *Options
	began bool
	calls []responsesCall // by output index
	e     event
}

// responsesCall is what is known of an output item.
type responsesCall struct {
	index  int
	custom bool
	args   bool // pieces of its arguments came
	part   bool // a part of its reasoning summary has ended
}

func newResponsesSource(opt *Options) source { return &responsesSource{opt: opt} }

func (s *responsesSource) clean() bool { return false }

func (s *responsesSource) item(index int) *responsesCall {
	for i := range s.calls {
		if s.calls[i].index == index {
			return &s.calls[i]
		}
	}
	if len(s.calls) > 4096 {
		return &responsesCall{index: index}
	}
	s.calls = append(s.calls, responsesCall{index: index})
	return &s.calls[len(s.calls)-1]
}

func (s *responsesSource) read(name, data []byte, to sink) {
	if string(data) == "[DONE]" {
		return // some servers send one after the last event
	}
	var kind string
	var index int
	var delta, item, response, note, logprobs gjson.Result
	root := gjson.Parse(view(data))
	forEach(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
			kind = str(v)
		case "output_index":
			index = int(v.Int())
		case "delta":
			delta = v
		case "item":
			item = v
		case "response":
			response = v
		case "annotation":
			note = v
		case "logprobs":
			logprobs = v
		}
		return true
	})
	switch kind {
	case "response.output_text.delta":
		if logprobs.IsArray() && len(logprobs.Raw) > 2 {
			to.event(&event{kind: evLogprobs, sig: `{"content":` + logprobs.Raw + `,"refusal":null}`})
		}
		s.piece(evText, index, delta, to)
	case "response.refusal.delta":
		s.piece(evRefusal, index, delta, to)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if c := s.item(index); c.part {
			c.part = false
			s.e = event{kind: evThinking, block: index, text: `\n\n`}
			to.event(&s.e)
		}
		s.piece(evThinking, index, delta, to)
	case "response.reasoning_summary_part.done":
		s.item(index).part = true
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		c := s.item(index)
		c.args = true
		s.e = event{kind: evArgs, block: index, text: inner(delta), custom: c.custom}
		if s.e.text != "" {
			to.event(&s.e)
		}
	case "response.output_item.added":
		t := str(item.Get("type"))
		if t == "function_call" || t == "custom_tool_call" {
			s.item(index).custom = t[0] == 'c'
			to.event(&event{kind: evTool, block: index, custom: t[0] == 'c', id: str(item.Get("call_id")), name: str(item.Get("name"))})
		}
	case "response.output_item.done":
		s.ended(index, item, to)
	case "response.output_text.annotation.added":
		if c := chatCite(note); c.url != "" {
			to.event(&event{kind: evCite, cite: c})
		}
	case "response.created", "response.in_progress":
		if !s.began {
			s.began = true
			to.event(&event{kind: evStart, id: strings.TrimPrefix(str(response.Get("id")), "resp_"), name: str(response.Get("model"))})
		}
	case "response.completed", "response.incomplete":
		if u := responsesUsage(response.Get("usage")); u.Known {
			to.event(&event{kind: evUsage, usage: u})
		}
		to.event(&event{kind: evFinish, finish: responsesFinish(response)})
		to.event(&event{kind: evEnd})
	case "response.failed", "response.cancelled":
		e := failureIn(response)
		if e == nil {
			e = ofStatus(502)
		}
		to.event(&event{kind: evFail, failure: e})
	case "error":
		e := failureIn(root)
		if e == nil {
			e = ofStatus(statusIn(root))
			describe(e, root)
		}
		to.event(&event{kind: evFail, failure: e})
	case "":
		if e := failureIn(root); e != nil {
			to.event(&event{kind: evFail, failure: e})
		}
	}
}

func (s *responsesSource) piece(kind eventKind, index int, delta gjson.Result, to sink) {
	if text := inner(delta); text != "" {
		s.e = event{kind: kind, block: index, text: text}
		to.event(&s.e)
	}
}

// ended reads a whole item: what only it tells, and arguments that came in no
// pieces.
func (s *responsesSource) ended(index int, item gjson.Result, to sink) {
	c := s.item(index)
	switch str(item.Get("type")) {
	case "function_call", "custom_tool_call":
		if !c.args {
			text := item.Get("arguments")
			if c.custom {
				text = item.Get("input")
			}
			if t := inner(text); t != "" {
				to.event(&event{kind: evArgs, block: index, text: t, custom: c.custom})
			}
		}
	case "reasoning":
		if e := str(item.Get("encrypted_content")); e != "" {
			to.event(&event{kind: evSignature, block: index, sig: str(item.Get("id")) + ":" + e, issuer: s.opt.issuer(issuerOpenAI)})
		}
	case "message":
	default:
		return
	}
	to.event(&event{kind: evClose, block: index})
}
