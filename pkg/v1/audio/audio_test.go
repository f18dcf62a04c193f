package audio

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand"
	std "mime/multipart"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/golden"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/provider"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

func handler(w *testgw.World) *Handler {
	return &Handler{Accounts: w.Pool, Pause: w, Now: w.Now, Downloads: &download.Downloads{Do: w}}
}

const boundary = "----b0undary"

func form(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n" + p + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

func field(name, value string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
}

func file(content string) string {
	return "Content-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\nContent-Type: audio/mpeg\r\n\r\n" + content
}

// flowing is a body that the host would hold: it counts what was read, and
// whether someone took it whole.
type flowing struct {
	r    io.Reader
	read int64
}

func (f *flowing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	f.read += int64(n)
	return n, err
}
func (f *flowing) Close() error { return nil }

func send(w *testgw.World, body string, header ...string) (*auth.Call, *flowing) {
	f := &flowing{r: strings.NewReader(body)}
	return w.Call("POST", f, int64(len(body)), append([]string{"content-type", "multipart/form-data; boundary=" + boundary}, header...)...), f
}

func audioBytes(n int) string {
	b := make([]byte, n)
	rand.New(rand.NewSource(1)).Read(b)
	return string(b)
}

func TestUploadFlows(t *testing.T) {
	sound := audioBytes(3 << 20)
	tests := []struct {
		name, body string
		header     []string
	}{
		{"model_first", form(field("model", "openai/whisper-1"), file(sound), field("language", "de")), nil},
		{"model_second", form(field("language", "de"), field("model", "openai/whisper-1"), file(sound)), nil},
		{"query", form(file(sound), field("model", "whisper-1"), field("language", "de")), []string{"query", "model=openai%2Fwhisper-1"}},
		{"header", form(file(sound), field("language", "de")), []string{"x-model", "openai/whisper-1"}},
		{"model_last_is_held", form(file(sound), field("language", "de"), field("model", "openai/whisper-1")), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.New(t, "openai")
			h := handler(w)
			c, body := send(w, tt.body, tt.header...)
			room := int64(0)
			w.Answer = func(s *fake.Seen) fake.Answer {
				room = w.Memory.Used()
				return fake.JSON(`{"text":"hi"}`)
			}
			got := testgw.Outcome(h.Transcriptions(context.Background(), c))
			if got != `200 application/json {"text":"hi"}` {
				t.Fatal(got)
			}
			s := w.Seen[0]
			if s.Length != int64(len(s.Body)) || body.read != int64(len(tt.body)) {
				t.Errorf("%d bytes went up, %d promised; %d of %d read", len(s.Body), s.Length, body.read, len(tt.body))
			}
			if s.URL != "https://api.openai.com/v1/audio/transcriptions" || s.Header.Get("content-type") != c.Header.Get("content-type") {
				t.Errorf("%s %v", s.URL, s.Header)
			}
			r, err := std.NewReader(strings.NewReader(s.Body), boundary).ReadForm(8 << 20)
			if err != nil || fmt.Sprint(r.Value) != "map[language:[de] model:[whisper-1]]" {
				t.Fatalf("%v, %v", r, err)
			}
			f, _ := r.File["file"][0].Open()
			if sent, _ := io.ReadAll(f); string(sent) != sound {
				t.Error("the file was changed")
			}
			if held := tt.name == "model_last_is_held"; held != (room >= int64(len(sound))) || room == 0 || w.Memory.Used() != 0 {
				t.Errorf("%d bytes were held, %d are", room, w.Memory.Used())
			}
		})
	}
}

