package models

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// ids lists the ids of an answer, or returns an answer without a list.
func ids(body string) string {
	list := gjson.Get(body, "data.#.id")
	if !list.Exists() {
		return body
	}
	var got []string
	for _, id := range list.Array() {
		got = append(got, id.Str)
	}
	return strings.Join(got, " ")
}

func (w *world) list(header ...string) string {
	return ids(body(w.List(context.Background(), w.call("", header...))))
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompatibleProviderIsFetched(t *testing.T) {
	w := newWorld(compat("https://a.example/v1"))
	w.up.json("a.example", 200, `{"data":[{"id":"m1"},{"id":"embed-1"},{"id":"m2","type":"embedding"}]}`)
	want(t, w.list(), "c/m1 c/m2") // kinds are inferred from ids alone
	w.clock.Add(time.Second)
	want(t, w.list(), "c/m1 c/m2")
	if n := len(w.up.Seen); n != 1 {
		t.Errorf("%d calls, want 1: the list is cached", n)
	}
	if h := w.up.Seen[0].Header.Get("x-weir-hop"); h != "1" {
		t.Errorf("x-weir-hop = %q", h)
	}
}

func TestRecursionHeaderStopsTheFetch(t *testing.T) {
	w := newWorld(compat("https://a.example/v1"))
	w.up.json("a.example", 200, `{"data":[{"id":"m1"}]}`)
	for _, value := range []string{"1", "", "anything"} {
		want(t, w.list(InternalFetch, value), "")
	}
	if n := len(w.up.Seen); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
	want(t, w.list(), "c/m1")
	want(t, w.list(InternalFetch, "1"), "") // not from the cached list either
}

// docs/reference/spec.md, 4.2.1. Servers on one's own computer often have no key.
func TestServerWithoutAPIKeyIsAsked(t *testing.T) {
	w := newWorld(compat("https://a.example/v1"))
	w.up.json("a.example", 200, `{"data":[{"id":"m1"}]}`)
	conn := &w.rec.Connections[0]
	conn.Secrets, w.keys.none = nil, map[string]bool{conn.ID: true}
	want(t, w.list(), "c/m1")
	if got := w.up.Seen[0].Header.Get("authorization"); got != "" {
		t.Errorf("authorization: %q, want none", got)
	}
}

func TestEnabledModelsPreventFetch(t *testing.T) {
	w := newWorld(compat("https://a.example/v1"))
	w.up.json("a.example", 200, `{"data":[{"id":"m1"}]}`)
	w.rec.Connections[0].Data.EnabledModels = []string{" ", "e"}
	want(t, w.list(), "c/e")
	if n := len(w.up.Seen); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
}

// One custom model once replaced the list of its provider.
// See docs/reference/spec.md, 4.1.4.
func TestCustomModelsExtendFetchedList(t *testing.T) {
	w := newWorld(compat("https://a.example/v1"))
	w.up.json("a.example", 200, `{"data":[{"id":"a1"},{"id":"a2"}]}`)
	w.rec.CustomModels = []store.CustomModel{{ID: "mine", ProviderAlias: "c"}, {ID: "a2", ProviderAlias: compatibleID}}
	want(t, w.list(), "c/a1 c/a2 c/mine")
}

func TestTwoGatewaysAskEachOtherOnce(t *testing.T) {
	a, b := newWorld(compat("https://b.example/v1")), newWorld(compat("https://a.example/v1"))
	b.rec.Connections = append(b.rec.Connections, store.Connection{ID: "x", Provider: "deepseek", Data: store.ProviderData{EnabledModels: []string{"m"}}})
	ask := func(w *world) func(*fake.Seen) fake.Answer {
		return func(r *fake.Seen) fake.Answer {
			c := w.call("")
			c.Header = r.Header
			resp, err := w.List(context.Background(), c)
			if err != nil {
				return fake.Answer{Err: err}
			}
			list, err := io.ReadAll(resp.Body)
			return fake.Answer{Status: resp.Status, Body: string(list), Err: err}
		}
	}
	a.up.on("b.example", ask(b))
	b.up.on("a.example", ask(a))
	for range 3 {
		want(t, a.list(), "c/deepseek/m")
		want(t, b.list(), "deepseek/m")
		a.clock.Add(time.Hour)
		b.clock.Add(time.Hour)
	}
	if n, m := len(a.up.Seen), len(b.up.Seen); n > 3 || m > 3 {
		t.Errorf("%d and %d calls for 3 lists each", n, m)
	}
	// A call that has passed too many gateways asks no one.
	a.rec.Generation++
	a.rec.Connections[0].Generation++
	before := len(a.up.Seen)
	want(t, a.list("x-weir-hop", "3"), "")
	if n := len(a.up.Seen); n != before {
		t.Errorf("%d calls after three gateways", n-before)
	}
}

func TestBrokenUpstreamDoesNotAffectOtherLists(t *testing.T) {
	for name, break_ := range map[string]func(*script){
		"stalls": func(s *script) { s.stall("a.example") },
		"resets": func(s *script) {
			s.on("a.example", func(*fake.Seen) fake.Answer { return fake.Answer{Err: upstream.ErrNetwork} })
		},
		"html":           func(s *script) { s.json("a.example", 200, "<html>") },
		"100_MB":         func(s *script) { s.json("a.example", 200, strings.Repeat(" ", 100<<20)) },
		"another_shape":  func(s *script) { s.json("a.example", 200, `{"models":{"a":1}}`) },
		"empty":          func(s *script) { s.json("a.example", 200, "") },
		"not_authorized": func(s *script) { s.json("a.example", 401, `[]`) },
		"redirect":       func(s *script) { s.json("a.example", 302, `[{"id":"x"}]`) },
		"server_error":   func(s *script) { s.json("a.example", 500, `[{"id":"x"}]`) },
	} {
		t.Run(name, func(t *testing.T) {
			second := compat("https://b.example")
			second.Provider, second.Data.Prefix = anthropicID, "d"
			w := newWorld(compat("https://a.example"), second, store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: []string{"m"}}})
			w.up.json("b.example", 200, `[{"id":"ok"}]`)
			break_(w.up)
			begun := w.clock.Now()
			want(t, w.list(), "d/ok deepseek/m")
			if took := w.clock.Now().Sub(begun); took > 5*time.Second {
				t.Errorf("took %v, want at most 5s", took)
			}
			// The failure is not repeated at once, and not remembered for long.
			n := w.up.to("a.example")
			want(t, w.list(), "d/ok deepseek/m")
			if again := w.up.to("a.example"); again != n {
				t.Errorf("asked %d times more within the same second", again-n)
			}
			w.clock.Add(retryAfter)
			w.up.json("a.example", 200, `[{"id":"back"}]`)
			want(t, w.list(), "c/back d/ok deepseek/m")
		})
	}
}

