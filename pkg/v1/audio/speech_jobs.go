package audio

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/upstream"
)

// speechJobWait is how long a queued speech job may take.
const speechJobWait = 5 * time.Minute

// falSpeech is fal's queue (see its image shape). Fields are each model's own.
//
//	POST {model} {text, voice} → {request_id}; status; result {audio{url}}
var falSpeech = speaker{
	providers: []string{"fal"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		text := "text"
		switch {
		case strings.Contains(to.Model, "kokoro"):
			text = "prompt"
		case strings.Contains(to.Model, "playai"):
			text = "input"
		}
		body := map[string]any{text: s.input}
		switch {
		case strings.Contains(to.Model, "minimax/"):
			voice := map[string]any{"voice_id": s.voice}
			if s.speed != "" {
				voice["speed"] = json.RawMessage(s.speed)
			}
			body["voice_setting"], body["output_format"] = voice, "url"
		case strings.Contains(to.Model, "dia-tts"): // the text names the speakers
			s.unknown(s.voice, "voice")
			s.unknown(s.speed, "speed")
		default:
			body["voice"] = s.voice
			if s.speed != "" {
				body["speed"] = json.RawMessage(s.speed)
			}
		}
		s.unknown(s.hint, "instructions")
		if s.format != "mp3" {
			s.choose([2]string{"mp3"})
		}
		return body, "", nil
	},
	read: documentWith("request_id"),
	finish: func(ctx context.Context, h *Handler, s *spoken, res *accounts.Result) (string, error) {
		app, id := falApp(res.Target.Model), gjson.GetBytes(s.audio, "request_id").Str
		if err := h.falDone(ctx, s.call, res, speechJobWait, app, id); err != nil {
			return "", err
		}
		doc, err := h.same(ctx, s.call, res, "result", app, id, nil)
		if err != nil {
			return "", err
		}
		for _, path := range []string{"audio.url", "audio_url", "audio_file.url", "url"} {
			if u := doc.Get(path).Str; u != "" {
				return u, nil
			}
		}
		return "", jobFailed(doc.Get("detail").Str)
	},
}

