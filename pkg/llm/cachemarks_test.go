package llm_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
)

// marked returns a request for an upstream, and where marks were added.
func marked(t *testing.T, from, to llm.Dialect, model, body string) (out []byte, added string) {
	t.Helper()
	marks := &llm.CacheMarks{}
	opt := llm.Options{Model: model, CacheMarks: marks, Deviations: ir.DeviationsOf("anthropic")}
	out, _, err := llm.Request(from, to, []byte(body), opt)
	if err != nil {
		t.Fatal(err)
	}
	return out, strings.Join(marks.Added, " ")
}

// places returns the paths of the marks of a Messages request.
func places(body []byte) string {
	var list []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v["cache_control"]; ok {
				list = append(list, path)
			}
			for _, name := range []string{"tools", "system", "messages", "content"} {
				if x, ok := v[name]; ok {
					walk(path+"/"+name, x)
				}
			}
		case []any:
			for i, x := range v {
				walk(path+"."+string(rune('0'+i)), x)
			}
		}
	}
	var root any
	_ = json.Unmarshal(body, &root)
	walk("", root)
	return strings.Join(list, " ")
}

func TestCacheMarks(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"a","parameters":{}}},{"type":"function","function":{"name":"b","parameters":{}}}]`
	for _, tt := range []struct {
		name         string
		from         llm.Dialect
		body         string
		added, where string
	}{
		{"all four", llm.Chat,
			`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"},{"role":"assistant","content":"x"},{"role":"user","content":"2"},{"role":"assistant","content":"y"},{"role":"user","content":"3"}],` + tools + `}`,
			"tools system user user", "/tools.1 /system.0 /messages.2/content.0 /messages.4/content.0"},
		{"one question", llm.Chat, `{"messages":[{"role":"user","content":"1"}]}`, "", ""},
		{"one question with tools", llm.Chat, `{"messages":[{"role":"user","content":"1"}],` + tools + `}`, "tools user", "/tools.1 /messages.0/content.0"},
		{"the last of several system messages", llm.Chat,
			`{"messages":[{"role":"system","content":"s"},{"role":"developer","content":"t"},{"role":"user","content":"1"}]}`, "system", "/system.1"},
		{"the last part", llm.Chat,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":" "}]}],` + tools + `}`,
			"tools user", "/tools.1 /messages.0/content.1"},
		{"results of tools", llm.Chat,
			`{"messages":[{"role":"user","content":"1"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"b","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"tool","tool_call_id":"c2","content":"y"}]}`,
			"user user", "/messages.0/content.0 /messages.2/content.1"},
		{"tools that are allowed", llm.Chat,
			`{"messages":[{"role":"user","content":"1"}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}}]}},` + tools + `}`,
			"tools user", "/tools.0 /messages.0/content.0"},
		{"Responses", llm.Responses,
			`{"instructions":"s","input":[{"role":"user","content":"1"},{"type":"function_call","call_id":"c1","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"}],"tools":[{"type":"function","name":"a","parameters":{}}]}`,
			"tools system user user", "/tools.0 /system.0 /messages.0/content.0 /messages.2/content.0"},
		{"Gemini", llm.Gemini,
			`{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"1"}]},{"role":"model","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"2"}]}]}`,
			"system user user", "/system.0 /messages.0/content.0 /messages.2/content.0"},
		{"completions", llm.Completions, `{"prompt":"1"}`, "", ""},
		{"the client's mark", llm.Chat,
			`{"messages":[{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"1"}],` + tools + `}`, "", "/system.0"},
		{"the client's breakpoint", llm.Responses,
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"1","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"role":"user","content":"2"}]}`, "", "/messages.0/content.0"},
	} {
		out, added := marked(t, tt.from, llm.Messages, "claude-sonnet-4-5", tt.body)
		if where := places(out); added != tt.added || where != tt.where {
			t.Errorf("%s: added %q at %q, want %q at %q", tt.name, added, where, tt.added, tt.where)
		}
		if _, added := marked(t, tt.from, llm.Messages, "minimax-m2", tt.body); added != "" {
			t.Errorf("%s: another vendor's model is marked: %s", tt.name, added)
		}
		converse, added := marked(t, tt.from, llm.Converse, "anthropic.claude-sonnet-4-5-20250929-v1:0", tt.body)
		if n := strings.Count(string(converse), `{"cachePoint":{"type":"default"}}`); added != tt.added || tt.added != "" && n != len(strings.Fields(tt.added)) {
			t.Errorf("%s, Bedrock: %d marks, told %q: %s", tt.name, n, added, converse)
		}
	}
	for model, want := range map[string]bool{
		"anthropic.claude-3-haiku-20240307-v1:0": false, "anthropic.claude-3-5-sonnet-20240620-v1:0": false, "us.anthropic.claude-3-5-haiku-20241022-v1:0": true,
		"us.anthropic.claude-3-7-sonnet-20250219-v1:0": true, "global.anthropic.claude-opus-4-8": true, "amazon.nova-pro-v1:0": false, "openai.gpt-oss-120b-1:0": false,
	} {
		if out, added := marked(t, llm.Chat, llm.Converse, model, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"}]}`); (added != "") != want || strings.Contains(string(out), "cachePoint") != want {
			t.Errorf("%s: added %q", model, added)
		}
	}
}

