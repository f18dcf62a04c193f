package audio

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/routing"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// cloudflareSpeech is Workers AI, with bodies of each model's own:
//
//	POST run/@cf/deepgram/aura-1 {text, speaker, encoding} → the audio
//	POST run/@cf/myshell-ai/melotts {prompt, lang} → {result{audio: base64}}
var cloudflareSpeech = speaker{
	providers: []string{"cloudflare"},
	build: func(s *spoken, to *routing.Target) (map[string]any, string, error) {
		s.unknown(s.speed, "speed")
		s.unknown(s.hint, "instructions")
		if strings.Contains(to.Model, "melotts") {
			s.choose([2]string{"mp3"})
			return map[string]any{"prompt": s.input, "lang": s.voice}, "", nil
		}
		body := map[string]any{"text": s.input, "speaker": s.voice}
		switch s.choose([2]string{"mp3", "mp3"}, [2]string{"opus", "opus"}, [2]string{"wav", "wav"}, [2]string{"pcm", "pcm"},
			[2]string{"flac", "flac"}, [2]string{"aac", "aac"}) {
		case "opus":
			body["encoding"], body["container"] = "opus", "ogg"
		case "wav":
			body["encoding"], body["container"] = "linear16", "wav"
		case "pcm":
			body["encoding"], body["container"], body["sample_rate"] = "linear16", "none", 24000
		default:
			body["encoding"] = s.format
		}
		return body, "", nil
	},
	read: func(raw []byte, s *spoken) ([]byte, string, error) {
		audio, err := base64.StdEncoding.DecodeString(gjson.GetBytes(raw, "result.audio").Str)
		return audio, contentType(s.format), err
	},
	binary: true,
}

// cloudflareTranscriber is Workers AI:
//
//	POST run/@cf/openai/whisper-large-v3-turbo {audio: base64, task, language, initial_prompt} → {result{text, segments[], transcription_info}}
//	POST run/@cf/openai/whisper, the bare file → {result{text, words[]}}
//	POST run/@cf/deepgram/nova-3?…, the bare file → {result} as Deepgram's
var cloudflareTranscriber = transcriber{
	providers: []string{"cloudflare"}, only: true, speakers: true,
	build: func(u *transcription, to *routing.Target, req *upstream.Request) error {
		if strings.Contains(to.Model, "turbo") {
			ask := map[string]any{"audio": "@DATA@", "task": "transcribe"}
			if lang := u.Form.Text("language"); lang != "" {
				ask["language"] = lang
			}
			if prompt := u.Form.Text("prompt"); prompt != "" {
				ask["initial_prompt"] = prompt
			}
			u.drop("temperature")
			return u.inDocument(req, ask, `"audio":"`, "")
		}
		if strings.Contains(to.Model, "deepgram") {
			if err := deepgram.build(u, to, req); err != nil {
				return err
			}
			req.URL = strings.Replace(req.URL, "&model="+queryName(to.Model), "", 1)
			return nil
		}
		req.Header = httpmsg.Header{{Name: "content-type", Value: u.fileType()}, {Name: "accept", Value: "application/json"}}
		req.Body = u.File(nil, nil, false)
		u.drop("prompt", "temperature", "language")
		return nil
	},
	read: func(u *transcription, raw []byte) (*transcript, error) {
		result := gjson.GetBytes(raw, "result")
		if result.Get("results").IsObject() {
			return deepgram.read(u, []byte(result.Raw))
		}
		t, err := readPlain(u, []byte(result.Raw))
		if err != nil {
			return nil, err
		}
		if info := result.Get("transcription_info"); info.IsObject() {
			t.language, t.duration = info.Get("language").Str, seconds(info.Get("duration"))
		}
		for _, s := range result.Get("segments").Array() {
			if text := strings.TrimSpace(s.Get("text").Str); text != "" {
				t.segments = append(t.segments, span{text: text, start: seconds(s.Get("start")), end: seconds(s.Get("end"))})
			}
		}
		return t, nil
	},
}

// queryName returns a model id as url.Values encodes it.
func queryName(model string) string {
	return strings.NewReplacer("@", "%40", "/", "%2F").Replace(model)
}