func TestUploadRefusals(t *testing.T) {
	sound := audioBytes(200 << 10)
	tests := []struct{ name, body, want string }{
		{"model_twice", form(field("model", "openai/w"), file(sound), field("model", "openai/w")), "400 invalid_multipart"},
		{"model_twice_after_the_file", form(file(sound), field("model", "openai/w"), field("model", "openai/w")), "400 invalid_multipart"},
		{"no_end", strings.TrimSuffix(form(field("model", "openai/w"), file(sound)), "--\r\n"), "400 invalid_multipart"},
		{"two_files", form(file(sound), file(sound), field("model", "openai/w")), "400 invalid_multipart"},
		{"no_model", form(file(sound)), "400"},
		{"no_file", form(field("language", sound), field("model", "openai/w"))[:1000], "400 invalid_multipart"},
		{"unknown_model", form(field("model", "nobody/w"), file(sound)), "400 model_not_found"},
		{"not_connected", form(field("model", "groq/w"), file(sound)), "400 no_credentials"},
		{"no_such_service", form(field("model", "anthropic/w"), file(sound)), "400 unsupported_endpoint"},
		{"not_adapted", form(field("model", "replicate/x/y"), file(sound)), "400 unsupported_endpoint"},
		{"over_25_mib", form(file(audioBytes(26<<20)), field("model", "openai/w")), "413 request_too_large"},
		{"long_model", form(field("model", strings.Repeat("m", 300)), file(sound)), "400 invalid_multipart"},
		{"empty_model", form(field("model", ""), file(sound)), "400"},
		{"many_parts", form(append([]string{field("model", "openai/w")}, slices.Repeat([]string{field("a", "1")}, 1000)...)...), "400 invalid_multipart"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.New(t, "openai", "anthropic", "replicate")
			h := handler(w)
			w.Answer = func(s *fake.Seen) fake.Answer {
				if int64(len(s.Body)) == s.Length && strings.HasSuffix(s.Body, "--\r\n") {
					t.Error("the form went up whole")
				}
				return fake.JSON(`{"text":"hi"}`)
			}
			c, _ := send(w, tt.body)
			if got := testgw.Outcome(h.Transcriptions(context.Background(), c)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if w.Memory.Used() != 0 {
				t.Error("memory was not released")
			}
		})
	}
	// A form of unknown length is counted while it flows.
	for _, most := range []int64{300 << 10, 100 << 10} {
		w, cut := testgw.New(t, "openai"), false
		w.Answer = func(s *fake.Seen) fake.Answer {
			cut = !strings.HasSuffix(s.Body, "--\r\n")
			return fake.JSON(`{"text":"hi"}`)
		}
		c, _ := send(w, form(field("model", "openai/w"), file(sound)))
		c.Length, c.MaxBody = -1, most
		want := map[bool]string{false: `200 application/json {"text":"hi"}`, true: "413 request_too_large"}[most < 200<<10]
		if got := testgw.Outcome(handler(w).Transcriptions(context.Background(), c)); got != want || cut != (want[0] == '4') {
			t.Errorf("of %d bytes at most: %s, cut off: %v", most, got, cut)
		}
	}
	// One that is in memory is looked through before it is sent.
	for _, body := range []string{
		form(field("model", "openai/w"), field("language", "en")),
		form(field("model", "openai/w"), strings.Replace(file("SOUND"), "filename", "x", 1)),
	} {
		w := testgw.New(t, "openai")
		c := w.Call("POST", stream.FromString(body), int64(len(body)), "content-type", "multipart/form-data; boundary="+boundary)
		if got := testgw.Outcome(handler(w).Transcriptions(context.Background(), c)); got != "400" || len(w.Seen) != 0 {
			t.Errorf("without a file: %s, %d calls", got, len(w.Seen))
		}
	}
	w := testgw.New(t, "openai")
	c := w.Post(`{}`)
	if got := testgw.Outcome(handler(w).Transcriptions(context.Background(), c)); got != "400" {
		t.Errorf("JSON: %s", got)
	}
}

