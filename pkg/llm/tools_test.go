package llm_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// codex is a request with custom tools, namespaces and the local shell.
func codex(t *testing.T) []byte {
	t.Helper()
	return cases(t, "requests/responses", ".json")["codex_tools"]
}

// translated translates a request and returns what is sent, with the options
// for its answer.
func translated(t *testing.T, from, to llm.Dialect, devs string, body []byte) (gjson.Result, llm.Options) {
	t.Helper()
	opt := options()
	opt.Tools, opt.Deviations, opt.Vendor = &llm.Tools{}, ir.DeviationsOf(devs), true
	sent, _, err := llm.Request(from, to, body, opt)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.ParseBytes(sent), opt
}

// sentNames returns the names of the tools in a request to an upstream.
func sentNames(d llm.Dialect, sent gjson.Result) (names []string) {
	paths := map[llm.Dialect]string{
		llm.Chat: "tools.#.function.name", llm.Cohere: "tools.#.function.name", llm.Messages: "tools.#.name",
		llm.Gemini: "tools.0.functionDeclarations.#.name", llm.Converse: "toolConfig.tools.#.toolSpec.name",
		llm.Responses: "tools.#.name",
	}
	for _, n := range sent.Get(paths[d]).Array() {
		names = append(names, n.Str)
	}
	return names
}

