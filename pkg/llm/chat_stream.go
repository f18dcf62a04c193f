package llm

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
)

// sink takes the events of an answer in order.
type sink interface{ event(e *event) }

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

func newChatSource(opt *Options) source { return &chatSource{opt: opt} }

func (s *chatSource) clean() bool { return s.finished }

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

// oneLine takes line ends out of JSON; within strings they are escaped.
func oneLine(json string) string {
	for i := 0; i < len(json); i++ {
		if json[i] == '\n' || json[i] == '\r' {
			b := []byte(json)
			for j := i; j < len(b); j++ {
				if b[j] == '\n' || b[j] == '\r' {
					b[j] = ' '
				}
			}
			return string(b)
		}
	}
	return json
}
