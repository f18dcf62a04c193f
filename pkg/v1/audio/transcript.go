package audio

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// transcript is what was said, in the form that all answers are made from.
// Times are seconds.
type transcript struct {
	text     string
	language string
	duration float64
	words    []span
	segments []span // sentences; derived from the words if the vendor sends none
}

type span struct {
	text       string
	start, end float64
	speaker    string // in the provider's words, "" when not known
}

// seconds returns a time of an answer, between 0 and 1e9: a number such as 1e999 is read as
// infinite, for which JSON has no form.
func seconds(v gjson.Result) float64 { return min(max(v.Num, 0), 1e9) }

var errNoText = errors.New("audio: the answer has no text")

// readPlain reads {text, language, duration, words[{word|text, start, end}]},
// which several providers have with small changes.
func readPlain(_ *transcription, raw []byte) (*transcript, error) {
	doc := gjson.ParseBytes(raw)
	if doc.Get("text").Type != gjson.String {
		return nil, errNoText
	}
	t := &transcript{text: doc.Get("text").Str, language: doc.Get("language").Str, duration: seconds(doc.Get("duration"))}
	t.language = cmp.Or(t.language, doc.Get("language_code").Str)
	t.readWords(doc.Get("words"), 1)
	return t, nil
}

// readWords takes words whose times are in units of 1/per second.
func (t *transcript) readWords(list gjson.Result, per float64) {
	for _, w := range list.Array() {
		if kind := w.Get("type").Str; kind != "" && kind != "word" {
			continue
		}
		s := span{start: seconds(w.Get("start")) / per, end: seconds(w.Get("end")) / per, speaker: speakerOfWord(w)}
		for _, name := range []string{"punctuated_word", "word", "text"} {
			if v := w.Get(name).Str; v != "" {
				s.text = v
				break
			}
		}
		if s.text != "" {
			t.words = append(t.words, s)
		}
	}
	if n := len(t.words); n > 0 && t.duration == 0 {
		t.duration = t.words[n-1].end
	}
}

// speakerOfWord returns who says a word or a sentence: speaker or speaker_id.
func speakerOfWord(w gjson.Result) string {
	if v := w.Get("speaker"); v.Exists() && v.Type != gjson.Null {
		return v.String()
	}
	return w.Get("speaker_id").Str
}

// Bounds of a segment that is made from words.
const (
	maxSegment = 6.0 // seconds
	maxWords   = 14
)

// sentences returns the segments.
func (t *transcript) sentences() []span {
	if t.segments != nil {
		return t.segments
	}
	if len(t.words) == 0 {
		if t.text == "" {
			return []span{}
		}
		return []span{{text: strings.TrimSpace(t.text), end: t.duration}}
	}
	var out []span
	from := 0
	for i, w := range t.words {
		if i+1 < len(t.words) && i-from+1 < maxWords && w.end-t.words[from].start < maxSegment &&
			!strings.ContainsAny(w.text[len(w.text)-1:], ".?!") && t.words[i+1].speaker == w.speaker {
			continue
		}
		var text []string
		for _, x := range t.words[from : i+1] {
			text = append(text, x.text)
		}
		out = append(out, span{strings.Join(text, " "), t.words[from].start, w.end, w.speaker})
		from = i + 1
	}
	return out
}

// accepted returns an error if a form asks a provider of another shape for a
// response_format that weir cannot write, before anything is sent.
func (u *transcription) accepted() error {
	switch u.Form.Text("response_format") {
	case "", "json", "text", "verbose_json", "srt", "vtt":
		return nil
	case "diarized_json":
		if u.shape.speakers {
			return nil
		}
		return apierr.Invalid("response_format", "The provider of this model does not tell speakers apart.")
	}
	return apierr.Invalid("response_format", "The response_format is not known.")
}

func (u *transcriptionForm) diarized() bool { return u.Form.Text("response_format") == "diarized_json" }

