package proxy

import (
	"weir/pkg/accounts"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
)

// refused is what is known about the fields and roles that the server of one
// connection refuses by name.
type refused struct {
	connection string
	known      llm.Refusals  // remembered by the machine
	learned    llm.Refusals  // of this request
	lifted     llm.Refusals  // remembered, but the older form was refused
	first      *apierr.Error // the answer to the client's own form
}

// set returns what the next request must avoid.
func (r *refused) set() llm.Refusals { return (r.known | r.learned) &^ r.lifted }

// refusals returns what the connection's server is known to refuse.
func (x *exchange) refusals() llm.Refusals {
	if x.refused.connection != x.conn.ID {
		x.refused = refused{connection: x.conn.ID}
	}
	r := &x.refused
	r.known = 0
	for _, name := range x.call.Machine.Refused(x.conn.ID, x.dialog.Now().UnixMilli()) {
		r.known |= llm.RefusalOf(name)
	}
	return r.set()
}

// again reports whether to call the same account once more: by chat completions
// if it has no Responses endpoint (nothing was created then), or without what it
// refuses by name. It sets that for the next build.
func (x *exchange) again(e *apierr.Error, body []byte) bool {
	if x.hasNoResponses(e) {
		x.chatOnlyConn, x.absent = x.conn, e
		return true
	}
	v := x.opt.Deviations
	if x.way.dialect != llm.Chat || v == nil || !v.Passes || x.ask.Body == nil {
		return false
	}
	// The request is built again because keeping it would take memory during
	// every call.
	sent, _, err := llm.Request(x.ask.Dialect, x.way.dialect, x.ask.Body, x.opt)
	if err != nil {
		return false
	}
	r, known := &x.refused, x.opt.Refuses
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
	case got == llm.RefusesMaxTokens && x.ask.Dialect == llm.Chat:
		return false // the client's own choice
	default:
		r.learned |= got
	}
	return true
}

// opposite returns the refusal of which r is the other form, or 0.
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
func (x *exchange) remember(res *accounts.Result) {
	if r := &x.refused; r.learned|r.lifted != 0 && r.connection == res.Connection.ID {
		res.Refuses(r.learned.Names(), true)
		res.Refuses(r.lifted.Names(), false)
	}
}
