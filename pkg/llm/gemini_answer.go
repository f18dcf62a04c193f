package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// readGeminiAnswer reads a GenerateContentResponse.
func readGeminiAnswer(root gjson.Result, a *answer, opt *Options) bool {
	candidate := root.Get("candidates.0")
	blocked := root.Get("promptFeedback.blockReason")
	if !candidate.IsObject() && str(blocked) == "" {
		return false
	}
	a.id, a.model = str(root.Get("responseId")), str(root.Get("modelVersion"))
	a.usage = geminiUsage(root.Get("usageMetadata"))
	a.finish = finishFilter
	if candidate.IsObject() {
		a.finish = geminiFinish(str(candidate.Get("finishReason")))
	} else {
		a.explain = "The prompt was blocked: " + limit(str(blocked))
	}
	sig := ""
	var run joined // of the text or thought that is last
	forEach(candidate.Get("content.parts"), func(_, p gjson.Result) bool {
		own := opt.issuer(issuerGemini)
		s := str(p.Get("thoughtSignature"))
		switch {
		case p.Get("functionCall").IsObject():
			settleText(a, &run)
			f := p.Get("functionCall")
			b := block{kind: toolUseBlock, id: str(f.Get("id")), name: str(f.Get("name")), args: rawOf(f.Get("args"))}
			if b.id == "" {
				b.id = opt.callID(len(a.blocks))
			}
			if s != "" {
				b.sig, b.issuer = s, own
			}
			a.blocks = append(a.blocks, b)
		case p.Get("inlineData").IsObject():
			settleText(a, &run)
			in := p.Get("inlineData")
			a.blocks = append(a.blocks, block{kind: imageBlock, mime: str(in.Get("mimeType")), data: str(in.Get("data"))})
		case p.Get("text").Type == gjson.String:
			kind := textBlock
			if p.Get("thought").Type == gjson.True {
				kind = thinkingBlock
			}
			text := p.Get("text").Str
			if n := len(a.blocks); text != "" && (n == 0 || a.blocks[n-1].kind != kind) {
				settleText(a, &run)
				a.blocks = append(a.blocks, block{kind: kind})
			}
			run.add("", text)
			if s != "" {
				sig = s
			}
		}
		return true
	})
	settleText(a, &run)
	if sig != "" && !a.hasTools() {
		// The signature of a text stands before it.
		b := block{kind: thinkingBlock, sig: sig, issuer: opt.issuer(issuerGemini)}
		at := 0
		if len(a.blocks) > 0 && a.blocks[0].kind == thinkingBlock {
			a.blocks[0].sig, a.blocks[0].issuer = b.sig, b.issuer
		} else {
			a.blocks = append(a.blocks[:at], append([]block{b}, a.blocks[at:]...)...)
		}
	}
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if b := &a.blocks[i]; b.kind == textBlock {
			grounding(candidate.Get("groundingMetadata"), func() string { return b.text }, func(c citation) { b.cites = append(b.cites, c) })
			break
		}
	}
	return true
}

// settle gives the last block its text.
func settleText(a *answer, run *joined) {
	if text := run.text(); text != "" {
		a.blocks[len(a.blocks)-1].text = text
	}
	*run = joined{}
}

func geminiFinish(s string) finish {
	switch s {
	case "":
		return finishUnset
	case "MAX_TOKENS", "CONTINUATION":
		return finishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE":
		return finishFilter
	}
	if len(s) > 6 && s[:6] == "IMAGE_" {
		return finishFilter
	}
	return finishStop
}

func geminiUsage(v gjson.Result) (u Usage) {
	if !v.IsObject() {
		return u
	}
	u.Known = true
	forEach(v, func(k, n gjson.Result) bool {
		switch k.Str {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Input += count(n)
		case "cachedContentTokenCount":
			u.CacheRead = count(n)
		case "candidatesTokenCount":
			u.Output += count(n)
		case "thoughtsTokenCount":
			u.Reasoning = count(n)
			u.Output += u.Reasoning
		}
		return true
	})
	return u
}

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

func (s *geminiSource) clean() bool { return s.finished }

func newGeminiSource(opt *Options) source { return &geminiSource{opt: opt} }

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

// geminiAnswerUsage reads the token counts of a JSON answer.
func geminiAnswerUsage(root gjson.Result) Usage { return geminiUsage(root.Get("usageMetadata")) }
