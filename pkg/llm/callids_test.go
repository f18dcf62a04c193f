package llm_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
)

// A call keeps its id over turns, whatever dialect the client speaks: the upstream
// gets back the id that it has sent, with the call and with its result. Gemini pairs
// them by name and order.
func TestCallIDsOverTurns(t *testing.T) {
	upstreams := []struct {
		d          llm.Dialect
		id, answer string
	}{
		{llm.Chat, "call_1", `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`},
		{llm.Chat, "functions.f:0", `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`},
		{llm.Responses, "call_1", `{"id":"r","object":"response","status":"completed","output":[{"type":"function_call","call_id":"ID","name":"f","arguments":"{}"}]}`},
		{llm.Messages, "toolu_1", `{"content":[{"type":"tool_use","id":"ID","name":"f","input":{}}],"stop_reason":"tool_use"}`},
		{llm.Converse, "tooluse_1-x", `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"ID","name":"f","input":{}}}]}},"stopReason":"tool_use"}`},
	}
	turns := []struct {
		d        llm.Dialect
		id, next string // path of the id, and the next request
	}{
		{llm.Chat, "choices.0.message.tool_calls.0.id", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"ID","content":"done"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`},
		{llm.Responses, `output.#(type=="function_call").call_id`, `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"ID","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"ID","output":"done"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`},
		{llm.Messages, `content.#(type=="tool_use").id`, `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"done"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`},
		{llm.Gemini, `candidates.0.content.parts.#(functionCall).functionCall.id`, `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"id":"ID","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"ID","name":"f","response":{"output":"done"}}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]}`},
	}
	for _, up := range upstreams {
		for _, client := range turns {
			if client.d == up.d {
				continue // its bytes pass
			}
			t.Run(up.d.String()+"_"+up.id+"_to_"+client.d.String(), func(t *testing.T) {
				answer := strings.ReplaceAll(up.answer, "ID", up.id)
				opt := options()
				got, _, err := llm.Response(up.d, client.d, []byte(answer), opt)
				if err != nil {
					t.Fatal(err)
				}
				id := gjson.GetBytes(got, client.id).Str
				if id == "" || len(id) > 64 || client.d == llm.Messages && strings.ContainsAny(id, ".:") {
					t.Fatalf("the client gets the id %q in %s", id, got)
				}
				events, _, err := llm.Replay(up.d, client.d, []byte(answer), options())
				if err != nil || !strings.Contains(string(events), `"`+id+`"`) {
					t.Errorf("%v, a stream without %q: %s", err, id, events)
				}
				sent, _, err := llm.Request(client.d, up.d, []byte(strings.ReplaceAll(client.next, "ID", id)), options())
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(sent), `"`+up.id+`"`); n != 2 {
					t.Errorf("the upstream gets its id %q %d times in %s", up.id, n, sent)
				}
			})
		}
	}
}

// An id that a vendor's limit excludes is shortened, for the call and its result
// alike.
func TestLongCallIDs(t *testing.T) {
	long := "call_" + strings.Repeat("0123456789", 10)
	for _, tt := range []struct {
		to  llm.Dialect
		max int
	}{{llm.Chat, 40}, {llm.Responses, 64}} {
		body := strings.ReplaceAll(`{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"done"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`, "ID", long)
		sent, _, err := llm.Request(llm.Messages, tt.to, []byte(body), options())
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, path := range []string{"messages.#.tool_calls.0.id", "messages.#.tool_call_id", "input.#.call_id"} {
			gjson.GetBytes(sent, path).ForEach(func(_, v gjson.Result) bool { ids = append(ids, v.Str); return true })
		}
		if len(ids) != 2 || ids[0] != ids[1] || len(ids[0]) > tt.max {
			t.Errorf("%s: %q in %s", tt.to, ids, sent)
		}
	}
}
