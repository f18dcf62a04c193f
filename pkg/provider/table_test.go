package provider

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/store"
	"weir/pkg/wire/redact"
)

// row is a provider as testdata/providers.golden.json shows it.
type row struct {
	ID, Alias, Name string
	Dialect         string `json:",omitempty"` // of its chat
	Cloud           Cloud  `json:",omitzero"`
	BaseURL         string
	Auth            Auth              `json:",omitzero"`
	Header          [][2]string       `json:",omitempty"`
	OptHeader       [][2]string       `json:",omitempty"`
	Kinds           []catalog.Kind    `json:",omitempty"`
	Endpoints       map[string]string // method and URL
	Models          List              `json:",omitzero"`
	Alt             []row             `json:",omitempty"`
	Vars            []string          `json:",omitempty"`
	Flags           []string          `json:",omitempty"`
}

func endpointsOf(t *testing.T, id, base string, list []Endpoint) map[string]string {
	out := map[string]string{}
	for i := range list {
		e := &list[i]
		if out[e.Name] != "" {
			t.Errorf("%s: endpoint %s twice", id, e.Name)
		}
		out[e.Name] = methodOf(e) + " " + e.on(base)
	}
	return out
}

// The golden file shows every provider with complete URLs: a change of the table is
// reviewed there. GOLDEN=update go test ./pkg/provider writes it.
func TestProviderTable(t *testing.T) {
	rows := []row{}
	for _, d := range All() {
		r := row{
			ID: d.ID, Alias: d.Alias, Name: d.Name, Cloud: d.Cloud, BaseURL: d.BaseURL, Auth: d.Auth, Header: d.Header, OptHeader: d.OptHeader,
			Kinds: d.Kinds, Endpoints: endpointsOf(t, d.ID, d.BaseURL, d.Endpoints), Models: d.Models, Vars: d.Vars,
		}
		if d.Serves(d.Dialect.Endpoint()) {
			r.Dialect = d.Dialect.String()
		}
		for _, b := range d.Alt {
			r.Alt = append(r.Alt, row{BaseURL: b.URL, Auth: b.Auth, Endpoints: endpointsOf(t, d.ID, b.URL, b.Endpoints)})
		}
		for _, f := range []struct {
			name string
			set  bool
		}{{"search", d.Search}, {"news", d.News}, {"fetch", d.Fetch}, {"local", d.Local}, {"rebase", d.Rebase}, {"modelPath", d.ModelPath}, {"spentInside", d.SpentInside}} {
			if f.set {
				r.Flags = append(r.Flags, f.name)
			}
		}
		rows = append(rows, r)
	}
	golden.JSON(t, "providers", rows)
}

var braces = regexp.MustCompile(`\{[^}]*\}`)

