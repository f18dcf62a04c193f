package videos

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func made(id string) fake.Answer {
	return fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: `{ "request_id" : "` + id + `" }`}
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
			w.Answer = func(*fake.Seen) fake.Answer { return made("job-1") }
			c := w.call(tt.contentType, tt.body, append(tt.header, "idempotency-key", "K-1", "authorization", "Bearer sk-of-the-client", "x-other", "1")...)
			resp, err := w.Generations(context.Background(), c)
			if got := outcome(resp, err); got != `200 { "request_id" : "job-1" }` {
				t.Fatalf("got %s", got)
			}
			s := w.Seen[0]
			if s.Body != tt.want || s.URL != "https://api.x.ai/v1/videos/generations" || !s.Outlive {
				t.Errorf("sent %q to %s (outlives: %v), want %q", s.Body, s.URL, s.Outlive, tt.want)
			}
			h := s.Header
			if h.Get("content-type") != tt.contentType || h.Get("idempotency-key") != "K-1" || h.Get("authorization") != "Bearer "+fake.Secret("a") || h.Get("x-other") != "" {
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
		{"bad_json", `{"model":`, "", "400 invalid_json"},
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
			w.Machine.Machine.Combos = []store.Combo{{Name: "clips", Models: []string{"openai/x", "xai/grok"}}}
			w.setCombos()
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 200, Body: `{"request_id":"1","id":"1"}`} }
			c := w.call("application/json", tt.body, strings.Fields(tt.header)...)
			c.Key = &store.Key{ID: "k", Models: []string{"xai/grok*", "xai/m", "luma/*", "runway/*", "new", "gemini/*", "openai/*", "up/*", "clips"}}
			resp, err := w.Generations(context.Background(), c)
			got := outcome(resp, err)
			if err == nil {
				got = strings.SplitN(w.Seen[0].URL, "/", 4)[2]
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if err != nil && len(w.Seen) != 0 {
				t.Errorf("%d calls", len(w.Seen))
			}
		})
	}
}

func (w *world) setCombos() {
	rec := *w.Machine.Machine
	w.setMachine()
	*w.Machine.Machine = rec
	w.Machine = newSnapshot(&rec)
}

