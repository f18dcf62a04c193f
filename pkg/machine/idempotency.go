package machine

import (
	"encoding/json"

	"weir/pkg/apierr"
)

// Idempotency keys of creations that are billed. Times are Unix milliseconds.
//
//	idem.begin {"key":"…","digest":"…"}                                 200 IdemState
//	idem.end   {"key":"…","digest":"…","status":n,"header":[…],"body":"…"} 200 {}
//
// A key is kept for 24 h from its first use.
const (
	idemPrefix  = "idem:"
	idemFor     = dayMs
	maxIdemKey  = 255      // bytes
	maxIdemBody = 64 << 10 // bytes of an answer that is kept; of a larger one only the status is
)

// IdemState is what became of the first call with a key: "new" for this one,
// "running", "other" for one with another body, or "done" with its answer.
// Whole is false when the answer was too large to be kept.
type IdemState struct {
	State  string      `json:"state"`
	Status int         `json:"status,omitempty"`
	Header [][2]string `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	Whole  bool        `json:"whole,omitempty"`
}

// IdemEnd is the answer of the first call. Status 0 forgets the key: nothing
// was created, and the call may be made again.
type IdemEnd struct {
	Key    string      `json:"key"`
	Digest string      `json:"digest"`
	Status int         `json:"status"`
	Header [][2]string `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

type idemRow struct {
	Digest string      `json:"digest"` // of what the first call asked for
	At     int64       `json:"at"`
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
	var in struct{ Key, Digest string }
	if json.Unmarshal(r.body, &in) != nil || in.Key == "" || len(in.Key) > maxIdemKey || in.Digest == "" || len(in.Digest) > 128 {
		return nil, apierr.Invalid("key", "an idempotency key has up to %d bytes and a digest", maxIdemKey)
	}
	var row idemRow
	at := idemPrefix + digestOf(in.Key)
	switch {
	case !r.load(at, &row) || row.over(r.now):
		r.put(at, idemRow{Digest: in.Digest, At: r.now})
		return IdemState{State: "new"}, nil
	case row.Digest != in.Digest:
		return IdemState{State: "other"}, nil
	case row.Status == 0:
		return IdemState{State: "running"}, nil
	}
	return IdemState{State: "done", Status: row.Status, Header: row.Header, Body: row.Body, Whole: row.Whole}, nil
}

// idemEnd keeps the answer of the call that claimed a key. A key that another
// call holds by now is left as it is.
func (o *Object) idemEnd(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	var in IdemEnd
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
		return struct{}{}, nil
	}
	row.Status, row.Header = in.Status, in.Header
	if row.Whole = len(in.Body) <= maxIdemBody; row.Whole {
		row.Body = in.Body
	}
	r.put(at, row)
	return struct{}{}, nil
}
