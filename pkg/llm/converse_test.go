package llm

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

const claudeID = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

func converseRequest(t *testing.T, from Dialect, model, body string) (string, string) {
	t.Helper()
	out, dropped, err := Request(from, Converse, []byte(body), Options{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	if !gjson.ValidBytes(out) {
		t.Fatalf("no JSON: %s", out)
	}
	return string(out), strings.Join(dropped, ",")
}

func TestConverseRequests(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	const said = `"messages":[{"role":"user","content":[{"text":"hi"}]}]`
	const weather = `"tools":[{"type":"function","function":{"name":"w","description":"d","parameters":{"type":"object","properties":{"c":{"type":"string"}}}}}]`
	const spec = `{"toolSpec":{"name":"w","description":"d","inputSchema":{"json":{"type":"object","properties":{"c":{"type":"string"}}}}}}`
	const schema = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{}}}}`
	tests := []struct{ name, model, in, want, dropped string }{
		{"least", "meta.llama3", `{` + hi + `}`, `{` + said + `}`, ""},
		{"system_and_sampling", "meta.llama3", `{"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"}],"max_tokens":9,"temperature":1.5,"top_p":0.5,"stop":["x"," "],"seed":1,"stream":true}`,
			`{"system":[{"text":"be"}],` + said + `,"inferenceConfig":{"maxTokens":9,"temperature":1,"topP":0.5,"stopSequences":["x"]}}`, "stop,seed"},
		{"tools", claudeID, `{` + hi + `,` + weather + `,"tool_choice":"required"}`, `{` + said + `,"toolConfig":{"tools":[` + spec + `],"toolChoice":{"any":{}}}}`, ""},
		{"one_tool", claudeID, `{` + hi + `,` + weather + `,"tool_choice":{"type":"function","function":{"name":"w"}}}`, `{` + said + `,"toolConfig":{"tools":[` + spec + `],"toolChoice":{"tool":{"name":"w"}}}}`, ""},
		{"choice_that_a_model_cannot", "meta.llama3", `{` + hi + `,` + weather + `,"tool_choice":"required"}`, `{` + said + `,"toolConfig":{"tools":[` + spec + `]}}`, "tool_choice"},
		{"no_tool_wanted", claudeID, `{` + hi + `,` + weather + `,"tool_choice":"none"}`, `{` + said + `}`, ""},
		{"schema_of_a_newer_claude", claudeID, `{` + hi + `,` + schema + `}`,
			`{` + said + `,"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}","name":"n"}}}}}`, ""},
		{"schema_as_a_tool", "amazon.nova-pro-v1:0", `{` + hi + `,` + schema + `}`,
			`{` + said + `,"toolConfig":{"tools":[{"toolSpec":{"name":"weir_structured_output","description":"Returns the answer.","inputSchema":{"json":{"title":"n","type":"object","properties":{}}}}}],"toolChoice":{"tool":{"name":"weir_structured_output"}}}}`, ""},
		{"schema_in_words", "meta.llama3", `{` + hi + `,` + schema + `}`,
			`{"system":[{"text":"Answer with JSON of this schema and nothing else:\n{\"title\":\"n\",\"type\":\"object\",\"properties\":{}}"}],` + said + `}`, ""},
		{"thinking_of_claude", claudeID, `{` + hi + `,"reasoning_effort":"low","temperature":0.5}`,
			`{` + said + `,"inferenceConfig":{"maxTokens":64000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}}}`, "temperature"},
		{"effort_of_gpt_oss", "openai.gpt-oss-120b-1:0", `{` + hi + `,"reasoning_effort":"xhigh"}`, `{` + said + `,"additionalModelRequestFields":{"reasoning_effort":"high"}}`, "reasoning_effort"},
		{"effort_of_nova", "us.amazon.nova-2-lite-v1:0", `{` + hi + `,"reasoning_effort":"none"}`, `{` + said + `,"additionalModelRequestFields":{"reasoningConfig":{"type":"disabled"}}}`, ""},
		{"high_effort_of_nova", "us.amazon.nova-2-lite-v1:0", `{` + hi + `,"reasoning_effort":"high","max_tokens":9,"temperature":0.5}`,
			`{` + said + `,"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}}`, "max_completion_tokens,temperature"},
		{"effort_of_others", "meta.llama3", `{` + hi + `,"reasoning_effort":"low"}`, `{` + said + `}`, "reasoning_effort"},
		{"prefill_first", "meta.llama3", `{"messages":[{"role":"assistant","content":"So "}]}`,
			`{"messages":[{"role":"user","content":[{"text":"(The conversation so far is not shown.)"}]},{"role":"assistant","content":[{"text":"So"}]}]}`, ""},
		{"calls_and_results", "mistral.mistral-large-2407-v1:0", `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"call_abcdefghijk","type":"function","function":{"name":"w","arguments":"{\"c\":\"x\"}"}}]},{"role":"tool","tool_call_id":"call_abcdefghijk","content":""}]}`,
			`{"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"kjihgfedc","name":"w","input":{"c":"x"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"kjihgfedc","content":[{"text":"(no output)"}]}}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"w","inputSchema":{"json":{"type":"object","properties":{}}}}}]}}`, ""},
		{"image", claudeID, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpg;base64,AAAA"}}]}]}`,
			`{"messages":[{"role":"user","content":[{"image":{"format":"jpeg","source":{"bytes":"AAAA"}}}]}]}`, ""},
		{"document", claudeID, `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"my_r.v2.pdf","file_data":"data:application/pdf;base64,AAAA"}},{"type":"file","file":{"filename":"my_r.v2.pdf","file_data":"data:application/pdf;base64,BBBB"}}]}]}`,
			`{"messages":[{"role":"user","content":[{"document":{"format":"pdf","name":"my r v2","source":{"bytes":"AAAA"}}},{"document":{"format":"pdf","name":"my r v2 2","source":{"bytes":"BBBB"}}},{"text":"(See the document.)"}]}]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, dropped := converseRequest(t, Chat, tt.model, tt.in)
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if dropped != tt.dropped {
				t.Errorf("dropped %q, want %q", dropped, tt.dropped)
			}
		})
	}
}

func TestConverseRequestOfMessagesClient(t *testing.T) {
	in := `{"max_tokens":50,"top_k":5,"system":[{"type":"text","text":"be","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[
		{"role":"user","content":"hi"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"weir.bedrock.SIG"},{"type":"redacted_thinking","data":"weir.bedrock.RED"},{"type":"thinking","thinking":"foreign","signature":"native"},{"type":"tool_use","id":"tu","name":"w","input":{}}]},
		{"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"tu","is_error":true,"content":"bad"}]}]}`
	got, dropped := converseRequest(t, Messages, claudeID, in)
	want := `{"system":[{"text":"be"},{"cachePoint":{"type":"default","ttl":"1h"}}],"messages":[{"role":"user","content":[{"text":"hi"}]},` +
		`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"SIG"}}},{"reasoningContent":{"redactedContent":"RED"}},{"toolUse":{"toolUseId":"tu","name":"w","input":{}}}]},` +
		`{"role":"user","content":[{"toolResult":{"toolUseId":"tu","content":[{"text":"bad"}],"status":"error"}},{"text":"and"}]}],` +
		`"toolConfig":{"tools":[{"toolSpec":{"name":"w","inputSchema":{"json":{"type":"object","properties":{}}}}}]},"inferenceConfig":{"maxTokens":50},"additionalModelRequestFields":{"top_k":5}}`
	if got != want || dropped != "messages.thinking" {
		t.Errorf("got\n%s\nwant\n%s\ndropped %q", got, want, dropped)
	}
}

func TestConverseRefusesUnsupportedParts(t *testing.T) {
	for name, part := range map[string]string{
		"image_by_address": `{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}`,
		"other_image":      `{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AAAA"}}`,
		"audio":            `{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`,
		"stored_file":      `{"type":"file","file":{"file_id":"f"}}`,
	} {
		_, _, err := Request(Chat, Converse, []byte(`{"messages":[{"role":"user","content":[`+part+`]}]}`), Options{Model: claudeID})
		if e, ok := err.(*apierr.Error); !ok || e.Status != 400 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConverseAnswer(t *testing.T) {
	body := `{"metrics":{"latencyMs":1},"output":{"message":{"role":"assistant","content":[
		{"reasoningContent":{"reasoningText":{"text":"hm","signature":"SIG"}}},{"reasoningContent":{"redactedContent":"RED"}},
		{"text":"Grüße"},{"toolUse":{"toolUseId":"tu_1","name":"w","input":{"c":"x"}}}]}},
		"stopReason":"tool_use","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":18,"cacheReadInputTokens":2,"cacheWriteInputTokens":1}}`
	out, u, err := Response(Converse, Chat, []byte(body), Options{Model: "bedrock/x", ID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if u != (Usage{Input: 13, Output: 5, CacheRead: 2, CacheWrite: 1, Known: true}) || u != UsageOf(Converse, []byte(body)) {
		t.Errorf("usage %+v", u)
	}
	get := func(path string) string { return gjson.GetBytes(out, path).String() }
	if get("model") != "bedrock/x" || get("choices.0.message.content") != "Grüße" || get("choices.0.finish_reason") != "tool_calls" ||
		get("choices.0.message.tool_calls.0.id") != "tu_1" || get("choices.0.message.tool_calls.0.function.arguments") != `{"c":"x"}` || get("usage.prompt_tokens") != "13" {
		t.Errorf("%s", out)
	}
	out, _, err = Response(Converse, Messages, []byte(body), Options{})
	if err != nil || gjson.GetBytes(out, "content.0.signature").Str != "weir.bedrock.SIG" || gjson.GetBytes(out, "content.1.data").Str != "weir.bedrock.RED" || gjson.GetBytes(out, "usage.input_tokens").Int() != 10 {
		t.Errorf("%s %v", out, err)
	}
	// The answer as a tool's input.
	out, _, _ = Response(Converse, Chat, []byte(`{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"weir_structured_output","input":{"a":1}}}]}},"stopReason":"tool_use"}`), Options{})
	if get("choices.0.message.content") != `{"a":1}` || get("choices.0.finish_reason") != "stop" {
		t.Errorf("%s", out)
	}
	for _, bad := range []string{`{}`, `{"output":{}}`, `[]`, `x`} {
		if _, _, err := Response(Converse, Chat, []byte(bad), Options{}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	for reason, want := range map[string]string{"end_turn": "stop", "max_tokens": "length", "guardrail_intervened": "content_filter", "content_filtered": "content_filter", "stop_sequence": "stop"} {
		out, _, _ = Response(Converse, Chat, []byte(`{"output":{"message":{"content":[{"text":"x"}]}},"stopReason":"`+reason+`"}`), Options{})
		if get("choices.0.finish_reason") != want {
			t.Errorf("%s: %s", reason, out)
		}
	}
}

// converseStream are the events of an answer as pkg/provider/bedrock writes
// them.
const converseStream = `event: messageStart
data: {"role":"assistant","p":"a"}

event: contentBlockDelta
data: {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}

event: contentBlockDelta
data: {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"SIG"}}}

event: contentBlockStop
data: {"contentBlockIndex":0}

event: contentBlockDelta
data: {"contentBlockIndex":1,"delta":{"text":"Gr\u00fc\"ße"}}

event: contentBlockStop
data: {"contentBlockIndex":1}

event: contentBlockStart
data: {"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"tu_1","name":"w"}}}

event: contentBlockDelta
data: {"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"c\":"}}}

event: contentBlockDelta
data: {"contentBlockIndex":2,"delta":{"toolUse":{"input":"1}"}}}

event: contentBlockStop
data: {"contentBlockIndex":2}

event: messageStop
data: {"stopReason":"tool_use"}

event: metadata
data: {"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15},"metrics":{"latencyMs":1}}

`

func runConverse(text string, to Dialect, cause error) (string, *Translator) {
	tr := Stream(Converse, to, Options{ID: "r1", StreamUsage: true})
	var out []byte
	for i := 0; i < len(text); i += 7 {
		out = tr.Push([]byte(text[i:min(i+7, len(text))]), out)
	}
	return string(tr.End(cause, out)), tr
}

func TestConverseStreamForChat(t *testing.T) {
	out, tr := runConverse(converseStream, Chat, nil)
	content, args, finish, usage := "", "", "", int64(0)
	for _, line := range strings.Split(out, "\n") {
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		v := gjson.Parse("{" + data)
		content += v.Get("choices.0.delta.content").Str
		args += v.Get("choices.0.delta.tool_calls.0.function.arguments").Str
		if f := v.Get("choices.0.finish_reason").Str; f != "" {
			finish = f
		}
		if u := v.Get("usage.prompt_tokens").Int(); u > 0 {
			usage = u
		}
	}
	if content != `Grü"ße` || args != `{"c":1}` || finish != "tool_calls" || usage != 10 || !strings.HasSuffix(out, "data: [DONE]\n\n") || !tr.Complete() {
		t.Errorf("%q %q %q %d\n%s", content, args, finish, usage, out)
	}
	if tr.Usage() != (Usage{Input: 10, Output: 5, Known: true}) {
		t.Errorf("%+v", tr.Usage())
	}
}

func TestConverseStreamForMessages(t *testing.T) {
	out, tr := runConverse(converseStream, Messages, nil)
	for _, want := range []string{`"thinking":"hm"`, `"signature":"weir.bedrock.SIG"`, `"name":"w"`, `"stop_reason":"tool_use"`, "event: message_stop\n"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%s is not there once in\n%s", want, out)
		}
	}
	if !tr.Complete() {
		t.Error(tr.Failure())
	}
}

func TestFailedConverseStreams(t *testing.T) {
	start := converseStream[:strings.Index(converseStream, "event: contentBlockStart")]
	stopped := converseStream[:strings.Index(converseStream, "event: metadata")]
	tests := []struct {
		name, in string
		cause    error
		status   int // of the failure; 0 means success
	}{
		{"cut", start, nil, 502},
		{"reset", start, stream.ErrReset, 502},
		{"without_metadata", stopped, nil, 0},
		{"reset_before_metadata", stopped, stream.ErrReset, 502},
		{"throttled", start + "event: throttlingException\ndata: {\"message\":\"slow down\"}\n\n", nil, 429},
		{"refused", "event: validationException\ndata: {\"message\":\"bad\"}\n\n", nil, 400},
		{"unavailable", start + "event: serviceUnavailableException\ndata: {}\n\n", nil, 503},
		{"model_broke", start + "event: modelStreamErrorException\ndata: {\"message\":\"the model broke\",\"originalStatusCode\":500}\n\n", nil, 502},
		{"corrupt", start + "event: corruptStreamException\ndata: {\"message\":\"x\"}\n\n", nil, 502},
		{"unknown_exception", start + "event: newException\ndata: {}\n\n", nil, 502},
		{"unknown_event_is_passed_over", start + "event: news\ndata: {}\n\n" + stopped[len(start):], nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, tr := runConverse(tt.in, Chat, tt.cause)
			status := 0
			if f := tr.Failure(); f != nil {
				status = f.Status
			}
			if status != tt.status || tr.Complete() != (tt.status == 0) || strings.Contains(out, `"error"`) != (tt.status != 0) {
				t.Errorf("failure %v, complete %v\n%s", tr.Failure(), tr.Complete(), out)
			}
			if tt.name == "model_broke" && !strings.Contains(out, "the model broke") {
				t.Errorf("the client is not told why: %s", out)
			}
		})
	}
	if e := FirstFailure(Converse, []byte("throttlingException"), []byte(`{"message":"slow"}`)); e == nil || e.Status != 429 || e.Message != "slow" {
		t.Errorf("%v", e)
	}
	if e := FirstFailure(Converse, []byte("messageStart"), []byte(`{"role":"assistant"}`)); e != nil {
		t.Errorf("%v", e)
	}
}
