package ir

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/vendorerror"
)

// Watched is what an Observer knows of a stream that passes to a client of the
// same dialect.
type Watched struct {
	Usage   Usage
	Failure *apierr.Error
	Done    bool // the last event arrived
	Stopped bool // a finish or stop reason arrived, and no text after it

	Finish    string // that reason, as the upstream writes it; of several choices the last one's
	Container string // in which code was run last

	// Text is the length of the text so far, with thoughts and the arguments of calls, for
	// an estimate of the usage. It counts JSON's escapes as they are.
	Text int
	// Usual is a chunk with a text that means nothing else. An Observer skips
	// chunks of this pattern until a reason arrives.
	Usual Pattern
	// TextAt is where the delta of the last chunk with a text began.
	TextAt int
}

// maxFinish bounds the length of a reason.
const maxFinish = 40

// Stop notes the finish or stop reason of an event, "" for none.
func (w *Watched) Stop(reason string) {
	if reason == "" {
		return
	}
	w.Stopped = true
	if len(reason) <= maxFinish && reason != w.Finish {
		w.Finish = ownReason(reason)
	}
}

// reasons are the usual ones, which need no memory of a call.
var reasons = [...]string{"stop", "length", "tool_calls", "end_turn", "max_tokens", "tool_use", "STOP", "MAX_TOKENS",
	"completed"}

// ownReason returns a copy of a reason that does not keep the answer in memory.
func ownReason(reason string) string {
	if i := slices.Index(reasons[:], reason); i >= 0 {
		return reasons[i]
	}
	return strings.Clone(reason)
}

// Count counts a text, or the JSON of arguments.
func (w *Watched) Count(v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		w.Text += max(len(v.Raw)-len(`""`), 0)
	case v.IsObject():
		w.Text += len(v.Raw)
	}
}

// CountTexts counts the strings of all members with a name, which has its quotes, without
// parsing them.
func (w *Watched) CountTexts(data []byte, name string) {
	for {
		at := bytes.Index(data, []byte(name))
		if at < 0 {
			return
		}
		data = bytes.TrimLeft(data[at+len(name):], ": ")
		if len(data) > 0 && data[0] == '"' {
			n := StringLength(data[1:])
			w.Text += n
			data = data[1+n:]
		}
	}
}

// StringLength returns the length of a JSON string after its first quote.
func StringLength(s []byte) int {
	n := 0
	for n < len(s) && s[n] != '"' {
		if s[n] == '\\' {
			n++
		}
		n++
	}
	return min(n, len(s))
}

// EventName returns the name of an event: of its event field, or its type.
func EventName(field, data []byte) string {
	if len(field) > 0 {
		return View(field)
	}
	return gjson.Get(View(data), "type").Str
}

// Fail reads an error event, unless one came before.
func (w *Watched) Fail(data []byte, whole bool) {
	if w.Failure != nil {
		return
	}
	w.Failure = StatusError(500)
	if !whole || Check(data) != nil {
		return
	}
	root := gjson.Parse(View(data))
	if e := ErrorIn(root); e != nil {
		w.Failure = e
		return
	}
	w.Failure = StatusError(vendorerror.Status(root))
	Describe(w.Failure, root)
}
