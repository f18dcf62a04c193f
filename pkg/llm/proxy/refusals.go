package proxy

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/vendortext"
)

// refusedForms is what is known about the fields, roles and beta features that the
// server of one connection refuses by name.
type refusedForms struct {
	connection string
	known      llm.Refusals  // remembered by the machine
	learned    llm.Refusals  // of this request
	lifted     llm.Refusals  // remembered, but the older form was refused
	first      *apierr.Error // the answer to the client's own form
	// omit are the fields and beta features that the server has refused, with those of
	// omitted, which this request has shown. They are stored by these names:
	//
	//	<dialect>:<path>   a field, see llm.Omit
	//	beta:<name>        a value of anthropic-beta; "*" is all
	omit, omitted []string
	// once: what was refused holds for the model or the value of this request alone.
	once bool
	// noThoughts: it has refused the signature of a thought of this conversation.
	noThoughts bool
}

const (
	betaPrefix = "beta:"
	betaField  = "anthropic-beta"
	allBetas   = betaPrefix + "*"
)

// set returns what the next request must avoid.
func (r *refusedForms) set() llm.Refusals { return (r.known | r.learned) &^ r.lifted }

// changes reports whether fields of the request's body are left out.
func (r *refusedForms) changes() bool { return len(r.omit) > 0 }

// readRefusals reads what the connection's server is known to refuse.
func (a *attempt) readRefusals() {
	r := &a.forms
	r.known, r.omit = 0, nil
	if len(r.omitted) == 0 && !a.call.Machine.AnyRefused() {
		return
	}
	for _, name := range a.call.Machine.Refused(a.Connection.ID, a.proxy.Now().UnixMilli()) {
		if strings.Contains(name, ":") {
			r.omit = append(r.omit, name)
		} else {
			r.known |= llm.RefusalOf(name)
		}
	}
	for _, name := range r.omitted {
		if !slices.Contains(r.omit, name) {
			r.omit = append(r.omit, name)
		}
	}
}

// adapts reports whether the upstream gets other forms of what it refuses by name.
// Anthropic does not: its refusals are for its own clients, which adapt their requests.
func (a *attempt) adapts() bool {
	switch a.api.dialect {
	case llm.Chat, llm.Responses:
		return true
	case llm.Messages:
		return a.Target.Provider.ID != "anthropic"
	}
	return false
}

// leaveOut returns a request without the fields that the server has refused.
func (a *attempt) leaveOut(ctx context.Context, body []byte) ([]byte, error) {
	if err := a.memoryToOmit(ctx, body); err != nil {
		return nil, err
	}
	prefix := a.api.dialect.String() + ":"
	for _, name := range a.forms.omit {
		path, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if body, ok = llm.Omit(body, path); ok && !a.adds(path) {
			a.lost(strings.ReplaceAll(path, ".*", ""))
		}
	}
	return body, nil
}

// memoryToOmit acquires what it takes to leave fields out of a large body.
func (a *attempt) memoryToOmit(ctx context.Context, body []byte) error {
	if len(body) <= memory.Uncounted {
		return nil
	}
	return a.call.Memory.Acquire(ctx, memory.Work, memory.Amount{Program: 3 * int64(len(body))})
}

// refusedStreamOptions is stored for a server that refuses stream_options.
const refusedStreamOptions = "chat:stream_options"

// adds reports whether the gateway itself sets a field that the client has not set.
func (a *attempt) adds(path string) bool {
	return path == "stream_options" && (a.req.Dialect != llm.Chat || !gjson.GetBytes(a.req.Body, path).Exists())
}

// acceptsStreamOptions reports whether the upstream of a chat client that has not asked
// for the usage of its stream may be asked for it: its row or the connection says that
// it accepts that.
func (a *attempt) acceptsStreamOptions() bool {
	if !a.req.mayAskUsage || a.req.Dialect != llm.Chat || a.api.dialect != llm.Chat || a.api.base != nil {
		return false
	}
	if says := a.Connection.Data.StreamUsage; says != nil {
		return *says
	}
	return a.Target.Provider.StreamUsage
}

// refusesStreamOptions notes that the server refuses stream_options, and reports whether
// the request can be sent without: the client has not asked for the usage.
func (a *attempt) refusesStreamOptions(e *refusal) bool {
	if !a.opt.AskUsage {
		return false
	}
	for _, path := range llm.RefusedFields(e.sent, e.Status, e.Code, e.Param, e.message, e.body) {
		if path == "stream_options" || path == "stream_options.include_usage" {
			n := len(a.forms.omitted)
			a.omit(refusedStreamOptions)
			return len(a.forms.omitted) > n
		}
	}
	return false
}

// refusesCacheMarks reports whether the server has refused a mark of a cached prefix.
func (a *attempt) refusesCacheMarks() bool {
	return slices.ContainsFunc(a.forms.omit, func(name string) bool { return strings.HasSuffix(name, "cache_control") })
}

// refusesBeta reports whether the server has refused a beta feature.
func (r *refusedForms) refusesBeta(name string) bool {
	return slices.Contains(r.omit, allBetas) || slices.Contains(r.omit, betaPrefix+name)
}

