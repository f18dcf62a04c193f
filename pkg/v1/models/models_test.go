package models

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

func (w *world) kind(segment string, header ...string) string {
	c := w.call("", header...)
	c.Params = []string{segment}
	return body(w.Kind(context.Background(), c))
}

func TestKindSegments(t *testing.T) {
	w := newWorld()
	for segment, id := range map[string]string{
		"llm": "anthropic/claude-opus-5-5", "image": "openai/gpt-image-2", "tts": "openai/tts-1", "stt": "openai/whisper-1",
		"embedding": "openai/text-embedding-3-small", "image-to-text": "mistral/mistral-ocr-latest",
		"video": "xai/grok-imagine-video", "music": "el/music_v1", "rerank": "cohere/rerank-v3.5",
	} {
		got := w.kind(segment)
		if gjson.Get(got, "object").Str != "list" || !strings.Contains(" "+ids(got)+" ", " "+id+" ") {
			t.Errorf("%s does not list %s: %.200s", segment, id, got)
		}
	}
	w = newWorld(store.Connection{Provider: "tavily"})
	want(t, ids(w.kind("web")), "tavily/search tavily/fetch web/fetch")
}

// People who manage see kind, prices and dimensions; clients see the list as it
// was, whoever asked first.
func TestDetailedLists(t *testing.T) {
	w := newWorld(store.Connection{Provider: "openai"}, store.Connection{Provider: "tavily"})
	detailed := func(segment string, header ...string) string {
		c := w.call("", header...)
		c.Params = []string{segment}
		return body(w.Detailed(context.Background(), c))
	}
	for segment, id := range map[string]string{"llm": "openai/gpt-5-mini", "embedding": "openai/text-embedding-3-small"} {
		plain := w.kind(segment)
		got := detailed(segment, "anthropic-version", "2023-06-01")
		want(t, ids(got), ids(plain))
		entry := gjson.Get(got, `data.#(id=="`+id+`")`)
		if entry.Get("kind").Str != segment || segment == "llm" && entry.Get("pricing.input").Num <= 0 {
			t.Errorf("%s: %s", id, entry.Raw)
		}
		if again := w.kind(segment); again != plain || strings.Contains(plain, "pricing") {
			t.Errorf("%s: the list for clients has changed: %.300s", segment, again)
		}
	}
	if got := detailed("embedding"); gjson.Get(got, `data.#(id=="openai/text-embedding-3-small").dimensions`).Int() != 1536 {
		t.Errorf("no dimensions: %.300s", got)
	}
	if got := detailed("web"); strings.Count(got, `"kind"`) != 3 {
		t.Errorf("web entries have their kind once: %s", got)
	}
	c := w.call("")
	c.Params = []string{"openai/gpt-5-mini"}
	var e *apierr.Error
	if _, err := w.Detailed(context.Background(), c); !errors.As(err, &e) || e.Status != 404 {
		t.Errorf("an invalid kind: %v, want 404", err)
	}
}

// Names under these aliases that the list lacks are probably typing errors.
func TestDetailedListOfAllKindsNamesCompleteAliases(t *testing.T) {
	silent, vendor := compat("https://b.example"), store.Connection{Provider: "openai", Secrets: compat("").Secrets}
	silent.Provider, silent.Data.Prefix = "openai-compatible-00000002", "silent"
	w := newWorld(compat("https://a.example"), silent, vendor)
	w.up.json("a.example", 200, `{"data":[{"id":"m"},{"id":"text-embedding-m"}]}`)
	w.up.json("api.openai.com", 200, `{"data":[{"id":"gpt-5-mini"}]}`)
	c := w.call("")
	c.Params = []string{"all"}
	got := body(w.Detailed(context.Background(), c))
	want(t, gjson.Get(got, "complete").Raw, `["c"]`)
	for id, kind := range map[string]string{"c/m": "llm", "c/text-embedding-m": "embedding", "openai/gpt-image-2": "image"} {
		want(t, gjson.Get(got, `data.#(id=="`+id+`").kind`).Str, kind)
	}
}

func TestListsHaveOwnPrices(t *testing.T) {
	prefixed := store.Connection{Provider: "openai", Data: store.ProviderData{Prefix: "team"}}
	w := newWorld(prefixed)
	w.rec.Settings.ModelPrices = map[string]string{"openai/gpt-5-mini": "7/8", "team/gpt-5": "1/2", "openai/gpt-5": "9/9"}
	c := w.call("")
	c.Params = []string{"llm"}
	list := body(w.Detailed(context.Background(), c))
	for id, input := range map[string]string{"team/gpt-5-mini": "7", "team/gpt-5": "1"} {
		want(t, gjson.Get(list, `data.#(id=="`+id+`").pricing.input`).String(), input)
		want(t, gjson.Get(body(w.Info(context.Background(), w.call("id="+id))), "pricing.input").String(), input)
	}
	w = newWorld(prefixed) // the prices of the catalogue are unchanged
	c = w.call("")
	c.Params = []string{"llm"}
	if in := gjson.Get(body(w.Detailed(context.Background(), c)), `data.#(id=="team/gpt-5-mini").pricing.input`).Num; in == 7 || in <= 0 {
		t.Errorf("the catalogue's price is %v", in)
	}
}

