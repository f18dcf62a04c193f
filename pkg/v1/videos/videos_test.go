package videos

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/endpoint/download"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func TestJobsArePolledOnlyWithTheirOwnAccount(t *testing.T) {
	w := newWorld(t, "xai", "xai", "xai")
	w.Machine.Machine.Settings.Strategy = "round-robin"
	owner := map[string]string{}
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Method == "POST" {
			id := fmt.Sprintf("job-%d", len(owner))
			owner[id] = s.Account
			return made(id)
		}
		id := s.URL[strings.LastIndexByte(s.URL, '/')+1:]
		if owner[id] != s.Account {
			t.Fatalf("%s of %s was asked for with %s", id, owner[id], s.Account)
		}
		return fake.Answer{Status: 200, Body: `{"status":"pending","progress":3}`}
	}
	for range 200 {
		w.create(clip)
	}
	used := map[string]int{}
	for id, key := range owner {
		used[key]++
		if got := w.poll(id); got != `200 {"status":"pending","progress":3}` {
			t.Fatalf("%s: %s", id, got)
		}
	}
	if len(owner) != 200 || len(used) != 3 {
		t.Errorf("%d jobs over %d accounts", len(owner), len(used))
	}
}

func TestForeignAndUnknownJobs(t *testing.T) {
	w := newWorld(t, "xai", "xai")
	w.Answer = func(*fake.Seen) fake.Answer { return made("mine") }
	w.create(clip)
	w.Seen = nil
	for _, id := range []string{"unknown", "job-2", "b64.YWJj"} {
		if got := w.poll(id); got != "404 video_not_found" {
			t.Errorf("%s: %s", id, got)
		}
	}
	other := *w.Machine.Machine
	other.ID = "otherotherother0"
	w.Machine = snapshot.New(&other)
	if got := w.poll("mine"); got != "404 video_not_found" {
		t.Errorf("another machine's: %s", got)
	}
	for _, id := range []string{"", ".", "..", "a/b", "a\\b", "a%2fb", "a?b", "a b", strings.Repeat("a", 4096), "é", strings.Repeat("a", 9000)} {
		if got := w.poll(id); !strings.HasPrefix(got, "40") {
			t.Errorf("%.20q: %s", id, got)
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d upstream calls", len(w.Seen))
	}
}

func TestPollStates(t *testing.T) {
	tests := []struct {
		name string
		up   fake.Answer
		want string
	}{
		{"empty_202", fake.Answer{Status: 202}, "202 "},
		{"done", fake.Answer{Status: 200, Body: `{"status":"done", "video":{"url":"https://v.x.ai/1.mp4"},"usage":{"cost_in_usd_ticks":1}}`}, `200 {"status":"done", "video":{"url":"https://v.x.ai/1.mp4"},"usage":{"cost_in_usd_ticks":1}}`},
		{"failed_is_200", fake.Answer{Status: 200, Body: `{"status":"failed","error":{"code":"x","message":"y"}}`}, `200 {"status":"failed","error":{"code":"x","message":"y"}}`},
		{"gone", fake.Answer{Status: 404}, "404 upstream_refused"},
		{"html", fake.Answer{Status: 200, Body: "<html>"}, "502 bad_upstream_body"},
		{"empty_200", fake.Answer{Status: 200}, "502 bad_upstream_body"},
		{"network", fake.Answer{Err: upstream.ErrNetwork}, "502 upstream_unreachable"},
		{"limited", fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "7"}}}, "429 rate_limit_exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "xai", "xai")
			w.Answer = func(s *fake.Seen) fake.Answer {
				if s.Method == "POST" {
					return made("j")
				}
				return tt.up
			}
			w.create(clip)
			if got := w.poll("j"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if w.Upstream.Accounts() != "aa" {
				t.Errorf("asked %s", w.Upstream.Accounts())
			}
		})
	}
}

