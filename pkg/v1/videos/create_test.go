package videos

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func made(id string) answer {
	return answer{status: 200, header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, body: `{ "request_id" : "` + id + `" }`}
}

const clip = `{ "model" : "xai/grok-imagine-video", "prompt":"a cat","seed":9007199254740993,"x":1e400 }`

func TestBodiesGoUpByteForByte(t *testing.T) {
	form := "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nxai/grok\r\n--B\r\n\x00\xff broken as it may be"
	tests := []struct {
		name, contentType, body, want string
		header                        []string
	}{
		{"alias_is_cut_out", "application/json", clip, strings.Replace(clip, "xai/", "", 1), nil},
		{"escaped_slash", "application/json", `{"model":"xai\/grok","prompt":"a"}`, `{"model":"grok","prompt":"a"}`, nil},
		{"escaped_letters", "application/json", `{"model":"\u0078ai/grok","prompt":"a"}`, `{"model":"grok","prompt":"a"}`, nil},
		{"no_alias", "application/json", `{"model":"grok-imagine-video","prompt":"a"}`, `{"model":"grok-imagine-video","prompt":"a"}`, nil},
		{"unknown_model", "application/json", `{"model":"brand-new","prompt":"a"}`, `{"model":"brand-new","prompt":"a"}`, nil},
		{"no_model", "application/json", `{"prompt":"a"}`, `{"prompt":"a"}`, nil},
		{"named_provider", "application/json; charset=utf-8", `{"model":"xai/m"}`, `{"model":"m"}`, []string{"x-provider", "xai"}},
		{"form", `multipart/form-data; boundary="B"`, form, form, nil},
		{"compressed", "application/json", "\x1f\x8b\x00", "\x1f\x8b\x00", []string{"content-encoding", "gzip", "query", "provider=xai"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "xai")
			w.answer = func(*seen) answer { return made("job-1") }
			c := w.call(tt.contentType, tt.body, append(tt.header, "idempotency-key", "K-1", "authorization", "Bearer sk-of-the-client", "x-other", "1")...)
			resp, err := w.Generations(context.Background(), c)
			if got := outcome(resp, err); got != `200 { "request_id" : "job-1" }` {
				t.Fatalf("got %s", got)
			}
			s := w.seen[0]
			if s.Body != tt.want || s.URL != "https://api.x.ai/v1/videos/generations" || !s.Outlive {
				t.Errorf("sent %q to %s (outlives: %v), want %q", s.Body, s.URL, s.Outlive, tt.want)
			}
			h := s.Header
			if h.Get("content-type") != tt.contentType || h.Get("idempotency-key") != "K-1" || h.Get("authorization") != "Bearer "+apiKeyOf("a") || h.Get("x-other") != "" {
				t.Errorf("header %v", h)
			}
			if enc := c.Header.Get("content-encoding"); h.Get("content-encoding") != enc {
				t.Errorf("content-encoding %q", h.Get("content-encoding"))
			}
		})
	}
}

func TestProviderChoice(t *testing.T) {
	tests := []struct{ name, body, header, want string }{
		{"header", `{"model":"m"}`, "x-provider xai", "api.x.ai"},
		{"query", `{"model":"m","prompt":"p"}`, "query provider=luma", "api.lumalabs.ai"},
		{"header_before_query", `{"model":"m","prompt":"p"}`, "x-provider luma query provider=xai", "api.lumalabs.ai"},
		{"alias", `{"model":"luma/ray-2","prompt":"p"}`, "", "api.lumalabs.ai"},
		{"first_with_videos", `{"model":"new","prompt":"p"}`, "", "api.dev.runwayml.com"},
		{"not_connected", `{"model":"gemini/veo","prompt":"p"}`, "", "400 no_credentials"},
		{"no_videos", `{"model":"openai/sora","prompt":"p"}`, "", "400 unsupported_endpoint"},
		{"unknown", `{"model":"m"}`, "x-provider nobody", "400 model_not_found"},
		{"odd", `{"model":"m"}`, "x-provider ../x", "400 "},
		{"no_prompt", `{"model":"luma/ray-2"}`, "", "400 "},
		{"bad_json", `{"model":`, "", "400 "},
		{"model_twice", `{"model":"xai/a","model":"xai/b"}`, "", "400 "},
		{"model_number", `{"model":1}`, "", "400 "},
		{"not_allowed", `{"model":"xai/secret"}`, "", "403 model_not_allowed"},
		{"compatible_by_prefix", `{"model":"up/m","prompt":"p"}`, "", "up.example.com"},
		{"combo", `{"model":"clips","prompt":"p"}`, "", "api.x.ai"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			up := w.connection("openai-compatible-0123abcd", "c")
			up.Data.BaseURL, up.Data.Prefix = "https://up.example.com/v1", "up"
			w.setMachine(w.connection("openai", "o"), up, w.connection("runway", "r"), w.connection("luma", "l"), w.connection("xai", "x"))
			w.machine.Machine.Combos = []store.Combo{{Name: "clips", Models: []string{"openai/x", "xai/grok"}}}
			w.setCombos()
			w.answer = func(*seen) answer { return answer{status: 200, body: `{"request_id":"1","id":"1"}`} }
			c := w.call("application/json", tt.body, strings.Fields(tt.header)...)
			c.Key = &store.Key{ID: "k", Models: []string{"xai/grok*", "xai/m", "luma/*", "runway/*", "new", "gemini/*", "openai/*", "up/*", "clips"}}
			resp, err := w.Generations(context.Background(), c)
			got := outcome(resp, err)
			if err == nil {
				got = strings.SplitN(w.seen[0].URL, "/", 4)[2]
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if err != nil && len(w.seen) != 0 {
				t.Errorf("%d calls", len(w.seen))
			}
		})
	}
}

