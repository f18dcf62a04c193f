package llm_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
)

func TestResponsesRepeatRequestSettings(t *testing.T) {
	body := "{\"model\":\"a\",\"input\":\"x\",\"instructions\":\"Be brief.\",\"tools\":[{\"type\":\"function\",\n\"name\":\"f\",\"parameters\":{}}],\"tool_choice\":\"required\",\"temperature\":0.5,\"metadata\":{\"a\":\"b\"},\"max_output_tokens\":99,\"reasoning\":{\"effort\":\"low\"},\"text\":{\"verbosity\":\"low\"},\"user\":null}"
	opt := options()
	opt.Settings = &llm.Settings{}
	if _, _, err := llm.Request(llm.Responses, llm.Chat, []byte(body), opt); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"instructions": `"Be brief."`, "tools": `[{"type":"function", "name":"f","parameters":{}}]`, "tool_choice": `"required"`, "temperature": "0.5", "top_p": "null",
		"metadata": `{"a":"b"}`, "max_output_tokens": "99", "reasoning": `{"summary":null,"effort":"low"}`, "text": `{"format":{"type":"text"},"verbosity":"low"}`,
		"parallel_tool_calls": "true", "truncation": `"disabled"`, "user": "",
	}
	check := func(r gjson.Result) {
		for name, raw := range want {
			if got := r.Get(name).Raw; got != raw {
				t.Errorf("%s: got %s, want %s", name, got, raw)
			}
		}
	}
	out, _, err := llm.Response(llm.Chat, llm.Responses, []byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`), opt)
	if err != nil {
		t.Fatal(err)
	}
	check(gjson.ParseBytes(out))
	s := llm.Stream(llm.Chat, llm.Responses, opt)
	events := s.Push([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"), nil)
	events = s.End(nil, events)
	found := 0
	for _, line := range strings.Split(string(events), "\n") {
		if r := gjson.Get(strings.TrimPrefix(line, "data: "), "response"); r.Exists() {
			found++
			check(r)
		}
	}
	if found != 3 {
		t.Errorf("%d events with a response, want 3 in %s", found, events)
	}
}

// A stream does not store the tools of a large request until its end.
func TestLongSettingsAreNotRepeated(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	opt := options()
	opt.Settings = &llm.Settings{}
	body := `{"model":"a","input":"x","instructions":"` + long + `","temperature":0.5,"tool_choice":"auto"}`
	if _, _, err := llm.Request(llm.Responses, llm.Chat, []byte(body), opt); err != nil {
		t.Fatal(err)
	}
	out, _, err := llm.Response(llm.Chat, llm.Responses, []byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`), opt)
	if r := gjson.ParseBytes(out); err != nil || r.Get("instructions").Raw != "null" || r.Get("temperature").Raw != "0.5" {
		t.Errorf("%.200s, %v", out, err)
	}
}