func TestOneModel(t *testing.T) {
	w := newWorld(store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: []string{"deepseek-flash", "org/deep/er"}}}, store.Connection{Provider: "tavily"})
	w.rec.Combos = []store.Combo{{Name: "best", Models: []string{"deepseek/deepseek-flash"}}}
	for _, params := range [][]string{{"deepseek", "deepseek-flash"}, {"deepseek", "org/deep/er"}, {"deepseek/deepseek-flash"}, {"best"}, {"tavily", "search"}} {
		c := w.call("")
		c.Params = params
		f := w.Model
		if len(params) == 1 {
			f = w.Kind
		}
		got := body(f(context.Background(), c))
		if id := gjson.Get(got, "id").Str; id != strings.Join(params, "/") || gjson.Get(got, "object").Str != "model" {
			t.Errorf("%v: %s", params, got)
		}
	}
	for _, params := range [][]string{{"deepseek", "nothing"}, {"nobody", "deepseek-flash"}, {"unknown"}, {"deepseek"}, {"imageToText"}} {
		c := w.call("")
		c.Params = params
		f := w.Model
		if len(params) == 1 {
			f = w.Kind
		}
		_, err := f(context.Background(), c)
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != 404 || e.Code != "model_not_found" || e.Type != "invalid_request_error" || e.Param != "id" {
			t.Errorf("%v: %v, want 404 model_not_found", params, err)
		}
	}
}

func TestOneModelAsksOnlyItsOwnUpstream(t *testing.T) {
	second := compat("https://b.example")
	second.Provider, second.Data.Prefix = anthropicID, "d"
	w := newWorld(compat("https://a.example"), second)
	w.up.json("a.example", 200, `[{"id":"m"}]`)
	w.up.json("b.example", 200, `[{"id":"m"}]`)
	c := w.call("")
	c.Params = []string{"d", "m"}
	want(t, gjson.Get(body(w.Model(context.Background(), c)), "owned_by").Str, "d")
	if w.up.to("a.example") != 0 || w.up.to("b.example") != 1 {
		t.Errorf("asked a %d times and b %d times", w.up.to("a.example"), w.up.to("b.example"))
	}
}

func TestWithoutAMachineTheStaticCatalogue(t *testing.T) {
	w := newWorld(compat("https://a.example"))
	c := w.call("")
	c.Machine = nil
	list := body(w.List(context.Background(), c))
	if n := len(gjson.Get(list, "data").Array()); n < 1000 {
		t.Errorf("%d models", n)
	}
	c.Params = []string{"openai", "whisper-1"}
	want(t, gjson.Get(body(w.Model(context.Background(), c)), "id").Str, "openai/whisper-1")
	c.Query = "id=openai/gpt-4o"
	want(t, gjson.Get(body(w.Info(context.Background(), c)), "endpoint").Str, "/v1/chat/completions")
	if len(w.up.Seen) != 0 {
		t.Errorf("%d calls", len(w.up.Seen))
	}
}

func TestKeyListsOnlyModelsItMayCall(t *testing.T) {
	w := newWorld(store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: []string{"a", "b", "c"}}})
	c := w.call("")
	c.Key = &store.Key{ID: "k1", Models: []string{"deepseek/a", "deepseek/c*"}}
	want(t, ids(body(w.List(context.Background(), c))), "deepseek/a deepseek/c")
	want(t, w.list(), "deepseek/a deepseek/b deepseek/c") // another key's answer is not reused
	c.Params = []string{"deepseek", "b"}
	if _, err := w.Model(context.Background(), c); err == nil {
		t.Error("a model outside the allow-list was shown")
	}
}

func TestListFollowsMachineChanges(t *testing.T) {
	w := newWorld(store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: []string{"a", "b"}}})
	want(t, w.list(), "deepseek/a deepseek/b")
	w.rec.Generation++
	w.rec.Disabled = []store.DisabledModels{{ProviderAlias: "deepseek", IDs: []string{"a"}}}
	want(t, w.list(), "deepseek/b")
}