// answer writes the transcript in the response_format that the form asks for.
func (t *transcript) answer(res *accounts.Result, u *transcriptionForm) (*httpmsg.Response, error) {
	form := u.Form
	if form.Text("stream") == "true" {
		return endpoint.Answer(res.Header, "text/event-stream", t.events(u.diarized())), nil
	}
	switch format := form.Text("response_format"); format {
	case "verbose_json":
		task := "transcribe"
		if u.endpoint == "translations" {
			task = "translate"
		}
		return endpoint.JSONAnswer(res.Header, t.verbose(task, form.All("timestamp_granularities"))), nil
	case "diarized_json":
		body, _ := json.Marshal(map[string]any{"task": "transcribe", "duration": t.duration, "text": t.text,
			"segments": t.turns()})
		return endpoint.JSONAnswer(res.Header, body), nil
	case "text":
		return endpoint.Answer(res.Header, "text/plain; charset=utf-8", []byte(t.text+"\n")), nil
	case "srt", "vtt":
		return endpoint.Answer(res.Header, "text/plain; charset=utf-8", t.subtitles(format)), nil
	}
	body, _ := json.Marshal(map[string]string{"text": t.text})
	return endpoint.JSONAnswer(res.Header, body), nil
}

// turn is a segment of diarized_json, and an event of its stream.
type turn struct {
	Type    string  `json:"type"`
	ID      string  `json:"id"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker string  `json:"speaker"`
}

// turns returns the segments with their speakers, A, B and so on in the order in
// which they begin to speak.
func (t *transcript) turns() []turn {
	out, known := []turn{}, []string{}
	for i, s := range t.sentences() {
		at := slices.Index(known, s.speaker)
		if at < 0 {
			at, known = len(known), append(known, s.speaker)
		}
		name := string(rune('A' + at%26))
		if at >= 26 {
			name += strconv.Itoa(at / 26)
		}
		out = append(out, turn{"transcript.text.segment", "seg_" + strconv.Itoa(i), s.start, s.end, s.text, name})
	}
	return out
}

func (t *transcript) events(diarized bool) []byte {
	var out []byte
	event := func(v any) {
		b, _ := json.Marshal(v)
		out = append(append(append(out, "data: "...), b...), "\n\n"...)
	}
	event(map[string]string{"type": "transcript.text.delta", "delta": t.text})
	if diarized {
		for _, s := range t.turns() {
			event(s)
		}
	}
	event(map[string]string{"type": "transcript.text.done", "text": t.text})
	return append(out, "data: [DONE]\n\n"...)
}

func (t *transcript) verbose(task string, granularities []string) []byte {
	type word struct {
		Word  string  `json:"word"`
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	}
	type segment struct {
		ID    int     `json:"id"`
		Start float64 `json:"start"`
		End   float64 `json:"end"`
		Text  string  `json:"text"`
	}
	out := struct {
		Task     string    `json:"task"`
		Language string    `json:"language"`
		Duration float64   `json:"duration"`
		Text     string    `json:"text"`
		Segments []segment `json:"segments,omitempty"`
		Words    []word    `json:"words,omitempty"`
	}{Task: task, Language: t.language, Duration: t.duration, Text: t.text}
	byWord := strings.Contains(strings.Join(granularities, " "), "word") && len(t.words) > 0
	if !byWord || len(granularities) > 1 {
		for i, s := range t.sentences() {
			out.Segments = append(out.Segments, segment{i, s.start, s.end, s.text})
		}
	}
	if byWord {
		for _, w := range t.words {
			out.Words = append(out.Words, word{w.text, w.start, w.end})
		}
	}
	b, _ := json.Marshal(out)
	return b
}

func (t *transcript) subtitles(format string) []byte {
	point := "."
	var b strings.Builder
	if format == "srt" {
		point = ","
	} else {
		b.WriteString("WEBVTT\n\n")
	}
	at := func(seconds float64) string {
		ms := int64(seconds*1000 + 0.5)
		return fmt.Sprintf("%02d:%02d:%02d%s%03d", ms/3600000, ms/60000%60, ms/1000%60, point, ms%1000)
	}
	for i, s := range t.sentences() {
		if format == "srt" {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		fmt.Fprintf(&b, "%s --> %s\n%s\n\n", at(s.start), at(s.end), s.text)
	}
	return []byte(b.String())
}
