package storage

import (
	"context"
	"encoding/json"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
)

// Call is one call of an object.
type Call struct {
	ctx  context.Context
	Body []byte
	// Settled reports that the answer does not depend on changes that are not yet
	// written.
	Settled bool
	*Tx
}

// NewCall returns a call with its first turn.
func NewCall(ctx context.Context, t *Tx, body []byte) *Call {
	return &Call{ctx: ctx, Body: body, Tx: t}
}

// Outside returns the context for a call out of the object, or Err: what is called must
// not depend on rows that could not be read.
func (c *Call) Outside() (context.Context, error) { return c.ctx, c.Err() }

// Reply is an answer with a status other than 200.
type Reply struct {
	Status int
	Body   any
}

// Encode returns the JSON of v; a json.RawMessage is returned as it is.
func Encode(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	if b, ok := generated(v); ok {
		return b
	}
	return rpc.JSON(v)
}

// EncodeJSON is Encode for a value inside another one.
func EncodeJSON(v any) json.RawMessage { return Encode(v) }

// ErrNoMachine returns the error for a machine that does not exist.
func ErrNoMachine() error { return apierr.New(404, "machine_not_found", "No machine has this id.") }

// Milliseconds returns a number of milliseconds as a duration.
func Milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