func TestEveryRowIsComplete(t *testing.T) {
	// Filled by the connection, by the model, or by the endpoint that calls.
	known := map[string]bool{
		"{model}": true, "{deployment}": true, "{owner}": true, "{name}": true, // the model
		"{api_version}": true,                                                                // a connection may give it
		"{id}":          true, "{request_id}": true, "{voice_id}": true, "{operation}": true, // the endpoint
	}
	alias, id := map[string]bool{}, map[string]bool{}
	for _, d := range All() {
		if id[d.ID] || alias[d.Alias] || d.ID == "" || d.Name == "" || !CheckAlias(d.Alias) || !CheckAlias(d.ID) {
			t.Errorf("%s: id and alias %s must be usable and unique", d.ID, d.Alias)
		}
		id[d.ID], alias[d.Alias] = true, true
		if other := ByAlias(d.ID); other != nil && other != d {
			t.Errorf("%s: its id is the alias of %s", d.ID, other.ID)
		}
		if len(d.Kinds) == 0 || len(d.Endpoints) == 0 {
			t.Errorf("%s: no kinds or no endpoints", d.ID)
		}
		for _, p := range d.KeyPrefixes {
			if key := p + strings.Repeat("aB3", 20); redact.Patterns(key) != "***" {
				t.Errorf("%s: %s is not masked (pkg/wire/redact/patterns.go)", d.ID, key)
			}
			for _, other := range All() {
				if other != d && slices.ContainsFunc(other.KeyPrefixes, func(q string) bool { return strings.HasPrefix(p, q) }) {
					t.Errorf("%s: keys that begin with %s may be those of %s", d.ID, p, other.ID)
				}
			}
		}
		if needsKey := d.Auth.Scheme != None && !d.Auth.Optional; needsKey && !strings.HasPrefix(d.KeyURL, "https://") {
			t.Errorf("%s: no page where its keys are created: %q", d.ID, d.KeyURL)
		}
		if p := d.StatusPage; p != "" && (!strings.HasPrefix(p, "https://") || strings.Count(p, "/") != 2) {
			t.Errorf("%s: its status page is not an origin: %q", d.ID, p)
		}
		conn := &store.Connection{Data: store.ProviderData{Vars: map[string]string{"api_version": "2025-01-01"}}}
		for _, v := range d.Vars {
			conn.Data.Vars[v] = "abc1"
		}
		check := func(url string) {
			for _, b := range braces.FindAllString(url, -1) {
				if !known[b] && !slices.Contains(d.Vars, strings.Trim(b, "{}")) {
					t.Errorf("%s: nothing fills %s in %s", d.ID, b, url)
				}
			}
		}
		parts := []Part{{Name: "id", Value: "j1"}, {Name: "request_id", Value: "r1"}, {Name: "voice_id", Value: "v1"}, {Name: "operation", Value: "models/x/operations/y"}}
		for _, e := range d.Endpoints {
			check(e.on(d.BaseURL))
			_, url, err := d.Endpoint(conn, e.Name, "org/model-1", parts...)
			if err != nil {
				t.Errorf("%s %s: %v", d.ID, e.Name, err)
				continue
			}
			if strings.ContainsAny(url, "{}") {
				t.Errorf("%s %s: unfilled address %s", d.ID, e.Name, url)
			}
			bare, _, _ := strings.Cut(url, "?")
			if err := CheckBaseURL(bare, d.Local); err != nil {
				t.Errorf("%s %s: %s: %v", d.ID, e.Name, url, err)
			}
		}
		for i := range d.Alt {
			for _, e := range d.Alt[i].Endpoints {
				check(e.on(d.Alt[i].URL))
				if _, _, err := d.EndpointOf(&d.Alt[i], conn, e.Name, "m"); err != nil {
					t.Errorf("%s alt %s: %v", d.ID, e.Name, err)
				}
			}
		}
		if base, err := d.OwnBase(conn); err != nil || CheckBaseURL(base, d.Local) != nil {
			t.Errorf("%s: base %s: %v", d.ID, base, err)
		}
		for _, k := range []struct {
			kind catalog.Kind
			name string
		}{{catalog.Embedding, "embeddings"}, {catalog.Rerank, "rerank"}, {catalog.WebSearch, "search"}, {catalog.WebFetch, "fetch"}, {catalog.Image, "images"}, {catalog.TTS, "speech"}, {catalog.STT, "transcriptions"}, {catalog.Video, "videos"}} {
			// Replicate lists its speech models; no audio endpoint calls them.
			if d.Has(k.kind) && !d.Serves(k.name) && (d.ID != "replicate" || k.kind != catalog.TTS && k.kind != catalog.STT) {
				t.Errorf("%s: serves %s without the endpoint %s", d.ID, k.kind, k.name)
			}
		}
		if d.Search != (d.Results > 0) || d.News && !d.Search {
			t.Errorf("%s: search %v with %d results, news %v", d.ID, d.Search, d.Results, d.News)
		}
		if d.Search != d.Has(catalog.WebSearch) || d.Fetch != d.Has(catalog.WebFetch) {
			t.Errorf("%s: search %v, fetch %v against kinds %v", d.ID, d.Search, d.Fetch, d.Kinds)
		}
		if d.Embed != "" && !d.Serves("embeddings") {
			t.Errorf("%s: an embeddings shape without the endpoint", d.ID)
		}
		for _, h := range append(slices.Clone(d.Header), d.OptHeader...) {
			if !SafeName(h[0]) {
				t.Errorf("%s: header name %q", d.ID, h[0])
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for _, d := range All() {
		if Lookup(d.ID) != d || ByAlias(d.Alias) != d {
			t.Errorf("%s is not found by its id or alias", d.ID)
		}
	}
	tests := []struct {
		id      string
		dialect llm.Dialect
		found   bool
	}{
		{"openai-compatible-0123abcd", llm.Chat, true},
		{"openai-compatible_0123ABCDef99", llm.Chat, true},
		{"openai-compatible-09afAF09", llm.Chat, true},
		{"openai-compatible-0123456/", llm.Chat, false},
		{"openai-compatible-0123456:", llm.Chat, false},
		{"openai-compatible-0123456`", llm.Chat, false},
		{"openai-compatible-0123456@", llm.Chat, false},
		{"openai-compatible-0123456G", llm.Chat, false},
		{"openai-compatible-" + strings.Repeat("a", 78), llm.Chat, true},
		{"openai-compatible-" + strings.Repeat("a", 79), llm.Chat, false},
		{"anthropic-compatible-deadbeef", llm.Messages, true},
		{"anthropic-compatible_deadbeef", llm.Messages, true},
		{"openai-compatible-0123abc", llm.Chat, false},
		{"openai-compatible-0123abcg", llm.Chat, false},
		{"openai-compatible0123abcd9", llm.Chat, false},
		{"openai-compatible", llm.Chat, false},
		{"", llm.Chat, false},
		{"OpenAI", llm.Chat, false},
		{"openai-compatible-" + strings.Repeat("a", 90), llm.Chat, false},
	}
	for _, tt := range tests {
		d := Lookup(tt.id)
		if (d != nil) != tt.found || d != nil && (d.Dialect != tt.dialect || d.ID != tt.id || !d.Compatible) {
			t.Errorf("%q: got %+v, want found %v, %s", tt.id, d, tt.found, tt.dialect)
		}
	}
	if openAILike.ID != "" || anthropicLike.ID != "" {
		t.Error("a made descriptor changed the template")
	}
}

func TestHasKind(t *testing.T) {
	for _, tt := range []struct {
		kinds []catalog.Kind
		kind  catalog.Kind
		want  bool
	}{
		{nil, catalog.LLM, true},
		{nil, catalog.Embedding, false},
		{[]catalog.Kind{catalog.Embedding, catalog.Image}, catalog.Image, true},
		{[]catalog.Kind{catalog.Embedding, catalog.Image}, catalog.LLM, false},
	} {
		if got := (&Descriptor{Kinds: tt.kinds}).Has(tt.kind); got != tt.want {
			t.Errorf("%v of %v: got %v", tt.kind, tt.kinds, got)
		}
	}
}

func TestCallable(t *testing.T) {
	for _, tt := range []struct {
		provider string
		kind     catalog.Kind
		model    string
		want     bool
	}{
		{"openai", catalog.TTS, "tts-1", true},
		{"runway", catalog.TTS, "eleven_v3", false},
		{"runway", catalog.TTS, "eleven_multilingual_v2", true},
		{"runway", catalog.Video, "eleven_v3", true},
		{"elevenlabs", catalog.TTS, "eleven_v3", true},
		{"minimax", catalog.STT, "any", false},
		{"minimax", catalog.TTS, "any", true},
	} {
		if got := Lookup(tt.provider).Callable(tt.kind, tt.model); got != tt.want {
			t.Errorf("%s %s %s: got %v", tt.provider, tt.kind, tt.model, got)
		}
	}
}