// callOf returns an upstream's answer that calls one tool.
func callOf(d llm.Dialect, name, args string) string {
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	switch d {
	case llm.Chat:
		return `{"id":"1","choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":` + q(name) + `,"arguments":` + q(args) + `}}]},"finish_reason":"tool_calls"}]}`
	case llm.Messages:
		return `{"id":"msg_1","type":"message","content":[{"type":"tool_use","id":"c1","name":` + q(name) + `,"input":` + args + `}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	case llm.Gemini:
		return `{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c1","name":` + q(name) + `,"args":` + args + `}}]},"finishReason":"STOP"}]}`
	case llm.Cohere:
		return `{"id":"1","message":{"tool_calls":[{"id":"c1","type":"function","function":{"name":` + q(name) + `,"arguments":` + q(args) + `}}]},"finish_reason":"TOOL_CALL"}`
	case llm.Converse:
		return `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"c1","name":` + q(name) + `,"input":` + args + `}}]}},"stopReason":"tool_use"}`
	}
	return `{"id":"resp_1","status":"completed","output":[{"type":"function_call","call_id":"c1","name":` + q(name) + `,"arguments":` + q(args) + `}]}`
}

// Each tool of Codex is called by its own name and kind, with any upstream.
func TestCallsAreRestored(t *testing.T) {
	const patch = "*** Begin Patch\n+\"é\\\"\t\n*** End Patch"
	wrapped := `{"input":` + strconv.Quote("*** Begin Patch\n+\"é\\\"\t\n*** End Patch") + `}`
	wrapped = strings.ReplaceAll(wrapped, `\u00e9`, "é")
	type call struct{ kind, space, name, args string }
	want := []call{
		{"function_call", "", "shell", `{"a":1}`},
		{"custom_tool_call", "", "apply_patch", patch},
		{"custom_tool_call", "", "note", patch},
		{"custom_tool_call", "", "serial", patch},
		{"function_call", "mcp__docs__", "search", `{"a":1}`},
		{"custom_tool_call", "mcp__docs__", "query", patch},
		{"function_call", "collaboration", "search", `{"a":1}`},
		{"function_call", "collaboration", "spawn_agent", `{"a":1}`},
		{"function_call", "collaboration", "a_tool_with_a_very_long_name_that_goes_on_for_more_than_sixty_four_letters", `{"a":1}`},
		{"function_call", "", "wait", `{"a":1}`},
		{"function_call", "", "collaboration__search", `{"a":1}`},
		{"local_shell_call", "", "", `{"type":"exec","command":["ls","-l"],"env":{},"timeout_ms":5}`},
		{"tool_search_call", "", "", `{"query":"q"}`},
		{"function_call", "mcp__mail", "send", `{"a":1}`},
	}
	for _, to := range []struct {
		d    llm.Dialect
		devs string
	}{{llm.Messages, "anthropic"}, {llm.Chat, "openai-compatible-1"}, {llm.Chat, "mistral"}, {llm.Gemini, "gemini"}, {llm.Cohere, "cohere"}, {llm.Converse, "bedrock"}} {
		sent, opt := translated(t, llm.Responses, to.d, to.devs, codex(t))
		names := sentNames(to.d, sent)
		if len(names) != len(want) {
			t.Fatalf("%v: %d tools: %v", to.d, len(names), names)
		}
		seen := map[string]bool{}
		for i, w := range want {
			name := names[i]
			if seen[name] || len(name) > 128 || len(name) > 64 && to.d != llm.Messages {
				t.Errorf("%v: name %q", to.d, name)
			}
			seen[name] = true
			args := `{"a":1}`
			switch w.kind {
			case "custom_tool_call":
				args = wrapped
			case "local_shell_call":
				args = `{"command":["ls","-l"],"timeout_ms":5}`
			case "tool_search_call":
				args = w.args
			}
			answer := []byte(callOf(to.d, name, args))
			out, _, err := llm.Response(to.d, llm.Responses, answer, opt)
			if err != nil {
				t.Fatal(err)
			}
			check := func(how string, item gjson.Result) {
				t.Helper()
				got := call{item.Get("type").Str, item.Get("namespace").Str, item.Get("name").Str, item.Get("arguments").String() + item.Get("input").Str + item.Get("action").Raw}
				if got != w || item.Get("call_id").Str != "c1" || item.Get("id").Str == "" {
					t.Errorf("%v %s: got %+v\nwant %+v", to.d, how, item.Raw, w)
				}
			}
			check("answer", gjson.GetBytes(out, "output.0"))
			events, _, err := llm.Replay(to.d, llm.Responses, answer, opt)
			if err != nil {
				t.Fatal(err)
			}
			grammar(t, llm.Responses, events, true)
			check("replay", lastResponse(events).Get("output.0"))
		}
	}
}

// lastResponse returns the response in the last event of a Responses stream.
func lastResponse(events []byte) gjson.Result {
	var last gjson.Result
	for _, e := range eventsOf(events) {
		if v := gjson.GetBytes(e.Data, "response"); v.Exists() {
			last = v
		}
	}
	return last
}

// deltas joins the texts of one event type.
func deltas(events []byte, kind string) (text string, n int) {
	for _, e := range eventsOf(events) {
		if string(e.Name) == kind {
			text += gjson.GetBytes(e.Data, "delta").Str
			n++
		}
	}
	return text, n
}

const chatHead = `data: {"id":"1","model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}` + "\n\n"

func chatPiece(index int, id, name, args string) string {
	b, _ := json.Marshal(args)
	head := ""
	if id != "" {
		head = `"id":"` + id + `","type":"function",`
	}
	if name != "" {
		name = `"name":"` + name + `",`
	}
	return `data: {"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":` + strconv.Itoa(index) + `,` + head + `"function":{` + name + `"arguments":` + string(b) + `}}]},"finish_reason":null}]}` + "\n\n"
}

const chatTail = `data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"

// The input of a custom tool is streamed as its arguments arrive, also if calls
// are interleaved, and independent of the deltas.
func TestCustomCallsStream(t *testing.T) {
	_, opt := translated(t, llm.Responses, llm.Chat, "openai-compatible-1", codex(t))
	const text = "*** Begin Patch\n+\"😀\" \\ é\n*** End Patch"
	b, _ := json.Marshal(text)
	args := `{"input": ` + string(b) + `}`
	var in bytes.Buffer
	in.WriteString(chatHead)
	in.WriteString(chatPiece(0, "c1", "apply_patch", ""))
	for i, r := range args {
		if i == 20 {
			in.WriteString(chatPiece(1, "c2", "mcp__docs__search", `{"q":`))
			in.WriteString(chatPiece(2, "c3", "mcp__docs__query", `{"input":"ask`))
		}
		in.WriteString(chatPiece(0, "", "", string(r)))
	}
	in.WriteString(chatPiece(2, "", "", ` me"}`))
	in.WriteString(chatPiece(1, "", "", `1}`))
	in.WriteString(chatTail)
	var want []byte
	for size := in.Len(); size > 0; size /= 3 {
		s := llm.Stream(llm.Chat, llm.Responses, opt)
		var out []byte
		for rest := in.Bytes(); len(rest) > 0; {
			n := min(size, len(rest))
			out = s.Push(bytes.Clone(rest[:n]), out)
			rest = rest[n:]
		}
		out = bytes.ReplaceAll(s.End(nil, out), []byte(": keep-alive\n\n"), nil)
		if want == nil {
			want = out
		}
		if !bytes.Equal(out, want) {
			t.Fatalf("pieces of %d differ: %s", size, out)
		}
	}
	grammar(t, llm.Responses, want, true)
	got, n := deltas(want, "response.custom_tool_call_input.delta")
	if got != text+"ask me" || n < 20 {
		t.Errorf("%d deltas: %q", n, got)
	}
	items := lastResponse(want).Get("output").Array()
	if len(items) != 4 || items[1].Get("input").Str != text || items[1].Get("call_id").Str != "c1" ||
		items[2].Get("namespace").Str != "mcp__docs__" || items[2].Get("arguments").Str != `{"q":1}` ||
		items[3].Get("input").Str != "ask me" || items[3].Get("name").Str != "query" {
		t.Errorf("items %v", items)
	}
}

