package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// source reads the chunks of a chat stream (docs/reference/api-shapes.md,
// 3.3).
type source struct {
	opt          *ir.Options
	began        bool
	finished     bool
	e            ir.Event // reused
	text         ir.Pattern
	pieces       int          // events of the current chunk
	onlyPiece    gjson.Result // the value of the only event
	onlyKind     ir.EventKind // the kind of the only event
	thinkingSent bool         // reasoning arrived as plain text, which its details repeat
	calls        []streamedCall
}

// NewSource returns the source of an upstream's stream.
func NewSource(opt *ir.Options) ir.Source { return &source{opt: opt} }

func (s *source) CleanEnd() bool { return s.finished }

// ReadQuick reads a chunk that differs from the last parsed one in its text
// only.
func (s *source) ReadQuick(data []byte, to ir.Sink) bool {
	text, ok := s.text.Match(data)
	if ok {
		s.e = ir.Event{Kind: s.text.Kind, Text: ir.View(text)}
		to.Event(&s.e)
	}
	return ok
}

func (s *source) Read(name, data []byte, to ir.Sink) {
	if string(data) == "[DONE]" {
		to.Event(&ir.Event{Kind: ir.EventEnd})
		return
	}
	var id, model, choices, usage, failure, elsewhere gjson.Result
	root := gjson.Parse(ir.View(data))
	ir.Each(root, func(k, v gjson.Result) bool {
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
		if e := ir.ErrorIn(root); e != nil {
			to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
			return
		}
	}
	if !s.began {
		s.began = true
		to.Event(&ir.Event{Kind: ir.EventStart, ID: ir.Str(id), Name: ir.Str(model)})
	}
	s.pieces, s.onlyPiece = 0, gjson.Result{}
	other := false
	ir.Each(choices, func(_, c gjson.Result) bool {
		var delta, finish, logprobs, index gjson.Result
		ir.Each(c, func(k, v gjson.Result) bool {
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
			return true // the request asked for one choice
		}
		if logprobs.IsObject() {
			other = true
			to.Event(&ir.Event{Kind: ir.EventLogprobs, Signature: logprobs.Raw})
		}
		if delta.IsObject() {
			s.delta(delta, to)
		}
		if finish.Type == gjson.String && finish.Str != "" {
			s.finished, other = true, true
			f, fail := finishOf(finish.Str)
			if fail != nil {
				to.Event(&ir.Event{Kind: ir.EventFail, Failure: fail})
				return false
			}
			to.Event(&ir.Event{Kind: ir.EventFinish, Finish: f})
		}
		return true
	})
	if c := s.onlyPiece; s.pieces == 1 && len(c.Raw) > 2 && c.Index+len(c.Raw) <= len(data) && !other &&
		choices.Get("#").Int() == 1 {
		s.text.Learn(s.onlyKind, 0, data, c.Index+1, c.Index+len(c.Raw)-1)
	}
	if usage.IsObject() || elsewhere.Exists() {
		s.text.Has = false
		if u := ReadUsage(root); u.Known {
			to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
		}
	}
}

func (s *source) delta(delta gjson.Result, to ir.Sink) {
	var reasoning, content, refusal, calls, details, notes, call gjson.Result
	ir.Each(delta, func(k, v gjson.Result) bool {
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
	if s.onlyPiece, s.onlyKind = content, ir.EventText; ir.EscapedText(reasoning) != "" {
		s.onlyPiece, s.onlyKind = reasoning, ir.EventThinking
	}
	s.piece(ir.EventThinking, ir.EscapedText(reasoning), to)
	s.thinkingSent = s.thinkingSent || reasoning.Exists()
	if details.IsArray() {
		s.details(details, s.thinkingSent, to)
	}
	if content.Type == gjson.String {
		s.piece(ir.EventText, ir.EscapedText(content), to)
	} else if content.IsArray() {
		ir.Each(content, func(_, p gjson.Result) bool {
			switch ir.Str(p.Get("type")) {
			case "text":
				s.piece(ir.EventText, ir.EscapedText(p.Get("text")), to)
			case "thinking":
				ir.Each(p.Get("thinking"), func(_, x gjson.Result) bool {
					s.piece(ir.EventThinking, ir.EscapedText(x.Get("text")), to)
					return true
				})
			}
			return true
		})
	}
	s.piece(ir.EventRefusal, ir.EscapedText(refusal), to)
	ir.Each(calls, func(i, c gjson.Result) bool {
		s.call(int(i.Num), c, to)
		return true
	})
	if call.IsObject() {
		s.function("call_"+ir.Str(call.Get("name")), 0, call, "", true, to)
	}
	ir.Each(notes, func(_, v gjson.Result) bool {
		if u := v.Get("url_citation"); u.IsObject() {
			to.Event(&ir.Event{Kind: ir.EventCitation, Citation: ir.ReadURLCitation(u)})
		}
		return true
	})
}

func (s *source) piece(kind ir.EventKind, text string, to ir.Sink) {
	if text != "" {
		s.pieces++
		s.e = ir.Event{Kind: kind, Text: text}
		to.Event(&s.e)
	}
}

func (s *source) call(at int, c gjson.Result, to ir.Sink) {
	index := at
	if v := c.Get("index"); v.Type == gjson.Number {
		index = int(v.Int())
	}
	id := ir.Str(c.Get("id"))
	index = s.block(index, id, c.Get("function.name").Str != "" || c.Get("custom.name").Str != "")
	if custom := c.Get("custom"); custom.IsObject() {
		if name := ir.Str(custom.Get("name")); name != "" {
			to.Event(&ir.Event{Kind: ir.EventTool, Block: index, ID: id, Name: name, Custom: true})
		}
		if text := ir.EscapedText(custom.Get("input")); text != "" {
			to.Event(&ir.Event{Kind: ir.EventArguments, Block: index, Text: text, Custom: true})
		}
		return
	}
	s.function(id, index, c.Get("function"), ir.Str(c.Get("extra_content.google.thought_signature")), false, to)
}

func (s *source) function(id string, index int, f gjson.Result, sig string, old bool, to ir.Sink) {
	var name, args gjson.Result
	ir.Each(f, func(k, v gjson.Result) bool {
		switch k.Str {
		case "name":
			name = v
		case "arguments":
			args = v
		}
		return true
	})
	if n := ir.Str(name); n != "" {
		e := ir.Event{Kind: ir.EventTool, Block: index, ID: id, Name: n, Legacy: old}
		if sig != "" {
			e.Signature, e.Issuer = sig, "gemini"
		}
		to.Event(&e)
	}
	text := ir.EscapedText(args)
	if args.IsObject() {
		text = ir.Escape(args.Raw)
	}
	if text != "" {
		to.Event(&ir.Event{Kind: ir.EventArguments, Block: index, Text: text})
	}
}

func (s *source) details(v gjson.Result, told bool, to ir.Sink) {
	own := s.opt.IssuerOr(ir.IssuerChat)
	ir.Each(v, func(_, p gjson.Result) bool {
		format := ir.Str(p.Get("format"))
		switch ir.Str(p.Get("type")) {
		case "reasoning.text":
			if !told {
				s.piece(ir.EventThinking, ir.EscapedText(p.Get("text")), to)
			}
			if sig := ir.Str(p.Get("signature")); sig != "" {
				to.Event(&ir.Event{Kind: ir.EventSignature, Signature: format + ":" + sig, Issuer: own})
			}
		case "reasoning.summary":
			if !told {
				s.piece(ir.EventThinking, ir.EscapedText(p.Get("summary")), to)
			}
		case "reasoning.encrypted":
			to.Event(&ir.Event{Kind: ir.EventRedacted, Signature: format + ":" + ir.Str(p.Get("data")), Issuer: own})
		}
		return true
	})
}

// streamedCall is a tool call of a stream. Some servers use one index for
// parallel calls, which then differ in their ids only.
type streamedCall struct {
	index, block int
	id           string
}

// block returns the number of a call. Only a delta with a name can begin one.
func (s *source) block(index int, id string, named bool) int {
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

func (s *source) begun(index, block int, id string) int {
	if len(s.calls) < 1<<12 {
		s.calls = append(s.calls, streamedCall{index, block, strings.Clone(id)})
	}
	return block
}
