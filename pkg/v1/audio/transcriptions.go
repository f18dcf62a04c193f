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
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/endpoint/upload"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Handler serves the endpoints.
type Handler struct {
	Accounts accounts.Sender
	Pause    upstream.Pauser // between polls of a provider that queues
	// Downloads fetches speech of which a provider returns the address.
	Downloads *download.Downloads
	Now       func() time.Time

	mu     sync.Mutex
	voices map[voicesKey]*voiceList
}

const (
	// A transcription takes about as long as a tenth of its recording.
	transcribeTotal = 20 * time.Minute
	maxTranscript   = 32 << 20 // bytes of an answer
)

// Transcriptions answers POST /v1/audio/transcriptions, a form
// (docs/reference/api-shapes.md, 5.2).
//
// With the model known before the file (the part model comes first, or it is
// given as ?model= or in the field x-model) the form can flow up as it comes,
// with only the model's value changed. It does so if there is only one account,
// no room to hold it, or a length that is unknown or over 25 MiB. After a failure
// it cannot be sent to another account, and of a combo only the first member is
// tried. Any other form is held by the host, up to 25 MiB, and can be sent again.
func (h *Handler) Transcriptions(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.transcribe(ctx, c, "transcriptions")
}

// Translations answers POST /v1/audio/translations, as Transcriptions.
func (h *Handler) Translations(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.transcribe(ctx, c, "translations")
}

// transcriptionForm is one client's form on its way.
type transcriptionForm struct {
	*upload.Upload
	endpoint string
}

// transcription is one upstream call.
type transcription struct {
	accounts.Attempt
	*transcriptionForm
	shape *transcriber
	text  *transcript // the answer of a provider of another shape
}

func (h *Handler) transcribe(ctx context.Context, c *auth.Call, endpoint string) (*httpmsg.Response, error) {
	form, err := upload.Begin(c, "file")
	if err != nil {
		return nil, err
	}
	u := &transcriptionForm{Upload: form, endpoint: endpoint}
	var targets []routing.Target
	if u.Model != "" {
		if targets, err = h.targets(u); err != nil {
			return nil, err
		}
	}
	if u.Model == "" || u.Small() || transcriberOf(targets[0].Provider) != &openAIForm || u.Repeatable(targets) {
		release, err := u.Hold(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		if f, err := u.Form.File("file"); f == nil {
			if err == nil {
				err = apierr.Invalid("file", "The part file is missing.")
			}
			return nil, err
		}
		if targets == nil {
			if targets, err = h.targets(u); err != nil {
				return nil, err
			}
		}
	} else {
		release, err := u.Flow(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		targets = targets[:1]
	}
	return h.send(ctx, u, targets)
}

func (h *Handler) targets(u *transcriptionForm) ([]routing.Target, error) {
	return endpoint.Targets(u.Call, u.Model, catalog.STT, func(to *routing.Target) error {
		s := transcriberOf(to.Provider)
		if s == nil || !to.Provider.Serves(s.at(u.endpoint)) {
			return endpoint.Refused("The provider of this model has no %s.", u.endpoint)
		}
		return nil
	})
}

// send tries the targets and shapes the answer.
func (h *Handler) send(ctx context.Context, u *transcriptionForm, targets []routing.Target) (*httpmsg.Response, error) {
	c := u.Call
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: u.build, Read: readTranscription,
		Repeats: u.Held != nil,
	})
	if err != nil {
		return nil, err
	}
	a := res.Attempt.State.(*transcription)
	if a.shape.finish != nil {
		if a.text, err = a.shape.finish(ctx, h, a, res); err != nil {
			return nil, err
		}
	}
	if a.text != nil {
		return a.text.answer(res, u)
	}
	if isEvents(res.Header) {
		return endpoint.Watch(c.Machine, res, `"type":"transcript.text.done"`), nil
	}
	return endpoint.Forward(c.Machine, res), nil
}

func isEvents(h httpmsg.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("content-type")), "text/event-stream")
}

// build makes the upstream's request for one target and account.
func (u *transcriptionForm) build(to *routing.Target, conn *store.Connection,
	before *accounts.Attempt) (*accounts.Attempt, error) {
	a := &transcription{transcriptionForm: u, shape: transcriberOf(to.Provider)}
	a.State, a.Fault = a, u.Failed
	method, url, err := to.Provider.Endpoint(conn, a.shape.at(u.endpoint), to.Model)
	if err != nil {
		return nil, err
	}
	a.Request = upstream.Request{Method: method, URL: url, HeaderTimeout: u.Call.Machine.Settings.FirstByte(),
		Timeout: transcribeTotal}
	req := &a.Request
	if a.shape.build != nil {
		if err := a.accepted(); err != nil {
			return nil, err
		}
		req.MaxBody, req.Timeout = maxTranscript, u.Call.Machine.Settings.Whole()
		return &a.Attempt, a.shape.build(a, to, req)
	}
	req.Header = provider.RequestHeader(u.Call.Header, clientheader.ToTranscriptions)
	req.Body, err = u.Body(to.Model, before)
	return &a.Attempt, err
}

// readTranscription reads an answer that must be whole.
func readTranscription(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*transcription)
	if a.shape.read == nil {
		err := endpoint.CheckJSON(resp)
		if err == nil && !endpoint.HasField(resp, "text", "segments", "words") {
			err = endpoint.BadBody(endpoint.ErrNoAnswer)
		}
		if err == nil {
			err = endpoint.CheckStart(resp, false)
		}
		if b, whole := resp.Body.(*stream.Bytes); whole && err == nil {
			a.Used = usedBy(b.All())
		}
		return err
	}
	raw, err := stream.ReadAll(resp.Body, maxTranscript)
	if err == nil {
		err = endpoint.ValidJSON(raw)
	}
	if err == nil {
		a.text, err = a.shape.read(a, raw)
	}
	if a.text != nil {
		a.Used.Media = &usage.Media{Seconds: a.text.duration}
	}
	var shown *apierr.Error
	if errors.As(err, &shown) {
		return err
	}
	if err != nil {
		return endpoint.BadBody(err)
	}
	return nil
}

// usedBy returns what a JSON answer says that it is billed by.
//
//	usage     {type: "tokens", input_tokens, output_tokens, input_token_details{audio_tokens}}
//	usage     {type: "duration", seconds}
//	duration  seconds, of a verbose answer
func usedBy(raw []byte) (u accounts.Used) {
	doc := gjson.ParseBytes(raw)
	v := doc.Get("usage")
	if in := v.Get("input_tokens"); in.Type == gjson.Number {
		u.Tokens = llm.Usage{
			Known: true, Input: ir.Count(in), Output: ir.Count(v.Get("output_tokens")),
			AudioInput: ir.Count(v.Get("input_token_details.audio_tokens")),
		}
	}
	for _, seconds := range []gjson.Result{v.Get("seconds"), doc.Get("duration")} {
		if seconds.Num > 0 {
			u.Media = &usage.Media{Seconds: seconds.Num}
			break
		}
	}
	return u
}
