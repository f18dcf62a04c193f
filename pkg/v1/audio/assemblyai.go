package audio

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// assemblyAI takes the file first and works later, all with one account:
//
//	POST /v2/upload (bytes) → {upload_url}
//	POST /v2/transcript {audio_url, speech_models[], language_code|language_detection, speaker_labels} → {id}
//	GET /v2/transcript/{id} → {status queued|processing|completed|error, text, words[{text, start, end, speaker}], audio_duration}; times in ms
var assemblyAI = transcriber{
	providers: []string{"assemblyai"}, only: true, speakers: true, endpoint: "upload",
	build: func(u *transcription, _ *routing.Target, req *upstream.Request) error {
		req.Header = httpmsg.Header{{Name: "content-type", Value: "application/octet-stream"}}
		req.Body = u.File(nil, nil, false)
		u.drop("prompt", "temperature")
		return nil
	},
	read: func(_ *transcription, raw []byte) (*transcript, error) {
		if gjson.GetBytes(raw, "upload_url").Str == "" {
			return nil, errors.New("audio: the answer has no upload_url")
		}
		return &transcript{text: gjson.GetBytes(raw, "upload_url").Str}, nil // until finish has the real one
	},
	finish: func(ctx context.Context, h *Handler, u *transcription, res *accounts.Result) (*transcript, error) {
		ask := map[string]any{"audio_url": u.text.text}
		if res.Target.Model == "best" {
			ask["speech_model"] = "best"
		} else {
			ask["speech_models"] = []string{res.Target.Model}
		}
		if lang := u.Form.Text("language"); lang != "" {
			ask["language_code"] = lang
		} else {
			ask["language_detection"] = true
		}
		if u.diarized() {
			ask["speaker_labels"] = true
		}
		body, _ := json.Marshal(ask)
		doc, err := h.same(ctx, u.Call, res, "transcriptions", res.Target.Model, "", body)
		if err != nil {
			return nil, err
		}
		id := doc.Get("id").Str
		if id == "" {
			return nil, endpoint.BadBody(errors.New("audio: the answer has no id"))
		}
		var t *transcript
		err = h.await(ctx, store.WholeAnswer, func(polls int) (bool, error) {
			if polls > 0 {
				if doc, err = h.same(ctx, u.Call, res, "transcriptionStatus", res.Target.Model, id, nil); err != nil {
					return false, err
				}
			}
			switch doc.Get("status").Str {
			case "completed":
				t = &transcript{text: doc.Get("text").Str, language: doc.Get("language_code").Str,
					duration: seconds(doc.Get("audio_duration"))}
				t.readWords(doc.Get("words"), 1000)
			case "error":
				e := apierr.New(400, "transcription_failed", "The provider could not transcribe the file.")
				return false, endpoint.Said(e, doc.Get("error").Str)
			}
			return t != nil, nil
		})
		return t, err
	},
}

// same makes a further call with the account that has the file or the job.
func (h *Handler) same(ctx context.Context, c *auth.Call, res *accounts.Result, operation, model, id string,
	body []byte) (gjson.Result, error) {
	to := *res.Target
	to.Connections = []*store.Connection{res.Connection}
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: []routing.Target{to},
		Estimate: accounts.Estimate{Follows: true},
		Build: func(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
			method, url, err := to.Provider.Endpoint(conn, operation, model, provider.Part{Name: "id", Value: id, Any: true},
				provider.Part{Name: "request_id", Value: id, Any: true})
			if err != nil {
				return nil, err
			}
			req := upstream.Request{Method: method, URL: url, Timeout: time.Minute, MaxBody: maxTranscript}
			if body != nil {
				req.Header.Add("content-type", "application/json")
				req.Body = stream.FromBytes(body)
			}
			return &accounts.Attempt{Request: req, Used: accounts.StatedCost(0, true)}, nil
		},
		Read: func(a *accounts.Attempt, resp *upstream.Response) error {
			raw, err := stream.ReadAll(resp.Body, maxTranscript)
			if err == nil {
				err = endpoint.ValidJSON(raw)
			}
			if err != nil {
				return endpoint.BadBody(err)
			}
			a.State = gjson.ParseBytes(raw)
			return nil
		},
	})
	if err != nil {
		return gjson.Result{}, err
	}
	return res.Attempt.State.(gjson.Result), nil
}