// A custom call of a Messages upstream: partial_json is cut anywhere, also
// within escapes.
func TestCustomCallsStreamFromMessages(t *testing.T) {
	_, opt := translated(t, llm.Responses, llm.Messages, "anthropic", codex(t))
	text := "a\"\\\n\u0001😀é"
	args := `{"input":"a\"\\\n\u0001\ud83d\ude00\u00e9"}`
	for cut := 0; cut <= len(args); cut++ {
		q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
		in := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"apply_patch\",\"input\":{}}}\n\n"
		for _, p := range []string{args[:cut], args[cut:]} {
			in += "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":" + q(p) + "}}\n\n"
		}
		in += "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":1}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		s := llm.Stream(llm.Messages, llm.Responses, opt)
		out := s.End(nil, s.Push([]byte(in), nil))
		grammar(t, llm.Responses, out, true)
		got, _ := deltas(out, "response.custom_tool_call_input.delta")
		if item := lastResponse(out).Get("output.0"); got != text || item.Get("input").Str != text || item.Get("type").Str != "custom_tool_call" {
			t.Errorf("cut at %d: %q, %s", cut, got, item.Raw)
		}
		whole, _, err := llm.Collect(llm.Messages, llm.Responses, []byte(in), opt)
		if err != nil || gjson.GetBytes(whole, "output.0.input").Str != text {
			t.Errorf("collected %s, %v", whole, err)
		}
	}
}