func TestFormGoesToAnotherAccount(t *testing.T) {
	small, large := audioBytes(100<<10), audioBytes(20<<20)
	last := func(sound string) string { return form(file(sound), field("model", "openai/w")) }
	first := func(sound string) string { return form(field("model", "openai/w"), file(sound)) }
	hi := `200 application/json {"text":"hi"}`
	for _, tt := range []struct {
		name, body string
		fail       fake.Answer
		length     int64 // as stated; 0 is the true one
		used       int64 // of the room
		took, want string
	}{
		{"model_last", last(small), fake.Answer{Status: 429}, 0, 0, "ab", hi},
		{"model_first_429", first(small), fake.Answer{Status: 429}, 0, 0, "ab", hi},
		{"model_first_401", first(large), fake.Answer{Status: 401}, 0, 0, "ab", hi},
		{"model_first_403", first(small), fake.Answer{Status: 403}, 0, 0, "ab", hi},
		{"never_sent", first(large), fake.Answer{Err: upstream.ErrNetwork}, 0, 0, "ab", hi},
		{"page", first(small), fake.OK("text/html", "<p>"), 0, 0, "ab", hi},
		{"list", first(small), fake.JSON(`[]`), 0, 0, "ab", hi},
		{"redirect", first(small), fake.Answer{Status: 302}, 0, 0, "ab", hi},
		{"no_content", first(small), fake.Answer{Status: 204}, 0, 0, "ab", hi},
		{"error_with_200", first(small), fake.JSON(`{"error":{"message":"x"}}`), 0, 0, "ab", hi},
		{"error_as_text", first(small), fake.OK("text/plain", ` {"error":"x"}`), 0, 0, "ab", hi},
		{"page_as_text", first(small), fake.OK("text/plain", "<!DOCTYPE html>"), 0, 0, "ab", hi},
		{"nothing", first(small), fake.OK("text/plain", ""), 0, 0, "ab", hi},
		{"no_type_and_nothing", first(small), fake.Answer{Status: 200}, 0, 0, "ab", hi},
		{"reset_before_the_body", first(small), fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "text/plain"}}, Cut: true}, 0, 0, "ab", hi},
		{"error_event", first(small), fake.OK("text/event-stream", "data: {\"error\":{}}\n\n"), 0, 0, "ab", hi},
		{"bad_request", first(small), fake.Answer{Status: 400}, 0, 0, "a", "400 upstream_refused"},
		{"unknown_length", first(small), fake.Answer{Status: 429}, -1, 0, "a", "429 rate_limit_exceeded"},
		{"no_room", first(large), fake.Answer{Status: 429}, 0, 48 << 20, "a", "429 rate_limit_exceeded"},
		{"over_25_mib", first(audioBytes(26 << 20)), fake.Answer{Status: 429}, 0, 0, "a", "429 rate_limit_exceeded"},
	} {
		w := testgw.New(t, "openai", "openai")
		w.Answer = func(s *fake.Seen) fake.Answer {
			if len(w.Seen) == 1 {
				return tt.fail
			}
			return fake.JSON(`{"text":"hi"}`)
		}
		h := handler(w)
		if tt.used > 0 {
			var others memory.Lease
			if w.Memory.Start(&others, "others", 0); !others.TryAcquire(memory.Form, memory.Amount{Host: tt.used}) {
				t.Fatal("no memory")
			}
		}
		c, _ := send(w, tt.body)
		if tt.length != 0 {
			c.Length = tt.length
		}
		resp, err := h.Transcriptions(context.Background(), c)
		if got := testgw.Outcome(resp, err); got != tt.want || w.Accounts() != tt.took {
			t.Errorf("%s: %s, asked %s", tt.name, got, w.Accounts())
		}
		if len(w.Seen) == 2 && w.Seen[0].Body != w.Seen[1].Body {
			t.Errorf("%s: the second form differs", tt.name)
		}
		if told := err != nil && strings.Contains(err.Error(), "cannot be sent again"); told != (tt.took == "a" && tt.name != "bad_request") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if w.Memory.Used() != tt.used {
			t.Errorf("%s: %d bytes are held", tt.name, w.Memory.Used())
		}
	}
}

