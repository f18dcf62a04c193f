package chat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/jsonscan"
)

// FuzzMarks compares the request for each upstream with that of a Patch that knows
// nothing of the body, and so searches all of it: only blanks may differ.
func FuzzMarks(f *testing.F) {
	files, err := filepath.Glob("../testdata/requests/chat/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recorded requests: %v", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, body := range []string{
		`{"messages":[{"role":"assistant","reasoning":"a","reasoning_details":[],"content":"b"}],"reasoning_effort":"high","max_completion_tokens":1}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"call_1","extra_content":{}}]},{"role":"developer","content":"x"}],"seed":1,"n":2}`,
		`{"tools":[{"type":"custom","custom":{"name":"a"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}},"messages":[]}`,
		`{"\u0073eed":1,"temperature":0,"stream_options":{},"user":"u","logit_bias":null}`,
	} {
		f.Add([]byte(body))
	}
	providers := []string{
		"openai", "azure", "openrouter", "xai", "deepseek", "mistral", "groq", "cerebras", "moonshot", "zai", "dashscope", "minimax", "cohere", "ollama",
		"perplexity", "openai-compatible-0123abcd",
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var m jsonscan.Marked
		if jsonscan.Mark(body, &jsonscan.Marks{Strings: Marks}, &m) != nil || body[0] != '{' {
			return
		}
		for i, id := range providers {
			opt := ir.Options{
				Deviations: ir.DeviationsOf(id), Vendor: true, Reasoning: i%2 == 0,
				Refuses: ir.Refusals{"developer", "reasoning_effort", "max_completion_tokens"},
			}
			adapt := func(m *jsonscan.Marked) (ir.Patch, string) {
				opt.Tools = &ir.Tools{}
				p := Adapt(ir.NewPatch(body, m), opt)
				p.ShortUser(4)
				var out bytes.Buffer
				if p.Err == nil {
					if err := json.Compact(&out, p.Body); err != nil {
						t.Fatalf("%s: %s: %v", id, p.Body, err)
					}
				}
				return p, out.String()
			}
			p, got := adapt(&m)
			q, want := adapt(nil)
			if got != want || !slices.Equal(p.Dropped, q.Dropped) || (p.Err == nil) != (q.Err == nil) {
				t.Fatalf("%s:\n got %s %v\nwant %s %v", id, got, p.Dropped, want, q.Dropped)
			}
		}
	})
}
