package audio

import (
	"context"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/provider"
)

// transcriptions are recorded answers of providers of another shape, by model.
var transcriptions = map[string][]string{
	"deepgram/nova-3":                              {`{"metadata":{"duration":2.5},"results":{"channels":[{"detected_language":"en","alternatives":[{"transcript":"Hello there. Bye.","words":[{"word":"hello","punctuated_word":"Hello","start":0.1,"end":0.5},{"word":"there","punctuated_word":"there.","start":0.5,"end":1},{"word":"bye","punctuated_word":"Bye.","start":1.5,"end":2}]}]}],"utterances":[{"transcript":"Hello there.","start":0.1,"end":1,"speaker":1},{"transcript":"Bye.","start":1.5,"end":2,"speaker":0}]}}`},
	"elevenlabs/scribe_v1":                         {`{"language_code":"eng","text":"Hello there. Bye.","words":[{"text":"Hello","start":0.1,"end":0.5,"type":"word","speaker_id":"speaker_0"},{"text":" ","start":0.5,"end":0.5,"type":"spacing"},{"text":"there","start":0.5,"end":1,"type":"word","speaker_id":"speaker_0"},{"text":"Bye.","start":1.5,"end":2,"type":"word","speaker_id":"speaker_1"}]}`},
	"assemblyai/universal":                         {`{"upload_url":"https://cdn.assemblyai.com/upload/1"}`, `{"id":"t-1","status":"queued"}`, `{"id":"t-1","status":"processing"}`, `{"id":"t-1","status":"completed","text":"Hello there. Bye.","language_code":"en","audio_duration":3,"words":[{"text":"Hello","start":100,"end":500,"speaker":"A"},{"text":"there.","start":500,"end":1000,"speaker":"A"},{"text":"Bye.","start":1500,"end":2000,"speaker":"B"}]}`},
	"gemini/gemini-2.5-flash":                      {`{"candidates":[{"content":{"parts":[{"text":"thinking","thought":true},{"text":"Hello there. Bye.\n"}]}}]}`},
	"cartesia/ink-whisper":                         {`{"text":"Hello there. Bye.","type":"transcript","language":"en","duration":2.5,"words":[{"word":"Hello","start":0.1,"end":0.5},{"word":"there.","start":0.5,"end":1},{"word":"Bye.","start":1.5,"end":2}]}`},
	"deepinfra/openai/whisper-large-v3":            {`{"text":"Hello there. Bye.","segments":[]}`},
	"fal/fal-ai/whisper":                           {`{"request_id":"f-1"}`, `{"status":"IN_PROGRESS"}`, `{"status":"COMPLETED"}`, `{"text":" Hello there. Bye.","inferred_languages":["en"],"chunks":[{"timestamp":[0.1,1],"text":" Hello there.","speaker":"SPEAKER_00"},{"timestamp":[1.5,2],"text":" Bye.","speaker":"SPEAKER_01"}]}`},
	"cloudflare/@cf/openai/whisper-large-v3-turbo": {`{"result":{"results":null,"text":"Hello there. Bye.","transcription_info":{"language":"en","duration":2.5},"segments":[{"start":0.1,"end":1,"text":" Hello there."},{"start":1.5,"end":2,"text":" Bye."}]},"success":true}`},
	"xai/grok-stt":                                 {`{"text":"Hello there. Bye.","language":"en","duration":2.5,"words":[{"text":"Hello","start":0.1,"end":0.5,"speaker":0},{"text":"there.","start":0.5,"end":1,"speaker":0},{"text":"Bye.","start":1.5,"end":2,"speaker":0}]}`},
}

