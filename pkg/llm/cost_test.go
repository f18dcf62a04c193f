package llm_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// times repeats an element with its number in place of #.
func times(n int, element string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(element, "#", strconv.Itoa(i)))
	}
	return b.String()
}

// Texts of very many small parts that were joined one by one took minutes,
// because each was copied for every part after it. Now the allocated bytes are
// proportional to the length of the request.
func TestAllocationIsLinearInLength(t *testing.T) {
	const n, factor = 5000, 150
	user, content := `{"role":"user","content":"x"}`, `{"parts":[{"text":"x"}]}`
	requests := []struct {
		name, body string
		d          llm.Dialect
	}{
		{"unknown_fields", `{"messages":[` + user + `],` + times(n, `"field#":0`) + `}`, llm.Chat},
		{"systems", `{"messages":[` + times(n, `{"role":"system","content":"words and words"}`) + `,` + user + `]}`, llm.Chat},
		{"parts", `{"messages":[{"role":"assistant","content":[` + times(n, `{"type":"text","text":"words and words"}`) + `]},{"role":"tool","tool_call_id":"a","content":[` + times(n, `{"type":"text","text":"words and words"}`) + `]}]}`, llm.Chat},
		{"details", `{"messages":[{"role":"assistant","content":"x","reasoning_details":[` + times(n, `{"type":"reasoning.text","text":"words","signature":"s","format":"openrouter"}`) + `]}]}`, llm.Chat},
		{"a_thought_in_pieces", `{"messages":[{"role":"assistant","content":"x","reasoning_details":[` + times(n, `{"type":"reasoning.text","text":"words and words","index":0}`) + `]}]}`, llm.Chat},
		{"marked_schemas", `{"messages":[` + user + `],"tools":[` + times(n/50, `{"type":"function","function":{"name":"f","parameters":`+strings.Repeat(`{"$schema":"x","items":`, 50)+`{}`+strings.Repeat(`}`, 50)+`}}`) + `]}`, llm.Chat},
		{"compactions", `{"messages":[` + times(n, `{"role":"assistant","content":[{"type":"compaction","content":"words and words"}]}`) + `,` + user + `]}`, llm.Messages},
		{"mistrals_thoughts", `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[` + times(n, `{"type":"text","text":"words and words"}`) + `]}]}]}`, llm.Chat},
		{"summaries", `{"input":[{"type":"reasoning","id":"r","summary":[` + times(n, `{"type":"summary_text","text":"words and words"}`) + `]},` + user + `]}`, llm.Responses},
		{"refusals", `{"input":[{"role":"assistant","content":[` + times(n, `{"type":"refusal","refusal":"words and words"}`) + `]},` + user + `]}`, llm.Responses},
		{"system_blocks", `{"system":[` + times(n, `{"type":"text","text":"words and words"}`) + `],"messages":[` + user + `]}`, llm.Messages},
		{"thoughts", `{"messages":[{"role":"assistant","content":[` + times(n, `{"type":"thinking","thinking":"words and words","signature":"weir.chat."}`) + `]},` + user + `]}`, llm.Messages},
		{"found_pages", `{"messages":[{"role":"user","content":[{"type":"search_result","title":"t","source":"s","content":[` + times(n, `{"type":"text","text":"words and words"}`) + `]}]}]}`, llm.Messages},
		{"results", `{"messages":[{"role":"assistant","content":[` + times(n, `{"type":"tool_use","id":"c#","name":"f","input":{}}`) + `]},{"role":"user","content":[` + times(n, `{"type":"tool_result","tool_use_id":"c#","content":"x"}`) + `]}]}`, llm.Messages},
		{"custom_calls", `{"input":[` + user + `,` + times(n, `{"type":"custom_tool_call","call_id":"c#","name":"f#","input":"words and words"}`) + `],"tools":[{"type":"custom","name":"f1"}]}`, llm.Responses},
		{"namespaces", `{"input":[` + user + `],"tools":[` + times(n, `{"type":"namespace","name":"n#","description":"d","tools":[{"type":"function","name":"f","parameters":{}}]}`) + `],"tool_choice":{"type":"allowed_tools","tools":[` + times(n, `{"type":"namespace","name":"n#"}`) + `]}}`, llm.Responses},
		{"long_names", `{"messages":[` + user + `],"tools":[` + times(n, `{"name":"mcp__a_server_with_a_very_long_name_that_goes_on__and_on__tool_#","input_schema":{}}`) + `]}`, llm.Messages},
		{"parts", `{"contents":[{"parts":[` + times(n, `{"text":"words and words"}`) + `]},{"role":"model","parts":[` + times(n, `{"text":"words and words"}`) + `]}]}`, llm.Gemini},
		{"thoughts", `{"contents":[{"role":"model","parts":[` + times(n, `{"text":"words and words","thought":true}`) + `]},` + content + `]}`, llm.Gemini},
		{"signed_thoughts", `{"contents":[{"role":"model","parts":[` + times(n, `{"text":"words","thought":true,"thoughtSignature":"d2Vpci5jaGF0Lg=="}`) + `]},` + content + `]}`, llm.Gemini},
		{"calls", `{"contents":[{"role":"model","parts":[` + times(n, `{"functionCall":{"name":"f","args":{}}}`) + `]},{"parts":[` + times(n, `{"functionResponse":{"name":"f","response":{"output":"x"}}}`) + `]}]}`, llm.Gemini},
		{"calls_answered_backwards", `{"contents":[{"role":"model","parts":[` + times(n, `{"functionCall":{"id":"c#","name":"f"}}`) + `]},{"parts":[{"functionResponse":{"name":"f","response":{}}},` + times(n, `{"functionResponse":{"name":"f","id":"x#","response":{}}}`) + `]}]}`, llm.Gemini},
		{"thoughts_of_calls", `{"contents":[{"role":"model","parts":[` + times(n, `{"text":"a"},{"functionCall":{"name":"f"},"thoughtSignature":"d2Vpci5jaGF0LgpoaQ=="}`) + `]},` + content + `]}`, llm.Gemini},
		{"declarations", `{"contents":[` + content + `],"tools":[{"functionDeclarations":[` + times(n/50, `{"name":"f#","parameters":`+strings.Repeat(`{"type":"ARRAY","items":`, 20)+`{}`+strings.Repeat(`}`, 20)+`}`) + `]}]}`, llm.Gemini},
		{"unknown_fields", `{"contents":[` + content + `],"generationConfig":{` + times(n, `"field_#":0`) + `}}`, llm.Gemini},
		{"fields_of_a_tool", `{"messages":[` + user + `],"tools":[{"name":"a","input_schema":{},` + times(n, `"field#":0`) + `}]}`, llm.Messages},
	}
	for _, r := range requests {
		for _, to := range []struct {
			d           llm.Dialect
			model, devs string
		}{
			{llm.Chat, "m", "deepseek"}, {llm.Chat, "m", "openrouter"}, {llm.Chat, "m", "gemini"}, {llm.Chat, "m", ""}, {llm.Responses, "gpt-5", "openai"},
			{llm.Messages, "claude-sonnet-4-5", "anthropic"}, {llm.Gemini, "gemini-3-pro", "gemini"},
			{llm.Cohere, "command-a", "cohere"}, {llm.Converse, "amazon.nova-pro-v1:0", "bedrock"},
		} {
			if to.d == r.d && to.d == llm.Gemini {
				continue // the bytes pass
			}
			opt := llm.Options{Model: to.model, Deviations: ir.DeviationsOf(to.devs)}
			var dropped []string
			used := allocated(func() { _, dropped, _ = llm.Request(r.d, to.d, []byte(r.body), opt) })
			if used > factor*len(r.body) || len(dropped) > 40 {
				t.Errorf("%s to %v: %d bytes for one of %d, %d fields dropped", r.name, to.d, used, len(r.body), len(dropped))
			}
		}
	}
	custom := options()
	custom.Tools = &llm.Tools{}
	if _, _, err := llm.Request(llm.Responses, llm.Messages, []byte(`{"input":"x","tools":[{"type":"custom","name":"p"}]}`), custom); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{`\"`, `x`, `{`} { // of a text, of a name, of what is passed over
		in := chatHead + chatPiece(0, "c1", "p", map[string]string{`\"`: `{"input":"`, `x`: `{"`, `{`: `{"other":`}[piece])
		in += strings.Repeat(chatPiece(0, "", "", piece), n)
		var s *llm.Translator
		used := allocated(func() {
			s = llm.Stream(llm.Chat, llm.Responses, custom)
			s.End(nil, s.Push([]byte(in+chatTail), nil))
		})
		if !s.Complete() || used > factor*len(in) {
			t.Errorf("pieces %s: %d bytes for a stream of %d, %v", piece, used, len(in), s.Failure())
		}
	}
	answers := []struct {
		name, body string
		d          llm.Dialect
	}{
		{"parts", `{"choices":[{"message":{"content":[` + times(n, `{"type":"text","text":"words and words"}`) + `]}}]}`, llm.Chat},
		{"blocks", `{"content":[` + times(n, `{"type":"text","text":"words and words"}`) + `]}`, llm.Messages},
		{"thoughts", `{"content":[` + times(n, `{"type":"thinking","thinking":"words and words","signature":"s"}`) + `]}`, llm.Messages},
		{"summaries", `{"output":[{"type":"reasoning","summary":[` + times(n, `{"type":"summary_text","text":"words and words"}`) + `]}]}`, llm.Responses},
		{"parts", `{"candidates":[{"content":{"parts":[` + times(n, `{"text":"words and words"}`) + `]},"finishReason":"STOP"}]}`, llm.Gemini},
		{"sources", `{"candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("é", 4*n) + `"}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[` + times(n, `{"segment":{"startIndex":2#,"endIndex":3#},"groundingChunkIndices":[0]}`) + `]}}]}`, llm.Gemini},
		{"contents", `{"message":{"content":[` + times(n, `{"type":"text","text":"words and words"}`) + `]}}`, llm.Cohere},
		{"contents", `{"output":{"message":{"content":[{"citationsContent":{"content":[` + times(n, `{"text":"words and words"}`) + `]}}]}}}`, llm.Converse},
	}
	for _, a := range answers {
		for _, to := range clients {
			var err error
			used := allocated(func() { _, _, err = llm.Response(a.d, to, []byte(a.body), options()) })
			if err != nil || used > factor*len(a.body) {
				t.Errorf("%s of %v to %v: %d bytes for one of %d, %v", a.name, a.d, to, used, len(a.body), err)
			}
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}
