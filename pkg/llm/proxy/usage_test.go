package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
)

const (
	usageText  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n"
	usageStop  = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	usageExtra = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":70,\"completion_tokens\":80}}\n\n"
	usageDone  = "data: [DONE]\n\n"
)

// The provider is asked for the usage of a stream, and the client, which has not asked,
// does not get its chunk.
func TestUsageIsAskedForAndTakenOut(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name, model, more string
		says              *bool
		sent              string // of stream_options
		asks              bool
	}{
		{"the row says so", "oa/gpt-4o", "", nil, `{"include_usage":true}`, true},
		{"the client said no", "oa/gpt-4o", `,"stream_options":{"include_usage":false,"include_obfuscation":false}`, nil, `{"include_usage":true,"include_obfuscation":false}`, true},
		{"null", "oa/gpt-4o", `,"stream_options":null`, nil, `{"include_usage":true}`, true},
		{"the client has asked", "oa/gpt-4o", `,"stream_options":{"include_usage":true}`, nil, `{"include_usage":true}`, false},
		{"a compatible server", "up/m", "", nil, "", false},
		{"the connection says so", "up/m", "", &yes, `{"include_usage":true}`, true},
		{"the connection says no", "oa/gpt-4o", "", &no, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			for i := range w.machine.Connections {
				w.machine.Connections[i].Data.StreamUsage = tt.says
			}
			w.Answer = func(*fake.Seen) fake.Answer {
				body := usageText + usageStop
				if strings.Contains(w.Seen[len(w.Seen)-1].Body, `"include_usage":true`) {
					body += usageExtra
				}
				return events(body + usageDone)
			}
			res, err := w.ask(llm.Chat, `{"model":"`+tt.model+`","stream":true`+tt.more+`,"messages":[{"role":"user","content":"a"}]}`)
			if err != nil {
				t.Fatal(err)
			}
			got := w.text(res)
			if sent := w.Seen[0].Body; tt.sent == "" && strings.Contains(sent, "stream_options") || !strings.Contains(sent, tt.sent) {
				t.Errorf("sent %s", sent)
			}
			if want := usageText + usageStop + usageDone; tt.asks && got != want {
				t.Errorf("the client got %q", got)
			}
			row := w.rows()[0]
			if known := strings.Contains(w.Seen[0].Body, `"include_usage":true`); (row.InputTokens == 70 && row.OutputTokens == 80) != known {
				t.Errorf("usage %+v", row)
			}
		})
	}
}

// A provider that refuses stream_options is asked once more without, and that is
// remembered; the client did not set it.
func TestRefusedStreamOptionsAreRemembered(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		if strings.Contains(w.Seen[len(w.Seen)-1].Body, "stream_options") {
			return jsonOf(400, `{"error":{"message":"Unknown parameter: 'stream_options'.","type":"invalid_request_error","param":"stream_options","code":"unknown_parameter"}}`)
		}
		return events(usageText + usageStop + usageDone)
	}
	const body = `{"model":"oa/gpt-4o","stream":true,"messages":[{"role":"user","content":"a"}]}`
	for _, calls := range []int{2, 1} {
		w.Seen = nil
		res, err := w.ask(llm.Chat, body)
		if err != nil || len(w.Seen) != calls || len(w.call.Trace.Dropped) > 0 {
			t.Fatalf("%v after %d calls, dropped %v", err, len(w.Seen), w.call.Trace.Dropped)
		}
		if got := w.text(res); got != usageText+usageStop+usageDone {
			t.Errorf("got %q", got)
		}
	}
	if !slices.Contains(w.machine.Refused("c-oa", w.Now().UnixMilli()), refusedStreamOptions) {
		t.Error("it is not remembered")
	}
}

