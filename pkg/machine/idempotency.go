package machine

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// Idempotency keys of creations that are billed. Times are Unix milliseconds.
//
//	idem.begin {"key":"…","digest":"…","for":ms}                        200 IdemState
//	idem.end   {"key":"…","digest":"…","status":n,"header":[…],"body":"…"} 200 {}
//
// A key is kept for 30 days from its first use, as the jobs are. A machine has
// up to 10,000 of them; one more replaces the oldest whose outcome is known. If
// no outcome is known, a call with a new key is refused: it could create
// something twice.
//
// A call states for how long it may run. It counts as lost after that: its outcome will
// never be reported, and it may have created something. If one program serves all calls and
// all objects (Began), a call is lost with it as well; if several do that know of each other
// (SeatAlive), with the one that runs it. Where the platform runs the objects,
// one that begins again in another program says nothing of the call.
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
	Seat   string      `json:"seat,omitempty"`   // names the program that runs the call, if it serves all of them
	Status int         `json:"status,omitempty"` // 0 while running
	Header [][2]string `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	Whole  bool        `json:"whole,omitempty"`
}

// over reports whether a row no longer counts.
func (w *idemRow) over(now int64) bool { return w.At <= now-idemFor || w.At > now+idemFor }

// idemBegin claims a key for a call, or returns the outcome of the call that has
// it. Between reading and claiming nothing else runs in the object.
func (o *Object) idemBegin(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var in rpc.IdempotencyBegin
	if json.Unmarshal(r.Body, &in) != nil || in.Key == "" || len(in.Key) > rpc.MaxIdempotencyKey || in.Digest == "" ||
		len(in.Digest) > 128 {
		return nil, apierr.Invalid("key", "An idempotency key has up to %d bytes and a digest.", rpc.MaxIdempotencyKey)
	}
	if in.For <= 0 || in.For > idemRun {
		in.For = idemRun
	}
	claimed := idemRow{Digest: in.Digest, At: r.Now, Until: r.Now + in.For}
	if o.Began != 0 || o.Seat != "" {
		claimed.Seat = o.seatID()
	}
	var row idemRow
	at := idemPrefix + storage.DigestOf(in.Key)
	switch {
	case !r.Load(at, &row):
		if err := makeRoom(r.Tx); err != nil {
			return nil, err
		}
		r.Meta.Idem++
		r.Put(at, claimed)
		return rpc.IdempotencyState{State: rpc.StateNew}, nil
	case row.over(r.Now):
		r.Del(row.ended(at))
		r.Put(at, claimed)
		return rpc.IdempotencyState{State: rpc.StateNew}, nil
	case row.Digest != in.Digest:
		return rpc.IdempotencyState{State: rpc.StateOther}, nil
	case row.Status == 0 && (r.Now > row.Until || o.dead(&row, claimed.Seat, r.Now)):
		return rpc.IdempotencyState{State: rpc.StateLost}, nil
	case row.Status == 0:
		return rpc.IdempotencyState{State: rpc.StateRunning}, nil
	}
	return rpc.IdempotencyState{State: rpc.StateDone, Status: row.Status, Header: row.Header, Body: row.Body,
		Whole: row.Whole}, nil
}

// seatSettled is how long after its start a program may be missing in what others know of it.
const seatSettled = int64(15 * time.Second / time.Millisecond)

// dead reports whether the program that runs a call has ended.
func (o *Object) dead(row *idemRow, own string, now int64) bool {
	if o.SeatAlive != nil {
		return row.Seat != "" && now-row.At > seatSettled && !o.SeatAlive(row.Seat)
	}
	return own != "" && row.Seat != own
}

// idemEnd keeps the answer of the call that claimed a key. A key that another
// call holds by now is left as it is.
func (o *Object) idemEnd(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var in rpc.IdempotencyEnd
	if json.Unmarshal(r.Body, &in) != nil || in.Key == "" {
		return nil, apierr.Invalid("key", "The key is missing.")
	}
	var row idemRow
	at := idemPrefix + storage.DigestOf(in.Key)
	if !r.Load(at, &row) || row.Digest != in.Digest || row.Status != 0 {
		return struct{}{}, nil
	}
	if in.Status == 0 {
		r.Del(at)
		r.Meta.Idem = max(r.Meta.Idem-1, 0)
		return struct{}{}, nil
	}
	row.Status, row.Header = in.Status, in.Header
	if row.Whole = !in.Large && len(in.Body) <= rpc.MaxStoredAnswer; row.Whole {
		row.Body = in.Body
	}
	r.Put(at, row)
	if !in.Unknown {
		r.Put(row.ended(at), true)
	}
	return struct{}{}, nil
}

// seatID returns a random name of this program; it differs after a restart.
func (o *Object) seatID() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seat = cmp.Or(o.seat, o.Seat)
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

// makeRoom makes room for one more key.
func makeRoom(t *storage.Tx) error {
	over := t.Meta.Idem - maxIdem + 1
	if over <= 0 {
		return nil
	}
	oldest := t.Scan(endedPrefix, "", over)
	if len(oldest) < over {
		e := apierr.New(503, "overloaded", "Too many idempotency keys of this machine are in use. Nothing was sent.")
		e.RetryAfter = time.Minute
		return e
	}
	for _, r := range oldest {
		_, key, _ := strings.Cut(strings.TrimPrefix(r.Key, endedPrefix), ":")
		t.Del(r.Key)
		t.Del(idemPrefix + key)
	}
	t.Meta.Idem -= over
	return nil
}

// pruneIdempotency removes the keys whose time is over, and counts the others.
func pruneIdempotency(t *storage.Tx) {
	current, whole := 0, true
	t.Pages(idemPrefix, storage.Page, func(r storage.Row) bool {
		var w idemRow
		if json.Unmarshal(r.Value, &w) == nil && w.over(t.Now) {
			t.Del(r.Key)
			if t.Meta.Idem--; w.Status != 0 {
				t.Del(w.ended(r.Key))
			}
		} else {
			current++
		}
		whole = len(t.Order) < storage.MaxRemoved
		return whole
	})
	if whole {
		t.Meta.Idem = current
	}
}
