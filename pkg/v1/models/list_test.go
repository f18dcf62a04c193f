package models

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/pkg/catalog"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// listCase is testdata/list/<rule>.json.
type listCase struct {
	Kinds   []catalog.Kind
	Machine *store.Machine
	Live    map[string]*Live
}

// Each case is named for the rule of docs/reference/spec.md, 4.1 that it
// proves.
func TestListRules(t *testing.T) {
	names, _ := filepath.Glob("testdata/list/*.json")
	if len(names) < 30 {
		t.Fatalf("%d files", len(names))
	}
	for _, file := range names {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c listCase
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			list := List(c.Machine, nil, c.Kinds, c.Live)
			body := appendList(nil, list, 1_700_000_000)
			if !json.Valid(body) {
				t.Fatalf("not JSON: %s", body)
			}
			golden.JSON(t, "list/"+name, json.RawMessage(body))
		})
	}
}

// An API key of Vertex AI calls Google's own models only.
func TestModelsOfVertexWithAKey(t *testing.T) {
	key := store.Connection{ID: "a", Provider: "vertex", Secrets: map[string]secret.Sealed{store.APIKey: "sealed"}}
	file := store.Connection{ID: "b", Provider: "vertex", Secrets: map[string]secret.Sealed{store.ServiceAccount: "sealed"}}
	for _, tt := range []struct {
		conns []store.Connection
		all   bool
	}{{[]store.Connection{key}, false}, {[]store.Connection{file}, true}, {[]store.Connection{key, file}, true}} {
		google, others := 0, 0
		for _, e := range List(&store.Machine{Connections: tt.conns}, nil, []catalog.Kind{catalog.LLM}, nil) {
			if id := strings.TrimPrefix(e.ID, "vertex/"); strings.Contains(id, "claude") || strings.Contains(id, "/") {
				others++
			} else {
				google++
			}
		}
		if google == 0 || (others > 0) != tt.all {
			t.Errorf("%d accounts: %d models of Google, %d others", len(tt.conns), google, others)
		}
		for kind, want := range map[catalog.Kind]bool{catalog.Image: true, catalog.TTS: true, catalog.Embedding: tt.all, catalog.Video: tt.all} {
			if list := List(&store.Machine{Connections: tt.conns}, nil, []catalog.Kind{kind}, nil); len(list) > 0 != want {
				t.Errorf("%d accounts: %d of kind %s", len(tt.conns), len(list), kind)
			}
		}
	}
}

func TestStaticCatalogueWithoutAMachine(t *testing.T) {
	list := List(nil, nil, []catalog.Kind{catalog.LLM}, nil)
	if len(list) < 1000 {
		t.Errorf("%d chat models, want at least 1000", len(list))
	}
	if list[0].OwnedBy != "openai" {
		t.Errorf("the list begins with %+v, want the first row of the table", list[0])
	}
	seen := map[string]bool{}
	for _, e := range list {
		if seen[e.ID] || e.ID == "" {
			t.Errorf("%q is listed twice", e.ID)
		}
		seen[e.ID] = true
		if e.Kind != catalog.LLM {
			t.Errorf("%+v among the chat models", e)
		}
	}
}

func TestStringsAreEscaped(t *testing.T) {
	m := &store.Machine{Combos: []store.Combo{{Name: "a\"b\\c\n<é\x00"}}}
	body := appendList(nil, List(m, nil, []catalog.Kind{catalog.LLM}, nil)[:1], 1)
	var got struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &got); err != nil || got.Data[0].ID != m.Combos[0].Name {
		t.Errorf("%s: %v", body, err)
	}
}