// TestOneSend is the table of what follows each first answer
// (docs/reference/spec.md, 4.4).
func TestOneSend(t *testing.T) {
	tests := []struct {
		name  string
		first fake.Answer
		took  string
		want  string
	}{
		{"401", fake.Answer{Status: 401}, "ab", "200"},
		{"403", fake.Answer{Status: 403}, "ab", "200"},
		{"429", fake.Answer{Status: 429}, "ab", "200"},
		{"429_quota", fake.Answer{Status: 429, Body: `{"error":{"code":"insufficient_quota"}}`}, "ab", "200"},
		{"400", fake.Answer{Status: 400}, "a", "400 "},
		{"402", fake.Answer{Status: 402}, "a", "402 insufficient_quota"},
		{"404", fake.Answer{Status: 404}, "a", "404 "},
		{"408", fake.Answer{Status: 408}, "a", "408 timeout no-retry"},
		{"422", fake.Answer{Status: 422}, "a", "422 "},
		{"500", fake.Answer{Status: 500}, "a", "500 upstream_failed no-retry"},
		{"503", fake.Answer{Status: 503}, "a", "503 upstream_overloaded no-retry"},
		{"529", fake.Answer{Status: 529}, "a", "529 upstream_overloaded no-retry"},
		{"network", fake.Answer{Err: upstream.ErrNetwork}, "a", "502 upstream_outcome_unknown no-retry"},
		{"timeout", fake.Answer{Err: upstream.ErrTimeout}, "a", "504 upstream_outcome_unknown no-retry"},
		{"103", fake.Answer{Status: 103}, "a", "502 upstream_outcome_unknown no-retry"},
		{"204", fake.Answer{Status: 204}, "a", "502 upstream_outcome_unknown no-retry"},
		{"302", fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: "https://evil.example"}}}, "a", "502 upstream_redirect no-retry"},
		{"999", fake.Answer{Status: 999}, "a", "502 upstream_outcome_unknown no-retry"},
		{"empty", fake.Answer{Status: 200}, "a", "502 upstream_outcome_unknown no-retry"},
		{"html", fake.Answer{Status: 200, Body: "<html>"}, "a", "502 upstream_outcome_unknown no-retry"},
		{"null", fake.Answer{Status: 200, Body: "null"}, "a", "502 upstream_outcome_unknown no-retry"},
		{"no_id", fake.Answer{Status: 200, Body: `{"error":"x"}`}, "a", "502 upstream_outcome_unknown no-retry"},
		{"cut", fake.Answer{Status: 200, Body: `{"request_id":"j`, Cut: true}, "a", "502 upstream_outcome_unknown no-retry"},
		{"cut_after_the_id", fake.Answer{Status: 200, Body: `{"request_id":"j"}`, Cut: true}, "a", "200"},
		{"too_large", fake.Answer{Status: 200, Body: `{"request_id":"` + strings.Repeat("x", 2<<20), Cut: true}, "a", "502 upstream_outcome_unknown no-retry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "xai", "xai", "xai")
			w.Answer = func(s *fake.Seen) fake.Answer {
				if len(w.Seen) == 1 {
					return tt.first
				}
				return made("j")
			}
			got, _ := w.create(clip)
			if w.Upstream.Accounts() != tt.took || !strings.HasPrefix(got, tt.want) {
				t.Errorf("the upstream saw %s, the client %s; want %s and %s", w.Upstream.Accounts(), got, tt.took, tt.want)
			}
			for _, s := range w.Seen {
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
	w.Answer = func(s *fake.Seen) fake.Answer {
		body := s.Body
		accept := func(a fake.Answer) fake.Answer { accepted[body]++; return a }
		n++
		id := fmt.Sprintf("job-%d", n)
		switch rng.Intn(16) {
		case 0:
			return fake.Answer{Status: 401}
		case 1:
			return fake.Answer{Status: 403}
		case 2:
			return fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "1"}}}
		case 3:
			return fake.Answer{Status: 400}
		case 4:
			return accept(fake.Answer{Err: upstream.ErrNetwork}) // done, and then the connection broke
		case 5:
			return accept(fake.Answer{Err: upstream.ErrTimeout})
		case 6:
			return accept(fake.Answer{Status: 500})
		case 7:
			return accept(fake.Answer{Status: 502, Body: "<html>"})
		case 8:
			return accept(fake.Answer{Status: 204})
		case 9:
			return accept(fake.Answer{Status: 200, Body: `{"request_id":"` + id, Cut: true})
		case 10:
			given = id
			return accept(fake.Answer{Status: 200, Body: `{"request_id":"` + id + `"}`, Cut: true})
		case 11:
			return accept(fake.Answer{Status: 307})
		case 12:
			return accept(fake.Answer{Status: 600})
		}
		given = id
		return accept(made(id))
	}
	w.objects.Fail = func(op string) bool { return op == "job.put" && rng.Intn(10) == 0 }
	reached, lost := 0, 0
	for i := range 10000 {
		given = ""
		w.Add(time.Hour) // no one is cooling down
		w.Seen = w.Seen[:0]
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
	for _, form := range []string{fake.Secret("a"), "Bearer " + fake.Secret("a"), strings.ReplaceAll(fake.Secret("a"), "-", "%2d")} {
		for _, a := range []fake.Answer{
			{Status: 400, Body: `{"error":{"message":"bad key ` + form + `","code":"x"}}`},
			{Status: 500, Body: `{"error":"oops ` + form + `"}`, Header: httpmsg.Header{{Name: "x-request-id", Value: fake.Secret("a")}}},
			{Status: 200, Body: `{"request_id":"j","echo":"` + form + `"}`},
		} {
			w := newWorld(t, "xai")
			w.Answer = func(*fake.Seen) fake.Answer { return a }
			c := w.call("application/json", clip)
			resp, err := w.Generations(context.Background(), c)
			text := fmt.Sprint(err, c.Trace.Err)
			if err == nil {
				text = outcome(resp, nil)
			}
			if strings.Contains(text, "0123456789abcdef") {
				t.Errorf("%d: %s", a.Status, text)
			}
		}
	}
}

func TestJobIsRecordedBeforeResponse(t *testing.T) {
	w := newWorld(t, "xai")
	w.Answer = func(*fake.Seen) fake.Answer { return made("job-1") }
	if got, c := w.create(clip); got != `200 { "request_id" : "job-1" }` || c.Trace.ConnectionID != "a" {
		t.Fatalf("%s by %q", got, c.Trace.ConnectionID)
	}
	if got := strings.Join(w.objects.Ops, " "); got != "job.put" {
		t.Errorf("the object saw %s", got)
	}
	status, raw, _ := w.objects.Call(context.Background(), mid, "job.get", []byte(`{"id":"job-1"}`))
	for _, want := range []string{`"kind":"video"`, `"connectionId":"a"`, `"provider":"xai"`, `"origin":"https://api.x.ai"`, `"model":"grok-imagine-video"`} {
		if status != 200 || !strings.Contains(string(raw), want) {
			t.Errorf("%d %s has no %s", status, raw, want)
		}
	}
}

func TestEditsAndExtensions(t *testing.T) {
	w := newWorld(t, "xai")
	w.Answer = func(*fake.Seen) fake.Answer { return made("j") }
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
		w.Seen = nil
		if got := tt.do(w); !strings.HasPrefix(got, "200") || w.Seen[0].URL != tt.want {
			t.Errorf("%s: %s", w.Seen[0].URL, got)
		}
	}
	w = newWorld(t, "luma")
	if got := outcome(w.Edits(context.Background(), w.call("application/json", `{"model":"luma/ray","prompt":"p"}`))); got != "400 unsupported_endpoint" {
		t.Errorf("got %s", got)
	}
}