func (w *world) setCombos() {
	rec := *w.machine.Machine
	w.setMachine()
	*w.machine.Machine = rec
	w.machine = newSnapshot(&rec)
}

// TestOneSend is the table of what follows each first answer
// (docs/reference/spec.md, 4.4).
func TestOneSend(t *testing.T) {
	tests := []struct {
		name  string
		first answer
		took  string
		want  string
	}{
		{"401", answer{status: 401}, "ab", "200"},
		{"403", answer{status: 403}, "ab", "200"},
		{"429", answer{status: 429}, "ab", "200"},
		{"429_quota", answer{status: 429, body: `{"error":{"code":"insufficient_quota"}}`}, "ab", "200"},
		{"400", answer{status: 400}, "a", "400 "},
		{"402", answer{status: 402}, "a", "402 insufficient_quota"},
		{"404", answer{status: 404}, "a", "404 "},
		{"408", answer{status: 408}, "a", "408 timeout no-retry"},
		{"422", answer{status: 422}, "a", "422 "},
		{"500", answer{status: 500}, "a", "500  no-retry"},
		{"503", answer{status: 503}, "a", "503 overloaded no-retry"},
		{"529", answer{status: 529}, "a", "529 overloaded no-retry"},
		{"network", answer{err: upstream.ErrNetwork}, "a", "502 upstream_outcome_unknown no-retry"},
		{"timeout", answer{err: upstream.ErrTimeout}, "a", "504 upstream_outcome_unknown no-retry"},
		{"103", answer{status: 103}, "a", "502 upstream_outcome_unknown no-retry"},
		{"204", answer{status: 204}, "a", "502 upstream_outcome_unknown no-retry"},
		{"302", answer{status: 302, header: httpmsg.Header{{Name: "location", Value: "https://evil.example"}}}, "a", "502 upstream_redirect no-retry"},
		{"999", answer{status: 999}, "a", "502 upstream_outcome_unknown no-retry"},
		{"empty", answer{status: 200}, "a", "502 upstream_outcome_unknown no-retry"},
		{"html", answer{status: 200, body: "<html>"}, "a", "502 upstream_outcome_unknown no-retry"},
		{"null", answer{status: 200, body: "null"}, "a", "502 upstream_outcome_unknown no-retry"},
		{"no_id", answer{status: 200, body: `{"error":"x"}`}, "a", "502 upstream_outcome_unknown no-retry"},
		{"cut", answer{status: 200, body: `{"request_id":"j`, cut: true}, "a", "502 upstream_outcome_unknown no-retry"},
		{"cut_after_the_id", answer{status: 200, body: `{"request_id":"j"}`, cut: true}, "a", "200"},
		{"too_large", answer{status: 200, body: `{"request_id":"` + strings.Repeat("x", 2<<20), cut: true}, "a", "502 upstream_outcome_unknown no-retry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "xai", "xai", "xai")
			w.answer = func(s *seen) answer {
				if len(w.seen) == 1 {
					return tt.first
				}
				return made("j")
			}
			got, _ := w.create(clip)
			if w.took() != tt.took || !strings.HasPrefix(got, tt.want) {
				t.Errorf("the upstream saw %s, the client %s; want %s and %s", w.took(), got, tt.took, tt.want)
			}
			for _, s := range w.seen {
				if s.Body != strings.Replace(clip, "xai/", "", 1) {
					t.Errorf("sent %q", s.Body)
				}
			}
		})
	}
}