func TestDiscoveryConcurrencyLimit(t *testing.T) {
	for atOnce, most := range map[int]int{0: 3, 16: 16} {
		var conns []store.Connection
		for i := range 20 {
			c := compat(fmt.Sprintf("https://h%02d.example", i))
			c.Provider = fmt.Sprintf("openai-compatible-%08d", i)
			c.Data.Prefix = fmt.Sprintf("p%02d", i)
			conns = append(conns, c)
		}
		w := newWorld(conns...)
		w.Live.AtOnce = atOnce
		w.up.stall("example")
		begun := w.clock.Now()
		want(t, w.list(), "")
		if w.up.Most > most {
			t.Errorf("%d discoveries at once, want %d", w.up.Most, most)
		}
		if took := w.clock.Now().Sub(begun); took > 20*time.Second { // the answer, and what is asked behind it
			t.Errorf("took %v, want at most 20s", took)
		}
		w.up.json("h19", 200, `[{"id":"x"}]`)
		w.clock.Add(time.Minute)
		w.up.json("example", 200, `[{"id":"m"}]`)
		if got := strings.Fields(w.list()); len(got) != 20 {
			t.Errorf("%d models after the upstreams are back, want 20", len(got))
		}
	}
}

// Lists that together take longer than an answer waits once were all cut just before
// they arrived.
func TestListsComeAsFarAsTheTimeGoes(t *testing.T) {
	for _, tt := range []struct {
		atOnce, lists, silent int
		takes                 time.Duration
		first                 int // lists in the first answer
	}{
		{0, 40, 0, 300 * time.Millisecond, 40},
		{0, 60, 0, 300 * time.Millisecond, 48},
		{0, 100, 0, 200 * time.Millisecond, 75},
		{0, 300, 0, 50 * time.Millisecond, 300},
		{0, 500, 0, 50 * time.Millisecond, 300},
		{0, 60, 2, 300 * time.Millisecond, 30},
		{16, 500, 0, 50 * time.Millisecond, 500},
		{16, 60, 15, 300 * time.Millisecond, 60},
		{16, 60, 30, 300 * time.Millisecond, 60},
		{16, 15, 0, 1200 * time.Millisecond, 15},
		{16, 30, 0, 2 * time.Second, 30},
	} {
		var conns []store.Connection
		for i := range tt.lists + tt.silent {
			c := compat(fmt.Sprintf("https://good%03d.example", i))
			if i < tt.silent {
				c.Data.BaseURL = fmt.Sprintf("https://bad%03d.example", i)
			}
			c.Provider, c.Data.Prefix = fmt.Sprintf("openai-compatible-%08d", i), fmt.Sprintf("p%03d", i)
			conns = append(conns, c)
		}
		w := newWorld(conns...)
		w.Live.AtOnce = tt.atOnce
		w.up.stall("bad")
		w.up.slow("good", tt.takes, `[{"id":"m"}]`)
		begun := w.clock.Now()
		resp, err := w.List(context.Background(), w.call(""))
		took := w.clock.Now().Sub(begun)
		if got := len(strings.Fields(ids(body(resp, err)))); got < tt.first || took > total {
			t.Errorf("%d lists of %v, %d silent, %d at once: %d in the first answer after %v, want %d", tt.lists, tt.takes, tt.silent, tt.atOnce, got, took, tt.first)
		}
		w.clock.Add(2 * time.Second) // what was asked behind the answer is there
		if got := len(strings.Fields(w.list())); got != tt.lists {
			t.Errorf("%d lists of %v, %d silent: then %d", tt.lists, tt.takes, tt.silent, got)
		}
	}
}

