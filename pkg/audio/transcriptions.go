// Package audio serves /v1/audio: transcriptions, translations, speech and
// voices.
//
// An upload flows from the client to the provider while Go only reads along;
// the voice of an answer flows back the same way. Providers of another shape
// are adapted, a file each.
package audio

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/edge"
	"weir/pkg/media"
	"weir/pkg/multipart"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

// Handler serves the endpoints.
type Handler struct {
	Router   media.Router
	Accounts media.Sender
	Allows   media.Allows
	Room     *media.Room
	Pause    upstream.Pauser // between polls of a provider that queues
	Now      func() time.Time

	voices map[voicesKey]*voiceList
}

const (
	maxModel = 256 // bytes of a model in a form
	// A transcription takes about as long as a tenth of its recording.
	transcribeWait = 10 * time.Minute
	maxTranscript  = 32 << 20 // bytes of an answer
)

// Transcriptions answers POST /v1/audio/transcriptions, a form (api-shapes
// 5.2).
//
// With the model known before the file (the part model comes first, or it is
// given as ?model= or in the field x-model) the form flows up as it comes, with
// only the model's value changed. It is gone then: after a failure no other
// account can be tried, and of a combo only the first member is. A form whose
// model follows the file, and any for a provider of another shape, is held by
// the host, up to 25 MiB, and can be sent again.
func (h *Handler) Transcriptions(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	return h.transcribe(ctx, c, "transcriptions")
}

// Translations answers POST /v1/audio/translations, as Transcriptions.
func (h *Handler) Translations(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	return h.transcribe(ctx, c, "translations")
}

// upload is one client's form on its way.
type upload struct {
	endpoint string
	call     *auth.Call
	boundary string
	model    string // as the client names it
	inPart   bool   // it stands in the form, before any file

	held stream.Held
	form *multipart.Form // of a held one
	flow *multipart.Rewriter
	sent bool // a form that flows is gone

	shape *transcriber
	text  *transcript // the answer of a provider of another shape
}

func (h *Handler) transcribe(ctx context.Context, c *auth.Call, endpoint string) (*edge.Response, error) {
	u := &upload{endpoint: endpoint, call: c}
	var err error
	if u.boundary, err = multipart.Boundary(c.Header.Get("content-type")); err != nil || c.Body == nil {
		return nil, apierr.Invalid("", "the body must be multipart/form-data with a boundary")
	}
	if u.model = media.Query(c.Query, "model"); u.model == "" {
		u.model = c.Header.Get("x-model")
	}
	if len(u.model) > maxModel {
		return nil, apierr.Invalid("model", "the model name is not usable")
	}
	_, small := c.Body.(*stream.Bytes)
	if u.model == "" && !small {
		head, model, found, err := multipart.Peek(c.Body, u.boundary, "model", maxModel)
		if err != nil {
			return nil, uploadError(err)
		}
		c.Body = media.Back(head, c.Body)
		u.model, u.inPart = model, found
	}
	var targets []routing.Target
	if u.model != "" {
		if targets, err = h.targets(u); err != nil {
			return nil, err
		}
	}
	if u.model == "" || small || transcriberOf(targets[0].Provider) != &openAIForm {
		give, err := u.hold(h.Room)
		if err != nil {
			return nil, err
		}
		defer give()
		if targets == nil {
			if targets, err = h.targets(u); err != nil {
				return nil, err
			}
		}
	} else {
		targets = targets[:1]
	}
	return h.send(ctx, u, targets)
}

