package audio

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/multipart"
	"weir/pkg/wire/upstream"
)

// deepgram takes the bare file, with everything else in the query:
//
//	POST /v1/listen?model=… → {metadata.duration, results.channels[].alternatives[].{transcript, words[]}, results.utterances[]}
var deepgram = transcriber{
	providers: []string{"deepgram"}, only: true, speakers: true,
	build: func(u *transcription, to *routing.Target, req *upstream.Request) error {
		q := url.Values{"model": {to.Model}, "smart_format": {"true"}, "utterances": {"true"}}
		if lang := u.Form.Text("language"); lang != "" {
			q.Set("language", lang)
		} else {
			q.Set("detect_language", "true")
		}
		if u.diarized() {
			q.Set("diarize", "true")
		}
		for _, word := range u.Form.All("keywords") {
			q.Add("keyterm", word)
		}
		req.URL += "?" + q.Encode()
		req.Header = httpmsg.Header{{Name: "content-type", Value: u.fileType()}, {Name: "accept", Value: "application/json"}}
		req.Body = u.File(nil, nil, false)
		u.drop("prompt", "temperature")
		return nil
	},
	read: func(_ *transcription, raw []byte) (*transcript, error) {
		doc := gjson.ParseBytes(raw)
		best := doc.Get("results.channels.0.alternatives.0")
		if best.Get("transcript").Type != gjson.String {
			return nil, errNoText
		}
		t := &transcript{
			text: best.Get("transcript").Str, duration: seconds(doc.Get("metadata.duration")),
			language: doc.Get("results.channels.0.detected_language").Str,
		}
		t.readWords(best.Get("words"), 1)
		for _, s := range doc.Get("results.utterances").Array() {
			t.segments = append(t.segments, span{s.Get("transcript").Str, seconds(s.Get("start")), seconds(s.Get("end")),
				speakerOfWord(s)})
		}
		return t, nil
	},
}

// elevenLabs takes a form of its own:
//
//	POST /v1/speech-to-text {model_id, file, language_code?, temperature?} → {text, language_code, words[{text, start, end, type}]}
var elevenLabs = transcriber{
	providers: []string{"elevenlabs"}, only: true, speakers: true,
	build: func(u *transcription, to *routing.Target, req *upstream.Request) error {
		w := multipart.NewWriter(u.Boundary)
		w.Field("model_id", to.Model)
		w.Field("timestamps_granularity", "word")
		if lang := u.Form.Text("language"); lang != "" {
			w.Field("language_code", lang)
		}
		if t := u.Form.Text("temperature"); t != "" {
			w.Field("temperature", t)
		}
		if u.diarized() {
			w.Field("diarize", "true")
		}
		u.formWith(w, req)
		u.drop("prompt")
		return nil
	},
	read: readPlain,
}

// cartesiaForm and xaiForm take OpenAI's form and always answer
// {text, language, duration, words[]}; xAI tells speakers apart.
var (
	cartesiaForm = transcriber{providers: []string{"cartesia"}, only: true, build: sttForm, read: readPlain}
	xaiForm      = transcriber{providers: []string{"xai"}, only: true, speakers: true, build: sttForm, read: readPlain}
)

func sttForm(u *transcription, to *routing.Target, req *upstream.Request) error {
	w := multipart.NewWriter(u.Boundary)
	w.Field("model", to.Model)
	if lang := u.Form.Text("language"); lang != "" {
		w.Field("language", lang)
	}
	w.Field("timestamp_granularities[]", "word")
	if u.diarized() {
		w.Field("diarize", "true")
	}
	u.formWith(w, req)
	u.drop("prompt", "temperature")
	return nil
}

