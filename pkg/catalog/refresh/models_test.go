package refresh

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/pkg/catalog"
)

// withModels returns a document of weir's own format with models of an alias.
func withModels(alias string, models map[string]any) []byte {
	raw, err := json.Marshal(map[string]any{alias: models})
	if err != nil {
		panic(err)
	}
	return list(some(), `"models":`+string(raw))
}

func TestModelsAreAdded(t *testing.T) {
	raw := withModels("openai", map[string]any{
		"gpt-next": map[string]any{
			"kind": "llm", "name": "GPT Next", "context_length": 500_000, "max_completion_tokens": 64_000,
			"input_modalities": []string{"text", "image", "smell"}, "output_modalities": []string{"text"},
			"capabilities": map[string]any{"tools": true, "reasoning": false, "dreams": true, "vision": "yes"},
		},
		"embed-next": map[string]any{"kind": "embedding", "dimensions": 1024, "name": nil},
		"gpt-5":      map[string]any{"kind": "embedding", "context_length": 1},
	})
	p := take(t, raw, catalog.Update{})
	if p.AddedModels != 2 || p.RefusedModels != 1 || // the limit of gpt-5
		p.Limits != 0 || p.Rows != 0 {
		t.Fatalf("%+v", p)
	}
	want := catalog.Model{ID: "gpt-next", Name: "GPT Next", Kind: catalog.LLM, Context: 500_000, MaxOutput: 64_000, Input: catalog.Text | catalog.Images, Output: catalog.Text}
	want.Caps.Set(catalog.Tools, true)
	want.Caps.Set(catalog.Reasoning, false)
	if got := p.Lookup("openai", "gpt-next"); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := p.Lookup("openai", "embed-next"); len(got) != 1 || got[0].Kind != catalog.Embedding || got[0].Dimensions != 1024 {
		t.Errorf("%+v", got)
	}
	if strings.Contains(p.ModelText, "gpt-5\t") {
		t.Errorf("a model of the catalogue is stored: %s", p.ModelText)
	}
	// They are those of the last document.
	if p := take(t, list(some()), *p); p.AddedModels != 0 || p.ModelText != "" {
		t.Errorf("%+v", p)
	}
}

