package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// chatSource reads the chunks of a chat stream (docs/reference/api-shapes.md,
// 3.3).
type chatSource struct {
	opt      *Options
	began    bool
	finished bool
	e        event // reused
	text     pattern
	pieces   int          // events of the chunk that is read
	one      gjson.Result // the piece, when it is the only one
	kind     eventKind    // of that
	told     bool         // reasoning came as plain text: its details repeat it
	calls    []chatCallOf
}

func newChatSource(opt *Options) source { return &chatSource{opt: opt} }

func (s *chatSource) clean() bool { return s.finished }

// quick reads a chunk that differs from the last one parsed in its text alone.
func (s *chatSource) quick(data []byte, to sink) bool {
	text, ok := s.text.match(data)
	if ok {
		s.e = event{kind: s.text.kind, text: view(text)}
		to.event(&s.e)
	}
	return ok
}

func (s *chatSource) read(name, data []byte, to sink) {
	if string(data) == "[DONE]" {
		to.event(&event{kind: evEnd})
		return
	}
	var id, model, choices, usage, failure, elsewhere gjson.Result
	root := gjson.Parse(view(data))
	forEach(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "id":
			id = v
		case "model":
			model = v
		case "choices":
			choices = v
		case "usage":
			usage = v
		case "error":
			failure = v
		case "x_groq", "base_resp":
			elsewhere = v
		}
		return true
	})
	if failure.Exists() && failure.Type != gjson.Null || elsewhere.Exists() {
		if e := failureIn(root); e != nil {
			to.event(&event{kind: evFail, failure: e})
			return
		}
	}
	if !s.began {
		s.began = true
		to.event(&event{kind: evStart, id: str(id), name: str(model)})
	}
	s.pieces, s.one = 0, gjson.Result{}
	other := false
	forEach(choices, func(_, c gjson.Result) bool {
		var delta, finish, logprobs, index gjson.Result
		forEach(c, func(k, v gjson.Result) bool {
			switch k.Str {
			case "delta":
				delta = v
			case "finish_reason":
				finish = v
			case "logprobs":
				logprobs = v
			case "index":
				index = v
			case "usage":
				elsewhere = v
			}
			return true
		})
		if index.Num != 0 {
			return true // one choice was asked
		}
		if logprobs.IsObject() {
			other = true
			to.event(&event{kind: evLogprobs, sig: logprobs.Raw})
		}
		if delta.IsObject() {
			s.delta(delta, to)
		}
		if finish.Type == gjson.String && finish.Str != "" {
			s.finished, other = true, true
			f, fail := chatFinish(finish.Str)
			if fail != nil {
				to.event(&event{kind: evFail, failure: fail})
				return false
			}
			to.event(&event{kind: evFinish, finish: f})
		}
		return true
	})
	if c := s.one; s.pieces == 1 && len(c.Raw) > 2 && c.Index+len(c.Raw) <= len(data) && !other && choices.Get("#").Int() == 1 {
		s.text.learn(s.kind, 0, data, c.Index+1, c.Index+len(c.Raw)-1)
	}
	if usage.IsObject() || elsewhere.Exists() {
		s.text.has = false
		if u := chatUsage(root); u.Known {
			to.event(&event{kind: evUsage, usage: u})
		}
	}
}

func (s *chatSource) delta(delta gjson.Result, to sink) {
	var reasoning, content, refusal, calls, details, notes, call gjson.Result
	forEach(delta, func(k, v gjson.Result) bool {
		switch k.Str {
		case "content":
			content = v
		case "reasoning_content":
			if v.Type == gjson.String && len(v.Raw) > 2 {
				reasoning = v
			}
		case "reasoning":
			if !reasoning.Exists() && v.Type == gjson.String {
				reasoning = v
			}
		case "refusal":
			refusal = v
		case "tool_calls":
			calls = v
		case "function_call":
			call = v
		case "reasoning_details":
			details = v
		case "annotations":
			notes = v
		}
		return true
	})
	if calls.Exists() || call.Exists() || notes.Exists() || details.Exists() {
		s.pieces++
	}
	if s.one, s.kind = content, evText; inner(reasoning) != "" {
		s.one, s.kind = reasoning, evThinking
	}
	s.piece(evThinking, inner(reasoning), to)
	s.told = s.told || reasoning.Exists()
	if details.IsArray() {
		s.details(details, s.told, to)
	}
	if content.Type == gjson.String {
		s.piece(evText, inner(content), to)
	} else if content.IsArray() {
		forEach(content, func(_, p gjson.Result) bool {
			switch str(p.Get("type")) {
			case "text":
				s.piece(evText, inner(p.Get("text")), to)
			case "thinking":
				forEach(p.Get("thinking"), func(_, x gjson.Result) bool {
					s.piece(evThinking, inner(x.Get("text")), to)
					return true
				})
			}
			return true
		})
	}
	s.piece(evRefusal, inner(refusal), to)
	forEach(calls, func(i, c gjson.Result) bool {
		s.call(int(i.Num), c, to)
		return true
	})
	if call.IsObject() {
		s.function("call_"+str(call.Get("name")), 0, call, "", true, to)
	}
	forEach(notes, func(_, v gjson.Result) bool {
		if u := v.Get("url_citation"); u.IsObject() {
			to.event(&event{kind: evCite, cite: chatCite(u)})
		}
		return true
	})
}