// The next call of a conversation has a mark where the last one of the call before was.
func TestCacheMarksFollowTheConversation(t *testing.T) {
	turn := `{"role":"user","content":"q"},{"role":"assistant","content":"a"},`
	last := ""
	for n := range 6 {
		body := `{"messages":[{"role":"system","content":"s"},` + strings.Repeat(turn, n+1) + `{"role":"user","content":"q"}]}`
		out, _ := marked(t, llm.Chat, llm.Messages, "claude-sonnet-4-5", body)
		where := strings.Fields(places(out))
		if last != "" && where[len(where)-2] != last {
			t.Errorf("%d turns: marks at %v, the last one was at %s", n, where, last)
		}
		last = where[len(where)-1]
	}
}

// Each mark that is told is in the request, four at most; a request with marks of the
// client has no others. All recorded requests are tried.
func TestCacheMarksOfRecordedRequests(t *testing.T) {
	for _, from := range []llm.Dialect{llm.Chat, llm.Responses, llm.Gemini} {
		files, _ := filepath.Glob(filepath.Join("testdata/requests", from.String(), "*.json"))
		for _, file := range files {
			if strings.HasSuffix(file, ".golden.json") {
				continue
			}
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for to, model := range map[llm.Dialect]string{llm.Messages: "claude-sonnet-4-5", llm.Converse: "anthropic.claude-sonnet-4-5"} {
				plain, _, err := llm.Request(from, to, body, llm.Options{Model: model})
				if err != nil {
					continue // refused, with or without marks
				}
				marks := &llm.CacheMarks{}
				out, dropped, err := llm.Request(from, to, body, llm.Options{Model: model, CacheMarks: marks})
				if err != nil || !gjson.ValidBytes(out) {
					t.Fatalf("%s to %s: %v", file, to, err)
				}
				count := func(b []byte) int {
					return strings.Count(string(b), `"cache_control":{`) + strings.Count(string(b), `"cachePoint":{`)
				}
				own, n := count(plain), count(out)
				switch {
				case own > 0 && (len(marks.Added) > 0 || n != own):
					t.Errorf("%s to %s: %d marks of the client, then %d; told %v", file, to, own, n, marks.Added)
				case own == 0 && n != len(marks.Added) || n > 4:
					t.Errorf("%s to %s: %d marks, told %v; dropped %v", file, to, n, marks.Added, dropped)
				}
			}
		}
	}
}

// OpenRouter reads marks of texts in chat requests of its own dialect.
func TestCacheMarksOfChatRequests(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	for _, tt := range []struct{ name, model, body, added, want string }{
		{"system and turns", "anthropic/claude-sonnet-4.5",
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"1"},{"role":"assistant","content":"x"},{"role":"user","content":"2"},{"role":"user","content":"3"}]}`,
			"system user user",
			`{"model":"anthropic/claude-sonnet-4.5","messages":[{"role":"system","content":[{"type":"text","text":"s",` + mark + `}]},{"role":"user","content":[{"type":"text","text":"1",` + mark + `}]},{"role":"assistant","content":"x"},{"role":"user","content":"2"},{"role":"user","content":[{"type":"text","text":"3",` + mark + `}]}]}`},
		{"parts", "anthropic/claude-sonnet-4.5",
			`{"model":"m","messages":[{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}},{"type":"text","text":" "}]}]}`,
			"user",
			`{"model":"anthropic/claude-sonnet-4.5","messages":[{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"a",` + mark + `},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}},{"type":"text","text":" "}]}]}`},
		{"a turn of results", "anthropic/claude-sonnet-4.5",
			`{"model":"m","messages":[{"role":"user","content":"1"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"c","content":"y"}]}`,
			"user",
			`{"model":"anthropic/claude-sonnet-4.5","messages":[{"role":"user","content":[{"type":"text","text":"1",` + mark + `}]},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"c","content":"y"}]}`},
		{"own marks", "anthropic/claude-sonnet-4.5", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"1",` + mark + `}]},{"role":"user","content":"2"}]}`, "",
			`{"model":"anthropic/claude-sonnet-4.5","messages":[{"role":"user","content":[{"type":"text","text":"1",` + mark + `}]},{"role":"user","content":"2"}]}`},
		{"another family", "openai/gpt-5", `{"model":"m","messages":[{"role":"user","content":"1"}]}`, "", `{"model":"openai/gpt-5","messages":[{"role":"user","content":"1"}]}`},
		{"a client that says so in words", "anthropic/claude-sonnet-4.5", `{"model":"m","messages":[{"role":"assistant","content":"x"},{"role":"user","content":"\"cache_control\""}]}`, "user",
			`{"model":"anthropic/claude-sonnet-4.5","messages":[{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"\"cache_control\"",` + mark + `}]}]}`},
	} {
		marks := &llm.CacheMarks{}
		opt := llm.Options{Model: tt.model, CacheMarks: marks, Deviations: ir.DeviationsOf("openrouter"), Vendor: true}
		parts, _, err := llm.RequestParts(llm.Chat, llm.Chat, []byte(tt.body), opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(bytes.Join(parts, nil)); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
		if added := strings.Join(marks.Added, " "); added != tt.added {
			t.Errorf("%s: told %q, want %q", tt.name, added, tt.added)
		}
		opt.Deviations, marks.Added = ir.DeviationsOf("openai-compatible-0123abcd"), nil
		if out, _, _ := llm.Request(llm.Chat, llm.Chat, []byte(tt.body), opt); strings.Count(string(out), mark) != strings.Count(tt.body, mark) || marks.Added != nil {
			t.Errorf("%s: a compatible server gets marks: %s", tt.name, out)
		}
	}
}