func TestAllowListsApplyToNamedProvider(t *testing.T) {
	limited := &store.Key{ID: "k2", Models: []string{"xai/grok", "nobody/*"}}
	for _, tt := range []struct{ name, body, header, value, want string }{
		{"its_own", `{"model":"xai/grok","prompt":"p"}`, "", "", "200"},
		{"another_provider_in_the_header", `{"model":"xai/grok","prompt":"p"}`, "x-provider", "luma", "403 model_not_allowed"},
		{"another_provider_in_the_query", `{"model":"xai/grok","prompt":"p"}`, "query", "provider=luma", "403 model_not_allowed"},
		{"the_provider_it_may_use", `{"model":"xai/grok","prompt":"p"}`, "x-provider", "xai", "200"},
		{"no_model", `{"prompt":"p"}`, "x-provider", "xai", "403 model_not_allowed"},
		{"another_model", `{"model":"secret","prompt":"p"}`, "x-provider", "xai", "403 model_not_allowed"},
		{"a_name_of_no_provider", `{"model":"nobody/x","prompt":"p"}`, "", "", "403 model_not_allowed"},
		{"another_case", `{"model":"xai/grok","Model":"secret","prompt":"p"}`, "", "", "400"},
	} {
		w := newWorld(t, "xai", "luma")
		w.Answer = func(*fake.Seen) fake.Answer { return made("j") }
		c := w.call("application/json", tt.body)
		if tt.header != "" {
			c = w.call("application/json", tt.body, tt.header, tt.value)
		}
		c.Key = limited
		resp, err := w.Generations(context.Background(), c)
		if got := outcome(resp, err); !strings.HasPrefix(got, tt.want) || (len(w.Seen) == 1) != (tt.want == "200") {
			t.Errorf("%s: got %s after %d calls, want %s", tt.name, got, len(w.Seen), tt.want)
		}
	}
}

func TestAllowListsApplyToPollsAndDownloads(t *testing.T) {
	w := newWorld(t, "xai")
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Method == "POST" {
			return made("j")
		}
		return fake.Answer{Status: 200, Body: `{"status":"done","video":{"url":"https://files.x.ai/1.mp4"}}`}
	}
	maker := w.call("application/json", clip)
	maker.Key = &store.Key{ID: "k1"} // the key that created it, as it was then
	maker.Trace.KeyID = "k1"
	if got := outcome(w.Generations(context.Background(), maker)); !strings.HasPrefix(got, "200") {
		t.Fatal(got)
	}
	calls := len(w.Seen)
	ask := func(id string, models ...string) (string, string) {
		c := w.get("j")
		c.Key, c.Trace.KeyID = &store.Key{ID: id, Models: models}, id
		d := w.get("j")
		d.Key, d.Trace.KeyID = c.Key, id
		return outcome(w.Get(context.Background(), c)), outcome(w.Content(context.Background(), d))
	}
	for _, tt := range []struct {
		key    string
		models []string
		ok     bool
	}{{"k1", []string{"a-combo"}, true}, {"k2", []string{"xai/*"}, true}, {"k3", nil, true}, {"k4", []string{"luma/*"}, false}} {
		poll, content := ask(tt.key, tt.models...)
		for _, got := range []string{poll, content} {
			if ok := strings.HasPrefix(got, "200"); ok != tt.ok || !ok && got != "403 model_not_allowed" {
				t.Errorf("%s: %s", tt.key, got)
			}
		}
		if !tt.ok && len(w.Seen) != calls {
			t.Errorf("%s: the upstream was asked", tt.key)
		}
		calls = len(w.Seen)
	}
}

func TestPinnedAccountIsUsed(t *testing.T) {
	start := func() *world {
		w := newWorld(t, "xai", "xai")
		w.Answer = func(s *fake.Seen) fake.Answer {
			if s.Method == "POST" {
				return made("j")
			}
			return fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "7"}}}
		}
		w.create(clip)
		return w
	}
	w := start()
	w.poll("j")
	w.Seen = nil
	resp, err := w.Get(context.Background(), w.get("j"))
	if got := outcome(resp, err); got != "503 account_cooling_down" || len(w.Seen) != 0 {
		t.Errorf("cooling down: %s, %d calls", got, len(w.Seen))
	}
	if d := retryAfter(err); d < 6*time.Second || d > 7*time.Second {
		t.Errorf("to wait %v", d)
	}

	w = start()
	w.setMachine(w.connection("xai", "b"))
	w.Seen = nil
	if got := w.poll("j"); got != "404 video_not_found" || len(w.Seen) != 0 {
		t.Errorf("gone: %s, %d calls", got, len(w.Seen))
	}

	w = start()
	moved := w.connection("luma", "a")
	w.setMachine(moved)
	w.Seen = nil
	if got := w.poll("j"); got != "404 video_not_found" || len(w.Seen) != 0 {
		t.Errorf("at another origin: %s, %d calls", got, len(w.Seen))
	}
}

