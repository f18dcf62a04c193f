package audio

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/apierr"
	"weir/pkg/edge"
	"weir/pkg/media"
	"weir/pkg/multipart"
)

// transcript is what was said, in the form that all answers are made from.
// Times are seconds.
type transcript struct {
	text     string
	language string
	duration float64
	words    []span
	segments []span // sentences; made from the words where there are none
}

type span struct {
	text       string
	start, end float64
}

var errNoText = errors.New("audio: the answer has no text")

// readPlain reads {text, language, duration, words[{word|text, start, end}]},
// which several providers have with small changes.
func readPlain(raw []byte) (*transcript, error) {
	doc := gjson.ParseBytes(raw)
	if doc.Get("text").Type != gjson.String {
		return nil, errNoText
	}
	t := &transcript{text: doc.Get("text").Str, language: doc.Get("language").Str, duration: doc.Get("duration").Num}
	if t.language == "" {
		t.language = doc.Get("language_code").Str
	}
	t.readWords(doc.Get("words"), 1)
	return t, nil
}

// readWords takes words whose times are in units of 1/per second.
func (t *transcript) readWords(list gjson.Result, per float64) {
	for _, w := range list.Array() {
		if kind := w.Get("type").Str; kind != "" && kind != "word" {
			continue
		}
		s := span{start: w.Get("start").Num / per, end: w.Get("end").Num / per}
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

// Bounds of a segment that is made from words.
const (
	maxSegment = 6.0 // seconds
	maxWords   = 14
)

// sentences gives the segments.
func (t *transcript) sentences() []span {
	if t.segments != nil {
		return t.segments
	}
	if len(t.words) == 0 {
		if t.text == "" {
			return []span{}
		}
		return []span{{strings.TrimSpace(t.text), 0, t.duration}}
	}
	var out []span
	from := 0
	for i, w := range t.words {
		if i+1 < len(t.words) && i-from+1 < maxWords && w.end-t.words[from].start < maxSegment && !strings.ContainsAny(w.text[len(w.text)-1:], ".?!") {
			continue
		}
		var text []string
		for _, x := range t.words[from : i+1] {
			text = append(text, x.text)
		}
		out = append(out, span{strings.Join(text, " "), t.words[from].start, w.end})
		from = i + 1
	}
	return out
}

// answer writes the transcript in the response_format that the form asks for.
func (t *transcript) answer(res *accounts.Result, form *multipart.Form) (*edge.Response, error) {
	if form.Text("stream") == "true" {
		return media.Answer(res.Header, "text/event-stream", t.events()), nil
	}
	switch format := form.Text("response_format"); format {
	case "", "json":
		body, _ := json.Marshal(map[string]string{"text": t.text})
		return media.JSONAnswer(res.Header, body), nil
	case "verbose_json", "diarized_json":
		return media.JSONAnswer(res.Header, t.verbose(form.All("timestamp_granularities"))), nil
	case "text":
		return media.Answer(res.Header, "text/plain; charset=utf-8", []byte(t.text+"\n")), nil
	case "srt", "vtt":
		return media.Answer(res.Header, "text/plain; charset=utf-8", t.subtitles(format)), nil
	}
	return nil, apierr.Invalid("response_format", "the response_format is not known")
}

func (t *transcript) events() []byte {
	event := func(kind, name, text string) string {
		b, _ := json.Marshal(map[string]string{"type": kind, name: text})
		return "data: " + string(b) + "\n\n"
	}
	return []byte(event("transcript.text.delta", "delta", t.text) + event("transcript.text.done", "text", t.text) + "data: [DONE]\n\n")
}

func (t *transcript) verbose(granularities []string) []byte {
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
	}{Task: "transcribe", Language: t.language, Duration: t.duration, Text: t.text}
	byWord := strings.Contains(strings.Join(granularities, " "), "word")
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