func TestAnthropicFormOfTheList(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	w := newWorld(store.Connection{Provider: "anthropic", Data: store.ProviderData{EnabledModels: append(names, "claude-opus-5-5")}})
	get := func(query string) string {
		return body(w.List(context.Background(), w.call(query, "anthropic-version", "2023-06-01")))
	}
	for _, tt := range []struct {
		query, first, last string
		n                  int
		more               bool
	}{
		{"", "m00", "m19", 20, true},
		{"limit=1000", "m00", "claude-opus-5-5", 51, false},
		{"limit=1", "m00", "m00", 1, true},
		{"limit=10&after_id=anthropic%2Fm19", "m20", "m29", 10, true},
		{"limit=100&after_id=anthropic/m19", "m20", "claude-opus-5-5", 31, false},
		{"limit=5&before_id=anthropic/m19", "m14", "m18", 5, true},
		{"limit=50&before_id=anthropic/m19", "m00", "m18", 19, false},
	} {
		got := get(tt.query)
		data := gjson.Get(got, "data").Array()
		if len(data) != tt.n || gjson.Get(got, "has_more").Bool() != tt.more ||
			gjson.Get(got, "first_id").Str != "anthropic/"+tt.first || gjson.Get(got, "last_id").Str != "anthropic/"+tt.last ||
			data[0].Get("id").Str != "anthropic/"+tt.first {
			t.Errorf("%q: %d entries, %.300s", tt.query, len(data), got)
		}
	}
	got := get("after_id=anthropic/claude-opus-5-5")
	want(t, got, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`)
	c := w.call("", "anthropic-version", "2023-06-01")
	c.Params = []string{"anthropic", "claude-opus-5-5"}
	want(t, body(w.Model(context.Background(), c)), `{"type":"model","id":"anthropic/claude-opus-5-5","display_name":"Claude Opus 5.5","created_at":"2023-11-14T22:13:20Z","max_input_tokens":1000000,"max_tokens":128000}`)
	for _, bad := range []string{"limit=0", "limit=1001", "limit=x", "after_id=nobody", "before_id=nobody", "after_id=anthropic/m00&before_id=anthropic/m09"} {
		_, err := w.List(context.Background(), w.call(bad, "anthropic-version", "2023-06-01"))
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != 400 {
			t.Errorf("%s: %v, want 400", bad, err)
		}
	}
}

func TestInfo(t *testing.T) {
	w := newWorld(store.Connection{Provider: "openai", Data: store.ProviderData{EnabledModels: []string{"gpt-4.1", "gpt-5.5", "gpt-5-mini", "text-embedding-3-large", "tts-1", "x"}}},
		store.Connection{Provider: "anthropic", Data: store.ProviderData{EnabledModels: []string{"claude-opus-5-5"}}},
		store.Connection{Provider: "openrouter", Data: store.ProviderData{EnabledModels: []string{"google/gemini-nano-banana-2.1"}}},
		store.Connection{Provider: "tavily"})
	for query, path := range map[string]map[string]string{
		"id=anthropic/claude-opus-5-5": {
			"kind": "llm", "name": "Claude Opus 5.5", "owned_by": "anthropic", "endpoint": "/v1/chat/completions", "context_length": "1000000",
			"max_completion_tokens": "128000", "pricing": `{"input":4,"output":20,"cache_read":0.2,"cache_write":5,"cache_write_1h":8,"search":0.01}`,
			"input_modalities": `["text","image"]`, "output_modalities": `["text"]`, "capabilities": `{"tools":true,"reasoning":true,"vision":true}`, "dimensions": "",
		},
		// The prices on other terms, and those of tools, are in pricing too.
		"id=openai/gpt-5.5": {"pricing.input": "5", "pricing.search": "0.01", "pricing.file_search": "0.0025",
			"pricing.variants.0":                  `{"above_input_tokens":272000,"input":10,"output":45,"cache_read":1}`,
			`pricing.variants.#(options.0=="4g")`: `{"options":["4g"],"code":0.12}`},
		"id=openai/text-embedding-3-large":            {"kind": "embedding", "endpoint": "/v1/embeddings", "dimensions": "3072", "pricing": `{"input":0.13}`, "context_length": "", "capabilities": "{}"},
		"id=openai/tts-1":                             {"kind": "tts", "endpoint": "/v1/audio/speech", "voices_url": "/v1/audio/voices?provider=openai"},
		"id=openai/gpt-5-mini":                        {"deprecated": `{"date":"2026-12-11","successor":"gpt-6.1-terra"}`},
		"id=openai/x":                                 {"kind": "llm", "name": "openai/x", "input_modalities": "[]", "capabilities": "{}", "pricing": "", "deprecated": ""},
		"id=tavily/search":                            {"kind": "webSearch", "endpoint": "/v1/search", "search_types": `["web","news"]`, "max_results": "20"},
		"id=linkup/search":                            {"kind": "webSearch", "search_types": `["web"]`, "max_results": "100"}, // it knows no news
		"id=tavily/fetch":                             {"kind": "webFetch", "endpoint": "/v1/web/fetch", "search_types": "", "max_results": ""},
		"id=exa/search":                               {"kind": "webSearch", "owned_by": "exa"}, // not connected
		"id=openrouter/google/gemini-nano-banana-2.1": {"kind": "llm"},
		"id=openrouter/google/gemini-nano-banana-2.1&kind=image": {"kind": "image", "endpoint": "/v1/images/generations"},
		"id=openai/tts-1&kind=llm":                               {"kind": "tts"}, // kind only picks between two
	} {
		got := body(w.Info(context.Background(), w.call(query)))
		for field, value := range path {
			if s := gjson.Get(got, field).String(); s != value {
				t.Errorf("%s: %s = %q, want %q", query, field, s, value)
			}
		}
		if !gjson.Get(got, "params").IsArray() {
			t.Errorf("%s: %s", query, got)
		}
	}
	w2 := newWorld()
	got := body(w2.Info(context.Background(), w2.call("id=el/music_v1")))
	if e := gjson.Get(got, "endpoint"); !e.Exists() || e.Type != gjson.Null {
		t.Errorf("music: %s", got)
	}
	for query, status := range map[string]int{"": 400, "id=": 400, "kind=llm": 400, "id=openai/unheard": 404, "id=brave/fetch": 404, "id=nobody/search": 404} {
		_, err := w.Info(context.Background(), w.call(query))
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != status || e.Param != "id" {
			t.Errorf("%q: %v, want %d", query, err, status)
		}
	}
}

