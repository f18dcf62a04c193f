package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
)

// targets are the upstreams for which every request is written.
var targets = []struct {
	name  string
	to    llm.Dialect
	model string
	devs  string // provider id
}{
	{"chat openai gpt-5", llm.Chat, "gpt-5", "openai"},
	{"chat openai gpt-4o", llm.Chat, "gpt-4o", "openai"},
	{"chat openai gpt-5-search-api", llm.Chat, "gpt-5-search-api", "openai"},
	{"chat deepseek", llm.Chat, "deepseek-v4", "deepseek"},
	{"chat mistral", llm.Chat, "mistral-large", "mistral"},
	{"chat openrouter", llm.Chat, "a/b", "openrouter"},
	{"responses gpt-5", llm.Responses, "gpt-5", "openai"},
	{"messages claude-3-5-haiku", llm.Messages, "claude-3-5-haiku-20241022", ""},
	{"messages claude-sonnet-4-5", llm.Messages, "claude-sonnet-4-5-20250929", ""},
	{"messages claude-opus-5-5", llm.Messages, "claude-opus-5-5", ""},
	{"gemini 2.5", llm.Gemini, "gemini-2.5-flash", ""},
	{"gemini 3", llm.Gemini, "gemini-3-pro-preview", ""},
	{"cohere", llm.Cohere, "command-a-03-2025", ""},
}

var clients = []llm.Dialect{llm.Chat, llm.Responses, llm.Messages, llm.Gemini}
var upstreams = []llm.Dialect{llm.Chat, llm.Responses, llm.Messages, llm.Gemini, llm.Cohere}

// options are those of every case: fixed ids and times.
func options() llm.Options {
	return llm.Options{ID: "r1", Now: 1700000000, Model: "m", StreamUsage: true}
}

// cases returns the files of a folder by name without extension.
func cases(t testing.TB, dir, ext string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*"+ext))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if strings.Contains(f, ".golden.") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ext)] = b
	}
	return all
}

// shown is a result in a golden file.
type shown struct {
	Body    json.RawMessage `json:"body,omitempty"`
	Dropped []string        `json:"dropped,omitempty"`
	Usage   *llm.Usage      `json:"usage,omitempty"`
	Status  int             `json:"status,omitempty"`
	Param   string          `json:"param,omitempty"`
	Message string          `json:"message,omitempty"`
}

func failed(t *testing.T, err error) shown {
	t.Helper()
	var e *apierr.Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *apierr.Error: %v", err)
	}
	return shown{Status: e.Status, Param: e.Param, Message: e.Message}
}