// falApp returns the part of a model's path that the URLs of its jobs contain.
func falApp(model string) string {
	parts := strings.SplitN(model, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// falDone waits until a fal job has ended.
func (h *Handler) falDone(ctx context.Context, c *auth.Call, res *accounts.Result, limit time.Duration,
	app, id string) error {
	return h.await(ctx, limit, func(int) (bool, error) {
		doc, err := h.same(ctx, c, res, "status", app, id, nil)
		return doc.Get("status").Str == "COMPLETED", err
	})
}

// runwaySpeech is Runway's API:
//
//	POST text_to_speech {model, promptText, voice{type: runway-preset, presetId}} → {id}
//	GET tasks/{id} → {status, output[], failure}
var runwaySpeech = speaker{
	providers: []string{"runway"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		s.unknown(s.speed, "speed")
		s.unknown(s.hint, "instructions")
		if s.format != "mp3" {
			s.choose([2]string{"mp3"})
		}
		return map[string]any{"model": to.Model, "promptText": s.input,
			"voice": map[string]string{"type": "runway-preset", "presetId": s.voice}}, "", nil
	},
	read: documentWith("id"),
	finish: func(ctx context.Context, h *Handler, s *spoken, res *accounts.Result) (address string, err error) {
		id := gjson.GetBytes(s.audio, "id").Str
		err = h.await(ctx, speechJobWait, func(int) (bool, error) {
			doc, err := h.same(ctx, s.call, res, "videoStatus", "", id, nil)
			switch doc.Get("status").Str {
			case "FAILED", "CANCELLED":
				return false, jobFailed(doc.Get("failure").Str)
			case "SUCCEEDED":
				if address = doc.Get("output.0").Str; address == "" {
					return false, jobFailed("")
				}
			}
			return address != "", err
		})
		return address, err
	},
}

// dashScopeSpeech is Qwen's speech on Model Studio, which answers with an address:
//
//	POST multimodal-generation/generation {model, input{text, voice}} → {output.audio{url}}
var dashScopeSpeech = speaker{
	providers: []string{"dashscope"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		s.choose([2]string{"wav"})
		s.unknown(s.speed, "speed")
		s.unknown(s.hint, "instructions")
		return map[string]any{"model": to.Model, "input": map[string]string{"text": s.input, "voice": s.voice}}, "", nil
	},
	read: documentWith("output.audio.url"),
	finish: func(_ context.Context, _ *Handler, s *spoken, _ *accounts.Result) (string, error) {
		address := gjson.GetBytes(s.audio, "output.audio.url").Str
		if rest, plain := strings.CutPrefix(address, "http://"); plain {
			address = "https://" + rest // the store has both
		}
		return address, nil
	},
}

// documentWith returns a read that keeps an answer with a string at path.
func documentWith(path string) func([]byte, *spoken) ([]byte, string, error) {
	return func(raw []byte, _ *spoken) ([]byte, string, error) {
		if gjson.GetBytes(raw, path).Str == "" {
			return nil, "", errors.New("audio: the answer has no " + path)
		}
		return raw, "application/json", nil
	}
}

// jobFailed returns the 400 of a failed job.
func jobFailed(message string) error {
	return endpoint.Said(apierr.New(400, "generation_failed", "The provider could not make the speech."), message)
}

// await calls done until it reports that a job has ended, with pauses of 1 to 5 s
// and for at most limit. done is passed the number of its previous calls.
func (h *Handler) await(ctx context.Context, limit time.Duration, done func(polls int) (bool, error)) error {
	waited, pause := time.Duration(0), time.Second
	for polls := 0; ; polls++ {
		if ok, err := done(polls); ok || err != nil {
			return err
		}
		if waited >= limit {
			return apierr.New(504, "upstream_timeout", "The provider did not finish in time.")
		}
		if err := h.Pause.Pause(ctx, pause); err != nil {
			return upstream.ErrCanceled
		}
		waited += pause
		pause = min(pause*3/2, 5*time.Second)
	}
}

// falTranscriber are the Whisper models on fal:
//
//	POST {model} {audio_url, task, language, chunk_level, diarize} → {request_id}; status;
//	  result {text, chunks[{timestamp[from, to], text, speaker}], inferred_languages[]}
var falTranscriber = transcriber{
	providers: []string{"fal"}, endpoint: "transcriptions", speakers: true,
	build: func(u *transcription, _ *routing.Target, req *upstream.Request) error {
		ask := map[string]any{"task": "transcribe", "chunk_level": "segment", "audio_url": "@DATA@"}
		if u.endpoint == "translations" {
			ask["task"] = "translate"
		}
		if lang := u.Form.Text("language"); lang != "" {
			ask["language"] = lang
		}
		if prompt := u.Form.Text("prompt"); prompt != "" {
			ask["prompt"] = prompt
		}
		if u.diarized() {
			ask["diarize"] = true
		}
		u.drop("temperature")
		return u.inDocument(req, ask, `"audio_url":"`, "data:"+u.audioType()+";base64,")
	},
	read: func(_ *transcription, raw []byte) (*transcript, error) {
		id := gjson.GetBytes(raw, "request_id").Str
		if id == "" {
			return nil, errors.New("audio: the answer has no request_id")
		}
		return &transcript{text: id}, nil // replaced by finish
	},
	finish: func(ctx context.Context, h *Handler, u *transcription, res *accounts.Result) (*transcript, error) {
		app, id := falApp(res.Target.Model), u.text.text
		if err := h.falDone(ctx, u.Call, res, store.WholeAnswer, app, id); err != nil {
			return nil, err
		}
		doc, err := h.same(ctx, u.Call, res, "result", app, id, nil)
		if err != nil {
			return nil, err
		}
		if doc.Get("text").Type != gjson.String {
			return nil, endpoint.BadBody(errNoText)
		}
		t := &transcript{text: strings.TrimSpace(doc.Get("text").Str), language: doc.Get("inferred_languages.0").Str}
		for _, c := range doc.Get("chunks").Array() {
			s := span{strings.TrimSpace(c.Get("text").Str), seconds(c.Get("timestamp.0")), seconds(c.Get("timestamp.1")),
				speakerOfWord(c)}
			if s.text != "" {
				t.segments, t.duration = append(t.segments, s), max(t.duration, s.end)
			}
		}
		return t, nil
	},
}

// audioType is fileType for providers that require an audio type.
func (u *transcriptionForm) audioType() string {
	if t := u.fileType(); !strings.HasPrefix(t, "application/octet-stream") {
		t, _, _ = strings.Cut(t, ";")
		return strings.TrimSpace(t)
	}
	return "audio/mpeg"
}

// inDocument makes a JSON body in which the held file, in base64 after a prefix,
// replaces the text "@DATA@". before is the JSON in front of that text.
func (u *transcriptionForm) inDocument(req *upstream.Request, document map[string]any, before, prefix string) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	head, tail, ok := strings.Cut(string(body), before+`@DATA@"`)
	if !ok {
		return errors.New("audio: no place for the file")
	}
	req.Header.Set("content-type", "application/json")
	req.Header.Set("accept", "application/json")
	req.Body = u.File([]byte(head+before+prefix), []byte(`"`+tail), true)
	return nil
}
