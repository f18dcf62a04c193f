package dialog

import (
	"weir/pkg/accounts"
	"weir/pkg/apierr"
	"weir/pkg/translate"
)

// refused is what is known of the things that the server of one connection
// refuses by name (translate.Refusals).
type refused struct {
	connection string
	known      translate.Refusals // remembered by the machine
	learned    translate.Refusals // of this request
	lifted     translate.Refusals // remembered, but the older form was refused
	first      *apierr.Error      // what the client's own form came to
}

// set is what the request is made without now.
func (r *refused) set() translate.Refusals { return (r.known | r.learned) &^ r.lifted }

// refusals looks up what the server of the connection has refused before.
func (x *exchange) refusals() translate.Refusals {
	if x.refused.connection != x.conn.ID {
		x.refused = refused{connection: x.conn.ID}
	}
	r := &x.refused
	r.known = 0
	for _, name := range x.call.Machine.Refused(x.conn.ID, x.dialog.Now().UnixMilli()) {
		r.known |= translate.RefusalOf(name)
	}
	return r.set()
}

// again reports whether the same account is to be asked once more: by the
// address that every compatible server has, where it has no Responses endpoint
// (nothing was made then), or without something that it refuses by name. It
// sets that for the next build.
func (x *exchange) again(e *apierr.Error, body []byte) bool {
	if x.hasNoResponses(e) {
		x.chatOnlyConn, x.absent = x.conn, e
		return true
	}
	v := x.opt.Deviations
	if x.way.dialect != translate.Chat || v == nil || !v.Passes || x.ask.Body == nil {
		return false
	}
	// The request that was sent is made once more: keeping it would hold its
	// memory during every call.
	sent, _, err := translate.Request(x.ask.Dialect, x.way.dialect, x.ask.Body, x.opt)
	if err != nil {
		return false
	}
	r, known := &x.refused, x.opt.Refuses
	got := translate.Refused(sent, e.Status, e.Code, e.Param, accounts.MessageOf(body), body)
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
	case got == translate.RefusesMaxTokens && x.ask.Dialect == translate.Chat:
		return false // the client's own choice
	default:
		r.learned |= got
	}
	return true
}

// opposite returns the refusal whose other form is refused by r.
func opposite(r translate.Refusals) translate.Refusals {
	switch r {
	case translate.RefusesMaxTokens:
		return translate.RefusesMaxCompletionTokens
	case translate.RefusesMaxCompletionTokens:
		return translate.RefusesMaxTokens
	}
	return 0
}

// remember tells the machine what the server turned out to refuse, or to take.
func (x *exchange) remember(res *accounts.Result) {
	if r := &x.refused; r.learned|r.lifted != 0 && r.connection == res.Connection.ID {
		res.Refuses(r.learned.Names(), true)
		res.Refuses(r.lifted.Names(), false)
	}
}