// TestTenThousandCreations: over all faults no request is accepted twice, and
// no id that the upstream gave is lost.
func TestTenThousandCreations(t *testing.T) {
	rng := rand.New(rand.NewSource(54))
	w := newWorld(t, "xai", "xai", "xai")
	accepted, n := map[string]int{}, 0
	given := ""
	w.answer = func(s *seen) answer {
		body := s.Body
		accept := func(a answer) answer { accepted[body]++; return a }
		n++
		id := fmt.Sprintf("job-%d", n)
		switch rng.Intn(16) {
		case 0:
			return answer{status: 401}
		case 1:
			return answer{status: 403}
		case 2:
			return answer{status: 429, header: httpmsg.Header{{Name: "retry-after", Value: "1"}}}
		case 3:
			return answer{status: 400}
		case 4:
			return accept(answer{err: upstream.ErrNetwork}) // done, and then the connection broke
		case 5:
			return accept(answer{err: upstream.ErrTimeout})
		case 6:
			return accept(answer{status: 500})
		case 7:
			return accept(answer{status: 502, body: "<html>"})
		case 8:
			return accept(answer{status: 204})
		case 9:
			return accept(answer{status: 200, body: `{"request_id":"` + id, cut: true})
		case 10:
			given = id
			return accept(answer{status: 200, body: `{"request_id":"` + id + `"}`, cut: true})
		case 11:
			return accept(answer{status: 307})
		case 12:
			return accept(answer{status: 600})
		}
		given = id
		return accept(made(id))
	}
	w.objects.fail = func(op string) bool { return op == "job.put" && rng.Intn(10) == 0 }
	reached, lost := 0, 0
	for i := range 10000 {
		given = ""
		w.now = w.now.Add(time.Hour) // no one is cooling down
		w.seen = w.seen[:0]
		body := fmt.Sprintf(`{"model":"xai/m","n":%d}`, i)
		got, _ := w.create(body)
		if k := accepted[fmt.Sprintf(`{"model":"m","n":%d}`, i)]; k > 1 {
			t.Fatalf("request %d was accepted %d times", i, k)
		}
		if given == "" {
			continue
		}
		if reached++; !strings.Contains(got, given) {
			t.Fatalf("id %s was lost: %s", given, got)
		}
		if w.Handler.lost.find(mid, given) != nil {
			lost++
		}
	}
	if reached < 1000 || len(w.Handler.lost.jobs) > maxLost {
		t.Errorf("%d ids, %d in memory", reached, len(w.Handler.lost.jobs))
	}
	t.Logf("%d upstream calls, %d ids, %d of them not noted at once", n, reached, lost)
}

func TestSecretsDoNotComeBack(t *testing.T) {
	for _, form := range []string{apiKeyOf("a"), "Bearer " + apiKeyOf("a"), strings.ReplaceAll(apiKeyOf("a"), "-", "%2d")} {
		for _, a := range []answer{
			{status: 400, body: `{"error":{"message":"bad key ` + form + `","code":"x"}}`},
			{status: 500, body: `{"error":"oops ` + form + `"}`, header: httpmsg.Header{{Name: "x-request-id", Value: apiKeyOf("a")}}},
			{status: 200, body: `{"request_id":"j","echo":"` + form + `"}`},
		} {
			w := newWorld(t, "xai")
			w.answer = func(*seen) answer { return a }
			c := w.call("application/json", clip)
			resp, err := w.Generations(context.Background(), c)
			text := fmt.Sprint(err, c.Trace.Err)
			if err == nil {
				text = outcome(resp, nil)
			}
			if strings.Contains(text, "0123456789abcdef") {
				t.Errorf("%d: %s", a.status, text)
			}
		}
	}
}

func TestJobIsRecordedBeforeResponse(t *testing.T) {
	w := newWorld(t, "xai")
	w.answer = func(*seen) answer { return made("job-1") }
	if got, c := w.create(clip); got != `200 { "request_id" : "job-1" }` || c.Trace.ConnectionID != "a" {
		t.Fatalf("%s by %q", got, c.Trace.ConnectionID)
	}
	if got := strings.Join(w.objects.calls, " "); got != "job.put" {
		t.Errorf("the object saw %s", got)
	}
	status, raw, _ := w.objects.Local.Call(context.Background(), mid, "job.get", []byte(`{"id":"job-1"}`))
	for _, want := range []string{`"kind":"video"`, `"connectionId":"a"`, `"provider":"xai"`, `"origin":"https://api.x.ai"`, `"model":"grok-imagine-video"`} {
		if status != 200 || !strings.Contains(string(raw), want) {
			t.Errorf("%d %s has no %s", status, raw, want)
		}
	}
}

func TestEditsAndExtensions(t *testing.T) {
	w := newWorld(t, "xai")
	w.answer = func(*seen) answer { return made("j") }
	for _, tt := range []struct {
		do   func(*world) string
		want string
	}{
		{func(w *world) string {
			return outcome(w.Edits(context.Background(), w.call("application/json", clip)))
		}, "https://api.x.ai/v1/videos/edits"},
		{func(w *world) string {
			return outcome(w.Extensions(context.Background(), w.call("application/json", clip)))
		}, "https://api.x.ai/v1/videos/extensions"},
	} {
		w.seen = nil
		if got := tt.do(w); !strings.HasPrefix(got, "200") || w.seen[0].URL != tt.want {
			t.Errorf("%s: %s", w.seen[0].URL, got)
		}
	}
	w = newWorld(t, "luma")
	if got := outcome(w.Edits(context.Background(), w.call("application/json", `{"model":"luma/ray","prompt":"p"}`))); got != "400 unsupported_endpoint" {
		t.Errorf("got %s", got)
	}
}