// The time to the first event of a stream is recorded, from the request's arrival on.
func TestTimeToFirstEventIsRecorded(t *testing.T) {
	for _, tt := range []struct {
		name string
		a    fake.Answer
		body string
		want int64
	}{
		{"stream", events(usageText + usageStop + usageDone), `,"stream":true`, 1500},
		{"comments before it", events(": wait\n\n" + usageText + usageStop + usageDone), `,"stream":true`, 1500},
		{"no stream", fake.JSON(`{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`), "", 0},
	} {
		w := newWorld(t, usual...)
		tt.a.Takes = 1500 * time.Millisecond
		w.Answer = func(*fake.Seen) fake.Answer { return tt.a }
		res, err := w.ask(llm.Chat, `{"model":"up/m"`+tt.body+`,"messages":[{"role":"user","content":"a"}]}`)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		w.text(res)
		if got := w.call.Trace.FirstMs; got != tt.want {
			t.Errorf("%s: %d ms, want %d", tt.name, got, tt.want)
		}
		w.pool.Record(w.Now(), w.machine, w.call.Request, &w.call.Trace, 200, nil)
		for _, r := range w.rows() {
			if r.Calls == 1 && (r.Latency.Percentile(50) == 0 || (r.FirstToken.Percentile(50) > 0) != (tt.want > 0)) {
				t.Errorf("%s: recorded %v, %v", tt.name, r.Latency, r.FirstToken)
			}
		}
	}
}

// The reason that ended an answer is known of whole ones too, also of one that is translated.
func TestWholeAnswersTellTheirFinishReason(t *testing.T) {
	const hi = `,"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":9}`
	for _, tt := range []struct {
		name   string
		from   llm.Dialect
		model  string
		answer string
		want   string
	}{
		{"chat", llm.Chat, "up/m", `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"length"}]}`, "length"},
		{"translated", llm.Messages, "up/m", `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`, "stop"},
		{"messages", llm.Messages, "an/m", `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, "end_turn"},
		{"no text", llm.Chat, "up/m", `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":7}]}`, ""},
		{"too long", llm.Chat, "up/m", `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"` + strings.Repeat("x", 50) + `"}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 200, Body: tt.answer} }
			if _, err := w.ask(tt.from, strings.Replace(`{"stream":false`+hi, `"m"`, `"`+tt.model+`"`, 1)); err != nil {
				t.Fatal(err)
			}
			if got := w.call.Trace.Finish; got != tt.want {
				t.Errorf("finish %q, want %q", got, tt.want)
			}
		})
	}
}

// A regression: an absurd count of the provider reached clients of other dialects as 2^40 tokens, and one
// that it did not state as 0. They get the figure that is recorded.
func TestClientsOfOtherDialectsGetTheUsageThatIsRecorded(t *testing.T) {
	const message = `"messages":[{"role":"user","content":"How are you today?"}]`
	for _, usage := range []string{`,"usage":{"prompt_tokens":9000000000000000,"completion_tokens":9000000000000000}`, "", `,"usage":{"prompt_tokens":70,"completion_tokens":80}`} {
		for _, streams := range []bool{false, true} {
			for _, d := range []llm.Dialect{llm.Messages, llm.Responses, llm.Gemini} {
				w := newWorld(t, usual...)
				w.Answer = func(*fake.Seen) fake.Answer {
					if streams {
						return events(usageText + usageStop + `data: {"choices":[]` + usage + "}\n\n" + usageDone)
					}
					return jsonOf(200, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]`+usage+`}`)
				}
				var req *Request
				var err error
				switch d {
				case llm.Gemini:
					req, err = ReadGemini("up/m", streams, []byte(`{"contents":[{"role":"user","parts":[{"text":"How are you today?"}]}]}`))
				case llm.Responses:
					req, err = ReadRequest(d, fmt.Appendf(nil, `{"model":"mi/m","stream":%t,"input":"How are you today?"}`, streams))
				default:
					req, err = ReadRequest(d, fmt.Appendf(nil, `{"model":"up/m","stream":%t,"max_tokens":9,%s}`, streams, message))
				}
				if err != nil {
					t.Fatal(err)
				}
				res, err := w.send(req)
				if err != nil {
					t.Fatal(err)
				}
				got, row := w.text(res), w.rows()[0]
				want := map[llm.Dialect]string{
					llm.Messages:  fmt.Sprintf(`"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}`, row.InputTokens, row.OutputTokens),
					llm.Responses: fmt.Sprintf(`"total_tokens":%d}`, row.InputTokens+row.OutputTokens),
					llm.Gemini:    fmt.Sprintf(`"promptTokenCount":%d,"candidatesTokenCount":%d`, row.InputTokens, row.OutputTokens),
				}[d]
				if row.InputTokens == 0 || row.OutputTokens == 0 || row.InputTokens > 1000 || !strings.Contains(got, want) {
					t.Errorf("%v, stream %v, %s: the client has no %s: %s", d, streams, usage, want, got)
				}
			}
		}
	}
}