// TestBrokenFormDoesNotCoolAccount: what an upstream makes of a form that was cut
// off says nothing about the account.
func TestBrokenFormDoesNotCoolAccount(t *testing.T) {
	sound := audioBytes(100 << 10)
	w := testgw.New(t, "openai")
	h := handler(w)
	for i := range 6 {
		w.Answer = func(s *fake.Seen) fake.Answer {
			return []fake.Answer{{Err: upstream.ErrNetwork}, {Status: 500}, {Status: 429}, fake.JSON(`{}`)}[i%4]
		}
		c, _ := send(w, form(field("model", "openai/w"), file(sound), field("model", "openai/w")))
		if got := testgw.Outcome(h.Transcriptions(context.Background(), c)); got != "400 invalid_multipart" {
			t.Errorf("got %s", got)
		}
		c = w.Call("POST", &flowing{r: io.MultiReader(strings.NewReader(form(field("model", "openai/w"), file(sound))[:60000]), gone{})}, 1<<20,
			"content-type", "multipart/form-data; boundary="+boundary)
		if got := testgw.Outcome(h.Transcriptions(context.Background(), c)); got != "400" {
			t.Errorf("a client that broke off: %s", got)
		}
		c = w.Call("POST", &flowing{r: io.MultiReader(strings.NewReader(form(field("model", "openai/w"), file(sound))[:60000]), silent{})}, 1<<20,
			"content-type", "multipart/form-data; boundary="+boundary)
		if got := testgw.Outcome(h.Transcriptions(context.Background(), c)); got != "408 timeout" {
			t.Errorf("a client that fell silent: %s", got)
		}
	}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(`{"text":"hi"}`) }
	c, _ := send(w, form(field("model", "openai/w"), file(sound)))
	if got := testgw.Outcome(h.Transcriptions(context.Background(), c)); !strings.HasPrefix(got, "200") {
		t.Errorf("then %s", got)
	}
}

type gone struct{}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, stream.ErrIdle }

func (gone) Read([]byte) (int, error) { return 0, upstream.ErrNetwork }

