package converse

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// source reads the events of ConverseStream, each under the name that
// its frame has in :event-type or :exception-type (pkg/provider/bedrock makes server-sent
// events of the frames):
//
//	messageStart, contentBlockStart, contentBlockDelta, contentBlockStop,
//	messageStop, metadata; throttlingException, …
type source struct {
	opt     *ir.Options
	format  []int // blocks that are calls of ir.FormatTool
	calls   []int // blocks that are calls of other tools
	stopped bool
	began   bool
	sourced ir.CitationQueue
}

// CleanEnd reports whether messageStop arrived. metadata follows it, but the
// answer is complete without.
func (s *source) CleanEnd() bool { return s.stopped }

func (s *source) begin(to ir.Sink) {
	if !s.began {
		s.began = true
		to.Event(&ir.Event{Kind: ir.EventStart})
	}
}

// NewSource returns the source of an upstream's stream.
func NewSource(opt *ir.Options) ir.Source { return &source{opt: opt} }

func (s *source) Read(name, data []byte, to ir.Sink) {
	root := gjson.Parse(ir.View(data))
	index := int(root.Get("contentBlockIndex").Int())
	switch string(name) {
	case "messageStart":
		s.begin(to)
	case "contentBlockStart":
		s.begin(to)
		call := root.Get("start.toolUse")
		switch {
		case !call.IsObject():
		case ir.Str(call.Get("name")) == ir.FormatTool:
			s.format = append(s.format, index)
		default:
			s.calls = append(s.calls, index)
			to.Event(&ir.Event{Kind: ir.EventTool, Block: index, ID: ir.Str(call.Get("toolUseId")),
				Name: ir.Str(call.Get("name"))})
		}
	case "contentBlockDelta":
		s.begin(to)
		s.delta(index, root.Get("delta"), to)
	case "contentBlockStop":
		s.sourced.Flush(to)
		to.Event(&ir.Event{Kind: ir.EventClose, Block: index})
	case "messageStop":
		s.begin(to)
		s.stopped = true
		f := finishOf(ir.Str(root.Get("stopReason")))
		if len(s.format) > 0 && f == ir.FinishTools {
			f = ir.FinishStop
		}
		to.Event(&ir.Event{Kind: ir.EventFinish, Finish: f,
			StopSequence: ir.Str(root.Get("additionalModelResponseFields.stop_sequence"))})
	case "metadata":
		if u := ReadUsage(root); u.Known {
			to.Event(&ir.Event{Kind: ir.EventUsage, Usage: u})
		}
		if s.stopped {
			to.Event(&ir.Event{Kind: ir.EventEnd})
		}
	default:
		if e := exceptionError(string(name), root); e != nil {
			to.Event(&ir.Event{Kind: ir.EventFail, Failure: e})
		}
	}
}

func (s *source) delta(index int, delta gjson.Result, to ir.Sink) {
	piece := func(kind ir.EventKind, v gjson.Result) {
		if text := ir.EscapedText(v); text != "" {
			if kind == ir.EventText {
				s.sourced.Text(text)
			}
			to.Event(&ir.Event{Kind: kind, Block: index, Text: text})
		}
	}
	ir.Each(delta, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text":
			piece(ir.EventText, v)
		case "toolUse":
			if among(s.format, index) {
				piece(ir.EventText, v.Get("input"))
			} else if among(s.calls, index) {
				piece(ir.EventArguments, v.Get("input"))
			}
		case "reasoningContent":
			piece(ir.EventThinking, v.Get("text"))
			if sig := ir.Str(v.Get("signature")); sig != "" {
				to.Event(&ir.Event{Kind: ir.EventSignature, Block: index, Signature: sig, Issuer: s.opt.IssuerOr(ir.IssuerBedrock)})
			}
			if data := ir.Str(v.Get("redactedContent")); data != "" {
				to.Event(&ir.Event{Kind: ir.EventRedacted, Block: index, Signature: data, Issuer: s.opt.IssuerOr(ir.IssuerBedrock)})
			}
		case "citation":
			if c, ok := readCitation(v); ok {
				s.sourced.Add(c)
			}
		}
		return true
	})
}

func among(list []int, n int) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}

// exceptions are the statuses of exceptions, by name in lower case without
// "exception" at the end.
var exceptions = [...]struct {
	name   string
	status int
}{
	{"accessdenied", 403}, {"unrecognizedclient", 403}, {"expiredtoken", 403}, {"resourcenotfound", 404},
	{"validation", 400}, {"servicequotaexceeded", 400}, {"throttling", 429}, {"modelnotready", 429},
	{"modeltimeout", 504}, {"internalserver", 500}, {"internalfailure", 500}, {"modelstreamerror", 502},
	{"modelerror", 502}, {"serviceunavailable", 503}, {"corruptstream", 502},
}

// exceptionError returns the failure of an exception's event, or nil for an
// event of another kind.
func exceptionError(name string, root gjson.Result) *apierr.Error {
	kind, ok := strings.CutSuffix(strings.ToLower(name), "exception")
	if !ok {
		return nil
	}
	status := 502
	for i := range exceptions {
		if exceptions[i].name == kind {
			status = exceptions[i].status
		}
	}
	e := ir.StatusError(status)
	ir.Describe(e, root)
	return e
}
