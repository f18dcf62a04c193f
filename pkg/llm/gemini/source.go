package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// source reads a stream of partial answers. It has no terminator: it is
// complete if it ends without an error after a finish reason.
type source struct {
	opt       *ir.Options
	began     bool
	finished  bool
	calls     int
	text      []byte // the text so far, escaped: citations have byte offsets in it
	grounding string // groundingMetadata, which is read when the answer ends
	e         ir.Event
	billed    ir.Usage // what the sources are billed by
}

// maxText is the maximum number of bytes of a text that are stored for its
// citations.
const maxText = 1 << 20

// NewSource returns the source of an upstream's stream.
func NewSource(opt *ir.Options) ir.Source { return &source{opt: opt} }

func (s *source) CleanEnd() bool { return s.finished }

func (s *source) Read(name, data []byte, to ir.Sink) {
	if string(data) == "[DONE]" {
		return
	}
	root := gjson.Parse(ir.View(data))
	if root.IsArray() {
		root = root.Get("0") // errors are wrapped in an array
	}
	var candidate, usage, feedback, failure, id, model gjson.Result
	ir.Each(root, func(k, v gjson.Result) bool {
		switch k.Str {
		case "candidates":
			candidate = v.Get("0")
			countGrounding(&s.billed, v)
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
		if e := ir.ErrorIn(root); e != nil {
			to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
			return
		}
	}
	if !s.began {
		s.began = true
		to.Event(&ir.Event{Kind: ir.EventStart, ID: ir.Str(id), Name: ir.Str(model)})
	}
	var parts, finish, sources gjson.Result
	ir.Each(candidate, func(k, v gjson.Result) bool {
		switch k.Str {
		case "content":
			parts = v.Get("parts")
		case "finishReason":
			finish = v
		case "groundingMetadata":
			sources = v
		}
		return true
	})
	ir.Each(parts, func(_, p gjson.Result) bool {
		s.part(p, to)
		return true
	})
	if sources.IsObject() && len(sources.Raw) <= maxText {
		s.grounding = strings.Clone(sources.Raw)
	}
	if s.grounding != "" && (s.finished || ir.Str(finish) != "") {
		grounding(gjson.Parse(s.grounding), func() string { return ir.Unescape(string(s.text)) },
			func(c ir.Citation) { to.Event(&ir.Event{Kind: ir.EventCitation, Citation: c}) })
		s.grounding = ""
	}
	if u := usageOf(usage); u.Known {
		u.Merge(s.billed)
		to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
	}
	if f := ir.Str(finish); f != "" {
		s.finished = true
		to.Event(&ir.Event{Kind: ir.EventFinish, Finish: finishOf(f)})
	} else if b := ir.Str(feedback.Get("blockReason")); b != "" && !candidate.Exists() {
		s.finished = true
		to.Event(&ir.Event{Kind: ir.EventFinish, Finish: ir.FinishFilter,
			Explanation: "The prompt was blocked: " + ir.Truncate(b)})
	}
}

func (s *source) part(p gjson.Result, to ir.Sink) {
	var text, call, inline gjson.Result
	thought, sig := false, ""
	ir.Each(p, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text":
			text = v
		case "thought":
			thought = v.Type == gjson.True
		case "thoughtSignature":
			sig = ir.Str(v)
		case "functionCall":
			call = v
		case "inlineData":
			inline = v
		}
		return true
	})
	if call.IsObject() {
		s.calls++
		id := ir.Str(call.Get("id"))
		if id == "" {
			id = s.opt.CallID(s.calls)
		}
		e := ir.Event{Kind: ir.EventTool, Block: s.calls, ID: id, Name: ir.Str(call.Get("name"))}
		if sig != "" {
			e.Signature, e.Issuer = sig, s.opt.IssuerOr(ir.IssuerGemini)
		}
		to.Event(&e)
		args := "{}"
		if v := call.Get("args"); v.IsObject() {
			args = v.Raw
		}
		to.Event(&ir.Event{Kind: ir.EventArguments, Block: s.calls, Text: ir.Escape(args)})
		to.Event(&ir.Event{Kind: ir.EventClose, Block: s.calls})
		return
	}
	if inline.IsObject() {
		b := ir.Block{MediaType: ir.Str(inline.Get("mimeType")), Data: ir.Str(inline.Get("data"))}
		to.Event(&ir.Event{Kind: ir.EventImage, Signature: b.URI()})
	}
	if t := ir.EscapedText(text); t != "" {
		s.e = ir.Event{Kind: ir.EventText, Text: t}
		if thought {
			s.e.Kind = ir.EventThinking
		} else if len(s.text) < maxText {
			s.text = append(s.text, t...)
		}
		to.Event(&s.e)
	}
	if sig != "" {
		to.Event(&ir.Event{Kind: ir.EventSignature, Signature: sig, Issuer: s.opt.IssuerOr(ir.IssuerGemini)})
	}
}