// The lists of several machines that do not all fit the cache once pushed out each other's
// and then their own, one after the other: nothing stayed of the former ones.
func TestListsOfOthersArePushedOutFirst(t *testing.T) {
	machine := func(id string) *store.Machine {
		m := &store.Machine{Version: 1, ID: id, Generation: 1}
		for i := range 300 {
			c := compat(fmt.Sprintf("https://h%03d.example", i))
			c.ID, c.Provider, c.Data.Prefix = fmt.Sprint("c", i), fmt.Sprintf("openai-compatible-%08d", i), fmt.Sprintf("p%03d", i)
			m.Connections = append(m.Connections, c)
		}
		return m
	}
	w := newWorld()
	w.up.json("example", 200, `[{"id":"m"}]`)
	listed := func(m *store.Machine) int {
		w.rec = m
		return len(strings.Fields(w.list()))
	}
	a, b := machine("m00000000000000a"), machine("m00000000000000b")
	if n, m := listed(a), listed(b); n != 300 || m != 300 {
		t.Errorf("%d and %d models", n, m)
	}
	w.up.json("example", 500, "")
	w.clock.Add(liveTTL)
	if n := listed(b); n != 300 {
		t.Errorf("%d former lists of the last machine, want 300", n)
	}
	if n := listed(a); n != maxLive-300 {
		t.Errorf("%d former lists of the first machine, want those that were not pushed out, %d", n, maxLive-300)
	}
}

// Nine silent providers once hid the eight behind them, for 15 s, again every
// 10 s.
func TestSilentUpstreamsDoNotHideOthers(t *testing.T) {
	for _, silent := range []int{1, 2, 3, 4, 9, 40} {
		var conns []store.Connection
		for i := range silent + 9 {
			c := compat(fmt.Sprintf("https://bad%02d.example", i))
			switch {
			case i >= silent+1:
				c.Data.BaseURL = fmt.Sprintf("https://good%02d.example", i)
			case i == silent:
				c.Data.BaseURL = "https://slow.example"
			}
			c.Provider = fmt.Sprintf("openai-compatible-%08d", i)
			c.Data.Prefix = fmt.Sprintf("p%02d", i)
			conns = append(conns, c)
		}
		w := newWorld(conns...)
		w.up.stall("bad")
		w.up.json("good", 200, `[{"id":"m"}]`)
		w.up.slow("slow", 3*time.Second, `[{"id":"late"}]`)
		for round := range 8 {
			begun := w.clock.Now()
			resp, err := w.List(context.Background(), w.call(""))
			took := w.clock.Now().Sub(begun)
			list := strings.Fields(ids(body(resp, err)))
			if most := total; took > most || round > 1 && took > 2*time.Second {
				t.Errorf("%d silent, round %d: took %v", silent, round, took)
			}
			if len(list) < 8 || round > 6 && len(list) < 9 {
				t.Errorf("%d silent, round %d: %d models: %v", silent, round, len(list), list)
			}
			w.clock.Add(retryAfter)
		}
	}
}