func TestModelsOutOfBoundsAreLeftOut(t *testing.T) {
	type model = map[string]any
	for name, bad := range map[string]model{
		"no kind":             {},
		"an unknown kind":     {"kind": "oracle"},
		"a kind of a service": {"kind": "webSearch"},
		"a small context":     {"kind": "llm", "context_length": minTokens - 1},
		"a large context":     {"kind": "llm", "context_length": 1e12},
		"a negative context":  {"kind": "llm", "context_length": -1},
		"half a token":        {"kind": "llm", "context_length": 10000.5},
		"a text for a number": {"kind": "llm", "context_length": "10000"},
		"a small output":      {"kind": "llm", "max_completion_tokens": 1},
		"large vectors":       {"kind": "embedding", "dimensions": 100_000},
		"a long name":         {"kind": "llm", "name": strings.Repeat("n", maxName+1)},
		"a name with a tab":   {"kind": "llm", "name": "a\tb"},
		"a reversed name":     {"kind": "llm", "name": "a\u202eb"},
		"a number for a name": {"kind": "llm", "name": 1},
	} {
		p := take(t, withModels("openai", model{"bad": bad, "good": model{"kind": "llm"}}), catalog.Update{})
		if p.RefusedModels != 1 || p.AddedModels != 1 || p.ModelText != "openai/good\tl\t\t\t\t\t\t\t\t\n" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for _, id := range []string{"", "a b", "a\tb", "a\nb", "../a", "a//b", "/a", "a/", "a/./b", "a?b", "a%2fb", "é", `a"b`, "search", "x/fetch", "openai/gpt-6", strings.Repeat("a", maxID+1)} {
		p := take(t, withModels("openai", model{id: model{"kind": "llm"}}), catalog.Update{})
		if p.RefusedModels != 1 || p.ModelText != "" {
			t.Errorf("%q: %+v", id, p)
		}
	}
	// Anything else than an object of models adds none.
	for _, odd := range []string{"1", `"x"`, "[]", `[{"openai":{}}]`, `{"openai":[]}`, `{"openai":1}`, `{"no-such-alias":{"a":{"kind":"llm"}}}`} {
		if p := take(t, list(some(), `"models":`+odd), catalog.Update{}); p.AddedModels != 0 || p.ModelText != "" {
			t.Errorf("%s: %+v", odd, p)
		}
	}
}

func TestNumberAndSizeOfModelsAreBounded(t *testing.T) {
	many, long := map[string]any{}, map[string]any{}
	for i := range maxModels + 10 {
		many[fmt.Sprintf("m%05d", i)] = map[string]any{"kind": "llm"}
	}
	p := take(t, withModels("openai", many), catalog.Update{})
	if p.AddedModels != maxModels || p.RefusedModels != 10 || strings.Count(p.ModelText, "\n") != maxModels {
		t.Errorf("%d added, %d refused", p.AddedModels, p.RefusedModels)
	}
	for i := range 4000 {
		long[fmt.Sprintf("%0250d", i)] = map[string]any{"kind": "llm"}
	}
	p = take(t, withModels("openai", long), catalog.Update{})
	if p.AddedModels+p.RefusedModels != 4000 || p.AddedModels < 1500 || len(p.ModelText) > maxModelText {
		t.Errorf("%d added, %d refused, %d bytes", p.AddedModels, p.RefusedModels, len(p.ModelText))
	}
	// With many prices there is less room for models.
	prices := map[string]map[string]string{"openai": {}}
	for i := range 3600 {
		prices["openai"][fmt.Sprintf("%0240d", i)] = "1/2 >200000=3/4"
	}
	models, _ := json.Marshal(map[string]any{"openai": long})
	p = take(t, list(prices, `"models":`+string(models)), catalog.Update{})
	value, _ := json.Marshal(p)
	if p.Rows != 3600 || p.AddedModels == 0 || p.AddedModels+p.RefusedModels != 4000 || len(value) > 1<<20 || len(value) < 1000<<10 {
		t.Errorf("%d prices, %d added, %d refused, %d bytes", p.Rows, p.AddedModels, p.RefusedModels, len(value))
	}
}

// An id that is listed under the name of a model of the build would hide that.
func TestModelsListedLikeOneOfTheBuildAreNotAdded(t *testing.T) {
	whole := ""
	for _, m := range catalog.Models("nvidia") {
		if strings.HasPrefix(m.ID, "nvidia/") {
			whole = m.ID
		}
	}
	if whole == "" {
		t.Fatal("the catalogue has no id with its own alias")
	}
	llm := map[string]any{"kind": "llm"}
	p := take(t, withModels("nvidia", map[string]any{whole: llm, strings.TrimPrefix(whole, "nvidia/"): llm}), catalog.Update{})
	q := take(t, withModels("openai", map[string]any{"gpt-5": llm, "openai/gpt-5": llm}), catalog.Update{})
	if p.AddedModels+q.AddedModels+p.RefusedModels+q.RefusedModels != 0 {
		t.Errorf("%+v %+v", p, q)
	}
}

func TestModelsOfModelsDev(t *testing.T) {
	raw := `{"openai":{"models":{
	 "gpt-5":{"name":"Other","modalities":{"input":["text"],"output":["text"]},"limit":{"context":1000,"output":1000}},
	 "gpt-next":{"id":"gpt-next","name":"GPT Next","attachment":true,"reasoning":true,"tool_call":true,"structured_output":true,"temperature":false,
	  "modalities":{"input":["text","image","pdf"],"output":["text"]},"open_weights":false,"limit":{"context":500000,"input":400000,"output":64000},"cost":{"input":1,"output":2}},
	 "old-next":{"status":"deprecated","modalities":{"input":["text"],"output":["text"]}},
	 "beta-next":{"status":"beta","modalities":{"input":["text"],"output":["text"]},"limit":{"context":0,"output":0}},
	 "gpt-realtime-next":{"modalities":{"input":["text","audio"],"output":["text","audio"]}},
	 "text-embedding-next":{"name":"text-embedding-next","modalities":{"input":["text"],"output":["text"]},"limit":{"context":8191,"output":3072}},
	 "image-next":{"modalities":{"input":["text","image"],"output":["image"]}},
	 "whisper-next":{"modalities":{"input":["audio"],"output":["text"]},"limit":{"context":448,"output":448}},
	 "tts-next":{"modalities":{"input":["text"],"output":["audio"]}},
	 "song-next":{"modalities":{"input":["text"],"output":["audio"]}},
	 "video-next":{"modalities":{"input":["text","image"],"output":["video"]}},
	 "no-modalities":{"name":"x","limit":{"context":1000,"output":100}},
	 "bad-next":{"modalities":{"input":["text"],"output":["text"]},"limit":{"context":10,"output":5}},
	 "bad-two":{"modalities":{"input":["text"],"output":["text"]},"name":["x"]},
	 "text":1}},
	"google":{"models":{"gemini-next-image":{"modalities":{"input":["text","image"],"output":["text","image"]},"limit":{"context":32768,"output":32768}}}},
	"google-vertex":{"models":{"both-next":{"modalities":{"input":["text"],"output":["text"]},"limit":{"context":4000}}}},
	"google-vertex-anthropic":{"models":{"both-next":{"modalities":{"input":["text"],"output":["text"]},"limit":{"context":5000}}}},
	"cohere":{"models":{"rerank-next":{"modalities":{"input":["text"],"output":["text"]},"limit":{"context":4096,"output":0}}}},
	"github-copilot":{"models":{"x":{"modalities":{"input":["text"],"output":["text"]}}}}}`
	d, err := read(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, added, refused := d.lines(maxModelText)
	want := strings.Join([]string{
		"cohere/rerank-next\tr\t4096\t\t\tt\t\t\t\t",
		"gemini/gemini-next-image\ti\t32768\t32768\ti\tt\tI\t\t\t",
		"openai/beta-next\tl\t\t\tt\tt\tvpado\t\t\t",
		"openai/gpt-next\tl\t500000\t64000\ttif\tt\tTRVPadoJ\t\t\tGPT Next",
		"openai/image-next\ti\t\t\ti\t\tI\t\t\t",
		"openai/text-embedding-next\te\t8191\t\t\t\t\t\t\t",
		"openai/tts-next\tt\t\t\t\t\t\t\t\t",
		"openai/video-next\tv\t\t\ti\t\t\t\t\t",
		"openai/whisper-next\ts\t448\t448\t\t\t\t\t\t",
		"vertex/both-next\tl\t4000\t\tt\tt\tvpado\t\t\t",
	}, "\n") + "\n"
	if text != want || added != 10 || refused != 0 || d.refused != 4 { // two models, and the limits of one of the build
		t.Errorf("%d added, %d and %d refused:\n%s\nwant\n%s", added, refused, d.refused, text, want)
	}
}

func TestEveryKindOfTheCatalogueCanBeAdded(t *testing.T) {
	for _, alias := range catalog.Aliases() {
		for _, m := range catalog.Models(alias) {
			if !inBounds(&m) && m.Kind != catalog.Realtime {
				t.Errorf("%s/%s of the catalogue is out of bounds", alias, m.ID)
			}
		}
	}
}

// checkModels reports what is wrong with the stored models.
func checkModels(p *catalog.Update) (wrong []string) {
	var names []string
	for line := range strings.Lines(p.ModelText) {
		name, _, _ := strings.Cut(line, "\t")
		alias, id, _ := strings.Cut(name, "/")
		if got := p.Lookup(alias, id); len(got) != 1 || !inBounds(&got[0]) || string(catalog.AppendModel(nil, alias, &got[0])) != line {
			wrong = append(wrong, fmt.Sprintf("%q: %+v", line, got))
		}
		if slices.Contains(names, name) {
			wrong = append(wrong, name+" is there twice")
		}
		names = append(names, name)
	}
	if len(names) != p.AddedModels {
		wrong = append(wrong, fmt.Sprint(len(names), " lines, counted ", p.AddedModels))
	}
	return wrong
}

// A vendor's own ids may begin with its alias where the build has such ids.
func TestAnIDMayBeginWithTheAliasOfTheBuildsIDs(t *testing.T) {
	model := map[string]any{"nvidia/next": map[string]any{"kind": "llm"}}
	if p := take(t, withModels("nvidia", model), catalog.Update{}); p.AddedModels != 1 {
		t.Errorf("%+v", p)
	}
}
