package machine

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
)

// Idempotency keys of creations that are billed. Times are Unix milliseconds.
//
//	idem.begin {"key":"…","digest":"…","for":ms}                        200 IdemState
//	idem.end   {"key":"…","digest":"…","status":n,"header":[…],"body":"…"} 200 {}
//
// A key is kept for 30 days from its first use, as the jobs are. A machine has up
// to 10,000 of them; one more replaces the oldest whose outcome is known. If no
// outcome is known, a call with a new key is refused: it could create something twice.
//
// A call states for how long it may run. It counts as lost after that, and once
// the program that served the object at its start has ended: its outcome will
// never be reported, and it may have created something.
const (
	idemPrefix  = "idem:"
	endedPrefix = "idemended:" // time and key of those that may go, oldest first
	maxIdem     = 10_000
	idemFor     = jobFor
	idemRun     = int64(30 * time.Minute / time.Millisecond) // the longest run, and the default
)

type idemRow struct {
	Digest string      `json:"digest"` // of what the first call asked for
	At     int64       `json:"at"`
	Until  int64       `json:"until,omitempty"`  // while running: when the call is lost
	Seat   string      `json:"seat,omitempty"`   // names the program that served the object at its start
	Status int         `json:"status,omitempty"` // 0 while running
	Header [][2]string `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	Whole  bool        `json:"whole,omitempty"`
}

// over tells whether a row no longer counts.
func (w *idemRow) over(now int64) bool { return w.At <= now-idemFor || w.At > now+idemFor }

// idemBegin claims a key for a call, or tells what became of the call that has
// it. Between reading and claiming nothing else runs in the object.
func (o *Object) idemBegin(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	var in rpc.IdempotencyBegin
	if json.Unmarshal(r.body, &in) != nil || in.Key == "" || len(in.Key) > rpc.MaxIdempotencyKey || in.Digest == "" || len(in.Digest) > 128 {
		return nil, apierr.Invalid("key", "an idempotency key has up to %d bytes and a digest", rpc.MaxIdempotencyKey)
	}
	if in.For <= 0 || in.For > idemRun {
		in.For = idemRun
	}
	claimed := idemRow{Digest: in.Digest, At: r.now, Until: r.now + in.For, Seat: o.seatID()}
	var row idemRow
	at := idemPrefix + digestOf(in.Key)
	switch {
	case !r.load(at, &row):
		if err := r.idemRoom(); err != nil {
			return nil, err
		}
		r.meta.Idem++
		r.put(at, claimed)
		return rpc.IdempotencyState{State: rpc.StateNew}, nil
	case row.over(r.now):
		r.del(row.ended(at))
		r.put(at, claimed)
		return rpc.IdempotencyState{State: rpc.StateNew}, nil
	case row.Digest != in.Digest:
		return rpc.IdempotencyState{State: rpc.StateOther}, nil
	case row.Status == 0 && (r.now > row.Until || row.Seat != claimed.Seat):
		return rpc.IdempotencyState{State: rpc.StateLost}, nil
	case row.Status == 0:
		return rpc.IdempotencyState{State: rpc.StateRunning}, nil
	}
	return rpc.IdempotencyState{State: rpc.StateDone, Status: row.Status, Header: row.Header, Body: row.Body, Whole: row.Whole}, nil
}

// idemEnd keeps the answer of the call that claimed a key. A key that another
// call holds by now is left as it is.
func (o *Object) idemEnd(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	var in rpc.IdempotencyEnd
	if json.Unmarshal(r.body, &in) != nil || in.Key == "" {
		return nil, apierr.Invalid("key", "the key is missing")
	}
	var row idemRow
	at := idemPrefix + digestOf(in.Key)
	if !r.load(at, &row) || row.Digest != in.Digest || row.Status != 0 {
		return struct{}{}, nil
	}
	if in.Status == 0 {
		r.del(at)
		r.meta.Idem = max(r.meta.Idem-1, 0)
		return struct{}{}, nil
	}
	row.Status, row.Header = in.Status, in.Header
	if row.Whole = !in.Large && len(in.Body) <= rpc.MaxStoredAnswer; row.Whole {
		row.Body = in.Body
	}
	r.put(at, row)
	if !in.Unknown {
		r.put(row.ended(at), true)
	}
	return struct{}{}, nil
}

// seatID returns a random name of this program; it differs after a restart.
func (o *Object) seatID() string {
	if o.seat == "" {
		var b [8]byte
		if _, err := io.ReadFull(o.Rand, b[:]); err != nil {
			return "unknown"
		}
		o.seat = hex.EncodeToString(b[:])
	}
	return o.seat
}

// ended names the row by which that of a key is found when it is to go.
func (w *idemRow) ended(at string) string {
	return fmt.Sprintf("%s%015d:%s", endedPrefix, w.At, strings.TrimPrefix(at, idemPrefix))
}

// idemRoom makes room for one more key.
func (t *tx) idemRoom() error {
	over := t.meta.Idem - maxIdem + 1
	if over <= 0 {
		return nil
	}
	oldest := t.st.List(endedPrefix, "", over)
	if len(oldest) < over {
		e := apierr.New(503, "overloaded", "too many idempotency keys of this machine are in use; nothing was sent")
		e.RetryAfter = time.Minute
		return e
	}
	for _, r := range oldest {
		_, key, _ := strings.Cut(strings.TrimPrefix(r.Key, endedPrefix), ":")
		t.del(r.Key)
		t.del(idemPrefix + key)
	}
	t.meta.Idem -= over
	return nil
}

// pruneIdem removes the keys whose time is over, and counts the others.
func (t *tx) pruneIdem() {
	kept, whole := 0, true
	t.pages(idemPrefix, pageRows, func(r Row) bool {
		var w idemRow
		if json.Unmarshal(r.Value, &w) == nil && w.over(t.now) {
			t.del(r.Key)
			if t.meta.Idem--; w.Status != 0 {
				t.del(w.ended(r.Key))
			}
		} else {
			kept++
		}
		whole = len(t.order) < pruneMost
		return whole
	})
	if whole {
		t.meta.Idem = kept
	}
}
