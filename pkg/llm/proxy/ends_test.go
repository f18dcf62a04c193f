package proxy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/budget"
	"weir/pkg/llm"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/eventstream"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

// begun is a stream of a dialect with a thought of six bytes and ten texts of seven, up to
// the last text, and the rest of it, which states 5,000 tokens of input and 700 of output.
// Claude states an output of 1 at the beginning.
func begun(d llm.Dialect) (head, rest []string) {
	add := func(list *[]string, name, format string, values ...any) {
		data := fmt.Appendf(nil, format, values...)
		if d == llm.Converse {
			*list = append(*list, string(eventstream.Event(nil, name, data)))
		} else {
			*list = append(*list, string(sse.Named(nil, name, data)))
		}
	}
	texts := func(name, format string, before ...any) {
		for i := range 10 {
			add(&head, name, format, append(before, fmt.Sprintf("word%02d ", i))...)
		}
	}
	switch d {
	case llm.Chat:
		const chunk = `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`
		add(&head, "", chunk, `"role":"assistant","content":""`, "null")
		add(&head, "", chunk, `"reasoning_content":"think "`, "null")
		texts("", `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`)
		add(&rest, "", chunk, "", `"stop"`)
		add(&rest, "", `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":5000,"completion_tokens":700,"total_tokens":5700}}`)
		rest = append(rest, "data: [DONE]\n\n")
	case llm.Responses:
		add(&head, "response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[],"usage":null}}`)
		add(&head, "response.output_item.added", `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`)
		add(&head, "response.reasoning_summary_part.added", `{"type":"response.reasoning_summary_part.added","sequence_number":2,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`)
		add(&head, "response.reasoning_summary_text.delta", `{"type":"response.reasoning_summary_text.delta","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"think "}`)
		add(&head, "response.output_item.added", `{"type":"response.output_item.added","sequence_number":4,"output_index":1,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}`)
		add(&head, "response.content_part.added", `{"type":"response.content_part.added","sequence_number":5,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`)
		texts("response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":6,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"%s"}`)
		add(&rest, "response.completed", `{"type":"response.completed","sequence_number":7,"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[],"usage":{"input_tokens":5000,"output_tokens":700,"total_tokens":5700}}}`)
	case llm.Messages:
		add(&head, "message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":5000,"output_tokens":1}}}`)
		add(&head, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`)
		add(&head, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"think "}}`)
		add(&head, "content_block_stop", `{"type":"content_block_stop","index":0}`)
		add(&head, "content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)
		texts("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"%s"}}`)
		add(&rest, "content_block_stop", `{"type":"content_block_stop","index":1}`)
		add(&rest, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":700}}`)
		add(&rest, "message_stop", `{"type":"message_stop"}`)
	case llm.Gemini:
		const part = `{"candidates": [{"content": {"role": "model", "parts": [%s]}, "index": 0}], "modelVersion": "m"}`
		add(&head, "", part, `{"text": "think ", "thought": true}`)
		texts("", strings.Replace(part, "%s", `{"text": "%s"}`, 1))
		add(&rest, "", `{"candidates": [{"content": {"role": "model", "parts": []}, "index": 0, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 5000, "candidatesTokenCount": 700, "totalTokenCount": 5700}}`)
	case llm.Cohere:
		add(&head, "", `{"type":"message-start","id":"m","delta":{"message":{"role":"assistant","content":[]}}}`)
		add(&head, "", `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`)
		add(&head, "", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"think "}}}}`)
		add(&head, "", `{"type":"content-end","index":0}`)
		add(&head, "", `{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}`)
		texts("", `{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"%s"}}}}`)
		add(&rest, "", `{"type":"content-end","index":1}`)
		add(&rest, "", `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":5000,"output_tokens":700}}}}`)
	case llm.Converse:
		add(&head, "messageStart", `{"role":"assistant"}`)
		add(&head, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"think "}}}`)
		add(&head, "contentBlockStop", `{"contentBlockIndex":0}`)
		texts("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"%s"}}`)
		add(&rest, "contentBlockStop", `{"contentBlockIndex":1}`)
		add(&rest, "messageStop", `{"stopReason":"end_turn"}`)
		add(&rest, "metadata", `{"usage":{"inputTokens":5000,"outputTokens":700,"totalTokens":5700}}`)
	}
	return head, rest
}