// leaveOutBetas removes the beta features that the server has refused from a header.
func (a *attempt) leaveOutBetas(h httpmsg.Header) httpmsg.Header {
	out := h[:0]
	for _, f := range h {
		if f.Name == betaField {
			var names []string
			for _, name := range betaNames(f.Value) {
				if a.forms.refusesBeta(name) {
					a.lost(name)
				} else {
					names = append(names, name)
				}
			}
			if f.Value = strings.Join(names, ","); f.Value == "" {
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// betaNames returns the names in a value of anthropic-beta.
func betaNames(value string) (names []string) {
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// OtherForm reports whether to call the same account once more, without what its
// server refuses by name. If it refuses both forms of a field, the answer to the
// client's own form is returned.
func (a *attempt) OtherForm(e *apierr.Error, body []byte) (retry bool, instead *apierr.Error) {
	if a.req.Body == nil || e.Status >= 500 {
		return false, nil
	}
	// The request is built again because storing it would take memory during
	// every call.
	sent, _, err := llm.Request(a.req.Dialect, a.api.dialect, a.req.Body, a.opt)
	if err != nil {
		return false, nil
	}
	r := refusal{Error: e, sent: sent, body: body, message: accounts.MessageOf(body)}
	if r.message == "" {
		r.message = e.Message // of an event of a stream
	}
	if a.refusesThoughts(&r) || a.refusesStreamOptions(&r) {
		return true, nil
	}
	if !a.adapts() {
		return false, nil
	}
	if a.api.dialect == llm.Chat && a.learn(&r) || a.learnNames(&r) {
		return true, nil
	}
	if first := a.forms.first; first != nil && e.Param != "" && e.Param != first.Param {
		if r := llm.RefusalOf(e.Param); r != 0 && opposite(r)&a.forms.learned != 0 {
			return false, first
		}
	}
	return false, nil
}

// refusal is an upstream's 4xx answer to a request.
type refusal struct {
	*apierr.Error
	sent, body []byte // sent has the fields that the server was known to refuse
	message    string // as the upstream wrote it
}

// refusesThoughts notes that the upstream has refused the signature of a thought, and
// reports whether the request can be sent without thoughts.
func (a *attempt) refusesThoughts(r *refusal) bool {
	if a.forms.noThoughts || r.Status != 400 && r.Status != 422 || !vendortext.Match(vendortext.RefusesThoughts, r.Code, r.message) {
		return false
	}
	opt := a.opt
	opt.NoThoughts, opt.Tools, opt.Settings = true, &llm.Tools{}, nil
	without, _, err := llm.Request(a.req.Dialect, a.api.dialect, a.req.Body, opt)
	a.forms.noThoughts = err == nil && !bytes.Equal(without, r.sent)
	return a.forms.noThoughts
}

// learn notes what a chat server refuses, and reports whether the request can be sent
// in another form.
func (a *attempt) learn(e *refusal) bool {
	r, known := &a.forms, a.opt.Refuses
	got := llm.Refused(e.sent, e.Status, e.Code, e.Param, e.message, e.body)
	if got == 0 || known&got != 0 {
		return false
	}
	if r.first == nil {
		r.first = e.Error
	}
	switch other := opposite(got); {
	case other != 0 && r.learned&other != 0:
		return false // it refuses both forms
	case other != 0 && known&other != 0:
		r.lifted |= other
	default:
		r.learned |= got
	}
	return true
}

// learnNames notes the fields and beta features that a server refuses, and reports
// whether there are others than before.
func (a *attempt) learnNames(e *refusal) bool {
	n := len(a.forms.omitted)
	a.forms.once = a.forms.once || llm.DefaultOnly(e.Code, e.message)
	for _, path := range llm.RefusedFields(e.sent, e.Status, e.Code, e.Param, e.message, e.body) {
		if a.api.dialect != llm.Chat || llm.RefusalOf(path) == 0 {
			a.omit(a.api.dialect.String() + ":" + path)
		}
	}
	if a.api.dialect == llm.Messages && a.req.Dialect == llm.Messages && e.Status == 400 && vendortext.Match(vendortext.RefusesBeta, "", e.message) {
		named, sent := false, false
		for _, f := range a.call.Header {
			if f.Name != betaField || !clientheader.Sent(f.Name, clientheader.ToMessages) {
				continue
			}
			for _, name := range betaNames(f.Value) {
				sent = true
				if strings.Contains(e.message, "`"+name+"`") {
					named = true
					a.omit(betaPrefix + name)
				}
			}
		}
		if sent && !named {
			a.omit(allBetas)
		}
	}
	return len(a.forms.omitted) > n
}

// omit notes a name of refusedForms, unless it is known.
func (a *attempt) omit(name string) {
	r := &a.forms
	if len(name) <= maxRefusedName && !slices.Contains(r.omit, name) && !slices.Contains(r.omitted, name) {
		r.omitted = append(r.omitted, name)
	}
}

// maxRefusedName is the length of a name that the machine's object stores, in bytes.
const maxRefusedName = 64

// opposite returns the refusal of the other form of r, or 0.
func opposite(r llm.Refusals) llm.Refusals {
	switch r {
	case llm.RefusesMaxTokens:
		return llm.RefusesMaxCompletionTokens
	case llm.RefusesMaxCompletionTokens:
		return llm.RefusesMaxTokens
	}
	return 0
}

// remember stores what the server turned out to refuse or to accept. The refusals of a
// vendor of the table depend on the model and are not stored, stream_options aside.
func (a *attempt) remember(res *accounts.Result) {
	r := &a.forms
	if r.connection != res.Connection.ID {
		return
	}
	if vendor := a.api.dialect != llm.Messages && !llm.DeviationsOf(a.Target.Provider.ID).Passes; vendor || r.once {
		if slices.Contains(r.omitted, refusedStreamOptions) {
			res.Refuses([]string{refusedStreamOptions}, true)
		}
		return
	}
	res.Refuses(r.learned.Names(), true)
	res.Refuses(r.lifted.Names(), false)
	res.Refuses(r.omitted, true)
}