// big is a machine with 5 connections that name models models between them.
func big(models int) *world {
	var conns []store.Connection
	for i := range 5 {
		c := compat("https://a.example")
		c.Provider = fmt.Sprintf("openai-compatible-%08d", i)
		c.Data.Prefix = fmt.Sprintf("p%d", i)
		for j := range models / 5 {
			c.Data.EnabledModels = append(c.Data.EnabledModels, fmt.Sprintf("vendor/some-model-%d-instruct", j))
		}
		conns = append(conns, c)
	}
	return newWorld(conns...)
}

func TestListCostIsLinear(t *testing.T) {
	cost := func(models int) (allocations, bytes uint64) {
		const runs = 5
		w := big(models)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			List(w.rec, nil, []catalog.Kind{catalog.LLM}, nil)
		}
		runtime.ReadMemStats(&after)
		return (after.Mallocs - before.Mallocs) / runs, (after.TotalAlloc - before.TotalAlloc) / runs
	}
	// Quadratic work would be 64 times as much. Tables and lists grow by
	// doubling, so up to twice the bytes may come on top of 8 times.
	allocations, bytes := cost(1000)
	manyAllocations, manyBytes := cost(8000)
	if 2*manyAllocations > 17*allocations {
		t.Errorf("%d allocations for 1,000 models and %d for 8,000", allocations, manyAllocations)
	}
	if manyBytes > 16*bytes {
		t.Errorf("%d bytes for 1,000 models and %d for 8,000", bytes, manyBytes)
	}
}

func TestCachedListIsNotRebuilt(t *testing.T) {
	w := big(1000)
	c := w.call("")
	first, _ := w.List(context.Background(), c)
	if n := testing.AllocsPerRun(10, func() { w.List(context.Background(), c) }); n > 10 {
		t.Errorf("%v allocations for a cached answer", n)
	}
	second, _ := w.List(context.Background(), c)
	a, b := first.Body.(*stream.Bytes).All(), second.Body.(*stream.Bytes).All()
	if &a[0] != &b[0] {
		t.Error("the bytes were built again")
	}
	if h := second.Header.Get("content-type"); h != "application/json" {
		t.Errorf("content-type %q", h)
	}
}

func benchList(b *testing.B, w *world, fresh bool) {
	c := &auth.Call{Request: &httpmsg.Request{Method: "GET"}, Machine: snapshot.New(w.rec), MachineID: w.rec.ID}
	b.ReportAllocs()
	for b.Loop() {
		if fresh {
			w.cached, w.order, w.bytes = nil, nil, 0
		}
		if _, err := w.List(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListCold1000(b *testing.B)   { benchList(b, big(1000), true) }
func BenchmarkListCold8000(b *testing.B)   { benchList(b, big(8000), true) }
func BenchmarkListCached1000(b *testing.B) { benchList(b, big(1000), false) }

func BenchmarkListStaticCold(b *testing.B) {
	w := newWorld()
	benchList(b, w, true)
}
