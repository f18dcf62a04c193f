package llm

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// converseSource reads the events of ConverseStream, each under the name that
// its frame has in :event-type or :exception-type (pkg/provider/bedrock makes server-sent
// events of the frames):
//
//	messageStart, contentBlockStart, contentBlockDelta, contentBlockStop,
//	messageStop, metadata; throttlingException, …
type converseSource struct {
	opt     *Options
	format  []int // blocks that are calls of formatTool
	calls   []int // of other tools
	stopped bool
	began   bool
	sourced sourced
}

// clean: metadata comes last, but the answer is whole with messageStop.
func (s *converseSource) clean() bool { return s.stopped }

func (s *converseSource) begin(to sink) {
	if !s.began {
		s.began = true
		to.event(&event{kind: evStart})
	}
}

func newConverseSource(opt *Options) source { return &converseSource{opt: opt} }

func (s *converseSource) read(name, data []byte, to sink) {
	root := gjson.Parse(view(data))
	index := int(root.Get("contentBlockIndex").Int())
	switch string(name) {
	case "messageStart":
		s.begin(to)
	case "contentBlockStart":
		s.begin(to)
		call := root.Get("start.toolUse")
		switch {
		case !call.IsObject():
		case str(call.Get("name")) == formatTool:
			s.format = append(s.format, index)
		default:
			s.calls = append(s.calls, index)
			to.event(&event{kind: evTool, block: index, id: str(call.Get("toolUseId")), name: str(call.Get("name"))})
		}
	case "contentBlockDelta":
		s.begin(to)
		s.delta(index, root.Get("delta"), to)
	case "contentBlockStop":
		s.sourced.flush(to)
		to.event(&event{kind: evClose, block: index})
	case "messageStop":
		s.begin(to)
		s.stopped = true
		f := converseFinish(str(root.Get("stopReason")))
		if len(s.format) > 0 && f == finishTools {
			f = finishStop
		}
		to.event(&event{kind: evFinish, finish: f, stopSeq: str(root.Get("additionalModelResponseFields.stop_sequence"))})
	case "metadata":
		if u := converseUsage(root.Get("usage")); u.Known {
			to.event(&event{kind: evUsage, usage: u})
		}
		if s.stopped {
			to.event(&event{kind: evEnd})
		}
	default:
		if e := converseException(string(name), root); e != nil {
			to.event(&event{kind: evFail, failure: e})
		}
	}
}

func (s *converseSource) delta(index int, delta gjson.Result, to sink) {
	piece := func(kind eventKind, v gjson.Result) {
		if text := inner(v); text != "" {
			if kind == evText {
				s.sourced.text(text)
			}
			to.event(&event{kind: kind, block: index, text: text})
		}
	}
	forEach(delta, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text":
			piece(evText, v)
		case "toolUse":
			if among(s.format, index) {
				piece(evText, v.Get("input"))
			} else if among(s.calls, index) {
				piece(evArgs, v.Get("input"))
			}
		case "reasoningContent":
			piece(evThinking, v.Get("text"))
			if sig := str(v.Get("signature")); sig != "" {
				to.event(&event{kind: evSignature, block: index, sig: sig, issuer: s.opt.issuer(issuerBedrock)})
			}
			if data := str(v.Get("redactedContent")); data != "" {
				to.event(&event{kind: evRedacted, block: index, sig: data, issuer: s.opt.issuer(issuerBedrock)})
			}
		case "citation":
			if c, ok := converseCite(v); ok {
				s.sourced.cite(c)
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

// converseExceptions are the statuses of the exceptions, in lower case without
// "exception" at the end.
var converseExceptions = [...]struct {
	name   string
	status int
}{
	{"accessdenied", 403}, {"unrecognizedclient", 403}, {"expiredtoken", 403}, {"resourcenotfound", 404},
	{"validation", 400}, {"servicequotaexceeded", 400}, {"throttling", 429}, {"modelnotready", 429},
	{"modeltimeout", 504}, {"internalserver", 500}, {"internalfailure", 500}, {"modelstreamerror", 502},
	{"modelerror", 502}, {"serviceunavailable", 503}, {"corruptstream", 502},
}

// converseException makes the failure of an exception's event; nil for an
// event of another kind.
func converseException(name string, root gjson.Result) *apierr.Error {
	kind, ok := strings.CutSuffix(strings.ToLower(name), "exception")
	if !ok {
		return nil
	}
	status := 502
	for i := range converseExceptions {
		if converseExceptions[i].name == kind {
			status = converseExceptions[i].status
		}
	}
	e := ofStatus(status)
	describe(e, root)
	return e
}
