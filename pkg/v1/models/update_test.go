package models

import (
	"context"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/store"
)

// of returns a call of the machine whose operator has a source with these models.
func (w *world) of(u *catalog.Update, params ...string) *auth.Call {
	c := w.call("")
	c.Machine.SetCatalog(u)
	c.Params = params
	return c
}

func TestModelsOfTheSourceAreListed(t *testing.T) {
	u := &catalog.Update{
		FetchedAt: 1, Text: "openai/gpt-next\t1/2\n",
		ModelText: "nvidia/nvidia/next\tl\t9000\nopenai/embed-next\te\t\t\t\t\t\t\t1024\nopenai/gpt-next\tl\t500000\t64000\ti\tt\tTR\t\t\tGPT Next\nxai/grok-next\tl\n",
	}
	listed := func(w *world, segment string) string {
		t.Helper()
		return body(w.Kind(context.Background(), w.of(u, segment)))
	}
	has := func(list, id string, want bool) {
		t.Helper()
		if got := strings.Contains(" "+ids(list)+" ", " "+id+" "); got != want {
			t.Errorf("%s is listed: %t", id, got)
		}
	}
	w := newWorld(store.Connection{Provider: "openai"}, store.Connection{Provider: "nvidia"})
	chats, embeddings := listed(w, "llm"), listed(w, "embedding")
	has(chats, "openai/gpt-next", true)
	has(chats, "openai/gpt-5", true)
	has(chats, "nvidia/next", true)
	has(chats, "openai/embed-next", false)
	has(chats, "xai/grok-next", false)
	has(embeddings, "openai/embed-next", true)
	entry := gjson.Get(body(w.Detailed(context.Background(), w.of(u, "llm"))), `data.#(id=="openai/gpt-next")`)
	if entry.Get("kind").Str != "llm" || entry.Get("context_length").Int() != 500_000 || entry.Get("pricing.input").Num != 1 {
		t.Error(entry.Raw)
	}
	for id, want := range map[string]int64{"openai/gpt-next": 500_000, "nvidia/next": 9000} {
		c := w.of(u)
		c.Query = "id=" + id
		if got := body(w.Info(context.Background(), c)); gjson.Get(got, "context_length").Int() != want {
			t.Error(got)
		}
	}
	// The cached list is not that of another refresh.
	u = &catalog.Update{FetchedAt: 2, ModelText: "openai/gpt-later\tl\n"}
	chats = listed(w, "llm")
	has(chats, "openai/gpt-next", false)
	has(chats, "openai/gpt-later", true)
	// A machine without connections has the whole catalogue.
	has(listed(newWorld(), "llm"), "openai/gpt-later", true)
	// Own lists of models stay.
	w = newWorld(store.Connection{Provider: "openai", Data: store.ProviderData{EnabledModels: []string{"gpt-5", "gpt-later"}}})
	want(t, ids(listed(w, "llm")), "openai/gpt-5 openai/gpt-later")
	w.rec.Disabled = []store.DisabledModels{{ProviderAlias: "openai", IDs: []string{"gpt-later"}}}
	w.rec.Generation++
	want(t, ids(listed(w, "llm")), "openai/gpt-5")
}

// An upstream's own list names models without kinds; the source knows them.
func TestModelsOfTheSourceDescribeListedOnes(t *testing.T) {
	w := newWorld(store.Connection{Provider: "openai"})
	w.up.json("/v1/models", 200, `{"object":"list","data":[{"id":"next"},{"id":"other"}]}`)
	w.rec.Combos = []store.Combo{{Name: "both", Models: []string{"openai/chat-next", "chat-next"}}}
	u := &catalog.Update{FetchedAt: 1, ModelText: "openai/chat-next\tl\t7000\t500\t\t\tT\nopenai/next\te\n"}
	want(t, ids(body(w.Kind(context.Background(), w.of(u, "embedding")))), "openai/next openai/text-embedding-3-large openai/text-embedding-3-small openai/text-embedding-ada-002")
	chats := body(w.Kind(context.Background(), w.of(u, "llm")))
	if combo := gjson.Get(chats, `data.#(id=="both")`); combo.Get("context_length").Int() != 7000 {
		t.Error(combo.Raw)
	}
	if got := ids(chats); strings.Contains(got, "openai/next") || !strings.Contains(got, "openai/other") {
		t.Error(got)
	}
	c := w.of(u)
	got := body(w.Connection(context.Background(), c, &w.rec.Connections[0]))
	if e := gjson.Get(got, `data.#(id=="next")`); e.Get("kind").Str != "embedding" {
		t.Error(got)
	}
}

// The kind that the source states for a model of the upstream's own list hides none of the
// build's models of that kind.
func TestModelsOfTheSourceHideNoneOfTheBuild(t *testing.T) {
	listed := func(u *catalog.Update, kind string) []string {
		w := newWorld(store.Connection{Provider: "openai"})
		w.up.json("/v1/models", 200, `{"object":"list","data":[{"id":"gpt-5"},{"id":"gpt-6"}]}`)
		return strings.Fields(ids(body(w.Kind(context.Background(), w.of(u, kind)))))
	}
	for kind, letter := range map[string]string{"image": "i", "tts": "t", "stt": "s", "embedding": "e"} {
		before := listed(nil, kind)
		after := listed(&catalog.Update{FetchedAt: 1, ModelText: "openai/gpt-6\t" + letter + "\n"}, kind)
		if len(before) == 0 || len(after) != len(before)+1 {
			t.Errorf("%s: %v became %v", kind, before, after)
		}
	}
}

// A list omits a provider's id and the prefix of a connection in front of an id. An added
// model whose id begins with one does not replace the build's.
func TestModelsOfTheSourceDoNotReplaceEntries(t *testing.T) {
	for _, tt := range []struct{ provider, prefix, entry, added string }{
		{"perplexity", "", "pplx/sonar", "pplx/perplexity/sonar"},
		{"openai", "az", "az/gpt-5", "openai/az/gpt-5"},
	} {
		entry := func(u *catalog.Update) string {
			w := newWorld(store.Connection{Provider: tt.provider, Data: store.ProviderData{Prefix: tt.prefix}})
			w.up.json("/models", 500, `{}`)
			return gjson.Get(body(w.Detailed(context.Background(), w.of(u, "llm"))), `data.#(id=="`+tt.entry+`")`).Raw
		}
		before := entry(nil)
		if after := entry(&catalog.Update{FetchedAt: 1, ModelText: tt.added + "\tl\t4000\t4000\n"}); before == "" || after != before {
			t.Errorf("%s became %s", before, after)
		}
	}
}