func TestTranscriptionAnswersPass(t *testing.T) {
	events := "data: {\"type\":\"transcript.text.delta\",\"delta\":\"hi\"}\n\ndata: {\"type\":\"transcript.text.done\",\"text\":\"hi\"}\n\ndata: [DONE]\n\n"
	tests := []struct {
		name string
		up   fake.Answer
		want string
	}{
		{"verbose", fake.JSON(`{ "text":"hi","duration":1.50 }`), `200 application/json { "text":"hi","duration":1.50 }`},
		{"srt", fake.OK("text/plain; charset=utf-8", "1\n00:00"), "200 text/plain; charset=utf-8 1\n00:00"},
		{"events", fake.OK("text/event-stream", events), "200 text/event-stream " + events},
		{"events_cut", fake.OK("text/event-stream", events[:50]), "200 text/event-stream " + events[:50] + string(endpoint.CutEvent)},
		{"json_cut", fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: `{"text":`, Cut: true}, "502 bad_upstream_body"},
		{"error", fake.Answer{Status: 400, Body: `{"error":{"message":"key ` + fake.Secret("a") + `","code":"bad"}}`}, "400 bad"},
	}
	for _, tt := range tests {
		w := testgw.New(t, "openai")
		w.Answer = func(*fake.Seen) fake.Answer { return tt.up }
		c, _ := send(w, form(field("model", "openai/w"), file("x")))
		resp, err := handler(w).Transcriptions(context.Background(), c)
		if strings.Contains(fmt.Sprint(err, c.Trace.Err), "0123456789abcdef") {
			t.Errorf("%s: the credential comes back: %v", tt.name, err)
		}
		if got := testgw.Outcome(resp, err); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSpeech(t *testing.T) {
	pcm := base64.StdEncoding.EncodeToString([]byte("PCMDATA!"))
	answers := map[string]fake.Answer{
		"openai":     fake.OK("audio/mpeg", "SOUND"),
		"groq":       fake.OK("audio/wav", "SOUND"),
		"elevenlabs": fake.OK("audio/mpeg", "SOUND"),
		"deepgram":   fake.OK("audio/mpeg", "SOUND"),
		"cartesia":   fake.OK("audio/mpeg", "SOUND"),
		"xai":        fake.OK("audio/mpeg", "SOUND"),
		"inworld":    fake.JSON(`{"audioContent":"` + base64.StdEncoding.EncodeToString([]byte("SOUND")) + `"}`),
		"mistral":    fake.JSON(`{"audio_data":"` + base64.StdEncoding.EncodeToString([]byte("SOUND")) + `"}`),
		"minimax":    fake.JSON(`{"data":{"audio":"` + hex.EncodeToString([]byte("SOUND")) + `","status":2},"base_resp":{"status_code":0}}`),
		"gemini":     fake.JSON(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;codec=pcm;rate=24000","data":"` + pcm + `"}}]}}]}`),
	}
	// Those that queue, or only name the audio, by what is in the address.
	steps := map[string][][2]string{
		"fal":       {{"/status", `{"status":"COMPLETED"}`}, {"/requests/", `{"audio":{"url":"https://v3.fal.media/1.mp3"}}`}, {"queue.fal.run", `{"request_id":"f-1"}`}},
		"runway":    {{"/tasks/", `{"status":"SUCCEEDED","output":["https://dnznrvs05pmza.cloudfront.net/1.mp3"]}`}, {"text_to_speech", `{"id":"r-1"}`}},
		"dashscope": {{"generation", `{"output":{"audio":{"url":"http://dashscope-result.oss-ap-southeast-1.aliyuncs.com/1.wav?Expires=1"}}}`}},
		"deepinfra": nil, "cloudflare": nil,
	}
	answers["deepinfra"], answers["cloudflare"] = answers["openai"], answers["openai"]
	for name := range steps {
		if _, ok := answers[name]; !ok {
			answers[name] = fake.OK("audio/mpeg", "SOUND") // the file itself
		}
	}
	for name, up := range answers {
		t.Run(name, func(t *testing.T) {
			alias := provider.Lookup(name).Alias
			if name == "fal" || name == "cloudflare" {
				alias += "/own/er"
			}
			got := map[string]any{}
			for what, body := range map[string]string{
				"plain":      `{"model":"` + alias + `/tts-1","input":"Hi \u00e9","voice":"v-1"}`,
				"all_fields": `{"model":"` + alias + `/tts-1","input":"Hi","voice":{"id":"v-1"},"response_format":"wav","speed":1.50,"instructions":"slowly","user":"u"}`,
				"pcm":        `{"model":"` + alias + `/tts-1","input":"Hi","voice":"v-1","response_format":"pcm"}`,
				"aac":        `{"model":"` + alias + `/tts-1","input":"Hi","voice":"v-1","response_format":"aac"}`,
				"in_model":   `{"model":"` + alias + `/tts-1/v-2","input":"Hi"}`,
				"no_voice":   `{"model":"` + alias + `/tts-1","input":"Hi"}`,
			} {
				w := testgw.New(t, name)
				w.Answer = func(s *fake.Seen) fake.Answer {
					for _, step := range steps[name] {
						if strings.Contains(s.URL, step[0]) {
							return fake.JSON(step[1])
						}
					}
					return up
				}
				c := w.Post(body)
				out := map[string]any{"answer": fmt.Sprintf("%q", testgw.Outcome(handler(w).Speech(context.Background(), c)))}
				for i, s := range w.Seen {
					if i == 0 {
						out["sent"] = s.Method + " " + s.URL + " " + s.Body
					} else {
						then, _ := out["then"].([]string)
						out["then"] = append(then, s.Method+" "+s.URL)
					}
					if s.Account == "" && s.Method == "POST" || s.Account != "" && strings.Contains(s.URL, "/1.") {
						t.Errorf("%s with the account %q", s.URL, s.Account)
					}
				}
				if c.Trace.Dropped != nil {
					out["dropped"] = c.Trace.Dropped
				}
				got[what] = out
			}
			golden.JSON(t, "speech/"+name, got)
		})
	}
}

func TestSpeechForms(t *testing.T) {
	events := "data: {\"type\":\"speech.audio.delta\",\"audio\":\"U09VTkQ=\"}\n\ndata: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":0,\"output_tokens\":0,\"total_tokens\":0}}\n\n"
	tests := []struct {
		name, body, query string
		up                fake.Answer
		want              string
	}{
		{"json", `{"model":"openai/t","input":"a","voice":"v"}`, "response_format=json", fake.OK("audio/mpeg", "SOUND"), `200 application/json {"audio":"U09VTkQ=","format":"mp3"}`},
		{"json_adapted", `{"model":"el/t","input":"a","voice":"v","response_format":"wav"}`, "response_format=json", fake.OK("audio/wav", "SOUND"), `200 application/json {"audio":"U09VTkQ=","format":"wav"}`},
		{"events", `{"model":"openai/t","input":"a","voice":"v","stream_format":"sse"}`, "", fake.OK("text/event-stream", events), "200 text/event-stream " + events},
		{"events_cut", `{"model":"openai/t","input":"a","voice":"v","stream_format":"sse"}`, "", fake.OK("text/event-stream", events[:40]), "200 text/event-stream " + events[:40] + string(endpoint.CutEvent)},
		{"events_adapted", `{"model":"el/t","input":"a","voice":"v","stream_format":"sse"}`, "", fake.OK("audio/mpeg", "SOUND"), "200 text/event-stream " + events},
		{"cut", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "audio/mpeg"}}, Body: "SOU", Cut: true}, "200 audio/mpeg SOU <cut>"},
		{"page", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.OK("text/html", "<script>"), "502 bad_upstream_body"},
		{"page_as_json_answer", `{"model":"openai/t","input":"a","voice":"v"}`, "response_format=json", fake.OK("text/html", "<script>"), "502 bad_upstream_body"},
		{"page_of_another_type", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.OK("audio/mpeg", "\n<!doctype html>"), "502 bad_upstream_body"},
		{"nothing", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.OK("audio/mpeg", ""), "502 bad_upstream_body"},
		{"nothing_as_json", `{"model":"openai/t","input":"a","voice":"v"}`, "response_format=json", fake.OK("audio/mpeg", ""), "502 bad_upstream_body"},
		{"error_of_another_type", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.OK("audio/mpeg", `{"error":{}}`), "502 bad_upstream_body"},
		{"json_without_a_type", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.Answer{Status: 200, Body: `{ "code":1}`}, "502 bad_upstream_body"},
		{"text", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.OK("text/plain", "no"), "502 bad_upstream_body"},
		{"error_event", `{"model":"openai/t","input":"a","voice":"v","stream_format":"sse"}`, "", fake.OK("text/event-stream", "data: {\"error\":{\"message\":\"x\"}}\n\n"), "502 bad_upstream_body"},
		{"cut_before_the_body", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "audio/mpeg"}}, Cut: true}, "502 upstream_unreachable"},
		{"sound_without_a_type", `{"model":"openai/t","input":"a","voice":"v"}`, "", fake.Answer{Status: 200, Body: "SOUND"}, "200 application/octet-stream SOUND"},
		{"sound_like_json", `{"model":"openai/t","input":"a","voice":"v","response_format":"pcm"}`, "", fake.OK("audio/pcm", "{\"\x01"), "200 audio/pcm {\"\x01"},
		{"minimax_refuses", `{"model":"minimax/t","input":"a","voice":"v"}`, "", fake.JSON(`{"base_resp":{"status_code":2013,"status_msg":"no"}}`), "400"},
		{"no_audio", `{"model":"inworld/t","input":"a","voice":"v"}`, "", fake.JSON(`{}`), "502 bad_upstream_body"},
		{"no_input", `{"model":"openai/t","voice":"v"}`, "", fake.Answer{}, "400"},
		{"no_model", `{"input":"a","voice":"v"}`, "", fake.Answer{}, "400"},
		{"voice_number", `{"model":"openai/t","input":"a","voice":1}`, "", fake.Answer{}, "400"},
		{"speed_text", `{"model":"openai/t","input":"a","voice":"v","speed":"fast"}`, "", fake.Answer{}, "400"},
		{"bad_json", `{`, "", fake.Answer{}, "400 invalid_json"},
		{"unsupported", `{"model":"replicate/x/y","input":"a","voice":"v"}`, "", fake.Answer{}, "400 unsupported_endpoint"},
	}
	for _, tt := range tests {
		w := testgw.New(t, "openai", "elevenlabs", "minimax", "inworld", "replicate")
		w.Answer = func(*fake.Seen) fake.Answer { return tt.up }
		c := w.Post(tt.body, "query", tt.query)
		if got := testgw.Outcome(handler(w).Speech(context.Background(), c)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSpeechTriesTheNextAccount(t *testing.T) {
	w := testgw.New(t, "openai", "openai")
	var first fake.Answer
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Account == "a" {
			return first
		}
		return fake.OK("audio/mpeg", "SOUND")
	}
	for _, first = range []fake.Answer{
		{Err: upstream.ErrNetwork}, fake.OK("text/html", "<p>"), fake.OK("audio/mpeg", ""), fake.JSON(`{"error":{}}`), {Status: 200},
	} {
		w.Seen = nil
		w.Add(time.Hour)
		if got := testgw.Outcome(handler(w).Speech(context.Background(), w.Post(`{"model":"openai/t","input":"a","voice":"v"}`))); got != "200 audio/mpeg SOUND" || w.Accounts() != "ab" {
			t.Errorf("%+v: %s, asked %s", first, got, w.Accounts())
		}
	}
}

// voiceLists are recorded lists of voices, page by page, by provider.
var voiceLists = map[string][]string{
	"elevenlabs": {`{"voices":[{"voice_id":"e1","name":"Rachel","labels":{"language":"en","gender":"female"},"preview_url":"https://p/1","high_quality_base_model_ids":["eleven_v3"]}],"has_more":true,"next_page_token":"t=1"}`, `{"voices":[{"voice_id":"e2","name":"Otto","verified_languages":[{"language":"de"}]}],"has_more":false}`},
	"deepgram":   {`{"stt":[],"tts":[{"canonical_name":"aura-2-thalia-en","name":"thalia","languages":["en-US"],"metadata":{"tags":["feminine"],"sample":"https://p/2"}},{"canonical_name":"aura-2-thalia-en","name":"thalia","languages":["en"]}]}`},
	"cartesia":   {`{"data":[{"id":"c1","name":"A","language":"en","gender":"masculine"}],"has_more":true}`, `{"data":[{"id":"c2","name":"B","language":"fr"}],"has_more":false}`},
	"inworld":    {`{"voices":[{"voiceId":"Ashley","displayName":"Ashley","langCode":"en","tags":["female"]}]}`},
	"mistral":    {`{"items":[{"id":"m1","name":"Paul","languages":["en"],"gender":"male"}],"page":1,"total_pages":2}`, `{"items":[{"id":"m2","name":"Anna","languages":["de"]}],"page":2,"total_pages":2}`},
	"together":   {`{"data":[{"model":"cartesia/sonic","voices":[{"id":"t1","name":"T"},{"name":"U"}]}]}`},
	"minimax":    {`{"system_voice":[{"voice_id":"mm1","voice_name":"M"}],"voice_cloning":[{"voice_id":"mm2"}]}`},
	"xai":        {`{"voices":[{"voice_id":"eve","name":"Eve"}]}`},
	"zai":        {`{"voice_list":[{"voice":"z1","voice_name":"Z","voice_type":"OFFICIAL"}]}`},
	"openai":     nil, "gemini": nil,
}

func TestVoices(t *testing.T) {
	for name, list := range voiceLists {
		t.Run(name, func(t *testing.T) {
			w := testgw.New(t, name)
			h := handler(w)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(list[len(w.Seen)-1]) }
			ask := func(query string) string {
				c := w.Call("GET", nil, 0, "query", query)
				return testgw.Outcome(h.Voices(context.Background(), c))
			}
			got := map[string]any{"all": ask("provider=" + name), "again": nil, "de": ask("lang=de&provider=" + provider.Lookup(name).Alias)}
			var sent []string
			for _, s := range w.Seen {
				sent = append(sent, s.Method+" "+s.URL+" "+s.Body)
			}
			got["sent"] = sent
			if len(w.Seen) != len(list) {
				t.Errorf("%d calls: the list was not kept", len(w.Seen))
			}
			golden.JSON(t, "voices/"+name, got)
		})
	}
}

