package models

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

func claudeWorld() *world {
	w := newWorld(
		store.Connection{Provider: "openai", Data: store.ProviderData{EnabledModels: []string{"gpt-4.1", "text-embedding-3-large", "x"}}},
		store.Connection{Provider: "anthropic", Data: store.ProviderData{EnabledModels: []string{"claude-opus-5-5"}}},
		store.Connection{Provider: "openai", Data: store.ProviderData{Prefix: "work"}},
		store.Connection{Provider: compatibleID, Data: store.ProviderData{Prefix: "cc", EnabledModels: []string{"claude-opus-5-5"}}},
	)
	w.rec.Combos = []store.Combo{
		{Name: "best", Models: []string{"openai/gpt-4.1"}}, {Name: "Claude-team", Models: []string{"openai/gpt-4.1"}},
		{Name: "vectors", Kind: "embedding", Models: []string{"openai/text-embedding-3-large"}},
	}
	w.rec.ModelAliases = map[string]string{
		"fast": "openai/gpt-4.1", "claude-quick": "openai/x", "mail": "work/gpt-4.1", "embed": "openai/text-embedding-3-large",
		"best": "openai/x", "nowhere": "nobody/x", "off": "openai/hidden",
	}
	w.rec.Disabled = []store.DisabledModels{{ProviderAlias: "openai", IDs: []string{"hidden"}}}
	return w
}

func TestClaudeNamesAreListedInAnthropicsFormOnly(t *testing.T) {
	w := claudeWorld()
	get := func(query string, header ...string) string {
		return body(w.List(context.Background(), w.call(query, header...)))
	}
	plain := w.list()
	if strings.Contains(plain, "claude-weir/") || strings.Contains(plain, "claude-quick") {
		t.Errorf("the plain list: %s", plain)
	}
	const names = "claude-quick claude-weir/fast claude-weir/mail claude-weir/best Claude-team claude-weir/openai/gpt-4.1 claude-weir/openai/x anthropic/claude-opus-5-5 claude-weir/cc/claude-opus-5-5"
	const others = " best openai/gpt-4.1 openai/x cc/claude-opus-5-5"
	want(t, ids(get("limit=1000")), names+others)
	want(t, ids(get("limit=1000", "anthropic-version", "2023-06-01")), names+others)
	got := get("limit=1000")
	for id, label := range map[string]string{
		"claude-quick": "claude-quick", "claude-weir/fast": "fast", "claude-weir/best": "best", "claude-weir/openai/gpt-4.1": "GPT-4.1 (openai)",
		"claude-weir/openai/x": "openai/x", "anthropic/claude-opus-5-5": "Claude Opus 5.5", "openai/gpt-4.1": "GPT-4.1",
	} {
		if name := gjson.Get(got, `data.#(id=="`+id+`").display_name`).Str; name != label {
			t.Errorf("%s is shown as %q, want %q", id, name, label)
		}
	}
	// A gateway that builds a list of its own gets the models once.
	want(t, ids(get("limit=1000", "anthropic-version", "2023-06-01", InternalFetch, "1")), strings.TrimSpace(w.list(InternalFetch, "1")))
	// Other kinds are not for Claude Code.
	c := w.call("limit=1000")
	c.Params = []string{"embedding"}
	want(t, ids(body(w.Kind(context.Background(), c))), "vectors openai/text-embedding-3-large")
}

// A page has 1,000 entries at most: with many models, all on it are shown.
func TestDiscoveryReadsNamesThatItShows(t *testing.T) {
	var models []string
	for i := range 800 {
		models = append(models, fmt.Sprintf("m%03d", i))
	}
	w := newWorld(store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: models}})
	got := strings.Fields(ids(body(w.List(context.Background(), w.call("limit=1000")))))
	if n := len(got); n != 1000 || got[799] != "claude-weir/deepseek/m799" || got[800] != "deepseek/m000" {
		t.Errorf("%d entries, %s, %s", n, got[799], got[800])
	}
}

func TestClaudeNamesFollowTheKey(t *testing.T) {
	w := claudeWorld()
	for _, tt := range []struct{ models, want string }{
		{"fast", "claude-weir/fast"},
		{"openai/gpt-4.1", "claude-weir/fast claude-weir/openai/gpt-4.1 openai/gpt-4.1"},
		{"claude*", "claude-quick"},
		{"best anthropic/*", "claude-weir/best anthropic/claude-opus-5-5 best"},
	} {
		c := w.call("limit=1000")
		c.Key = &store.Key{ID: tt.models, Models: strings.Fields(tt.models)}
		want(t, ids(body(w.List(context.Background(), c))), tt.want)
	}
}

func TestClaudeNamesAreFound(t *testing.T) {
	w := claudeWorld()
	for _, tt := range []struct{ id, want string }{
		{"claude-weir/openai/gpt-4.1", "GPT-4.1 (openai)"},
		{"claude-weir/fast", "fast"},
		{"claude-weir/mail", "mail"},
		{"claude-weir/best", "best"},
		{"claude-weir/cc/claude-opus-5-5", "cc/claude-opus-5-5"},
		{"claude-quick", "claude-quick"},
		{"claude-weir/embed", "404"},
		{"claude-weir/nowhere", "404"},
		{"claude-weir/off", "404"},
		{"claude-weir/openai/hidden", "404"},
		{"claude-weir/", "404"},
		{"fast", "404"},
	} {
		c := w.call("", "anthropic-version", "2023-06-01")
		c.Params = strings.Split(tt.id, "/")
		resp, err := w.Model(context.Background(), c)
		var e *apierr.Error
		if errors.As(err, &e) {
			want(t, fmt.Sprint(e.Status), tt.want)
			continue
		}
		got := body(resp, err)
		want(t, gjson.Get(got, "id").Str, tt.id)
		want(t, gjson.Get(got, "display_name").Str, tt.want)
	}
	for _, id := range []string{"claude-weir/openai/gpt-4.1", "claude-weir/fast"} {
		got := body(w.Info(context.Background(), w.call("id="+id)))
		if gjson.Get(got, "id").Str != id || gjson.Get(got, "context_length").Int() == 0 {
			t.Errorf("%s: %s", id, got)
		}
	}
}
