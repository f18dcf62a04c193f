package accounts

import (
	"strconv"
	"strings"

	"weir/pkg/store"
)

// Trace is what became of a client's request: the log line, the x-weir headers of
// the answer and the record of GET /api/requests are made from it. The gateway sets
// KeyID, endpoint.Targets sets Asked, and Send sets the rest.
type Trace struct {
	KeyID        string
	Asked        string // model id as the client wrote it
	Provider     string // provider id of the account that answered, or was tried last
	ConnectionID string // that account
	Model        string // public id of its model, "<alias>/<model>"
	Outcomes     []Outcome
	Dropped      []string // fields that the last attempt left out, added or lowered; see Changed
	CacheMarks   []string // marks that were added to the last attempt; see Attempt
	Used         store.Used
	FirstMs      int64    // from the request's arrival to the first event of its stream; 0 for none
	Finish       string   // why the answer ended, as the provider writes it
	SentMs       int64    // from the request's arrival to the start of the attempt that answered
	RequestBytes int64    // of the request's body as the client sent it; 0 if it is not known
	AnswerBytes  int64    // of the answer's body; 0 if it is not known in advance
	Captured     bool     // the bodies are stored
	Affinity     string   // Kept, Moved, or "" if no strategy asked for the session
	Session      uint64   // the session's number, 0 if no strategy asked for it
	FieldTags    []string // of the body, see store.Settings.TagsFrom
	Err          error    // cause of a failure, for the log after redaction

	answered bool // Used holds an answer

	tags   []string // see Tags
	tagged bool     // tags is set
}

// Changed returns the fields that the last attempt left out, and those that weir added or
// lowered for a budget: "max_tokens=4096".
func (t *Trace) Changed() (dropped, set []string) {
	for _, name := range t.Dropped {
		if strings.Contains(name, "=") {
			set = append(set, name)
		} else {
			dropped = append(dropped, name)
		}
	}
	return dropped, set
}

// Values of Trace.Affinity, and of the header x-weir-affinity.
const (
	Kept  = "kept"  // the account of the session answered
	Moved = "moved" // another one
)

// add takes the outcomes of a Send, without the bodies of errors: a stream can be long. Most
// calls have one Send, and no copy of its outcomes.
func (t *Trace) add(list outcomes) {
	for i := range list {
		list[i].failure, list[i].err = nil, nil
	}
	if t.Outcomes == nil {
		t.Outcomes = list
		return
	}
	t.Outcomes = append(t.Outcomes, list...)
}

// Attempts returns the number of upstream calls.
func (t *Trace) Attempts() int { return outcomes(t.Outcomes).attempts() }

// Failed returns the records of the upstream calls that failed.
func (t *Trace) Failed() (list []store.Attempt) {
	for i := range t.Outcomes {
		if failed := t.Outcomes[i].Failed; failed != nil {
			list = append(list, *failed)
		}
	}
	return list
}

// use adds what an answer used.
func (t *Trace) use(u store.Used) {
	if t.answered {
		u = t.Used.Add(u)
	}
	t.Used, t.answered = u, true
}

// Cost returns the value of the header x-weir-cost: what the answer costs in USD, marked if
// it was computed from estimated tokens, or unknown; "" without an answer. Streams have
// one when they have ended.
func (t *Trace) Cost() string {
	switch {
	case !t.answered:
		return ""
	case !t.Used.Priced:
		return "unknown"
	}
	cost := strconv.FormatFloat(t.Used.CostUSD, 'f', -1, 64)
	if t.Used.Estimated {
		cost += "; estimated"
	}
	return cost
}
