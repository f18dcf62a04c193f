package proxy

import (
	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
)

// refusedForms is what is known about the fields and roles that the server of
// one connection refuses by name.
type refusedForms struct {
	connection string
	known      llm.Refusals  // remembered by the machine
	learned    llm.Refusals  // of this request
	lifted     llm.Refusals  // remembered, but the older form was refused
	first      *apierr.Error // the answer to the client's own form
}

// set returns what the next request must avoid.
func (r *refusedForms) set() llm.Refusals { return (r.known | r.learned) &^ r.lifted }

// refusals returns what the connection's server is known to refuse.
func (a *attempt) refusals() llm.Refusals {
	if a.forms.connection != a.Connection.ID {
		a.forms = refusedForms{connection: a.Connection.ID}
	}
	r := &a.forms
	r.known = 0
	for _, name := range a.call.Machine.Refused(a.Connection.ID, a.proxy.Now().UnixMilli()) {
		r.known |= llm.RefusalOf(name)
	}
	return r.set()
}

// otherForm reports whether to call the same account once more, without what its
// server refuses by name. If it refuses both forms of a field, the answer to the
// client's own form is returned.
func (a *attempt) otherForm(e *apierr.Error, body []byte) (retry bool, instead *apierr.Error) {
	if retry = a.learn(e, body); retry {
		return true, nil
	}
	if first := a.forms.first; first != nil && e.Status < 500 && e.Param != "" && e.Param != first.Param {
		if r := llm.RefusalOf(e.Param); r != 0 && opposite(r)&a.forms.learned != 0 {
			return false, first
		}
	}
	return false, nil
}

// learn notes what the server refuses, and reports whether the request can be sent
// in another form.
func (a *attempt) learn(e *apierr.Error, body []byte) bool {
	if a.req.Body == nil {
		return false
	}
	// The request is built again because storing it would take memory during
	// every call.
	sent, _, err := llm.Request(a.req.Dialect, a.api.dialect, a.req.Body, a.opt)
	if err != nil {
		return false
	}
	r, known := &a.forms, a.opt.Refuses
	got := llm.Refused(sent, e.Status, e.Code, e.Param, accounts.MessageOf(body), body)
	if got == 0 || known&got != 0 {
		return false
	}
	if r.first == nil {
		r.first = e
	}
	switch other := opposite(got); {
	case other != 0 && r.learned&other != 0:
		return false // it refuses both forms
	case other != 0 && known&other != 0:
		r.lifted |= other
	case got == llm.RefusesMaxTokens && a.req.Dialect == llm.Chat:
		return false // the client's own choice
	default:
		r.learned |= got
	}
	return true
}

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

// remember stores what the server turned out to refuse or to accept.
func (a *attempt) remember(res *accounts.Result) {
	if r := &a.forms; r.learned|r.lifted != 0 && r.connection == res.Connection.ID {
		res.Refuses(r.learned.Names(), true)
		res.Refuses(r.lifted.Names(), false)
	}
}
