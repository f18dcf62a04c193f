package proxy

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/vendortext"
)

// refusals is what is known about the fields, roles and beta features that the server of
// one connection refuses by name. The machine stores the names as they are here:
//
//	<dialect>:<path>   a field that is left out, see ir.Omit
//	<name>             a field or role of chat that gets another form, see ir.Opposite
//	beta:<name>        a value of anthropic-beta; "*" is all
type refusals struct {
	connection string
	avoid      llm.Refusals  // what the next request avoids: remembered or learned, and not lifted
	learned    []string      // of this request
	lifted     []string      // remembered, but the server refuses the other form
	first      *apierr.Error // the answer to the client's own form
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

// maxRefusedName is the length of a name that the machine's object stores, in bytes.
const maxRefusedName = 64

// changes reports whether fields of the request's body are left out.
func (r *refusals) changes() bool {
	return slices.ContainsFunc(r.avoid, func(name string) bool { return strings.Contains(name, ":") })
}

// learn notes that the server refuses a name, and reports whether the next request differs
// for that. It does not if the name is avoided already, or its other form is refused too.
func (r *refusals) learn(name string) bool {
	if len(name) > maxRefusedName || r.avoid.Has(name) ||
		slices.Contains(r.learned, name) || slices.Contains(r.lifted, name) {
		return false
	}
	switch other := ir.Opposite(name); {
	case other == "":
	case slices.Contains(r.learned, other):
		return false
	case r.avoid.Has(other):
		r.lifted = append(r.lifted, other)
		return true
	}
	r.learned = append(r.learned, name)
	return true
}

// readRefusals reads what the connection's server is known to refuse.
func (a *attempt) readRefusals() {
	r := &a.forms
	r.avoid = nil
	if len(r.learned) == 0 && !a.call.Machine.AnyRefused() {
		return
	}
	for _, names := range [...][]string{a.call.Machine.Refused(a.Connection.ID, a.proxy.Now().UnixMilli()), r.learned} {
		for _, name := range names {
			if !r.avoid.Has(name) && !slices.Contains(r.lifted, name) {
				r.avoid = append(r.avoid, name)
			}
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
	for _, name := range a.forms.avoid {
		path, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if body, ok = ir.Omit(body, path); ok && !a.adds(path) {
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
	for _, name := range llm.Refused(llm.Chat, e.sent, e.Status, e.Code, e.Param, e.message, e.body) {
		if name == refusedStreamOptions || name == refusedStreamOptions+".include_usage" {
			return a.forms.learn(refusedStreamOptions)
		}
	}
	return false
}

// refusesCacheMarks reports whether the server has refused a mark of a cached prefix.
func (a *attempt) refusesCacheMarks() bool {
	return slices.ContainsFunc(a.forms.avoid, func(name string) bool {
		return strings.HasSuffix(name, "cache_control")
	})
}

// refusesBeta reports whether the server has refused a beta feature.
func (r *refusals) refusesBeta(name string) bool {
	return r.avoid.Has(allBetas) || r.avoid.Has(betaPrefix+name)
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
	if a.learn(&r) {
		return true, nil
	}
	if first := a.forms.first; first != nil && e.Param != first.Param {
		if other := ir.Opposite(e.Param); other != "" && slices.Contains(a.forms.learned, other) {
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
	if a.forms.noThoughts || r.Status != 400 && r.Status != 422 ||
		!vendortext.Match(vendortext.RefusesThoughts, r.Code, r.message) {
		return false
	}
	opt := a.opt
	opt.NoThoughts, opt.Tools, opt.Settings = true, &llm.Tools{}, nil
	without, _, err := llm.Request(a.req.Dialect, a.api.dialect, a.req.Body, opt)
	a.forms.noThoughts = err == nil && !bytes.Equal(without, r.sent)
	return a.forms.noThoughts
}

// learn notes what a server refuses by name, and reports whether the request can be sent in
// another form.
func (a *attempt) learn(e *refusal) (learned bool) {
	r := &a.forms
	for _, name := range llm.Refused(a.api.dialect, e.sent, e.Status, e.Code, e.Param, e.message, e.body) {
		if !ir.HasOtherForm(name) {
			learned = r.learn(name) || learned
			continue
		}
		if r.first == nil && !r.avoid.Has(name) {
			r.first = e.Error
		}
		if r.learn(name) {
			return true
		}
	}
	r.once = r.once || ir.DefaultOnly(e.Code, e.message)
	return a.learnBetas(e) || learned
}

// learnBetas notes the beta features of the client that a server of its dialect refuses,
// and reports whether there are others than before.
func (a *attempt) learnBetas(e *refusal) (learned bool) {
	if a.api.dialect != llm.Messages || a.req.Dialect != llm.Messages || e.Status != 400 ||
		!vendortext.Match(vendortext.RefusesBeta, "", e.message) {
		return false
	}
	named, sent := false, false
	for _, f := range a.call.Header {
		if f.Name != betaField || !clientheader.Sent(f.Name, clientheader.ToMessages) {
			continue
		}
		for _, name := range betaNames(f.Value) {
			sent = true
			if strings.Contains(e.message, "`"+name+"`") {
				named = true
				learned = a.forms.learn(betaPrefix+name) || learned
			}
		}
	}
	if sent && !named {
		learned = a.forms.learn(allBetas)
	}
	return learned
}

// remember stores what the server turned out to refuse or to accept. The refusals of a
// vendor of the table depend on the model and are not stored, stream_options aside.
func (a *attempt) remember(res *accounts.Result) {
	r := &a.forms
	if r.connection != res.Connection.ID {
		return
	}
	if vendor := a.api.dialect != llm.Messages && !ir.DeviationsOf(a.Target.Provider.ID).Passes; vendor || r.once {
		if slices.Contains(r.learned, refusedStreamOptions) {
			res.Refuses([]string{refusedStreamOptions}, true)
		}
		return
	}
	res.Refuses(r.learned, true)
	res.Refuses(r.lifted, false)
}