func TestWhenTheObjectFails(t *testing.T) {
	w := newWorld(t, "openai", "xai", "xai", "xai", "xai")
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.Method == "POST" {
			return made("j")
		}
		if s.Account != "c" {
			return fake.Answer{Status: 404}
		}
		return fake.Answer{Status: 200, Body: `{"status":"pending"}`}
	}
	w.objects.Fail = func(op string) bool { return op == "job.put" }
	got, _ := w.create(clip)
	if got != `200 { "request_id" : "j" }` {
		t.Fatalf("the id was lost: %s", got)
	}
	// This isolate remembers who made it.
	w.Seen = nil
	w.poll("j")
	if w.Upstream.Accounts() != "b" {
		t.Errorf("asked %q", w.Upstream.Accounts())
	}
	w.objects.Fail = nil
	w.poll("j")
	if len(w.Handler.lost.jobs) != 0 {
		t.Error("the record was not stored later")
	}

	w.objects.Fail = func(op string) bool { return op == "job.get" }
	w.Seen = nil
	if got := w.poll("j"); got != `200 {"status":"pending"}` || w.Upstream.Accounts() != "bc" {
		t.Errorf("%s, asked %s", got, w.Upstream.Accounts())
	}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 404} }
	w.Seen = nil
	if got := w.poll("j"); got != "404 upstream_refused" || w.Upstream.Accounts() != "bcd" {
		t.Errorf("%s, asked %s", got, w.Upstream.Accounts())
	}
}

func TestContent(t *testing.T) {
	const file = "https://files.x.ai/1.mp4?sig=s"
	tests := []struct {
		name, provider, state, want string
		file                        fake.Answer
	}{
		{"done", "xai", `{"status":"done","video":{"url":"` + file + `"}}`, "200 bytes", fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "video/mp4"}}, Body: "bytes"}},
		{"done_without_status", "xai", `{"video":{"url":"` + file + `"}}`, "200 bytes", fake.Answer{Status: 200, Body: "bytes"}},
		{"pending", "xai", `{"status":"pending"}`, "409 video_not_ready", fake.Answer{}},
		{"failed", "xai", `{"status":"failed"}`, "409 video_not_ready no-retry", fake.Answer{}},
		{"blocked", "xai", `{"status":"done","video":{"respect_moderation":false}}`, "404 file_unavailable", fake.Answer{}},
		{"private_host", "xai", `{"status":"done","video":{"url":"http://169.254.169.254/x"}}`, "502 bad_upstream_body", fake.Answer{}},
		{"over", "xai", `{"status":"done","video":{"url":"` + file + `"}}`, "404 file_unavailable", fake.Answer{Status: 403}},
		{"gemini", "gemini", `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://generativelanguage.googleapis.com/v1beta/files/1:download?alt=media"}}]}}}`, "200 bytes", fake.Answer{Status: 200, Body: "bytes"}},
		{"gemini_elsewhere", "gemini", `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://evil.example/1"}}]}}}`, "502 bad_upstream_body", fake.Answer{}},
		{"openrouter", "openrouter", `{"status":"completed","unsigned_urls":["x"]}`, "200 bytes", fake.Answer{Status: 200, Body: "bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.provider)
			w.Answer = func(s *fake.Seen) fake.Answer {
				switch {
				case s.Method == "POST":
					return fake.Answer{Status: 200, Body: `{"request_id":"j","id":"j","name":"models/m/operations/j"}`}
				case strings.Contains(s.URL, "files") || strings.Contains(s.URL, "/content"):
					return tt.file
				}
				return fake.Answer{Status: 200, Body: tt.state}
			}
			created, _ := w.create(`{"model":"` + tt.provider + `/m","prompt":"p"}`)
			id := "j"
			if tt.provider == "gemini" {
				id = idOf("models/m/operations/j")
			}
			if !strings.Contains(created, `"`+id+`"`) {
				t.Fatal(created)
			}
			resp, err := w.Content(context.Background(), w.get(id))
			if got := outcome(resp, err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if err == nil {
				last := w.Seen[len(w.Seen)-1]
				if private := tt.provider != "xai"; private != (last.Account != "") {
					t.Errorf("%s was fetched with the credential %q", last.URL, last.Account)
				}
				if got := resp.Header.Get("content-type"); got != "video/mp4" {
					t.Errorf("content type %q", got)
				}
			}
		})
	}
}