func TestOldListIsServedWhileOneRefreshRuns(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	w.up.json("a.example", 200, `[{"id":"old"}]`)
	want(t, w.list(), "c/old")
	w.clock.Add(liveTTL)
	w.up.json("a.example", 200, `[{"id":"new"}]`)

	first, err := w.List(context.Background(), w.call(""))
	if err != nil || len(first.After) != 1 {
		t.Fatalf("%v, %d things to do after the answer, want the refresh", err, len(first.After))
	}
	second, _ := w.List(context.Background(), w.call(""))
	w.clock.Add(2 * time.Second)
	third, _ := w.List(context.Background(), w.call(""))
	if len(second.After)+len(third.After) != 0 {
		t.Error("a second refresh was begun while one was under way")
	}
	want(t, ids(body(second, nil)), "c/old")
	want(t, ids(body(first, nil)), "c/old") // and the refresh runs now
	w.clock.Add(2 * time.Second)
	want(t, w.list(), "c/new")
	if n := len(w.up.Seen); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestFailedRefreshKeepsLastList(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	w.up.json("a.example", 200, `[{"id":"old"}]`)
	want(t, w.list(), "c/old")
	w.up.json("a.example", 500, "")
	for range 5 {
		w.clock.Add(liveTTL)
		want(t, w.list(), "c/old")
	}
	if n := len(w.up.Seen); n != 6 {
		t.Errorf("%d calls, want 6", n)
	}
}

func TestLostRefreshIsRestarted(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	w.up.json("a.example", 200, `[{"id":"old"}]`)
	want(t, w.list(), "c/old")
	w.clock.Add(liveTTL)
	if resp, _ := w.List(context.Background(), w.call("")); len(resp.After) != 1 {
		t.Fatal("no refresh") // and it is lost
	}
	w.clock.Add(lease)
	if resp, _ := w.List(context.Background(), w.call("")); len(resp.After) != 1 {
		t.Error("the lost refresh blocks the next one")
	}
}

func TestListExpiresWithItsCredential(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	w.rec.Connections[0].Secrets = map[string]secret.Sealed{store.APIKey: "v1.one"}
	w.up.json("a.example", 200, `[{"id":"of-one"}]`)
	want(t, w.list(), "c/of-one")
	w.up.json("a.example", 200, `[{"id":"of-two"}]`)
	conn := &w.rec.Connections[0]
	w.rec.Generation++
	conn.Secrets = map[string]secret.Sealed{store.APIKey: "v1.two"}
	want(t, w.list(), "c/of-two")
	w.up.json("a.example", 200, `[{"id":"of-three"}]`)
	w.rec.Generation++
	conn.Generation++
	want(t, w.list(), "c/of-three")
	// A failure shows nothing of the credential before.
	w.up.json("a.example", 500, "")
	w.rec.Generation++
	conn.Generation++
	want(t, w.list(), "")
}

func TestTenantsShareNothing(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	other := *w.rec
	other.ID = "other00000000000"
	mine := w.rec
	for i := range 1000 {
		w.up.json("a.example", 200, fmt.Sprintf(`[{"id":"mine%d"}]`, i))
		mine.Generation, other.Generation = int64(i), int64(i)
		mine.Connections = []store.Connection{compat("https://a.example")}
		mine.Connections[0].ID, mine.Connections[0].Generation = "same", int64(i)
		other.Connections = mine.Connections
		w.rec = mine
		want(t, w.list(), fmt.Sprintf("c/mine%d", i))
		w.up.json("a.example", 200, fmt.Sprintf(`[{"id":"theirs%d"}]`, i))
		w.rec = &other
		want(t, w.list(), fmt.Sprintf("c/theirs%d", i))
		w.rec = mine
		want(t, w.list(), fmt.Sprintf("c/mine%d", i))
	}
	if n := len(w.Live.cached); n != 2 {
		t.Errorf("%d lists cached, want one for each connection", n)
	}
	if n := len(w.cached); n > maxCached || w.bytes > maxBytes {
		t.Errorf("%d answers of %d bytes cached", n, w.bytes)
	}
}

func TestRefusalRefreshesCredentialOnce(t *testing.T) {
	for _, status := range []int{401, 403} {
		w := newWorld(compat("https://a.example"))
		w.up.on("a.example", func(r *fake.Seen) fake.Answer {
			if r.Header.Get("authorization") == "Bearer fresh1" {
				return fake.Answer{Status: 200, Body: `[{"id":"m"}]`}
			}
			return fake.Answer{Status: status, Body: ""}
		})
		want(t, w.list(), "c/m")
		if len(w.up.Seen) != 2 || w.keys.refreshed["c1"] != 1 {
			t.Errorf("%d: %d calls, %d refreshes", status, len(w.up.Seen), w.keys.refreshed["c1"])
		}
		// Refused for ever: one refresh, two calls, no loop.
		w = newWorld(compat("https://a.example"))
		w.up.json("a.example", status, "")
		want(t, w.list(), "")
		if len(w.up.Seen) != 2 || w.keys.refreshed["c1"] != 1 {
			t.Errorf("%d for ever: %d calls, %d refreshes", status, len(w.up.Seen), w.keys.refreshed["c1"])
		}
		// Nothing to refresh with: one call.
		w = newWorld(compat("https://a.example"))
		w.keys.cannot = true
		w.up.json("a.example", status, "")
		want(t, w.list(), "")
		if len(w.up.Seen) != 1 {
			t.Errorf("%d without a refresh token: %d calls", status, len(w.up.Seen))
		}
	}
}

func TestOtherFailuresRefreshNothing(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	w.up.json("a.example", 429, "")
	want(t, w.list(), "")
	if len(w.keys.refreshed) != 0 {
		t.Errorf("refreshed %v", w.keys.refreshed)
	}
}

// vendorLists are lists of models as vendors write them, and what is listed of
// them.
var vendorLists = []struct {
	provider, kinds, answer, want string
}{
	{"openai", "llm", `{"object":"list","data":[{"id":"gpt-4o","object":"model"},{"id":"new-one"},{"id":"whisper-1"},{"id":"text-embedding-3-small"}]}`, "openai/gpt-4o openai/new-one"},
	{"gemini", "llm", `{"models":[{"name":"models/gemini-4-argon","inputTokenLimit":7,"supportedGenerationMethods":["generateContent"]},{"name":"models/some-embedder","supportedGenerationMethods":["embedContent"]},{"name":"models/deep-research-preview-9","supportedGenerationMethods":["generateContent"]},{"name":"models/talker","supportedGenerationMethods":["bidiGenerateContent"]}]}`, "gemini/gemini-4-argon"},
	{"together", "rerank", `[{"id":"a/b","type":"rerank"},{"id":"c/d","type":"chat"},{"id":"e","type":"moderation"}]`, "together/a/b"},
	{"cohere", "embedding", `{"models":[{"name":"command-x","endpoints":["chat"]},{"name":"vec-x","endpoints":["embed"]}]}`, "cohere/vec-x"},
	{"elevenlabs", "tts", `[{"model_id":"eleven_v9","name":"Nine","can_do_text_to_speech":true},{"model_id":"sts","can_do_text_to_speech":false}]`, "el/eleven_v9"},
	{"deepgram", "stt", `{"stt":[{"name":"x","canonical_name":"nova-9"},{"canonical_name":"nova-9"}],"tts":[{"canonical_name":"aura-9-x-en"}]}`, "dg/nova-9"},
	{"deepgram", "tts", `{"stt":[{"canonical_name":"nova-9"}],"tts":[{"canonical_name":"aura-9-x-en"}]}`, "dg/aura-9-x-en"},
	{"cloudflare", "embedding", `{"result":[{"id":"uuid","name":"@cf/a/vec","task":{"name":"Text Embeddings"}},{"name":"@cf/a/chat","task":{"name":"Text Generation"}}]}`, "cf/@cf/a/vec"},
	{"mistral", "stt", `{"data":[{"id":"hear","capabilities":{"completion_chat":false,"audio_transcription":true}},{"id":"chat","capabilities":{"completion_chat":true}}]}`, "mistral/hear"},
	{"groq", "llm", `{"data":[{"id":"on","active":true,"context_window":9},{"id":"off","active":false}]}`, "groq/on"},
	{"openrouter", "llm", `{"data":[{"id":"a/speaks-audio","architecture":{"input_modalities":["text"],"output_modalities":["text","audio"]}}]}`, "openrouter/a/speaks-audio"},
}

func TestVendorSpecificLists(t *testing.T) {
	for _, tt := range vendorLists {
		t.Run(tt.provider+"_"+tt.kinds, func(t *testing.T) {
			w := newWorld(store.Connection{Provider: tt.provider, Data: store.ProviderData{Vars: map[string]string{"account_id": "acc"}}})
			w.up.json("https://", 200, tt.answer)
			c := w.call("")
			c.Params = []string{tt.kinds}
			want(t, ids(body(w.Kind(context.Background(), c))), tt.want)
			if len(w.up.Seen) == 0 || w.up.Seen[0].MaxBody != maxBody {
				t.Errorf("sent %+v", w.up.Seen)
			}
		})
	}
}

func TestVendorFactsAreListed(t *testing.T) {
	w := newWorld(store.Connection{Provider: "openrouter"})
	w.up.json("openrouter.ai", 200, `{"data":[{"id":"a/b","name":"B","context_length":1234,"architecture":{"input_modalities":["text","image","file"],"output_modalities":["text"]},
		"pricing":{"prompt":"0.0000025","completion":"0.00001","input_cache_read":"0.00000025"},"supported_parameters":["tools","structured_outputs"],"top_provider":{"max_completion_tokens":99}}]}`)
	got := body(w.List(context.Background(), w.call("")))
	if e := gjson.Get(got, "data.0").Raw; e != `{"id":"openrouter/a/b","object":"model","created":1700000000,"owned_by":"openrouter","context_length":1234,"max_completion_tokens":99,`+
		`"capabilities":{"tools":true,"reasoning":false,"vision":true,"pdf":true,"audio_input":false,"video_input":false,"image_output":false,"audio_output":false,"structured_outputs":true},`+
		`"input_modalities":["text","image","file"],"output_modalities":["text"]}` {
		t.Errorf("entry %s", e)
	}
	info := body(w.Info(context.Background(), w.call("id=openrouter%2Fa%2Fb")))
	want(t, gjson.Get(info, "pricing").Raw, `{"input":2.5,"output":10,"cache_read":0.25}`)
	want(t, gjson.Get(info, "name").Str, "B")
}

func TestListedSnapshotHasThePriceOfItsModel(t *testing.T) {
	w := newWorld(store.Connection{Provider: "openai"})
	w.up.json("openai.com", 200, `{"data":[{"id":"gpt-4.1-2025-04-14"},{"id":"ft:gpt-4.1-2025-04-14:org::a"}]}`)
	info := body(w.Info(context.Background(), w.call("id=openai%2Fgpt-4.1-2025-04-14")))
	want(t, gjson.Get(info, "pricing.input").Raw, "2")
	info = body(w.Info(context.Background(), w.call("id=openai%2Fft:gpt-4.1-2025-04-14:org::a")))
	want(t, gjson.Get(info, "id").Str+gjson.Get(info, "pricing.output").Raw, "openai/ft:gpt-4.1-2025-04-14:org::a12")
}

func TestAnthropicCapabilitiesAreRead(t *testing.T) {
	w := newWorld(store.Connection{Provider: "anthropic"})
	w.up.json("anthropic.com", 200, `{"data":[{"type":"model","id":"claude-new","display_name":"New","max_input_tokens":5,"max_tokens":4,"lifecycle":"active",
		"capabilities":{"image_input":{"supported":true},"pdf_input":{"supported":false},"thinking":{"supported":true,"types":{}},"structured_outputs":{"supported":true},"batch":{"supported":true}}},
		{"type":"model","id":"claude-gone","lifecycle":"retired"}],"has_more":false}`)
	got := body(w.List(context.Background(), w.call("")))
	want(t, ids(got), "anthropic/claude-new")
	want(t, gjson.Get(got, "data.0.capabilities").Raw, `{"reasoning":true,"vision":true,"pdf":false,"structured_outputs":true}`)
	want(t, gjson.Get(got, "data.0.max_completion_tokens").Raw, "4")
}

func TestPagesAreFollowed(t *testing.T) {
	w := newWorld(store.Connection{Provider: "anthropic"})
	w.up.json("limit=1000", 200, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a/1"}`)
	w.up.json("after_id=a%2F1", 200, `{"data":[{"id":"b"}],"has_more":false,"last_id":"b"}`)
	want(t, w.list(), "anthropic/a anthropic/b")
	if n := len(w.up.Seen); n != 2 {
		t.Errorf("%d calls", n)
	}
	// A list without an end is cut, and then only adds to the catalogue.
	w = newWorld(store.Connection{Provider: "anthropic"})
	w.up.json("anthropic.com", 200, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`)
	if got := w.list(); !strings.HasPrefix(got, "anthropic/a anthropic/claude-") {
		t.Errorf("got %s", got)
	}
	if n := len(w.up.Seen); n != maxPages {
		t.Errorf("%d calls, want %d", n, maxPages)
	}
}

func TestSignedListIsCachedForAnHourAndHasProfiles(t *testing.T) {
	w := newWorld(store.Connection{Provider: "bedrock", AuthType: "aws", Data: store.ProviderData{Vars: map[string]string{"region": "eu-west-1"}}})
	w.up.json("foundation-models", 200, `{"modelSummaries":[
		{"modelId":"x.direct","outputModalities":["TEXT"],"inputModalities":["TEXT"],"inferenceTypesSupported":["ON_DEMAND"]},
		{"modelId":"x.profiled","outputModalities":["TEXT"],"inferenceTypesSupported":["INFERENCE_PROFILE"]},
		{"modelId":"x.vec","outputModalities":["EMBEDDING"],"inferenceTypesSupported":["ON_DEMAND"]}]}`)
	w.up.json("inference-profiles", 200, `{"inferenceProfileSummaries":[{"inferenceProfileId":"eu.x.profiled"}]}`)
	want(t, w.list(), "bedrock/x.direct bedrock/eu.x.profiled")
	c := w.call("")
	c.Params = []string{"embedding"}
	want(t, ids(body(w.Kind(context.Background(), c))), "bedrock/x.vec")
	if w.keys.signed != 2 || len(w.up.Seen) != 2 || !strings.Contains(w.up.Seen[0].URL, "eu-west-1") {
		t.Errorf("%d signed, sent %+v", w.keys.signed, w.up.Seen)
	}
	w.clock.Add(59 * time.Minute)
	w.list()
	if n := len(w.up.Seen); n != 2 {
		t.Errorf("%d calls within the hour", n)
	}
	w.clock.Add(2 * time.Minute)
	w.list()
	if n := len(w.up.Seen); n != 4 {
		t.Errorf("%d calls after the hour", n)
	}
}

func TestFailedVendorListsStaticModels(t *testing.T) {
	w := newWorld(store.Connection{Provider: "deepseek"})
	w.up.json("deepseek", 500, "")
	want(t, w.list(), "deepseek/deepseek-flash deepseek/deepseek-v4-pro")
}

func TestConnectionListBypassesCache(t *testing.T) {
	w := newWorld(compat("https://a.example"), store.Connection{Provider: "perplexity"})
	w.up.json("a.example", 200, `[{"id":"m"},{"id":"embed-x"}]`)
	for range 2 {
		got := body(w.Connection(context.Background(), w.call(""), &w.rec.Connections[0]))
		want(t, ids(got), "m embed-x")
		want(t, gjson.Get(got, "source").Str, "upstream")
	}
	if n := len(w.up.Seen); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	w.clock.Add(time.Second)
	w.up.json("a.example", 500, "")
	got := body(w.Connection(context.Background(), w.call(""), &w.rec.Connections[0]))
	want(t, ids(got)+" "+gjson.Get(got, "source").Str, "m embed-x last")
	got = body(w.Connection(context.Background(), w.call(""), &w.rec.Connections[1]))
	want(t, ids(got)+" "+gjson.Get(got, "source").Str, "pplx-embed-v1-0.6b pplx-embed-v1-4b sonar sonar-deep-research sonar-pro sonar-reasoning-pro catalog")
}