// Models do not always write the required arguments.
func TestUnusualInputOfCustomCalls(t *testing.T) {
	_, opt := translated(t, llm.Responses, llm.Chat, "openai-compatible-1", codex(t))
	for args, want := range map[string]string{
		`{"input":"x"}`:                           "x",
		` { "input" : "x" } `:                     "x",
		`{"why":{"a":["}",1]},"n":2,"input":"x"}`: "x",
		`{"input":"x","more":"y"}`:                "x",
		`{"patch":"x"}`:                           "x",
		`{"a":"x","b":"y"}`:                       `{"a":"x","b":"y"}`,
		`{"input":{"a":1}}`:                       `{"a":1}`,
		`{"input":null}`:                          "",
		`{}`:                                      "",
		``:                                        "",
		"*** Begin\n\"q\"":                        "*** Begin\n\"q\"",
		`"*** Begin\n"`:                           "*** Begin\n",
		`{"input":"cut of`:                        "cut of",
		`{"input":"cut \`:                         "cut ",
		`{"inp`:                                   "",
		"{\"input\":\"a\nb\"}":                    "a\nb",
		`{"input":"it\'s"}`:                       `it\'s`,
		`{"input":"\ud83d"}`:                      "\ufffd",
		`{"input":"\ud83dx\udc00\u00e9\ud83d\ud83d\ude00"}`: "\ufffdx\ufffdé\ufffd😀",
		`{"input":"\u00zz"}`: "\ufffdzz",
	} {
		answer := callOf(llm.Chat, "apply_patch", args)
		out, _, err := llm.Response(llm.Chat, llm.Responses, []byte(answer), opt)
		if got := gjson.GetBytes(out, "output.0.input"); err != nil || got.Str != want || got.Type != gjson.String {
			t.Errorf("%s: got %s %v, want %q", args, got.Raw, err, want)
		}
		for size := 1; size < 4; size++ {
			in := chatHead + chatPiece(0, "c1", "apply_patch", "")
			for rest := []rune(args); len(rest) > 0; {
				n := min(size, len(rest))
				in += chatPiece(0, "", "", string(rest[:n]))
				rest = rest[n:]
			}
			s := llm.Stream(llm.Chat, llm.Responses, opt)
			out := s.End(nil, s.Push([]byte(in+chatTail), nil))
			grammar(t, llm.Responses, out, true)
			delta, _ := deltas(out, "response.custom_tool_call_input.delta")
			if got := lastResponse(out).Get("output.1.input").Str; got != want || delta != want {
				t.Errorf("%s in pieces of %d: %q, deltas %q, want %q", args, size, got, delta, want)
			}
		}
	}
}

// A chat client's custom tools are restored in answers of other dialects and of
// vendors of its own dialect that support only functions.
func TestCustomToolsOfChatClient(t *testing.T) {
	body := cases(t, "requests/chat", ".json")["custom_tools"]
	for _, to := range []struct {
		d    llm.Dialect
		devs string
	}{{llm.Messages, "anthropic"}, {llm.Chat, "mistral"}, {llm.Chat, "together"}} {
		sent, opt := translated(t, llm.Chat, to.d, to.devs, body)
		if strings.Contains(sent.Raw, `"custom"`) || !strings.Contains(sent.Raw, "start: /a/") || !strings.Contains(sent.Raw, "*** Begin") || !opt.Tools.Changed() {
			t.Errorf("%s: sent %s", to.devs, sent.Raw)
		}
		if c := sent.Get("tool_choice"); to.d == llm.Chat && c.Raw != `{"type":"function","function":{"name":"patch"}}` && c.Get("function.name").Str != "patch" {
			t.Errorf("%s: tool_choice %s", to.devs, c.Raw)
		}
		answer := []byte(callOf(to.d, "patch", `{"input":"x\n"}`))
		out, _, err := llm.Response(to.d, llm.Chat, answer, opt)
		if call := gjson.GetBytes(out, "choices.0.message.tool_calls.0"); err != nil || call.Get("type").Str != "custom" || call.Get("custom.input").Str != "x\n" || call.Get("custom.name").Str != "patch" {
			t.Errorf("%s: %s, %v", to.devs, call.Raw, err)
		}
		events, _, err := llm.Replay(to.d, llm.Chat, answer, opt)
		if err != nil || !bytes.Contains(events, []byte(`"custom":{"input":"x\n"}`)) {
			t.Errorf("%s: %s, %v", to.devs, events, err)
		}
	}
	// A user's own server gets the client's bytes.
	opt := options()
	opt.Tools, opt.Deviations = &llm.Tools{}, ir.DeviationsOf("openai-compatible-1")
	sent, _, err := llm.Request(llm.Chat, llm.Chat, body, opt)
	if err != nil || gjson.GetBytes(sent, "tools").Raw != gjson.GetBytes(body, "tools").Raw || opt.Tools.Changed() {
		t.Errorf("sent %s, %v", sent, err)
	}
}

// Names over the limit of the upstream are restored in answers.
func TestLongToolNamesAreRestored(t *testing.T) {
	body := cases(t, "requests/messages", ".json")["long_names"]
	want := gjson.GetBytes(body, "tools.1.name").Str
	for _, to := range []struct {
		d    llm.Dialect
		devs string
	}{{llm.Chat, "openai"}, {llm.Chat, "openai-compatible-1"}, {llm.Responses, "openai"}, {llm.Gemini, "gemini"}, {llm.Converse, "bedrock"}} {
		sent, opt := translated(t, llm.Messages, to.d, to.devs, body)
		again, _ := translated(t, llm.Messages, to.d, to.devs, body)
		names := sentNames(to.d, sent)
		if len(names) != 3 || names[0] != "Read" || len(names[1]) > 64 || len(names[2]) > 64 || names[1] == names[2] || strings.Count(sent.Raw, names[1]) < 2 || again.Raw != sent.Raw {
			t.Errorf("%s: names %v", to.devs, names)
		}
		answer := []byte(callOf(to.d, names[1], `{"a":1}`))
		out, _, err := llm.Response(to.d, llm.Messages, answer, opt)
		if got := gjson.GetBytes(out, "content.0.name").Str; err != nil || got != want {
			t.Errorf("%s: %q, %v", to.devs, got, err)
		}
		events, _, err := llm.Replay(to.d, llm.Messages, answer, opt)
		if err != nil || !bytes.Contains(events, []byte(`"name":"`+want+`"`)) || bytes.Contains(events, []byte(names[1])) {
			t.Errorf("%s: %s, %v", to.devs, events, err)
		}
	}
	// Anthropic accepts 128.
	sent, opt := translated(t, llm.Chat, llm.Messages, "anthropic", []byte(`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"`+strings.Repeat("a", 128)+`"}},{"type":"function","function":{"name":"a.b"}}]}`))
	if n := sentNames(llm.Messages, sent); len(n[0]) != 128 || n[1] == "a.b" || !strings.HasPrefix(n[1], "a_b_") || !opt.Tools.Changed() {
		t.Errorf("names %v", n)
	}
}

// A client that sends functions gets function_call, in answers and streams,
// also if the upstream calls several at once.
func TestLegacyFunctionsAreRestored(t *testing.T) {
	body := cases(t, "requests/chat", ".json")["functions_of_old"]
	for _, to := range []llm.Dialect{llm.Messages, llm.Gemini, llm.Responses} {
		_, opt := translated(t, llm.Chat, to, "openai", body)
		answer := []byte(callOf(to, "f", `{"a":1}`))
		out, _, err := llm.Response(to, llm.Chat, answer, opt)
		c := gjson.GetBytes(out, "choices.0")
		if err != nil || c.Get("message.function_call").Raw != `{"name":"f","arguments":"{\"a\":1}"}` || c.Get("message.tool_calls").Exists() || c.Get("finish_reason").Str != "function_call" {
			t.Errorf("%v: %s, %v", to, out, err)
		}
		events, _, err := llm.Replay(to, llm.Chat, answer, opt)
		name, args, finish := "", "", ""
		for _, e := range eventsOf(events) {
			d := gjson.GetBytes(e.Data, "choices.0")
			name += d.Get("delta.function_call.name").Str
			args += d.Get("delta.function_call.arguments").Str
			finish += d.Get("finish_reason").Str
		}
		if err != nil || name != "f" || args != `{"a":1}` || finish != "function_call" || bytes.Contains(events, []byte("tool_calls")) {
			t.Errorf("%v: %s, %v", to, events, err)
		}
	}
	_, opt := translated(t, llm.Chat, llm.Messages, "anthropic", body)
	several := `{"content":[{"type":"tool_use","id":"a","name":"f","input":{"a":1}},{"type":"tool_use","id":"b","name":"f","input":{"a":2}}],"stop_reason":"tool_use"}`
	events, _, err := llm.Replay(llm.Messages, llm.Chat, []byte(several), opt)
	if err != nil || bytes.Contains(events, []byte(`\"a\":2`)) || !bytes.Contains(events, []byte(`\"a\":1`)) {
		t.Errorf("%s, %v", events, err)
	}
	// An answer of the same dialect with function_call passes unchanged.
	old := `{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}`
	events, _, err = llm.Replay(llm.Chat, llm.Chat, []byte(old), options())
	if err != nil || !bytes.Contains(events, []byte(`"function_call":{"name":"f"`)) || !bytes.Contains(events, []byte(`"finish_reason":"function_call"`)) {
		t.Errorf("%s, %v", events, err)
	}
}

// A user's id over the limit becomes a hash, the same for the same id.
func TestLongUserIDs(t *testing.T) {
	long := strings.Repeat("ü", 129)
	chat := func(field, id string) string {
		return `{"model":"m","` + field + `":"` + id + `","messages":[{"role":"user","content":"x"}]}`
	}
	for _, tt := range []struct {
		from, to          llm.Dialect
		devs, body, field string
		short             bool
	}{
		{llm.Chat, llm.Chat, "openai", chat("user", long), "user", true},
		{llm.Chat, llm.Chat, "openai", chat("safety_identifier", long), "safety_identifier", true},
		{llm.Chat, llm.Chat, "openai", chat("user", long[:256]), "user", false},
		{llm.Chat, llm.Chat, "azure", chat("user", long[:130]), "user", true},
		{llm.Chat, llm.Chat, "openrouter", chat("user", long), "user", true},
		{llm.Chat, llm.Messages, "anthropic", chat("user", long), "metadata.user_id", false},
		{llm.Chat, llm.Messages, "anthropic", chat("user", long+long), "metadata.user_id", true},
		{llm.Chat, llm.Responses, "openai", chat("user", long), "safety_identifier", true},
		{llm.Responses, llm.Responses, "openai", `{"model":"m","input":"x","safety_identifier":"` + long + `"}`, "safety_identifier", true},
		{llm.Messages, llm.Chat, "zai", `{"model":"m","max_tokens":9,"metadata":{"user_id":"` + long + `"},"messages":[{"role":"user","content":"x"}]}`, "user", true},
		{llm.Messages, llm.Messages, "anthropic", `{"model":"m","max_tokens":9,"metadata":{"user_id":"` + long + `"},"messages":[{"role":"user","content":"x"}]}`, "metadata.user_id", false},
	} {
		opt := options()
		opt.Deviations, opt.Vendor, opt.LongUser = ir.DeviationsOf(tt.devs), true, true
		sent, _, err := llm.Request(tt.from, tt.to, []byte(tt.body), opt)
		again, _, _ := llm.Request(tt.from, tt.to, []byte(tt.body), opt)
		got := gjson.GetBytes(sent, tt.field).Str
		if err != nil || !bytes.Equal(sent, again) || tt.short != strings.HasPrefix(got, "user_") || tt.short != (len(got) < 64) || got == "" {
			t.Errorf("%v to %s: %s %q, %v", tt.from, tt.devs, tt.field, got, err)
		}
	}
}

func FuzzFreeform(f *testing.F) {
	body := []byte(`{"model":"m","input":"x","tools":[{"type":"custom","name":"p"}]}`)
	for _, s := range []string{"", "a\"\\\n", "😀\x01", `{"input":"x"}`, strings.Repeat("é", 100)} {
		f.Add(s, 3)
	}
	opt := options()
	opt.Tools = &llm.Tools{}
	if _, _, err := llm.Request(llm.Responses, llm.Messages, body, opt); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		b, err := json.Marshal(map[string]string{"input": text})
		if err != nil || size < 1 {
			return
		}
		var want struct{ Input string }
		json.Unmarshal(b, &want)
		in := chatHead + chatPiece(0, "c1", "p", "")
		for rest := []rune(string(b)); len(rest) > 0; {
			n := min(size, len(rest))
			in += chatPiece(0, "", "", string(rest[:n]))
			rest = rest[n:]
		}
		s := llm.Stream(llm.Chat, llm.Responses, opt)
		out := s.End(nil, s.Push([]byte(in+chatTail), nil))
		delta, _ := deltas(out, "response.custom_tool_call_input.delta")
		if got := lastResponse(out).Get("output.1.input").Str; got != want.Input || delta != want.Input {
			t.Errorf("%q: got %q, deltas %q", want.Input, got, delta)
		}
	})
}