// hold has the host keep the form, and finds its fields.
func (u *upload) hold(room *media.Room) (give func(), err error) {
	u.held, give, err = room.Hold(u.call, media.MaxForm)
	if errors.Is(err, stream.ErrTooLarge) {
		e := apierr.New(413, "request_too_large", "a form of over 25 MiB must have its model before the file: send the part model first, or give ?model= or the header x-model")
		e.Err = err
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	body := u.held.Open()
	u.form, err = multipart.Read(body, u.boundary, 0)
	body.Close()
	if err == nil {
		var file *multipart.Field
		var model string
		if file, err = u.form.File("file"); err == nil && file == nil {
			err = apierr.Invalid("file", "the part file is missing")
		}
		if err == nil {
			if model, _, err = u.form.Get("model"); err == nil && u.model == "" {
				if u.model = model; model == "" || len(model) > maxModel {
					err = apierr.Invalid("model", "you must provide a model")
				}
			}
		}
	}
	if err != nil {
		give()
		return nil, uploadError(err)
	}
	return give, nil
}

// uploadError is what a client is told of a form that could not be read.
func uploadError(err error) error {
	if errors.Is(err, stream.ErrReset) || errors.Is(err, upstream.ErrNetwork) || errors.Is(err, io.ErrUnexpectedEOF) {
		e := apierr.Invalid("", "the request body broke off")
		e.Err = err
		return e
	}
	return err
}

func (h *Handler) targets(u *upload) ([]routing.Target, error) {
	return media.Targets(h.Router, h.Allows, u.call, u.model, catalog.STT, func(to *routing.Target) error {
		s := transcriberOf(to.Provider)
		if s == nil || !to.Provider.Serves(s.at(u.endpoint)) {
			return media.Refused("the provider of this model has no %s", u.endpoint)
		}
		return nil
	})
}

// send tries the targets and shapes the answer.
func (h *Handler) send(ctx context.Context, u *upload, targets []routing.Target) (*edge.Response, error) {
	c := u.call
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Targets: targets, Build: u.build, Check: u.check,
	})
	if u.flow != nil && u.flow.Err() != nil {
		// The form was cut off on its way: what the upstream made of it does
		// not matter.
		if err == nil {
			res.Body.Close()
		}
		return nil, uploadError(u.flow.Err())
	}
	if err != nil {
		return nil, err
	}
	if u.shape.finish != nil {
		if u.text, err = u.shape.finish(ctx, h, u, res); err != nil {
			return nil, err
		}
	}
	if u.text != nil {
		return u.text.answer(res, u.form)
	}
	if isEvents(res.Header) {
		resp := media.Passed(res)
		resp.After = nil
		resp.Body = media.Watch(res, `"type":"transcript.text.done"`)
		return resp, nil
	}
	return media.Passed(res), nil
}

func isEvents(h edge.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("content-type")), "text/event-stream")
}

// build makes the upstream's request for one target and account.
func (u *upload) build(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
	u.shape = transcriberOf(to.Provider)
	method, url, err := to.Provider.Endpoint(conn, u.shape.at(u.endpoint), to.Model)
	if err != nil {
		return nil, err
	}
	req := &upstream.Request{Method: method, URL: url, HeaderTimeout: media.FirstByte(u.call.Machine, transcribeWait)}
	if u.shape.build != nil {
		req.MaxBody, req.Timeout = maxTranscript, req.HeaderTimeout
		return req, u.shape.build(u, to, req)
	}
	req.Header = provider.RequestHeader(u.call.Header)
	if u.held != nil {
		req.Body = u.again(to.Model)
		return req, nil
	}
	if u.sent {
		// The failure of the first attempt is what the client is told.
		var e *apierr.Error
		if errors.As(u.call.Trace.Err, &e) {
			return nil, e
		}
		return nil, apierr.New(502, "upstream_unreachable", "the provider could not be reached or broke off")
	}
	u.sent = true
	if u.inPart {
		u.flow = multipart.Replace(u.boundary, "model", u.model, to.Model, u.call.Length)
	} else {
		u.flow = multipart.Insert(u.boundary, "model", to.Model, u.call.Length)
	}
	req.Body = &stream.Through{Src: u.call.Body, T: u.flow}
	return req, nil
}

// again gives the held form with the upstream's model.
func (u *upload) again(model string) io.ReadCloser {
	if f := u.form.Field("model"); f != nil {
		return &stream.Through{Src: u.held.Open(), T: &multipart.Splice{From: f.From, To: f.To, With: []byte(model), Size: u.held.Size()}}
	}
	return &stream.Through{Src: u.held.Open(), T: multipart.Insert(u.boundary, "model", model, u.held.Size())}
}

// file gives the held file between head and tail.
func (u *upload) file(head, tail []byte, base64 bool) io.ReadCloser {
	f, _ := u.form.File("file")
	return &stream.Through{Src: u.held.Open(), T: &multipart.Cut{From: f.From, To: f.To, Head: head, Tail: tail, Base64: base64}}
}

// check reads an answer that must be whole.
func (u *upload) check(resp *upstream.Response) error {
	if u.shape.read == nil {
		return media.WholeJSON(resp)
	}
	raw, err := stream.ReadAll(resp.Body, maxTranscript)
	if err == nil {
		err = media.ValidJSON(raw)
	}
	if err == nil {
		u.text, err = u.shape.read(raw)
	}
	var shown *apierr.Error
	if errors.As(err, &shown) {
		return err
	}
	if err != nil {
		return media.BadBody(err)
	}
	return nil
}
