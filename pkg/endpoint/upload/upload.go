// Package upload forwards multipart forms, which it holds only if an attempt
// may have to be repeated.
package upload

import (
	"context"
	"errors"
	"io"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/multipart"
	"weir/pkg/wire/stream"
)

const (
	maxModel = 256 // bytes of a model in a form
	// flowing is what a form that flows takes of the host's memory, in bytes: a buffer of
	// what it reads and one of what the program has made of that.
	flowing = 144 << 10
)

// Upload is a client's form on its way up. It may flow when its model is known
// before its first file; else the host holds it.
type Upload struct {
	Call     *auth.Call
	Boundary string
	Model    string // as the client names it, "" while not known
	Held     stream.Held
	Form     *multipart.Form // of a held one

	name   string // of the file
	inPart bool   // the model stands in the form, before any file
	flow   *multipart.Rewriter
	sent   bool // a form that flows is gone
}

// Begin finds the boundary of a form and its model: the query parameter model,
// the field x-model, or a part model before any file. file is the name of the
// file that the form must have.
func Begin(c *auth.Call, file string) (*Upload, error) {
	u := &Upload{Call: c, name: file}
	var err error
	if u.Boundary, err = multipart.Boundary(c.Header.Get("content-type")); err != nil || c.Body == nil {
		return nil, apierr.Invalid("", "The body must be multipart/form-data with a boundary.")
	}
	if u.Model = endpoint.Query(c.Query, "model"); u.Model == "" {
		u.Model = c.Header.Get("x-model")
	}
	if len(u.Model) > maxModel {
		return nil, apierr.Invalid("model", "The model name is not valid.")
	}
	if u.Model == "" && !u.Small() {
		head, model, found, err := multipart.Peek(c.Body, u.Boundary, "model", maxModel)
		if err != nil {
			return nil, memory.BodyError(err)
		}
		c.Body = endpoint.Unread(head, c.Body)
		u.Model, u.inPart = model, found
	}
	return u, nil
}

// Small reports whether the form is in memory already, so that holding it costs
// nothing.
func (u *Upload) Small() bool {
	_, small := u.Call.Body.(*stream.Bytes)
	return small
}

// Repeatable reports whether a form that could be streamed is to be held so
// that another account can be tried: there is one, and there is memory to spare for
// the form.
func (u *Upload) Repeatable(targets []routing.Target) bool {
	if len(targets) == 1 && len(targets[0].Connections) < 2 {
		return false
	}
	n := u.Call.Length
	return n >= 0 && n <= endpoint.MaxForm && u.Call.Memory.Spare(n)
}

// Hold has the host keep the form, up to 25 MiB, and finds its fields. release
// must be called when it has been sent.
func (u *Upload) Hold(ctx context.Context) (release func(), err error) {
	u.Held, release, err = u.Call.Memory.Hold(ctx, u.Call.Body, u.Call.Length, endpoint.MaxForm)
	if errors.Is(err, stream.ErrTooLarge) {
		e := apierr.New(413, "request_too_large",
			"A form of over 25 MiB must have its model before the file: send the part model first, or release ?model= or the header x-model.")
		e.Err = err
		return nil, e
	}
	if err != nil {
		return nil, memory.BodyError(err)
	}
	if err = u.fields(); err != nil {
		release()
		return nil, memory.BodyError(err)
	}
	return release, nil
}

// Flow acquires what a form takes while it flows, whatever its length. release must be
// called when it has been sent.
func (u *Upload) Flow(ctx context.Context) (release func(), err error) {
	if err := u.Call.Memory.Acquire(ctx, memory.Form, memory.Amount{Host: flowing}); err != nil {
		return nil, err
	}
	return func() { u.Call.Memory.Drop(memory.Form) }, nil
}

func (u *Upload) fields() (err error) {
	body := u.Held.Open()
	u.Form, err = multipart.Read(body, u.Boundary, endpoint.MaxParts)
	body.Close()
	if err != nil {
		return err
	}
	found := false
	for i := range u.Form.Fields {
		f := &u.Form.Fields[i]
		found = found || f.File && (f.Name == u.name || f.Name == u.name+"[]")
	}
	if !found {
		return apierr.Invalid(u.name, "The file %s is missing.", u.name)
	}
	model, _, err := u.Form.Get("model")
	if err == nil && u.Model == "" {
		if u.Model = model; model == "" || len(model) > maxModel {
			err = apierr.Invalid("model", "model is required.")
		}
	}
	return err
}

// Body returns the form with the upstream's model. A form that is streamed can
// be sent once: for another attempt the failure of the one before is the error.
func (u *Upload) Body(model string, before *accounts.Attempt) (io.ReadCloser, error) {
	if u.Held != nil {
		if f := u.Form.Field("model"); f != nil {
			return &stream.Through{Src: u.Held.Open(), T: &multipart.Splice{From: f.From, To: f.To, With: []byte(model),
				Size: u.Held.Size()}}, nil
		}
		return &stream.Through{Src: u.Held.Open(), T: multipart.Insert(u.Boundary, "model", model,
			u.Held.Size()).Limit(endpoint.MaxParts)}, nil
	}
	if u.sent {
		if before != nil && before.Failure != nil {
			shown := *before.Failure
			shown.Message = apierr.Sentence(shown.Told(len(shown.Message)+32)) + " The file was streamed, so that it cannot be sent again: repeat the request."
			shown.Said = false
			return nil, &shown
		}
		return nil, apierr.New(502, "upstream_unreachable", "The file was streamed to an account that did not answer, and cannot be sent again: repeat the request.")
	}
	u.sent = true
	if u.inPart {
		u.flow = multipart.Replace(u.Boundary, "model", u.Model, model, u.Call.Length)
	} else {
		u.flow = multipart.Insert(u.Boundary, "model", model, u.Call.Length)
	}
	u.flow.Limit(endpoint.MaxParts)
	if u.Call.MaxBody > 0 {
		u.flow.Most(u.Call.MaxBody)
	}
	return &stream.Through{Src: u.Call.Body, T: u.flow, Idle: stream.UploadIdle}, nil
}

// Failed returns the reason why a streamed form was cut off, or nil.
func (u *Upload) Failed() error {
	if u.flow == nil || u.flow.Err() == nil {
		return nil
	}
	if errors.Is(u.flow.Err(), stream.ErrTooLarge) {
		return endpoint.BodyTooLarge(u.Call.MaxBody)
	}
	return memory.BodyError(u.flow.Err())
}

// File returns the held file between head and tail.
func (u *Upload) File(head, tail []byte, base64 bool) io.ReadCloser {
	f, _ := u.Form.File(u.name)
	return u.Part(f, head, tail, base64)
}

// Part returns the content of a held part between head and tail.
func (u *Upload) Part(f *multipart.Field, head, tail []byte, base64 bool) io.ReadCloser {
	return &stream.Through{Src: u.Held.Open(), T: &multipart.Cut{From: f.From, To: f.To, Head: head, Tail: tail,
		Base64: base64}}
}