func TestVoicesRefusals(t *testing.T) {
	w := testgw.New(t, "elevenlabs")
	h := handler(w)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 500} }
	for query, want := range map[string]string{
		"": "400", "provider=nobody": "400", "provider=anthropic": "400", "provider=openai": "400 no_credentials", "provider=elevenlabs": "502 upstream_failed",
	} {
		if got := testgw.Outcome(h.Voices(context.Background(), w.Call("GET", nil, 0, "query", query))); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	_, err := h.Voices(context.Background(), w.Call("GET", nil, 0))
	if !strings.Contains(fmt.Sprint(err), "elevenlabs, deepgram, cartesia") {
		t.Errorf("%v does not name the providers", err)
	}
	// Every row with voices is served.
	for _, d := range provider.All() {
		if d.Serves("voices") && voiceSourceOf(d) == nil {
			t.Errorf("%s has voices that are not served", d.ID)
		}
	}
}

func TestEveryAudioProviderHasATranscriber(t *testing.T) {
	for _, d := range provider.All() {
		if d.Serves("transcriptions") {
			if s := transcriberOf(d); s != &unknownForm && s.at("transcriptions") == "none" {
				t.Errorf("%s has no transcriptions", d.ID)
			}
		}
	}
}

func TestMemoryIsLimited(t *testing.T) {
	w := testgw.New(t, "openai")
	h := handler(w)
	w.Memory.Max = 1 << 20
	sound := audioBytes(800 << 10)
	inside := ""
	w.Answer = func(*fake.Seen) fake.Answer {
		if inside == "" {
			c, _ := send(w, form(file(sound), field("model", "openai/w")))
			inside = testgw.Outcome(h.Transcriptions(context.Background(), c))
		}
		return fake.JSON(`{"text":"hi"}`)
	}
	c, _ := send(w, form(file(sound), field("model", "openai/w")))
	if got := testgw.Outcome(h.Transcriptions(context.Background(), c)); !strings.HasPrefix(got, "200") || inside != "503 overloaded" {
		t.Errorf("first %s, second %s", got, inside)
	}
}

// A form that is held is sent once more after a reset, one that flows cannot be.
func TestBrokenTranscriptionIsSentOnceMoreIfItsFormIsHeld(t *testing.T) {
	for _, held := range []bool{true, false} {
		w := testgw.New(t, "openai")
		w.Answer = func(*fake.Seen) fake.Answer {
			if len(w.Seen) == 1 {
				return fake.Answer{Err: upstream.ErrNetwork}
			}
			return fake.JSON(`{"text":"hi"}`)
		}
		sound := audioBytes(200 << 10)
		body, want := form(field("model", "openai/w"), file(sound)), "502 upstream_unreachable"
		if held {
			body, want = form(file(sound), field("model", "openai/w")), `200 application/json {"text":"hi"}`
		}
		c, _ := send(w, body)
		if got := testgw.Outcome(handler(w).Transcriptions(context.Background(), c)); got != want {
			t.Errorf("held %v: %s after %d calls, want %s", held, got, len(w.Seen), want)
		}
	}
}