func TestRedirectsOfContentCarryNoCredential(t *testing.T) {
	w := newWorld(t, "gemini")
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch {
		case s.Method == "POST":
			return fake.Answer{Status: 200, Body: `{"name":"models/m/operations/j"}`}
		case strings.Contains(s.URL, ":download"):
			return fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: "https://storage.googleapis.com/x"}}}
		case strings.Contains(s.URL, "storage"):
			if s.Account != "" {
				t.Errorf("the credential went to %s", s.URL)
			}
			return fake.Answer{Status: 200, Body: "bytes"}
		}
		return fake.Answer{Status: 200, Body: `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://generativelanguage.googleapis.com/v1beta/files/1:download"}}]}}}`}
	}
	w.create(`{"model":"gemini/veo","prompt":"p"}`)
	if got := outcome(w.Content(context.Background(), w.get(idOf("models/m/operations/j")))); got != "200 bytes" {
		t.Errorf("got %s", got)
	}
}

// A name passes as it is wherever a path can carry it. One that a path cannot carry is
// encoded, and polled by either form.
func TestIDs(t *testing.T) {
	for name, id := range map[string]string{
		"a": "a", "a:b;c": "a:b;c", "-._~:@!$&'()*+,;=": "-._~:@!$&'()*+,;=", "...": "b64.Li4u",
		"models/veo/operations/1": "b64.bW9kZWxzL3Zlby9vcGVyYXRpb25zLzE", "a b": "b64.YSBi", "100%": "b64.MTAwJQ", "é": "b64.w6k", "a?b#c": "b64.YT9iI2M",
		"b64.x": "b64.YjY0Lng", "sha256.x": "b64.c2hhMjU2Lng",
	} {
		got, ok := nameOf(id, &rpc.Job{ID: id})
		if idOf(name) != id || !ok || got != name || polledID(id) != id {
			t.Errorf("%q: id %q, want %q, stands for %q", name, idOf(name), id, got)
		}
		if !safeID(name) && polledID(name) != id {
			t.Errorf("%q is polled as %q", name, polledID(name))
		}
	}
	if _, ok := nameOf("b64.***", &rpc.Job{}); ok {
		t.Error("decoded")
	}
}

// A client polls what it gets, whatever the upstream's name of the job is.
func TestEveryNameIsPolled(t *testing.T) {
	for _, tt := range []struct{ id, shown string }{
		{`12345`, `12345`}, {`12345678901234567890`, `"12345678901234567890"`}, {`1e3`, `"1e3"`}, {`"12345"`, `"12345"`}, {`"a:b;c(d)"`, `"a:b;c(d)"`}, {`"a/b"`, `"b64.YS9i"`},
		{`"` + strings.Repeat("x", 1025) + `"`, ""}, {`"` + strings.Repeat("é/", 2000) + `"`, ""},
	} {
		w := newWorld(t, "xai")
		w.Answer = func(s *fake.Seen) fake.Answer {
			if s.Method == "POST" {
				return fake.JSON(`{"request_id":` + tt.id + `}`)
			}
			return fake.JSON(`{"status":"pending"}`)
		}
		got, _ := w.create(clip)
		id := gjson.Get(strings.TrimPrefix(got, "200 "), "request_id")
		if tt.shown != "" && id.Raw != tt.shown || !safeID(id.String()) {
			t.Errorf("%.20s: got %.200s, want %s", tt.id, got, tt.shown)
		}
		name := strings.Trim(tt.id, `"`)
		for _, param := range []string{id.String(), name} {
			w.Seen = nil
			if got := w.poll(param); got != `200 {"status":"pending"}` || len(w.Seen) != 1 {
				t.Errorf("%.20s, polled as %.20s: %s, %d calls", tt.id, param, got, len(w.Seen))
			} else if asked, _ := url.PathUnescape(w.Seen[0].URL); asked != "https://api.x.ai/v1/videos/"+name {
				t.Errorf("%.20s, polled as %.20s: asked for %.80s", tt.id, param, asked)
			}
		}
	}
	w := newWorld(t, "xai")
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.JSON(`{"request_id":"` + strings.Repeat("x", maxStored+1) + `"}`)
	}
	if got, _ := w.create(clip); got != "502 upstream_outcome_unknown no-retry" {
		t.Errorf("endless: %s", got)
	}
}

func TestSameSite(t *testing.T) {
	const base = "https://api.bfl.ai/v1/x"
	for address, want := range map[string]bool{
		"https://api.eu1.bfl.ai/v1/get_result?id=1": true, "https://api.bfl.ai/x": true,
		"https://bfl.ai.evil.com/": false, "https://evilbfl.ai/": false, "http://api.eu.bfl.ai/": false,
		"https://api.bfl.ai@evil.com/": false, "https://api.bfl.ai:8443/": false, "https://evil.com/.bfl.ai": false, "https://evil.com?.bfl.ai": false, "x": false,
	} {
		if got := download.SameSite(address, base); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
