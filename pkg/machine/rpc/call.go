package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// Call calls an operation of an object and returns its decoded answer. in is sent as
// JSON; with nil there is no body. As Out, json.RawMessage is the answer as it is, and
// struct{} ignores it.
//
// The error for an object that refuses, or cannot be called, wraps an *apierr.Error for
// the client. Status distinguishes them.
func Call[Out any](ctx context.Context, s Stub, machineID, op string, in any) (out Out, err error) {
	err = call(ctx, s, machineID, op, in, &out)
	return out, err
}

// call decodes the answer into out, a pointer. It is apart from Call to be compiled once.
func call(ctx context.Context, s Stub, machineID, op string, in, out any) error {
	body, err := encode(in)
	if err != nil {
		return fmt.Errorf("%s: write the body: %w", op, err)
	}
	status, answer, err := s.Call(ctx, machineID, op, body)
	switch {
	case err != nil:
		e := ReadFailure(503, nil)
		e.Err = err
		return &failedCall{0, e}
	case status < 200 || status > 299:
		return &failedCall{status, ReadFailure(status, answer)}
	}
	if err := decode(answer, out); err != nil {
		return fmt.Errorf("%s: read the answer: %w", op, err)
	}
	return nil
}

func encode(in any) ([]byte, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return in, nil
	case jsoncodec.Marshaler:
		return jsoncodec.Marshal(in)
	}
	return json.Marshal(in)
}

func decode(answer []byte, out any) error {
	switch out := out.(type) {
	case *struct{}:
		return nil
	case *json.RawMessage:
		*out = answer
		return nil
	case jsoncodec.Unmarshaler:
		return jsoncodec.Unmarshal(answer, out)
	}
	return json.Unmarshal(answer, out)
}

// failedCall is a call that an object has refused with a status, or, with 0, that did not
// reach it.
type failedCall struct {
	status int
	err    *apierr.Error
}

func (f *failedCall) Error() string { return f.err.Error() }
func (f *failedCall) Unwrap() error { return f.err }

// Status returns the status of a Call's answer, from the error of the Call: 0 if the object
// could not be called, 200 for each success and for an answer that cannot be decoded.
func Status(err error) int {
	if f, ok := errors.AsType[*failedCall](err); ok {
		return f.status
	}
	return 200
}

// JSON returns the JSON of v as answers have it: without the escapes for HTML.
func JSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte(`{}`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
