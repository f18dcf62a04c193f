package accounts

import "weir/pkg/store"

// Trace is what became of a client's request: the log line, the x-weir headers of
// the answer and the record of GET /api/requests are made from it. The gateway sets
// KeyID, endpoint.Targets sets Asked, and Send sets the rest.
type Trace struct {
	KeyID        string
	Asked        string // model id as the client wrote it
	Provider     string // provider id of the account that answered, or was tried last
	ConnectionID string // that account
	Model        string // public id of its model, "<alias>/<model>"
	Attempts     int    // upstream calls made
	Failed       []store.Attempt
	Dropped      []string // fields that the last attempt left out
	Used         store.Used
	Err          error // cause of a failure, for the log after redaction

	answered bool // Used holds an answer
}

// use adds what an answer used.
func (t *Trace) use(u store.Used) {
	if t.answered {
		u = t.Used.Add(u)
	}
	t.Used, t.answered = u, true
}
