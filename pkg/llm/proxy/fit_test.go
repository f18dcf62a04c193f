package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

// combo adds a combo "mix", and custom models with the contexts of sizes.
func (w *world) combo(models []string, on map[string]string, sizes map[string]int) {
	rec := *w.machine.Machine
	rec.Combos = append(rec.Combos, store.Combo{Name: "mix", Models: models, On: on})
	for name, size := range sizes {
		alias, id, _ := strings.Cut(name, "/")
		rec.CustomModels = append(rec.CustomModels, store.CustomModel{ID: id, ProviderAlias: alias, ContextLength: size})
	}
	w.machine = snapshot.New(&rec)
}

func TestMembersWithASmallContextAreNotAsked(t *testing.T) {
	sizes := map[string]int{"up/small": 1000, "up/middle": 4000, "up/large": 100_000}
	for _, tt := range []struct {
		name   string
		models string
		on     map[string]string
		tokens int // of the request, about
		header httpmsg.Header
		want   string // the first model that is asked
	}{
		{name: "fits", models: "up/small up/large", tokens: 500, want: "small"},
		{name: "does not fit", models: "up/small up/large", tokens: 3000, want: "large"},
		{name: "within the error of the estimate", models: "up/small up/large", tokens: 1150, want: "small"},
		{name: "two do not fit", models: "up/small up/middle up/large", tokens: 9000, want: "large"},
		{name: "the last is asked in any case", models: "up/large up/small", tokens: 200_000, want: "small"},
		{name: "an unknown context", models: "up/other up/large", tokens: 9000, want: "other"},
		{name: "the combo stops", models: "up/small up/large", on: map[string]string{"context_length": "stop"}, tokens: 3000, want: "small"},
		{name: "a single model", models: "up/small", tokens: 3000, want: "small"},
		{name: "Claude's large context", models: "cl/claude-sonnet-4-5 up/large", tokens: 300_000, header: httpmsg.Header{{Name: "anthropic-beta", Value: "context-1m-2025-08-07"}}, want: "claude-sonnet-4-5"},
		{name: "the account is named", models: "up/small cl/claude-sonnet-4-5", tokens: 3000, header: httpmsg.Header{{Name: "x-connection-id", Value: "c-up"}}, want: "small"},
		{name: "the catalogue's context", models: "cl/claude-sonnet-4-5 up/large", tokens: 300_000, want: "large"},
	} {
		w := newWorld(t, usual...)
		w.combo(strings.Fields(tt.models), tt.on, sizes)
		body := fmt.Sprintf(`{"model":"mix","messages":[{"role":"user","content":%q}]}`, strings.Repeat("four ", tt.tokens))
		asked := ""
		w.Answer = func(s *fake.Seen) fake.Answer {
			if asked == "" {
				asked = gjson.Get(s.Body, "model").Str
			}
			return fake.Answer{Status: 400, Body: `{"error":{"message":"too long","code":"context_length_exceeded"}}`}
		}
		if res, err := w.ask(llm.Chat, body, tt.header...); err == nil || res != nil {
			t.Fatalf("%s: answered", tt.name)
		}
		if asked != tt.want {
			t.Errorf("%s: asked %q, want %q", tt.name, asked, tt.want)
		}
	}
}