// ledgered adds a budget of tokens to a world, and returns what it has spent.
func ledgered(w *world) func() int64 {
	rec := *w.machine.Machine
	rec.Budgets = []store.Budget{{ID: "b1", Unit: store.Tokens, Limit: 100_000_000, Window: budget.Total}}
	w.machine = snapshot.New(&rec)
	var ledger budget.Ledger
	w.pool.Rand = rand.NewChaCha8([32]byte{1})
	w.pool.Object = &objects.Script{Answer: func(op string, body []byte) (int, []byte, error) {
		var asks budget.Asks
		if json.Unmarshal(body, &asks); op == "report" {
			var rep rpc.Report
			json.Unmarshal(body, &rep)
			w.report(op, body)
			if rep.Budgets == nil {
				return 200, []byte(`{}`), nil
			}
			asks = *rep.Budgets
		}
		g, _ := ledger.Take(&rec.Budgets[0], asks.Holder, &asks.Asks[0], w.Now().UnixMilli(), nil)
		out, err := json.Marshal(rpc.Granted{Grants: []budget.Grant{g}})
		return 200, out, err
	}}
	return func() int64 { return ledger.Spent }
}

// A stream without its final count uses its input and what has passed of its output, marked
// as an estimate, however it ends, for every pair of client and upstream. Usage, request and
// budget have one figure.
func TestStreamWithoutFinalCountIsEstimated(t *testing.T) {
	const passed = (6 + 10*7 + 3) / 4 // a token for four bytes
	for _, model := range []string{
		"oa/gpt-4.1", "up/some-model", "cl/claude-sonnet-4-5", "an/some-claude", "ge/gemini-2.5-flash", "co/command-a-03-2025",
		"br/amazon.nova-lite-v1:0", "br/anthropic.claude-sonnet-4-5-v1:0",
	} {
		for _, d := range clients {
			for _, end := range []string{"whole", "stopped", "cut", "broken", "error"} {
				for _, budgeted := range []bool{false, true} {
					if budgeted && end != "stopped" && end != "whole" {
						continue
					}
					name := fmt.Sprintf("%s from %v, %s, budget %v", model, d, end, budgeted)
					w := newWorld(t, usual...)
					spent := func() int64 { return 0 }
					if budgeted {
						spent = ledgered(w)
					}
					var up llm.Dialect
					w.Answer = func(r *fake.Seen) fake.Answer {
						invoke := strings.Contains(r.URL, "/invoke")
						if up = llm.Messages; !invoke {
							up = upstreamDialect(t, r)
						}
						head, rest := begun(up)
						a := events("")
						switch a.Pieces = head; end {
						case "whole", "stopped":
							a.Pieces = append(a.Pieces, rest...)
						case "broken":
							a.End = stream.ErrReset
						case "error":
							if up == llm.Converse || invoke {
								a.End = stream.ErrReset // its frames have exceptions: TestFailedFrames
							} else {
								a.Pieces = append(a.Pieces, failing(up, "overloaded_error"))
							}
						}
						if invoke {
							a.Pieces = frames(strings.Join(a.Pieces, ""))
						}
						if invoke || up == llm.Converse {
							a.Header[0].Value = "application/vnd.amazon.eventstream"
						}
						return a
					}
					reply, err := w.ask(d, request(d, model, true))
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if end == "stopped" {
						buf, got := make([]byte, 32<<10), ""
						for !strings.Contains(got, "word09") {
							n, err := reply.Body.Read(buf)
							if got += string(buf[:n]); err != nil {
								t.Fatalf("%s: %v in %s", name, err, got)
							}
						}
						reply.Body.Close()
					} else {
						w.text(reply)
					}
					r := w.rows()[0]
					used := w.call.Trace.Used
					in, out, estimated := r.InputTokens, r.OutputTokens, r.Estimated
					switch {
					case end == "whole":
						if in != 5000 || out != 700 || estimated != 0 || used.Estimated {
							t.Errorf("%s: %+v", name, r)
						}
					case out != passed || estimated != 1 || !used.Estimated || r.Requests != 1:
						t.Errorf("%s: %d tokens of output, want %d, estimated %d", name, out, passed, estimated)
					case up == llm.Messages && in != 5000:
						t.Errorf("%s: %d tokens of input, want the stated ones", name, in)
					case up != llm.Messages && in != llm.Estimate([]byte(request(d, model, true)[strings.IndexByte(request(d, model, true), '{'):])):
						t.Errorf("%s: %d tokens of input, want those of the request", name, in)
					}
					if used.Input != in || used.Output != out || used.CostUSD != store.Dollars(r.CostUSD) || used.Priced != (r.Unpriced == 0) {
						t.Errorf("%s: the request has %+v, usage %+v", name, used, r)
					}
					if budgeted && spent() != in+out {
						t.Errorf("%s: the budget has spent %d, usage is %d and %d", name, spent(), in, out)
					}
				}
			}
		}
	}
}