// geminiAudio asks a model that hears for a transcript:
//
//	POST models/{m}:generateContent {contents[{parts[{text}, {inlineData{mimeType, data}}]}]} → {candidates[].content.parts[].text}
//
// Where times or speakers are wanted, that text is JSON of geminiSchema.
var geminiAudio = transcriber{
	providers: []string{"gemini", "vertex"}, endpoint: "chat", speakers: true,
	build: func(u *transcription, to *routing.Target, req *upstream.Request) error {
		ask := "Generate a verbatim transcript of the speech. Answer with the transcript only."
		if u.endpoint == "translations" {
			ask = "Translate the speech into English. Answer with the translation only."
		} else if lang := u.Form.Text("language"); lang != "" {
			ask += " The language is " + lang + "."
		}
		config := map[string]any{"temperature": 0}
		if u.timed() {
			ask = strings.Replace(ask, "Answer with",
				"Split it into sentences, with the seconds at which each begins and ends, and who speaks. Answer with", 1)
			config["responseMimeType"], config["responseSchema"] = "application/json", json.RawMessage(geminiSchema)
		}
		if prompt := u.Form.Text("prompt"); prompt != "" {
			ask += "\nContext: " + prompt
		}
		mime := u.fileType()
		if strings.HasPrefix(mime, "application/octet-stream") {
			mime = "audio/mpeg"
		}
		body, err := json.Marshal(map[string]any{
			"contents": []any{map[string]any{"role": "user", "parts": []any{map[string]string{"text": ask},
				map[string]any{"inlineData": map[string]string{"mimeType": mime, "data": "@DATA@"}}}}},
			"generationConfig": config,
		})
		if err != nil {
			return err
		}
		head, tail, ok := strings.Cut(string(body), `"data":"@DATA@"`)
		if !ok {
			return errors.New("audio: no place for the file")
		}
		req.Header = httpmsg.Header{{Name: "content-type", Value: "application/json"},
			{Name: "accept", Value: "application/json"}}
		req.Body = u.File([]byte(head+`"data":"`), []byte(`"`+tail), true)
		u.drop("temperature")
		return nil
	},
	read: func(u *transcription, raw []byte) (*transcript, error) {
		doc := gjson.ParseBytes(raw)
		parts := doc.Get("candidates.0.content.parts")
		if !parts.IsArray() {
			if doc.Get("promptFeedback.blockReason").Str != "" || doc.Get("candidates.0.finishReason").Str != "" {
				return nil, apierr.New(400, "content_filter", "The provider refused the recording.")
			}
			return nil, errNoText
		}
		t := &transcript{}
		for _, p := range parts.Array() {
			if !p.Get("thought").Bool() {
				t.text += p.Get("text").Str
			}
		}
		t.text = strings.TrimSpace(t.text)
		if !u.timed() {
			return t, nil
		}
		return readSegments(t.text)
	},
}

const geminiSchema = `{"type":"OBJECT","properties":{"language":{"type":"STRING"},"segments":{"type":"ARRAY","items":{"type":"OBJECT","properties":{"start":{"type":"NUMBER"},"end":{"type":"NUMBER"},"speaker":{"type":"STRING"},"text":{"type":"STRING"}},"required":["start","end","speaker","text"]}}},"required":["language","segments"]}`

// timed reports whether the answer needs the times of what was said.
func (u *transcriptionForm) timed() bool {
	switch u.Form.Text("response_format") {
	case "verbose_json", "diarized_json", "srt", "vtt":
		return true
	}
	return false
}

// readSegments reads what geminiSchema describes.
func readSegments(text string) (*transcript, error) {
	doc := gjson.Parse(text)
	if !jsonscan.Valid([]byte(text)) || !doc.Get("segments").IsArray() {
		return nil, errNoText
	}
	t := &transcript{language: doc.Get("language").Str, segments: []span{}}
	var all []string
	for _, s := range doc.Get("segments").Array() {
		one := span{strings.TrimSpace(s.Get("text").Str), seconds(s.Get("start")), seconds(s.Get("end")), speakerOfWord(s)}
		if one.text != "" {
			t.segments, all = append(t.segments, one), append(all, one.text)
			t.duration = max(t.duration, one.end)
		}
	}
	t.text = strings.Join(all, " ")
	return t, nil
}

// formWith makes the request's body of the fields and the held file.
func (u *transcriptionForm) formWith(w *multipart.Writer, req *upstream.Request) {
	f, _ := u.Form.File("file")
	name := cmp.Or(f.Filename, "audio")
	head, tail := w.File("file", name, f.ContentType)
	req.Header = httpmsg.Header{{Name: "content-type", Value: w.ContentType()},
		{Name: "accept", Value: "application/json"}}
	req.Body = u.File(head, tail, false)
}

// audioTypes are the types of the file names that recordings have.
var audioTypes = [...][2]string{
	{".mp3", "audio/mpeg"}, {".mpga", "audio/mpeg"}, {".mpeg", "audio/mpeg"}, {".wav", "audio/wav"},
	{".flac", "audio/flac"},
	{".ogg", "audio/ogg"}, {".opus", "audio/ogg"}, {".webm", "audio/webm"}, {".m4a", "audio/mp4"}, {".mp4", "audio/mp4"},
	{".aac", "audio/aac"},
}

// fileType returns the file's content type: as stated, else by its name.
func (u *transcriptionForm) fileType() string {
	f, _ := u.Form.File("file")
	if t := f.ContentType; strings.HasPrefix(t, "audio/") || strings.HasPrefix(t, "video/") {
		return t
	}
	for _, t := range audioTypes {
		if strings.HasSuffix(strings.ToLower(f.Filename), t[0]) {
			return t[1]
		}
	}
	return "application/octet-stream"
}

// drop notes fields of the client that the provider does not know.
func (u *transcription) drop(names ...string) {
	for _, n := range names {
		if u.Form.Text(n) != "" {
			u.Dropped = append(u.Dropped, n)
		}
	}
}