// Marking takes memory proportional to the length of the request.
func TestCacheMarksAreLinearInLength(t *testing.T) {
	const n, factor = 5000, 150
	user := `{"role":"user","content":"x"}`
	for name, body := range map[string]string{
		"turns":    `{"messages":[` + times(n, user+`,{"role":"assistant","content":"y"}`) + `,` + user + `]}`,
		"messages": `{"messages":[` + times(n, user) + `]}`,
		"systems":  `{"messages":[` + times(n, `{"role":"system","content":" "}`) + `,` + user + `]}`,
		"parts":    `{"messages":[{"role":"user","content":[` + times(n, `{"type":"text","text":" "}`) + `]}]}`,
		"tools": `{"messages":[` + user + `],"tools":[` + times(n, `{"type":"function","function":{"name":"f#","parameters":{}}}`) +
			`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` + times(n, `{"type":"function","function":{"name":"g#"}}`) + `]}}}`,
	} {
		for to, devs := range map[llm.Dialect]string{llm.Chat: "openrouter", llm.Messages: "anthropic", llm.Converse: "bedrock"} {
			opt := llm.Options{Model: "anthropic.claude-sonnet-4-5", CacheMarks: &llm.CacheMarks{}, Deviations: ir.DeviationsOf(devs)}
			used := allocated(func() { _, _, _ = llm.Request(llm.Chat, to, []byte(body), opt) })
			if used > factor*len(body) {
				t.Errorf("%s to %s: %d bytes for one of %d", name, to, used, len(body))
			}
		}
	}
}

// FuzzCacheMarks marks requests of chat clients. The marks that are told are in the
// request, four at most, unless the client has its own.
func FuzzCacheMarks(f *testing.F) {
	for _, body := range cases(f, "requests/chat", ".json") {
		for to := range 3 {
			f.Add(uint8(to), body)
		}
	}
	targets := []llm.Dialect{llm.Chat, llm.Messages, llm.Converse}
	names := []string{"openrouter", "anthropic", "bedrock"}
	f.Fuzz(func(t *testing.T, to uint8, body []byte) {
		i := int(to) % len(targets)
		opt := options()
		opt.Model, opt.Deviations = "claude-sonnet-4-5", ir.DeviationsOf(names[i])
		plain, _, err := llm.Request(llm.Chat, targets[i], body, opt)
		if err != nil {
			return
		}
		opt.CacheMarks = &llm.CacheMarks{}
		out, _, err := llm.Request(llm.Chat, targets[i], body, opt)
		if err != nil || json.Valid(plain) != json.Valid(out) {
			t.Fatalf("%v: %s", err, out)
		}
		count := func(b []byte) int {
			return bytes.Count(b, []byte(`"cache_control":{"type":"ephemeral"`)) + bytes.Count(b, []byte(`"cachePoint":{"type":"default"`))
		}
		if added := len(opt.CacheMarks.Added); added > 4 || count(out) != count(plain)+added {
			t.Fatalf("told %v, %d marks in %s", opt.CacheMarks.Added, count(out)-count(plain), out)
		}
	})
}