// The shell and apply_patch of Responses are functions for an upstream that
// supports only those, in requests, histories and answers.
func TestShellAndPatchTools(t *testing.T) {
	const body = `{"model":"m","input":[{"role":"user","content":"Fix it"},
		{"type":"shell_call","id":"sh_1","call_id":"c1","status":"completed","action":{"commands":["ls","pwd"],"timeout_ms":1000,"max_output_length":null},"environment":{"type":"local"}},
		{"type":"shell_call_output","call_id":"c1","max_output_length":null,"output":[{"stdout":"a.txt","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"type":"apply_patch_call","id":"apc_1","call_id":"c2","status":"completed","operation":{"type":"update_file","path":"a.txt","diff":"@@\n-a\n+b\n"}},
		{"type":"apply_patch_call_output","call_id":"c2","status":"failed","output":"no such file"},
		{"type":"apply_patch_call","id":"apc_2","call_id":"c3","status":"completed","operation":{"type":"delete_file","path":"b.txt"}},
		{"type":"apply_patch_call_output","call_id":"c3","status":"completed","output":null}],
		"tools":[{"type":"function","name":"shell","parameters":{}},{"type":"shell","environment":{"type":"local","skills":[{"name":"pdf","description":"Reads PDF files","path":"/skills/pdf"}]}},{"type":"apply_patch"}],
		"tool_choice":{"type":"apply_patch"}}`
	for _, to := range []struct {
		d    llm.Dialect
		devs string
	}{{llm.Messages, "anthropic"}, {llm.Chat, "openai-compatible-1"}, {llm.Chat, "openai"}, {llm.Gemini, "gemini"}, {llm.Cohere, "cohere"}, {llm.Converse, "bedrock"}} {
		// Cohere would get only the chosen tool.
		sent, opt := translated(t, llm.Responses, to.d, to.devs, []byte(strings.Replace(body, `"tool_choice":{"type":"apply_patch"}`, `"tool_choice":"auto"`, 1)))
		names := sentNames(to.d, sent)
		if len(names) != 3 || names[0] != "shell" || !strings.HasPrefix(names[1], "shell_") || names[2] != "apply_patch" || !strings.Contains(sent.Raw, "/skills/pdf") {
			t.Fatalf("%s: tools %v", to.devs, names)
		}
		for _, tt := range []struct{ name, args, kind, prefix, member, want string }{
			{names[0], `{"commands":["ls"]}`, "function_call", "fc_", "arguments", ``},
			{names[1], `{"commands":["ls -l","pwd"],"timeout_ms":5}`, "shell_call", "sh_", "action", `{"commands":["ls -l","pwd"],"timeout_ms":5,"max_output_length":null}`},
			{names[1], `{"commands":"ls"}`, "shell_call", "sh_", "action", `{"commands":["ls"],"timeout_ms":null,"max_output_length":null}`},
			{names[2], `{"type":"create_file","path":"a","diff":"+é\n"}`, "apply_patch_call", "apc_", "operation", `{"type":"create_file","path":"a","diff":"+é\n"}`},
			{names[2], `{"type":"delete_file","path":"a","diff":""}`, "apply_patch_call", "apc_", "operation", `{"type":"delete_file","path":"a"}`},
			{names[2], `{"path":"a","diff":"@@\n-a"}`, "apply_patch_call", "apc_", "operation", `{"type":"update_file","path":"a","diff":"@@\n-a"}`},
		} {
			answer := []byte(callOf(to.d, tt.name, tt.args))
			out, _, err := llm.Response(to.d, llm.Responses, answer, opt)
			if err != nil {
				t.Fatal(err)
			}
			events, _, err := llm.Replay(to.d, llm.Responses, answer, opt)
			if err != nil {
				t.Fatal(err)
			}
			grammar(t, llm.Responses, events, true)
			for how, item := range map[string]gjson.Result{"answer": gjson.GetBytes(out, "output.0"), "replay": lastResponse(events).Get("output.0")} {
				if item.Get("type").Str != tt.kind || item.Get("status").Str != "completed" || item.Get("call_id").Str != "c1" || !strings.HasPrefix(item.Get("id").Str, tt.prefix) || tt.want != "" && item.Get(tt.member).Raw != tt.want {
					t.Errorf("%s %s: got %s", to.devs, how, item.Raw)
				}
			}
		}
	}

	sent, _ := translated(t, llm.Responses, llm.Messages, "anthropic", []byte(body))
	shell := sentNames(llm.Messages, sent)[1]
	for path, want := range map[string]string{
		"tool_choice.name":                     "apply_patch",
		"messages.1.content.0.name":            shell,
		"messages.1.content.0.input":           `{"commands":["ls","pwd"],"timeout_ms":1000}`,
		"messages.2.content.0.content.0.text":  `[{"stdout":"a.txt","stderr":"","outcome":{"type":"exit","exit_code":0}}]`,
		"messages.3.content.0.name":            "apply_patch",
		"messages.3.content.0.input":           `{"type":"update_file","path":"a.txt","diff":"@@\n-a\n+b\n"}`,
		"messages.4.content.0.is_error":        "true",
		"messages.4.content.0.content.0.text":  "no such file",
		"messages.5.content.0.input":           `{"type":"delete_file","path":"b.txt"}`,
		"messages.6.content.0.content.0.text":  "Done.",
		"messages.6.content.0.tool_use_id":     "c3",
		"messages.2.content.0.tool_use_id":     "c1",
		"messages.3.content.0.id":              "c2",
		"tools.2.input_schema.properties.path": `{"type":"string","description":"The file, relative to the working directory."}`,
	} {
		if got := sent.Get(path).String(); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	// A client cannot run a shell of the vendor's container.
	opt := options()
	_, dropped, err := llm.Request(llm.Responses, llm.Chat, []byte(`{"model":"m","input":"x","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`), opt)
	if err != nil || strings.Join(dropped, " ") != "tools.shell" {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	// Of two tools with one name only the allowed one is sent.
	choice := `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"shell"}]}}`
	sent, _ = translated(t, llm.Responses, llm.Chat, "openai-compatible-1", []byte(strings.Replace(body, `"tool_choice":{"type":"apply_patch"}}`, choice, 1)))
	if got := sentNames(llm.Chat, sent); len(got) != 1 || got[0] != shell || sent.Get("tool_choice").Str != "required" {
		t.Errorf("tools %v, choice %s", got, sent.Get("tool_choice"))
	}
}

// Upstreams that do not support allowed_tools get the allowed tools only, and
// the mode.
func TestAllowedToolsElsewhereThanOpenAI(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"a","parameters":{}}},{"type":"function","function":{"name":"b","parameters":{}}}]`
	for _, tt := range []struct{ devs, mode, allowed, choice, names, dropped string }{
		{"openai", "required", "b", "allowed_tools", "a b", ""},
		{"mistral", "required", "b", "required", "b", ""},
		{"groq", "auto", "a", "auto", "a", ""},
		{"deepseek", "required", "c", "", "", "tool_choice.allowed_tools"},
	} {
		for _, from := range []llm.Dialect{llm.Chat, llm.Responses} {
			body := `{"model":"m","messages":[{"role":"user","content":"x"}],` + tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"` + tt.mode + `","tools":[{"type":"function","function":{"name":"` + tt.allowed + `"}}]}}}`
			if from == llm.Responses {
				body = `{"model":"m","input":"x","tools":[{"type":"function","name":"a","parameters":{}},{"type":"function","name":"b","parameters":{}}],"tool_choice":{"type":"allowed_tools","mode":"` + tt.mode + `","tools":[{"type":"function","name":"` + tt.allowed + `"}]}}`
			}
			opt := options()
			opt.Deviations, opt.Vendor = ir.DeviationsOf(tt.devs), true
			sent, dropped, err := llm.Request(from, llm.Chat, []byte(body), opt)
			if err != nil {
				t.Fatal(err)
			}
			v := gjson.ParseBytes(sent)
			choice := v.Get("tool_choice.type").Str + v.Get("tool_choice").Str
			if names := strings.Join(sentNames(llm.Chat, v), " "); names != tt.names || choice != tt.choice || strings.Join(dropped, " ") != tt.dropped {
				t.Errorf("%v to %s: tools %q, choice %q, dropped %v", from, tt.devs, names, choice, dropped)
			}
		}
	}
	// A compatible server gets the client's bytes.
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"x"}],` + tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}}]}}}`)
	sent, _ := translated(t, llm.Chat, llm.Chat, "openai-compatible-1", body)
	if sent.Get("tools.#").Int() != 2 || !sent.Get("tool_choice.allowed_tools").Exists() {
		t.Errorf("sent %s", sent.Raw)
	}
}