func TestRequests(t *testing.T) {
	for _, from := range clients {
		dir := "requests/" + from.String()
		for name, body := range cases(t, dir, ".json") {
			t.Run(from.String()+"/"+name, func(t *testing.T) {
				got := map[string]shown{}
				for _, to := range targets {
					if to.to == from {
						continue
					}
					opt := options()
					opt.Model = to.model
					opt.Deviations = ir.DeviationsOf(to.devs)
					before := bytes.Clone(body)
					out, dropped, err := llm.Request(from, to.to, body, opt)
					if !bytes.Equal(body, before) {
						t.Error("the client's body was changed")
					}
					if err != nil {
						got[to.name] = failed(t, err)
						continue
					}
					if !json.Valid(out) {
						t.Fatalf("%s: not JSON: %s", to.name, out)
					}
					got[to.name] = shown{Body: out, Dropped: dropped}
				}
				golden.JSON(t, dir+"/"+name, got)
			})
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, from := range upstreams {
		dir := "answers/" + from.String()
		for name, body := range cases(t, dir, ".json") {
			t.Run(from.String()+"/"+name, func(t *testing.T) {
				got := map[string]shown{}
				for _, to := range clients {
					out, usage, err := llm.Response(from, to, body, options())
					if err != nil {
						got[to.String()] = failed(t, err)
						continue
					}
					if !json.Valid(out) {
						t.Fatalf("%v: not JSON: %s", to, out)
					}
					got[to.String()] = shown{Body: out, Usage: &usage}
					replayed(t, from, to, body)
				}
				golden.JSON(t, dir+"/"+name, got)
			})
		}
	}
}

// replayed checks that an answer as a stream equals the same answer as JSON.
func replayed(t *testing.T, from, to llm.Dialect, body []byte) {
	t.Helper()
	opt := options()
	events, _, err := llm.Replay(from, to, body, opt)
	if err != nil {
		t.Fatal(err)
	}
	grammar(t, to, events, true)
	want, _, err := llm.Response(from, to, body, opt)
	if err != nil {
		t.Fatal(err)
	}
	sameAnswer(t, "replay "+to.String(), gist(t, to, events, opt), plain(t, to, want, opt))
}

// gist returns the answer of a stream, independent of its deltas, as a chat
// answer.
func gist(t *testing.T, from llm.Dialect, events []byte, opt llm.Options) string {
	t.Helper()
	out, _, err := llm.Collect(from, llm.Chat, events, opt)
	if err != nil {
		t.Fatalf("%v: %v in\n%s", from, err, events)
	}
	return string(out)
}

func plain(t *testing.T, from llm.Dialect, body []byte, opt llm.Options) string {
	t.Helper()
	out, _, err := llm.Response(from, llm.Chat, body, opt)
	if err != nil {
		t.Fatalf("%v: %v in\n%s", from, err, body)
	}
	return string(out)
}

// sameAnswer compares two chat answers without signatures, whose wrapping
// differs, and sources and tokens written to a cache, which not all dialects support.
func sameAnswer(t *testing.T, what, got, want string) {
	t.Helper()
	clean := func(s string) string {
		var v struct {
			Choices []struct {
				Message struct {
					Content   *string
					Refusal   *string
					Reasoning string `json:"reasoning_content"`
					ToolCalls []struct {
						Function struct{ Name, Arguments string }
						Custom   struct{ Name, Input string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
			Usage map[string]any
		}
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatal(err)
		}
		if details, ok := v.Usage["prompt_tokens_details"].(map[string]any); ok {
			if delete(details, "cache_write_tokens"); len(details) == 0 || details["cached_tokens"] == 0.0 {
				delete(v.Usage, "prompt_tokens_details")
			}
		}
		if v.Usage["total_tokens"] == 0.0 {
			v.Usage = nil // some dialects cannot leave it out
		}
		b, _ := json.MarshalIndent(v, "", " ")
		return string(b)
	}
	if g, w := clean(got), clean(want); g != w {
		t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}

func run(from, to llm.Dialect, pieces ...[]byte) ([]byte, *llm.Translator) {
	opt := options()
	s := llm.Stream(from, to, opt)
	var out []byte
	for _, p := range pieces {
		lent := bytes.Clone(p)
		out = s.Push(lent, out)
		for i := range lent {
			lent[i] = '!'
		}
	}
	return s.End(nil, out), s
}

func TestStreams(t *testing.T) {
	for _, from := range upstreams {
		dir := "streams/" + from.String()
		for name, body := range cases(t, dir, ".sse") {
			t.Run(from.String()+"/"+name, func(t *testing.T) {
				for _, to := range clients {
					out, s := run(from, to, body)
					whole, usage, err := llm.Collect(from, llm.Chat, body, options())
					if (err == nil) != s.Complete() || s.Complete() != (s.Failure() == nil) {
						t.Errorf("%v: complete %v, failure %v, collected %v", to, s.Complete(), s.Failure(), err)
					}
					grammar(t, to, out, s.Complete())
					if s.Complete() {
						if s.Usage() != usage {
							t.Errorf("%v: usage %+v, want %+v", to, s.Usage(), usage)
						}
						opt := options()
						if to == llm.Chat || name != "refusal" && name != "prompt_blocked" && name != "safety" && name != "incomplete" {
							sameAnswer(t, to.String(), gist(t, to, out, opt), string(whole))
						}
					}
					golden.Bytes(t, dir+"/"+name+"."+to.String()+".golden.sse", out)
				}
			})
		}
	}
}

func TestEverySplitOfStreamReturnsSameAnswer(t *testing.T) {
	alive := []byte(": keep-alive\n\n") // depends on when pieces come
	for _, from := range upstreams {
		for name, body := range cases(t, "streams/"+from.String(), ".sse") {
			for _, to := range clients {
				want, _ := run(from, to, body)
				want = bytes.ReplaceAll(want, alive, nil)
				step := 1
				if len(body) > 1500 {
					step = 7
				}
				for i := 0; i <= len(body); i += step {
					got, _ := run(from, to, body[:i], body[i:])
					if got = bytes.ReplaceAll(got, alive, nil); !bytes.Equal(got, want) {
						t.Fatalf("%v/%s to %v cut at %d: got\n%s\nwant\n%s", from, name, to, i, got, want)
					}
				}
				var pieces [][]byte
				for i := 0; i < len(body); i++ {
					pieces = append(pieces, body[i:i+1])
				}
				got, _ := run(from, to, pieces...)
				if got = bytes.ReplaceAll(got, alive, nil); !bytes.Equal(got, want) {
					t.Fatalf("%v/%s to %v byte by byte: got\n%s\nwant\n%s", from, name, to, got, want)
				}
			}
		}
	}
}

// grammar checks the order of a client's stream. complete reports whether it
// must end with its terminator; otherwise it must have an error and no
// terminator but chat's.
func grammar(t *testing.T, to llm.Dialect, out []byte, complete bool) {
	t.Helper()
	if to == llm.Gemini {
		geminiGrammar(t, out, complete)
		return
	}
	var r sse.Reader
	var ev sse.Event
	var names []string
	var list []map[string]any
	r.Push(out)
	for r.Next(&ev) {
		if string(ev.Data) == "[DONE]" {
			names = append(names, "[DONE]")
			list = append(list, nil)
			continue
		}
		var v map[string]any
		if err := json.Unmarshal(ev.Data, &v); err != nil {
			t.Fatalf("%v: %v in %s", to, err, ev.Data)
		}
		if to != llm.Chat && v["type"] != string(ev.Name) {
			t.Errorf("%v: event %s with type %v", to, ev.Name, v["type"])
		}
		names = append(names, string(ev.Name))
		list = append(list, v)
	}
	if r.Finish(&ev) {
		t.Errorf("%v: the last event is not ended: %s", to, ev.Data)
	}
	if len(list) == 0 {
		t.Fatalf("%v: nothing came", to)
	}
	switch to {
	case llm.Chat:
		chatGrammar(t, names, list, complete)
	case llm.Messages:
		messagesGrammar(t, names, list, complete)
	case llm.Responses:
		responsesGrammar(t, names, list, complete)
	}
}

func chatGrammar(t *testing.T, names []string, list []map[string]any, complete bool) {
	t.Helper()
	if n := len(names) - 1; names[n] != "[DONE]" {
		t.Error("chat: [DONE] is not last")
	}
	finishes, fails := 0, 0
	for i, v := range list[:len(list)-1] {
		if v["error"] != nil {
			fails++
			continue
		}
		choices := v["choices"].([]any)
		if len(choices) == 0 {
			continue
		}
		c := choices[0].(map[string]any)
		if i == 0 && c["delta"].(map[string]any)["role"] != "assistant" {
			t.Error("chat: the first chunk has no role")
		}
		if c["finish_reason"] != nil {
			finishes++
		}
	}
	if complete && (finishes != 1 || fails != 0) || !complete && (finishes != 0 || fails != 1) {
		t.Errorf("chat: complete %v with %d finishes, %d errors", complete, finishes, fails)
	}
}

// geminiGrammar checks that each event is a line of one object with the answer's
// name, that the last one alone has a finish reason, and that a failure is a bare
// object at the end.
func geminiGrammar(t *testing.T, out []byte, complete bool) {
	t.Helper()
	blocks := strings.Split(string(out), "\n\n")
	last := blocks[len(blocks)-1]
	finished := 0
	for i, b := range blocks[:len(blocks)-1] {
		if strings.HasPrefix(b, ":") {
			continue
		}
		data, ok := strings.CutPrefix(b, "data: ")
		if !complete && data == strings.TrimSpace(last) && i == len(blocks)-2 {
			continue // the failure as an event, before the bare object
		}
		var v struct {
			ModelVersion string
			Candidates   []struct {
				Content struct {
					Role  string
					Parts []map[string]any
				}
				FinishReason string
			}
		}
		if err := json.Unmarshal([]byte(data), &v); !ok || err != nil || strings.ContainsAny(data, "\r\n") {
			t.Fatalf("gemini: event %q: %v", b, err)
		}
		if v.ModelVersion == "" || len(v.Candidates) != 1 || v.Candidates[0].Content.Role != "model" || len(v.Candidates[0].Content.Parts) != 1 {
			t.Errorf("gemini: event %s", b)
		}
		if v.Candidates[0].FinishReason != "" {
			if finished++; i != len(blocks)-2 {
				t.Error("gemini: events follow the finish reason")
			}
		}
	}
	if complete && (finished != 1 || last != "") {
		t.Errorf("gemini: %d finish reasons, %q at the end", finished, last)
	}
	var v struct {
		Error struct {
			Code            int
			Message, Status string
		}
	}
	if err := json.Unmarshal([]byte(last), &v); !complete && (finished != 0 || err != nil || v.Error.Code < 400 || v.Error.Status == "") {
		t.Errorf("gemini: %d finish reasons in a failed stream that ends with %q", finished, last)
	}
}

func messagesGrammar(t *testing.T, names []string, list []map[string]any, complete bool) {
	t.Helper()
	open, next := -1, 0
	for i, v := range list {
		index := -1
		if f, ok := v["index"].(float64); ok {
			index = int(f)
		}
		switch n := names[i]; n {
		case "message_start":
			if i != 0 {
				t.Error("messages: message_start is not first")
			}
		case "content_block_start":
			if open != -1 || index != next {
				t.Errorf("messages: block %d begins while %d is open", index, open)
			}
			open = index
		case "content_block_delta":
			if index != open {
				t.Errorf("messages: a piece of %d while %d is open", index, open)
			}
		case "content_block_stop":
			if index != open {
				t.Errorf("messages: %d ends while %d is open", index, open)
			}
			open, next = -1, next+1
		case "message_delta":
			if !complete || open != -1 {
				t.Errorf("messages: message_delta while %d is open, complete %v", open, complete)
			}
		case "message_stop", "error":
			if i != len(list)-1 || complete != (n == "message_stop") {
				t.Errorf("messages: %s at %d of %d, complete %v", n, i, len(list), complete)
			}
		case "ping":
		default:
			t.Errorf("messages: %s", n)
		}
	}
	if complete && open != -1 {
		t.Error("messages: a block is left open")
	}
}

func responsesGrammar(t *testing.T, names []string, list []map[string]any, complete bool) {
	t.Helper()
	open, next := -1, 0
	for i, v := range list {
		if int(v["sequence_number"].(float64)) != i {
			t.Errorf("responses: sequence_number %v at %d", v["sequence_number"], i)
		}
		index := -1
		if f, ok := v["output_index"].(float64); ok {
			index = int(f)
		}
		switch n := names[i]; n {
		case "response.created":
			if i != 0 {
				t.Error("responses: response.created is not first")
			}
		case "response.in_progress":
		case "response.output_item.added":
			if open != -1 || index != next {
				t.Errorf("responses: item %d begins while %d is open", index, open)
			}
			open = index
		case "response.output_item.done":
			if index != open {
				t.Errorf("responses: item %d ends while %d is open", index, open)
			}
			open, next = -1, next+1
		case "response.completed", "response.incomplete":
			items := v["response"].(map[string]any)["output"].([]any)
			if !complete || i != len(list)-1 || open != -1 || len(items) != next {
				t.Errorf("responses: %s at %d of %d with %d items of %d, complete %v", n, i, len(list), len(items), next, complete)
			}
		case "error":
			if complete {
				t.Error("responses: an error in a complete stream")
			}
		case "response.failed":
			if complete || i != len(list)-1 || names[i-1] != "error" {
				t.Error("responses: response.failed is out of place")
			}
		default:
			if index != open {
				t.Errorf("responses: %s of %d while %d is open", n, index, open)
			}
		}
	}
	last := names[len(names)-1]
	if !complete && last != "error" && last != "response.failed" {
		t.Errorf("responses: ends with %s", last)
	}
}
