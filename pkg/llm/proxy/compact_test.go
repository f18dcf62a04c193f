package proxy

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
)

const summarized = "weir.compaction." // and base64

// compacting are a conversation that ends with a trigger, and upstreams without
// compaction.
const compacting = `"instructions":"Be brief.","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],` +
	`"input":[{"role":"user","content":"first"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},` +
	`{"type":"function_call_output","call_id":"c1","output":"done"},{"type":"compaction_trigger"}]`

// A trigger is answered with exactly one item, of the type compaction, by every
// upstream family; a later request has its summary.
func TestCompactionTrigger(t *testing.T) {
	for _, f := range usual {
		if f.prefix == "oa" || f.prefix == "dg" {
			continue // the one compacts itself, the other has no chat
		}
		for _, streams := range []bool{false, true} {
			name := f.prefix + ", JSON"
			if streams && f.prefix == "br" {
				continue // its events are binary frames
			}
			if streams {
				name = f.prefix + ", stream"
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, f)
				w.Answer = func(r *fake.Seen) fake.Answer { return recorded(t, upstreamDialect(t, r), streams) }
				body := `{"model":"` + f.prefix + `/m",` + compacting
				if streams {
					body += `,"stream":true`
				}
				res, err := w.ask(llm.Responses, body+"}")
				if err != nil {
					t.Fatal(err)
				}
				sent := w.Seen[0].Body
				if !strings.Contains(sent, "Summarize this conversation") || strings.Contains(sent, "compaction_trigger") || strings.Contains(w.Seen[0].URL, "/responses") {
					t.Errorf("sent %s to %s", sent, w.Seen[0].URL)
				}
				text := w.text(res)
				answer := gjson.Parse(text)
				if streams {
					if n := strings.Count(text, "event: response.output_item.done"); n != 1 {
						t.Errorf("%d items are done: %s", n, text)
					}
					events := strings.Split(strings.TrimSpace(text), "\n\n")
					_, data, _ := strings.Cut(events[len(events)-1], "data: ")
					if last := gjson.Parse(data); last.Get("type").Str != "response.completed" {
						t.Errorf("the stream ends with %s", data)
					} else {
						answer = last.Get("response")
					}
				}
				items := answer.Get("output").Array()
				if len(items) != 1 || items[0].Get("type").Str != "compaction" || !strings.HasPrefix(items[0].Get("encrypted_content").Str, summarized) || answer.Get("usage.total_tokens").Int() == 0 {
					t.Fatalf("got %s", text)
				}
				raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(items[0].Get("encrypted_content").Str, summarized))
				if err != nil || len(raw) == 0 {
					t.Fatalf("%v, %q", err, raw)
				}
				next := `{"model":"` + f.prefix + `/m","input":[{"role":"user","content":"first"},` + items[0].Raw + `,{"role":"user","content":"go on"}]}`
				w.Answer = func(r *fake.Seen) fake.Answer { return recorded(t, upstreamDialect(t, r), false) }
				res, err = w.ask(llm.Responses, next)
				if err != nil {
					t.Fatal(err)
				}
				summary := gjson.GetBytes(jsonText(string(raw)), "@this").Raw
				if sent := w.Seen[1].Body; !strings.Contains(sent, strings.Trim(summary, `"`)) || strings.Contains(sent, summarized) || strings.Contains(res.Header.Get("x-weir-dropped"), "compaction") {
					t.Errorf("sent %s, want %s", sent, summary)
				}
			})
		}
	}
}

func jsonText(s string) []byte {
	return []byte(`"` + strings.NewReplacer("\\", `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`)
}

// OpenAI compacts itself; only the model is replaced.
func TestVendorCompacts(t *testing.T) {
	const answer = `{"id":"resp_1","object":"response","output":[{"type":"compaction","encrypted_content":"opaque"}],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(200, answer) }
	res, err := w.ask(llm.Responses, `{"model":"oa/m",`+compacting+`}`)
	if err != nil || w.text(res) != answer || w.Seen[0].URL != "https://api.openai.com/v1/responses" || w.Seen[0].Body != `{"model":"m",`+compacting+`}` {
		t.Fatalf("%v, sent %s to %s", err, w.Seen[0].Body, w.Seen[0].URL)
	}
	a, err := ReadRequest(llm.Responses, []byte(`{"model":"oa/m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.Compacts, a.Compaction = true, true
	res, err = w.send(a)
	if err != nil || w.text(res) != answer || w.Seen[1].URL != "https://api.openai.com/v1/responses/compact" {
		t.Fatalf("%v, sent to %s", err, w.Seen[1].URL)
	}
}

// A server that lacks the endpoint is asked for a summary by its chat, and keeps its
// Responses endpoint for other requests.
func TestServerWithoutCompaction(t *testing.T) {
	w := newWorld(t, provided{prefix: "oa", provider: "openai", base: "https://mine.example/v1"})
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.HasSuffix(r.URL, "/compact") {
			return jsonOf(404, `{"detail":"Not Found"}`)
		}
		return recorded(t, upstreamDialect(t, r), false)
	}
	a, err := ReadRequest(llm.Responses, []byte(`{"model":"oa/m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.Compacts, a.Compaction = true, true
	res, err := w.send(a)
	if err != nil || gjson.Get(w.text(res), "output.0.type").Str != "compaction" {
		t.Fatalf("%v", err)
	}
	if _, err = w.ask(llm.Responses, `{"model":"oa/m","input":"x"}`); err != nil || !strings.HasSuffix(w.Seen[len(w.Seen)-1].URL, "/responses") {
		t.Errorf("%v, then sent to %s", err, w.Seen[len(w.Seen)-1].URL)
	}
}

func TestBadCompaction(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		return jsonOf(200, `{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}
	if _, err := w.ask(llm.Responses, `{"model":"cl/m",`+compacting+`}`); status(err) != 502 {
		t.Errorf("no summary: %v", err)
	}
	if _, err := w.ask(llm.Responses, `{"model":"cl/m","input":[{"type":"compaction_trigger"},{"role":"user","content":"x"}]}`); status(err) != 400 {
		t.Errorf("a trigger that is not last: %v", err)
	}
	// A compaction of another vendor cannot be read.
	res, err := w.ask(llm.Responses, `{"model":"cl/m","input":[{"role":"user","content":"x"},{"type":"compaction","encrypted_content":"opaque"}]}`)
	if err != nil || len(w.call.Trace.Dropped) != 1 || w.call.Trace.Dropped[0] != "input.compaction" {
		t.Errorf("%v, %v, dropped %v", res, err, w.call.Trace.Dropped)
	}
}