// TestTranscribers replays recorded answers of providers of another shape, in
// every response format.
func TestTranscribers(t *testing.T) {
	for model, list := range transcriptions {
		name, rest, _ := strings.Cut(model, "/")
		t.Run(name, func(t *testing.T) {
			var got struct {
				Sent     []string          `json:"sent"`
				Diarized []string          `json:"diarized,omitempty"`
				Dropped  []string          `json:"dropped,omitempty"`
				Answers  map[string]string `json:"answers"`
			}
			got.Answers = map[string]string{}
			for _, format := range []string{"", "json", "text", "srt", "vtt", "verbose_json", "words", "diarized_json", "stream", "diarized_stream", "odd"} {
				w := testgw.New(t, name)
				w.Answer = func(s *fake.Seen) fake.Answer {
					if strings.Contains(s.Body, `"responseSchema"`) {
						return fake.JSON(`{"candidates":[{"content":{"parts":[{"text":"{\"language\":\"en\",\"segments\":[{\"start\":0.1,\"end\":1,\"speaker\":\"Ann\",\"text\":\"Hello there. \"},{\"start\":1.5,\"end\":2,\"speaker\":\"Bob\",\"text\":\"Bye.\"}]}"}]}}]}`)
					}
					return fake.JSON(list[len(w.Seen)-1])
				}
				parts := []string{field("model", provider.Lookup(name).Alias+"/"+rest), file("SOUND"), field("language", "en"), field("prompt", "p"), field("temperature", "0")}
				switch format {
				case "words":
					parts = append(parts, field("response_format", "verbose_json"), field("timestamp_granularities[]", "word"))
				case "stream":
					parts = append(parts, field("stream", "true"))
				case "diarized_stream":
					parts = append(parts, field("stream", "true"), field("response_format", "diarized_json"))
				case "":
				default:
					parts = append(parts, field("response_format", format))
				}
				c, _ := send(w, form(parts...))
				got.Answers[format] = testgw.Outcome(handler(w).Transcriptions(context.Background(), c))
				if refused := strings.HasPrefix(got.Answers[format], "400"); refused && len(w.Seen) > 0 {
					t.Errorf("%s: refused after %d calls", format, len(w.Seen))
				}
				if format == "diarized_json" {
					for _, s := range w.Seen {
						got.Diarized = append(got.Diarized, s.Method+" "+s.URL+" "+s.Body)
					}
				}
				if format == "" {
					got.Dropped = c.Trace.Dropped
					for _, s := range w.Seen {
						if s.Length >= 0 && s.Length != int64(len(s.Body)) {
							t.Errorf("%d bytes, %d promised", len(s.Body), s.Length)
						}
						got.Sent = append(got.Sent, s.Method+" "+s.URL+" "+s.Header.Get("content-type")+" "+s.Body)
					}
				}
			}
			golden.JSON(t, "transcribers/"+name, got)
		})
	}
}

func TestAssemblyAIKeepsToOneAccount(t *testing.T) {
	w := testgw.New(t, "assemblyai", "assemblyai")
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch {
		case len(w.Seen) == 1:
			return fake.Answer{Status: 429}
		case strings.HasSuffix(s.URL, "/upload"):
			return fake.JSON(`{"upload_url":"https://cdn.assemblyai.com/1"}`)
		case s.Method == "POST":
			return fake.JSON(`{"id":"t","status":"queued"}`)
		case len(w.Seen) < 8:
			return fake.JSON(`{"id":"t","status":"processing"}`)
		}
		return fake.JSON(`{"id":"t","status":"error","error":"bad file, key-sk-abcdefghijklmnop1234"}`)
	}
	c, _ := send(w, form(field("model", "aai/best"), file("x")))
	if got := testgw.Outcome(handler(w).Transcriptions(context.Background(), c)); got != "400 transcription_failed" || w.Accounts() != "abbbbbbb" {
		t.Errorf("%s, asked %s", got, w.Accounts())
	}
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Method == "POST" {
			return fake.JSON(`{"upload_url":"https://cdn.assemblyai.com/1","id":"t"}`)
		}
		return fake.JSON(`{"status":"queued"}`)
	}
	c, _ = send(w, form(field("model", "aai/best"), file("x")))
	if got := testgw.Outcome(handler(w).Transcriptions(context.Background(), c)); got != "504 upstream_timeout" {
		t.Errorf("for ever: %s", got)
	}
}
