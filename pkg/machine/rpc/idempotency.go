package rpc

// Idempotency keys of creations that are billed. Times are Unix milliseconds.
//
//	idem.begin IdempotencyBegin  200 IdempotencyState; 503 overloaded
//	idem.end   IdempotencyEnd    200 {}

// MaxIdempotencyKey is the size of the longest idempotency key, in bytes.
const MaxIdempotencyKey = 255

// MaxStoredAnswer is the size of the largest answer that is stored under an
// idempotency key, in bytes. Of a larger answer only the status is stored.
const MaxStoredAnswer = 64 << 10

// IdempotencyBegin claims a key for a call.
type IdempotencyBegin struct {
	Key    string `json:"key"`
	Digest string `json:"digest"` // of the request
	// For is how long the call may run, in milliseconds. Without an outcome by
	// then the call is lost.
	For int64 `json:"for"`
}

// The values of IdempotencyState.State.
const (
	StateNew     = "new"     // the key was free and belongs to this call now
	StateRunning = "running" // an earlier call with the key has not ended
	StateLost    = "lost"    // the outcome of the earlier call will never be known
	StateOther   = "other"   // the key belongs to a request with another digest
	StateDone    = "done"    // the earlier call has ended with the answer below
)

// IdempotencyState is the state of a key.
type IdempotencyState struct {
	State  string      `json:"state"`
	Status int         `json:"status,omitempty"`
	Header [][2]string `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	// Whole is false if the answer was larger than MaxStoredAnswer.
	Whole bool `json:"whole,omitempty"`
}

// IdempotencyEnd is the answer of the call that claimed a key. Status 0 frees the
// key: nothing was created, and the call may be repeated.
type IdempotencyEnd struct {
	Key    string      `json:"key"`
	Digest string      `json:"digest"`
	Status int         `json:"status"`
	Header [][2]string `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	// Large reports that the answer is larger than MaxStoredAnswer and Body is
	// empty.
	Large bool `json:"large,omitempty"`
	// Unknown reports that something may have been created despite the status.
	// Such a key is not replaced before it expires.
	Unknown bool `json:"unknown,omitempty"`
}
