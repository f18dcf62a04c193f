package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// geminiSource reads a stream of fragments. It has no terminator: it is over
// when a fragment with a finish reason was followed by a clean end.
type geminiSource struct {
	opt      *Options
	began    bool
	finished bool
	calls    int
	said     []byte // the text so far, escaped: citations have byte offsets in it
	found    string // groundingMetadata, passed on when the answer ends
	e        event
}

// maxSaid is how many bytes of a text are kept for its citations.
const maxSaid = 1 << 20

func newGeminiSource(opt *Options) source { return &geminiSource{opt: opt} }

func (s *geminiSource) clean() bool { return s.finished }

func (s *geminiSource) read(name, data []byte, to sink) {
	if string(data) == "[DONE]" {
		return
	}
	root := gjson.Parse(view(data))
	if root.IsArray() {
		root = root.Get("0") // errors come so
	}
	var candidate, usage, feedback, failure, id, model gjson.Result
	forEach(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "candidates":
			candidate = v.Get("0")
		case "usageMetadata":
			usage = v
		case "promptFeedback":
			feedback = v
		case "error":
			failure = v
		case "responseId":
			id = v
		case "modelVersion":
			model = v
		}
		return true
	})
	if failure.Exists() {
		if e := failureIn(root); e != nil {
			to.event(&event{kind: evFail, failure: e})
			return
		}
	}
	if !s.began {
		s.began = true
		to.event(&event{kind: evStart, id: str(id), name: str(model)})
	}
	var parts, finish, found gjson.Result
	forEach(candidate, func(k, v gjson.Result) bool {
		switch k.Str {
		case "content":
			parts = v.Get("parts")
		case "finishReason":
			finish = v
		case "groundingMetadata":
			found = v
		}
		return true
	})
	forEach(parts, func(_, p gjson.Result) bool {
		s.part(p, to)
		return true
	})
	if found.IsObject() && len(found.Raw) <= maxSaid {
		s.found = strings.Clone(found.Raw)
	}
	if s.found != "" && (s.finished || str(finish) != "") {
		grounding(gjson.Parse(s.found), func() string { return unescape(string(s.said)) }, func(c citation) { to.event(&event{kind: evCite, cite: c}) })
		s.found = ""
	}
	if u := geminiUsage(usage); u.Known {
		to.event(&event{kind: evUsage, usage: u})
	}
	if f := str(finish); f != "" {
		s.finished = true
		to.event(&event{kind: evFinish, finish: geminiFinish(f)})
	} else if b := str(feedback.Get("blockReason")); b != "" && !candidate.Exists() {
		s.finished = true
		to.event(&event{kind: evFinish, finish: finishFilter, explain: "The prompt was blocked: " + limit(b)})
	}
}

func (s *geminiSource) part(p gjson.Result, to sink) {
	var text, call, inline gjson.Result
	thought, sig := false, ""
	forEach(p, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text":
			text = v
		case "thought":
			thought = v.Type == gjson.True
		case "thoughtSignature":
			sig = str(v)
		case "functionCall":
			call = v
		case "inlineData":
			inline = v
		}
		return true
	})
	if call.IsObject() {
		s.calls++
		id := str(call.Get("id"))
		if id == "" {
			id = s.opt.callID(s.calls)
		}
		e := event{kind: evTool, block: s.calls, id: id, name: str(call.Get("name"))}
		if sig != "" {
			e.sig, e.issuer = sig, s.opt.issuer(issuerGemini)
		}
		to.event(&e)
		args := "{}"
		if v := call.Get("args"); v.IsObject() {
			args = v.Raw
		}
		to.event(&event{kind: evArgs, block: s.calls, text: escape(args)})
		to.event(&event{kind: evClose, block: s.calls})
		return
	}
	if inline.IsObject() {
		b := block{mime: str(inline.Get("mimeType")), data: str(inline.Get("data"))}
		to.event(&event{kind: evImage, sig: b.uri()})
	}
	if t := inner(text); t != "" {
		s.e = event{kind: evText, text: t}
		if thought {
			s.e.kind = evThinking
		} else if len(s.said) < maxSaid {
			s.said = append(s.said, t...)
		}
		to.event(&s.e)
	}
	if sig != "" {
		to.event(&event{kind: evSignature, sig: sig, issuer: s.opt.issuer(issuerGemini)})
	}
}
