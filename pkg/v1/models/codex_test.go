package models

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
)

// Codex refuses a list of which one entry lacks a field.
func TestCodexList(t *testing.T) {
	w := newWorld(
		store.Connection{Provider: "openai", Data: store.ProviderData{EnabledModels: []string{"gpt-4.1", "text-embedding-3-small"}}},
		store.Connection{Provider: "anthropic", Data: store.ProviderData{EnabledModels: []string{"claude-sonnet-4-5", "unknown"}}},
	)
	resp, err := w.List(context.Background(), w.call("client_version=0.160.0"))
	if err != nil {
		t.Fatal(err)
	}
	tag := resp.Header.Get("etag")
	got := body(resp, nil)
	if !gjson.Valid(got) || gjson.Get(got, "models.#").Int() != 3 || gjson.Get(got, "data").Exists() {
		t.Fatalf("got %s", got)
	}
	for i, m := range gjson.Get(got, "models").Array() {
		for _, field := range strings.Fields("slug display_name supported_reasoning_levels shell_type visibility supported_in_api priority upgrade base_instructions supports_reasoning_summaries support_verbosity truncation_policy.mode truncation_policy.limit supports_parallel_tool_calls experimental_supported_tools input_modalities") {
			if !m.Get(field).Exists() {
				t.Errorf("entry %d has no %s: %s", i, field, m.Raw)
			}
		}
		if m.Get("priority").Int() != int64(i) || len(m.Get("base_instructions").Str) < 100 {
			t.Errorf("got %s", m.Raw)
		}
	}
	claude := gjson.Get(got, `models.#(slug=="anthropic/claude-sonnet-4-5")`)
	if claude.Get("context_window").Int() < 100_000 || claude.Get("supported_reasoning_levels.#").Int() != 3 || claude.Get("default_reasoning_level").Str != "medium" || claude.Get("input_modalities").Raw != `["text","image"]` {
		t.Errorf("got %s", claude.Raw)
	}
	if other := gjson.Get(got, `models.#(slug=="anthropic/unknown")`); other.Get("context_window").Exists() || other.Get("supported_reasoning_levels").Raw != "[]" {
		t.Errorf("got %s", other.Raw)
	}
	again, _ := w.List(context.Background(), w.call("client_version=0.160.0"))
	if tag == "" || again.Header.Get("etag") != tag {
		t.Errorf("etag %q, then %q", tag, again.Header.Get("etag"))
	}
	if plain, _ := w.List(context.Background(), w.call("")); plain.Header.Get("etag") != "" || gjson.Get(body(plain, nil), "object").Str != "list" {
		t.Error("the plain list has changed")
	}
}

// Codex reads at most 1 MiB.
func TestCodexListIsBounded(t *testing.T) {
	var ids []string
	for i := range 3000 {
		ids = append(ids, fmt.Sprintf("model-%04d", i))
	}
	w := newWorld(store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: ids}})
	got := body(w.List(context.Background(), w.call("client_version=1")))
	if n := gjson.Get(got, "models.#").Int(); !gjson.Valid(got) || len(got) > 1<<20 || n < 300 || n >= 3000 {
		t.Errorf("%d models in %d bytes", n, len(got))
	}
}
