package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/sse"
)

// Claude refuses a turn whose thinking differs from what it signed. A chat
// client that joins the deltas of a stream sends them back whole.
func TestThinkingBlocksSurviveChatClient(t *testing.T) {
	event := func(v string) string {
		return "event: " + gjson.Get(v, "type").Str + "\ndata: " + v + "\n\n"
	}
	var in strings.Builder
	in.WriteString(event(`{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`))
	for i, block := range [][]string{
		{`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"fir"}`, `{"type":"thinking_delta","thinking":"st \"q\""}`, `{"type":"signature_delta","signature":"SIG1"}`},
		{`{"type":"text","text":""}`, `{"type":"text_delta","text":"So."}`},
		{`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"second"}`, `{"type":"signature_delta","signature":"SIG2"}`},
		{`{"type":"redacted_thinking","data":"RED"}`},
		{`{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`, `{"type":"input_json_delta","partial_json":"{}"}`},
	} {
		n := string(rune('0' + i))
		in.WriteString(event(`{"type":"content_block_start","index":` + n + `,"content_block":` + block[0] + `}`))
		for _, d := range block[1:] {
			in.WriteString(event(`{"type":"content_block_delta","index":` + n + `,"delta":` + d + `}`))
		}
		in.WriteString(event(`{"type":"content_block_stop","index":` + n + `}`))
	}
	in.WriteString(event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`) + event(`{"type":"message_stop"}`))
	out, s := run(llm.Messages, llm.Chat, []byte(in.String()))
	if !s.Complete() {
		t.Fatal(s.Failure())
	}
	var r sse.Reader
	var ev sse.Event
	var details []string
	content, thought := "", ""
	r.Push(out)
	for r.Next(&ev) {
		d := gjson.GetBytes(ev.Data, "choices.0.delta")
		content += d.Get("content").Str
		thought += d.Get("reasoning_content").Str
		for _, x := range d.Get("reasoning_details").Array() {
			details = append(details, x.Raw)
		}
	}
	if content != "So." || thought != `first "q"second` || len(details) != 3 {
		t.Fatalf("content %q, thought %q, details %v", content, thought, details)
	}
	for i, d := range details {
		if got := gjson.Get(d, "index"); got.Int() != int64(i) || !got.Exists() {
			t.Errorf("detail %d: %s", i, d)
		}
	}
	turn := func(details []string) string {
		return `{"role":"assistant","content":"So.","reasoning_content":` + quote(thought) + `,"reasoning_details":[` + strings.Join(details, ",") + `],"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	}
	// A client may store a text in parts, as other gateways stream it.
	pieces := []string{
		`{"type":"reasoning.text","text":"first ","index":0,"format":"anthropic-claude-v1"}`, `{"type":"reasoning.text","text":"\"q\"","index":0}`,
		`{"type":"reasoning.text","signature":"SIG1","index":0,"format":"anthropic-claude-v1"}`, details[1], details[2],
	}
	for name, list := range map[string][]string{"whole": details, "pieces": pieces} {
		body := `{"messages":[{"role":"user","content":"a"},` + turn(list) + `,{"role":"tool","tool_call_id":"toolu_1","content":"r"}],"reasoning_effort":"high"}`
		got, _ := send(t, llm.Chat, llm.Messages, body, llm.Options{Model: "claude-sonnet-4-5"})
		want := `[{"type":"thinking","thinking":"first \"q\"","signature":"SIG1"},{"type":"thinking","thinking":"second","signature":"SIG2"},{"type":"redacted_thinking","data":"RED"},{"type":"text","text":"So."},{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]`
		if blocks := got.Get("messages.1.content").Raw; blocks != want || got.Get("thinking.type").Str != "enabled" {
			t.Errorf("%s: got %s", name, blocks)
		}
	}
}

// weir behind weir: details of reasoning that also arrived as plain text do not
// repeat it.
func TestReasoningDetailsDoNotRepeatText(t *testing.T) {
	in := `data: {"choices":[{"index":0,"delta":{"reasoning_content":"why"}}]}

data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"why","signature":"S","format":"anthropic-claude-v1","index":0}]}}]}

data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}

data: [DONE]

`
	out, _, err := llm.Collect(llm.Chat, llm.Messages, []byte(in), options())
	if err != nil || gjson.GetBytes(out, "content.0.thinking").Str != "why" {
		t.Errorf("%s, %v", out, err)
	}
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// With a thinking budget, Claude requires thinking before the call of a running
// turn. A turn that another provider has begun has none.
func TestThinkingBudgetIsDisabledInForeignToolLoop(t *testing.T) {
	const think = `"thinking":{"type":"enabled","budget_tokens":2048},"context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]},`
	call := func(content, id string) string {
		return `{"role":"user","content":"a"},{"role":"assistant","content":[` + content + `{"type":"tool_use","id":"` + id + `","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}]}`
	}
	foreign := `{"type":"thinking","thinking":"t","signature":"weir.chat."},`
	own := `{"type":"thinking","thinking":"t","signature":"OWN"},`
	for _, tt := range []struct{ name, messages, want string }{
		{"foreign thoughts taken out", call(foreign, "call_1"), "disabled"},
		{"calls without a thought", call("", "call_1"), "disabled"},
		{"Claude's own loop", call(own, "toolu_1"), "enabled"},
		{"Claude's own thought before a foreign id", call(own, "call_1"), "enabled"},
		{"a later turn", call(foreign, "call_1") + `,{"role":"assistant","content":"done"},{"role":"user","content":"b"}`, "enabled"},
	} {
		body := `{"model":"a","max_tokens":9000,` + think + `"messages":[` + tt.messages + `]}`
		got, _ := send(t, llm.Messages, llm.Messages, body, llm.Options{Model: "claude-sonnet-4-5"})
		edits := got.Get("context_management.edits.#").Int()
		if kind := got.Get("thinking.type").Str; kind != tt.want || (kind == "disabled") != (edits == 1) {
			t.Errorf("%s: got %s", tt.name, got.Raw)
		}
	}
	// The text after the last result may be long.
	long := `{"model":"a","max_tokens":9000,` + think + `"messages":[` + call("", "call_1") + `],"system":"` + strings.Repeat("x", 900<<10) + `"}`
	if got, _ := send(t, llm.Messages, llm.Messages, long, llm.Options{Model: "claude-sonnet-4-5"}); got.Get("thinking.type").Str != "disabled" {
		t.Error("a long body keeps its budget")
	}
	adaptive := `{"model":"a","max_tokens":9000,"thinking":{"type":"adaptive"},"messages":[` + call(foreign, "call_1") + `]}`
	if got, _ := send(t, llm.Messages, llm.Messages, adaptive, llm.Options{Model: "claude-opus-4-6"}); got.Get("thinking.type").Str != "adaptive" {
		t.Errorf("adaptive: got %s", got.Raw)
	}
}

func TestToolReferencesAndSummariesKeepTheirText(t *testing.T) {
	body := `{"max_tokens":9,"system":"S","messages":[{"role":"user","content":"long ago"},{"role":"assistant","content":[{"type":"tool_use","id":"t0","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t0","content":"old"}]},
		{"role":"assistant","content":[{"type":"compaction","content":"What happened."},{"type":"text","text":"On."},{"type":"tool_use","id":"t1","name":"ToolSearch","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"tool_reference","tool_name":"Grep"},{"type":"tool_reference","tool_name":"Glob"}]}]}]}`
	got, dropped := send(t, llm.Messages, llm.Chat, body, llm.Options{Model: "m"})
	want := `[{"role":"system","content":"S"},{"role":"user","content":"Summary of the conversation so far:\n\nWhat happened."},{"role":"assistant","content":"On.","tool_calls":[{"id":"t1","type":"function","function":{"name":"ToolSearch","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t1","content":"Tool found: Grep\nTool found: Glob"}]`
	if got.Get("messages").Raw != want || len(dropped) != 0 {
		t.Errorf("got %s, dropped %v", got.Get("messages").Raw, dropped)
	}
	// A failed compaction has no text and replaces no message.
	failed := strings.Replace(body, `"What happened."`, "null", 1)
	if got, _ := send(t, llm.Messages, llm.Chat, failed, llm.Options{Model: "m"}); got.Get("messages.1.content").Str != "long ago" {
		t.Errorf("got %s", got.Get("messages").Raw)
	}
}

// Calls by code that Claude runs are hidden from the client, which is not asked to run
// tools if there are no others.
func TestProgrammaticCallsAreHidden(t *testing.T) {
	answer := `{"id":"msg_1","model":"m","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	for _, direct := range []bool{false, true} {
		in := answer
		if direct {
			in = strings.Replace(answer, `"type":"code_execution_20250825","tool_id":"srvtoolu_1"`, `"type":"direct"`, 1)
		}
		out, _, err := llm.Response(llm.Messages, llm.Chat, []byte(in), options())
		if err != nil {
			t.Fatal(err)
		}
		c := gjson.GetBytes(out, "choices.0")
		if c.Get("message.tool_calls").Exists() != direct || (c.Get("finish_reason").Str == "tool_calls") != direct {
			t.Errorf("direct %v: %s", direct, c.Raw)
		}
		streamed, _ := run(llm.Messages, llm.Chat, []byte(`data: {"type":"message_start","message":{"id":"msg_1","model":"m"}}`+"\n\n"+
			`data: {"type":"content_block_start","index":0,"content_block":`+gjson.Get(in, "content.1").Raw+"}\n\n"+
			`data: {"type":"content_block_stop","index":0}`+"\n\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}`+"\n\n"+
			`data: {"type":"message_stop"}`+"\n\n"))
		if strings.Contains(string(streamed), `"finish_reason":"tool_calls"`) != direct || strings.Contains(string(streamed), "toolu_1") != direct {
			t.Errorf("direct %v: %s", direct, streamed)
		}
	}
}

func TestDeepSeekEfforts(t *testing.T) {
	want := map[string]string{"minimal": "low", "low": "low", "medium": "high", "high": "high", "xhigh": "high", "max": "max"}
	for asked, meant := range want {
		body := `{"model":"a","reasoning_effort":"` + asked + `","messages":[{"role":"user","content":"a"}]}`
		got, dropped := send(t, llm.Chat, llm.Chat, body, llm.Options{Model: "deepseek-v4-pro", Deviations: ir.DeviationsOf("deepseek")})
		if got.Get("reasoning_effort").Str != meant || got.Get("thinking.type").Str != "enabled" || len(dropped) > 0 {
			t.Errorf("%s: got %s, dropped %v", asked, got.Raw, dropped)
		}
	}
}
