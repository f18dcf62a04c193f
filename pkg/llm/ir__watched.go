package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// watched is what is known of a stream that passes to a client of the same
// dialect.
type watched struct {
	usage   Usage
	failure *apierr.Error
	done    bool // the last event came
	stopped bool // a finish or stop reason came, and no text after it
}

// eventName returns the name of an event: of its event field, or its type.
func eventName(field, data []byte) string {
	if len(field) > 0 {
		return view(field)
	}
	return gjson.Get(view(data), "type").Str
}

// fail reads an error event, unless one came before.
func (w *watched) fail(data []byte, whole bool) {
	if w.failure != nil {
		return
	}
	w.failure = ofStatus(500)
	if !whole || check(data) != nil {
		return
	}
	root := gjson.Parse(view(data))
	if e := failureIn(root); e != nil {
		w.failure = e
		return
	}
	w.failure = ofStatus(statusIn(root))
	describe(w.failure, root)
}