func (s *chatSource) piece(kind eventKind, text string, to sink) {
	if text != "" {
		s.pieces++
		s.e = event{kind: kind, text: text}
		to.event(&s.e)
	}
}

func (s *chatSource) call(at int, c gjson.Result, to sink) {
	index := at
	if v := c.Get("index"); v.Type == gjson.Number {
		index = int(v.Int())
	}
	id := str(c.Get("id"))
	index = s.block(index, id, c.Get("function.name").Str != "" || c.Get("custom.name").Str != "")
	if custom := c.Get("custom"); custom.IsObject() {
		if name := str(custom.Get("name")); name != "" {
			to.event(&event{kind: evTool, block: index, id: id, name: name, custom: true})
		}
		if text := inner(custom.Get("input")); text != "" {
			to.event(&event{kind: evArgs, block: index, text: text, custom: true})
		}
		return
	}
	s.function(id, index, c.Get("function"), str(c.Get("extra_content.google.thought_signature")), false, to)
}

func (s *chatSource) function(id string, index int, f gjson.Result, sig string, old bool, to sink) {
	var name, args gjson.Result
	forEach(f, func(k, v gjson.Result) bool {
		switch k.Str {
		case "name":
			name = v
		case "arguments":
			args = v
		}
		return true
	})
	if n := str(name); n != "" {
		e := event{kind: evTool, block: index, id: id, name: n, old: old}
		if sig != "" {
			e.sig, e.issuer = sig, "gemini"
		}
		to.event(&e)
	}
	text := inner(args)
	if args.IsObject() {
		text = escape(args.Raw)
	}
	if text != "" {
		to.event(&event{kind: evArgs, block: index, text: text})
	}
}

func (s *chatSource) details(v gjson.Result, told bool, to sink) {
	own := s.opt.issuer(issuerChat)
	forEach(v, func(_, p gjson.Result) bool {
		format := str(p.Get("format"))
		switch str(p.Get("type")) {
		case "reasoning.text":
			if !told {
				s.piece(evThinking, inner(p.Get("text")), to)
			}
			if sig := str(p.Get("signature")); sig != "" {
				to.event(&event{kind: evSignature, sig: format + ":" + sig, issuer: own})
			}
		case "reasoning.summary":
			if !told {
				s.piece(evThinking, inner(p.Get("summary")), to)
			}
		case "reasoning.encrypted":
			to.event(&event{kind: evRedacted, sig: format + ":" + str(p.Get("data")), issuer: own})
		}
		return true
	})
}

// chatCallOf is a tool call of a stream. Some servers give parallel calls one
// index, and tell them apart by their ids alone.
type chatCallOf struct {
	index, block int
	id           string
}

// block gives the number of a call. Only a piece with a name can begin one.
func (s *chatSource) block(index int, id string, named bool) int {
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := &s.calls[i]
		switch {
		case c.index != index:
		case !named || id == "" || c.id == id:
			return c.block
		default:
			return s.begun(index, 1<<20+len(s.calls), id)
		}
	}
	return s.begun(index, index, id)
}

func (s *chatSource) begun(index, block int, id string) int {
	if len(s.calls) < 1<<12 {
		s.calls = append(s.calls, chatCallOf{index, block, strings.Clone(id)})
	}
	return block
}
