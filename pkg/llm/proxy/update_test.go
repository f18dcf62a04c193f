package proxy

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/catalog"
	"weir/pkg/llm"
)

func TestLimitsOfAModelOfTheSourceAreUsed(t *testing.T) {
	u := &catalog.Update{FetchedAt: 1, ModelText: "anthropic/claude-next\tl\t1000\t777\nopenai/gpt-next\tl\t1000\n"}
	long := `{"model":"mix","messages":[{"role":"user","content":"` + strings.Repeat("four ", 3000) + `"}]}`
	for _, tt := range []struct {
		name, body, asked string
		models            []string
		update            *catalog.Update
		maxTokens         int64
	}{
		{"a context that is too small", long, "large", []string{"oa/gpt-next", "up/large"}, u, 0},
		{"without the source", long, "gpt-next", []string{"oa/gpt-next", "up/large"}, nil, 0},
		{"the longest output", `{"model":"cl/claude-next","messages":[{"role":"user","content":"hi"}]}`, "claude-next", nil, u, 777},
	} {
		w := newWorld(t, usual...)
		w.combo(tt.models, nil, nil)
		w.machine.SetCatalog(tt.update)
		asked := gjson.Result{}
		w.Answer = func(s *fake.Seen) fake.Answer {
			if !asked.Exists() {
				asked = gjson.Parse(s.Body)
			}
			return fake.Answer{Status: 400, Body: `{"error":{"message":"no"}}`}
		}
		if _, err := w.ask(llm.Chat, tt.body); err == nil {
			t.Fatalf("%s: answered", tt.name)
		}
		if got := asked.Get("model").Str; got != tt.asked || asked.Get("max_tokens").Int() != tt.maxTokens {
			t.Errorf("%s: asked %q with max_tokens %s", tt.name, got, asked.Get("max_tokens").Raw)
		}
	}
}
