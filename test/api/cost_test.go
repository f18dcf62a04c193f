package api

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// priced makes a machine with an account of each vendor, whose models cost $1 and $10 per
// million tokens, and whose streams state their cost.
func (w *world) priced() (machine, key string) {
	w.t.Helper()
	machine, key = w.tenant(0)
	for _, provider := range []string{"openai", "anthropic", "gemini", "xai"} {
		w.get(201, w.do("POST", "/"+machine+"/api/providers", adminToken, `{"provider":"`+provider+`","name":"a","apiKey":"upstream-key"}`), nil)
	}
	w.get(200, w.do("PATCH", "/"+machine+"/api/settings", adminToken, `{"streamCost":"on","allowUnknown":true,"modelPrices":{
		"openai/gpt-5.5":"1/10 @flex=0.5/5","anthropic/claude-opus-4-8":"1/10","gemini/gemini-3.8-flash":"1/10","gemini/gemini-2.5-flash":"1/10","xai/grok-4.3":"1/10"}}`), nil)
	return machine, key
}

// Each part that a vendor bills is in the cost of an answer, or keeps it unknown and is
// named: in JSON, in streams of the client's dialect, in translated ones, in the list of
// requests, in usage and for the client.
func TestEveryPartOfAnAnswerIsBilledOrNamed(t *testing.T) {
	const tokens = `"input_tokens":10000,"output_tokens":1000` // $0.02
	tests := []struct {
		name, model string
		answer      string // of the upstream's dialect
		stream      string
		cost        string // of x-weir-cost
		parts       string
	}{
		{"searches of OpenAI", "openai/gpt-5.5",
			`{"id":"resp_1","object":"response","status":"completed","output":[{"type":"web_search_call"},{"type":"web_search_call"},{"type":"web_search_call"}],"usage":{` + tokens + `}}`,
			`data: {"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call"}}` + "\n\n" +
				`data: {"type":"response.output_item.done","output_index":1,"item":{"type":"web_search_call"}}` + "\n\n" +
				`data: {"type":"response.output_item.done","output_index":2,"item":{"type":"web_search_call"}}` + "\n\n" +
				`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{` + tokens + `}}}` + "\n\n",
			"0.05", ""},
		{"files", "openai/gpt-5.5",
			`{"id":"resp_1","object":"response","status":"completed","output":[{"type":"file_search_call"},{"type":"file_search_call"}],"usage":{` + tokens + `}}`,
			`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"file_search_call"},{"type":"file_search_call"}],"usage":{` + tokens + `}}}` + "\n\n",
			"0.025", ""},
		{"code", "openai/gpt-5.5",
			`{"id":"resp_1","object":"response","status":"completed","tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"output":[{"type":"code_interpreter_call","container_id":"c"}],"usage":{` + tokens + `}}`,
			`data: {"type":"response.created","response":{"id":"resp_1","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}}` + "\n\n" +
				`data: {"type":"response.output_item.done","output_index":0,"item":{"type":"code_interpreter_call","container_id":"c"}}` + "\n\n" +
				`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{` + tokens + `}}}` + "\n\n",
			"0.05", ""},
		{"an image", "openai/gpt-5.5",
			`{"id":"resp_1","object":"response","status":"completed","output":[{"type":"image_generation_call","result":"iVBO"}],"usage":{` + tokens + `}}`,
			`data: {"type":"response.image_generation_call.completed","output_index":0}` + "\n\n" +
				`data: {"type":"response.output_item.done","output_index":0,"item":{"type":"image_generation_call"}}` + "\n\n" +
				`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{` + tokens + `}}}` + "\n\n",
			"unknown", `["image_generation"]`},
		{"tier of flex", "openai/gpt-5.5",
			`{"id":"resp_1","object":"response","status":"completed","service_tier":"flex","output":[],"usage":{` + tokens + `}}`,
			`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","service_tier":"flex","output":[],"usage":{` + tokens + `}}}` + "\n\n",
			"0.01", ""},
		{"tier without a price", "openai/gpt-5.5",
			`{"id":"resp_1","object":"response","status":"completed","service_tier":"priority","output":[],"usage":{` + tokens + `}}`,
			`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","service_tier":"priority","output":[],"usage":{` + tokens + `}}}` + "\n\n",
			"unknown", `["service_tier"]`},
		{"tools of xAI", "xai/grok-4.3",
			`{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{` + tokens + `,"server_side_tool_usage_details":{"web_search_calls":2,"x_search_calls":2}}}`,
			`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{` + tokens + `,"server_side_tool_usage_details":{"web_search_calls":2,"x_search_calls":2}}}}` + "\n\n",
			"0.04", ""},
		{"compaction of Claude", "anthropic/claude-opus-4-8",
			`{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{` + tokens + `,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message",` + tokens + `}]}}`,
			`data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10000,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{` + tokens + `,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message",` + tokens + `}]}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n",
			"0.235", ""},
		{"container of Claude", "anthropic/claude-opus-4-8",
			`{"id":"msg_1","type":"message","role":"assistant","container":{"id":"c"},"content":[],"stop_reason":"end_turn","usage":{` + tokens + `}}`,
			`data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10000,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c"}},"usage":{` + tokens + `}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n",
			"unknown", `["code_execution"]`},
		{"grounding of Gemini 3", "gemini/gemini-3.8-flash", grounded, "data: " + grounded + "\n\n", "0.048", ""},
		{"grounding of Gemini 2", "gemini/gemini-2.5-flash", grounded, "data: " + grounded + "\n\n", "0.055", ""},
		{"maps of Gemini 3", "gemini/gemini-3.8-flash", mapped, "data: " + mapped + "\n\n", "unknown", `["maps"]`},
	}
	for _, tt := range tests {
		for _, client := range []string{"/v1/responses", "/v1/messages", "/v1beta/models/", "/v1/chat/completions"} {
			for _, streams := range []bool{false, true} {
				w := newWorld(t)
				machine, key := w.priced()
				w.Answer = func(s *fake.Seen) fake.Answer {
					if streams {
						return fake.OK("text/event-stream", tt.stream)
					}
					return fake.JSON(tt.answer)
				}
				what := tt.name + " to " + client
				path, body := client, `{"model":"`+tt.model+`"`
				switch client {
				case "/v1/responses":
					body += `,"input":"x"`
				case "/v1beta/models/":
					path += tt.model + ":generateContent"
					if streams {
						path = client + tt.model + ":streamGenerateContent?alt=sse"
					}
					body = `{"contents":[{"role":"user","parts":[{"text":"x"}]}]`
				default:
					body += `,"max_tokens":5000,"messages":[{"role":"user","content":"x"}]`
				}
				if streams && client != "/v1beta/models/" {
					body, what = body+`,"stream":true`, what+", stream"
				}
				vendor, _, _ := strings.Cut(tt.model, "/")
				if client != "/v1/responses" && (vendor == "openai" || vendor == "xai") || client == "/v1/chat/completions" && vendor == "gemini" {
					continue // they go to the vendor's chat endpoint
				}
				got := w.do("POST", path, key, body+"}")
				if got.status != 200 {
					t.Errorf("%s: %d %s", what, got.status, got.body)
					continue
				}
				cost := got.header.Get("x-weir-cost")
				if streams {
					_, cost, _ = strings.Cut(got.body, "\n: x-weir-cost ")
					cost = strings.TrimSpace(cost)
					if client == "/v1beta/models/" && cost == "" {
						cost = tt.cost // no comments
					}
				}
				row := gjson.Get(w.do("GET", "/"+machine+"/api/requests", adminToken, "").body, "data.0")
				known := row.Get("priced").Bool() && row.Get("costUsd").Raw == tt.cost
				if cost != tt.cost || row.Get("unpricedParts").Raw != tt.parts || known != (tt.parts == "") {
					t.Errorf("%s: cost %q, want %q: %s", what, cost, tt.cost, row.Raw)
				}
				usage := gjson.Get(w.do("GET", "/"+machine+"/api/usage?groupBy=model", adminToken, "").body, "data.0")
				if counted := usage.Get("costUsd").Raw == tt.cost && !usage.Get("unpricedAttempts").Exists(); counted != known {
					t.Errorf("%s: usage is %s", what, usage.Raw)
				}
			}
		}
	}
}

const (
	grounded = `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":10000,"candidatesTokenCount":1000}}`
	mapped   = `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"maps":{"uri":"u"}}]}}],"usageMetadata":{"promptTokenCount":10000,"candidatesTokenCount":1000}}`
)

// A stream states its cost only where the machine asks for it, and an error has none.
func TestStreamsPassWithoutTheirCost(t *testing.T) {
	w := newWorld(t)
	machine, key := w.priced()
	const events = `data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n"
	w.Answer = func(*fake.Seen) fake.Answer { return fake.OK("text/event-stream", events) }
	const body = `{"model":"openai/gpt-5.5","input":"x","stream":true}`
	if got := w.do("POST", "/v1/responses", key, body); !strings.HasSuffix(got.body, events+"\n: x-weir-cost 0.000011\n\n") && !strings.HasSuffix(got.body, events+": x-weir-cost 0.000011\n\n") {
		t.Errorf("got %s", got.body)
	}
	w.get(200, w.do("PATCH", "/"+machine+"/api/settings", adminToken, `{"streamCost":null}`), nil)
	w.Restart()
	if got := w.do("POST", "/v1/responses", key, body); strings.Contains(got.body, "x-weir-cost") {
		t.Errorf("got %s", got.body)
	}
	if got := w.do("POST", "/v1/responses", key, `{"model":"none/none","input":"x"}`); got.header.Get("x-weir-cost") != "" {
		t.Errorf("an error with %s", got.header.Get("x-weir-cost"))
	}
}

// An attempt that failed although its provider may have done the work counts with an estimate
// of its input, in usage, in the list of requests and in budgets. A refusal, a 5xx and a
// connection that breaks before the answer count nothing.
func TestAttemptsOfUnknownOutcomeAreEstimated(t *testing.T) {
	const chat, embed = "/v1/chat/completions", "/v1/embeddings"
	const streams = `,"stream":true`
	head := httpmsg.Header{{Name: "content-type", Value: "application/json"}}
	for _, tt := range []struct {
		name, path, more string
		answer           fake.Answer
		estimated        int64 // attempts
	}{
		{"no answer in time", chat, "", fake.Answer{Err: upstream.ErrTimeout}, 1},
		{"no answer in time", embed, "", fake.Answer{Err: upstream.ErrTimeout}, 1},
		{"no stream in time", chat, streams, fake.Answer{Err: upstream.ErrTimeout}, 1},
		{"left by the client", chat, "", fake.Answer{Err: upstream.ErrCanceled}, 1},
		{"cut JSON", chat, "", fake.Answer{Header: head, Body: `{"id":"x","choices":[{"mess`, Cut: true}, 2},
		{"cut JSON with a clean end", chat, "", fake.JSON(`{"id":"x","choices":[{"mess`), 1},
		{"cut JSON", embed, "", fake.Answer{Header: head, Body: `{"data":[`, Cut: true}, 2},
		{"silence within JSON", chat, "", fake.Answer{Err: stream.ErrIdle}, 1},
		{"too large", chat, "", fake.Answer{Err: stream.ErrTooLarge}, 1},
		{"stream cut before its first event", chat, streams, fake.Answer{Header: head, Pieces: []string{"data: "}, Cut: true}, 1},
		{"unreachable", chat, "", fake.Answer{Err: upstream.ErrNetwork}, 0},
		{"no connection", chat, "", fake.Answer{Err: upstream.ErrLocal}, 0},
		{"500", chat, "", fake.Answer{Status: 500}, 0},
		{"504", chat, "", fake.Answer{Status: 504}, 0},
		{"an error with 200", chat, "", fake.JSON(`{"error":{"message":"no"}}`), 0},
		{"a page", chat, "", fake.OK("text/html", "<html>"), 0},
	} {
		w := newWorld(t)
		machine, key := w.priced()
		w.get(200, w.do("PATCH", "/"+machine+"/api/settings", adminToken, `{"allowUnknown":true,"modelPrices":{"openai/gpt-5.5":"1/10","openai/text-embedding-3-small":"1"}}`), nil)
		w.get(201, w.do("POST", "/"+machine+"/api/budgets", adminToken, `{"name":"b","unit":"usd","limit":10,"window":"day"}`), nil)
		w.Answer = func(*fake.Seen) fake.Answer { return tt.answer }
		text := strings.Repeat("the word ", 1000)
		body := `{"model":"openai/gpt-5.5","max_tokens":5000,"messages":[{"role":"user","content":"` + text + `"}]` + tt.more + `}`
		if tt.path == embed {
			body = `{"model":"openai/text-embedding-3-small","input":"` + text + `"}`
		}
		got := w.do("POST", tt.path, key, body)
		if got.status < 400 {
			t.Errorf("%s: %d %s", tt.name, got.status, got.body)
		}
		w.Clock.Add(2 * time.Second)
		w.do("POST", "/v1/rerank", key, `{"model":"openai/none","query":"x","documents":["x"]}`) // reports
		usage := gjson.Get(w.do("GET", "/"+machine+"/api/usage?groupBy=model", adminToken, "").body, `data.#(attempts>0)`)
		input, cost := usage.Get("inputTokens").Int(), usage.Get("costUsd").Num
		if usage.Get("estimatedAttempts").Int() != tt.estimated || input < 1500*tt.estimated || input > 3000*tt.estimated || usage.Get("unpricedAttempts").Exists() {
			t.Errorf("%s, %s: usage is %s", tt.name, tt.path, usage.Raw)
		}
		if math.Abs(cost-float64(input)/1e6) > 1e-9 {
			t.Errorf("%s, %s: cost %v for %d tokens", tt.name, tt.path, cost, input)
		}
		budget := gjson.Get(w.do("GET", "/"+machine+"/api/budgets", adminToken, "").body, "data.0")
		if math.Abs(budget.Get("spent").Num-cost) > 1e-9 {
			t.Errorf("%s, %s: the budget is %s, want %v spent", tt.name, tt.path, budget.Raw, cost)
		}
		row := gjson.Get(w.do("GET", "/"+machine+"/api/requests", adminToken, "").body, `data.#(endpoint=="`+tt.path+`")`)
		if row.Get("costUsd").Num != cost || row.Get("estimated").Bool() != (tt.estimated > 0) {
			t.Errorf("%s, %s: the request is %s", tt.name, tt.path, row.Raw)
		}
	}
}

// A background response that is created as a stream is billed once: by its stream, or by the
// first poll that has the usage, if the stream ends without it.
func TestBackgroundStreamIsBilledOnce(t *testing.T) {
	const (
		created   = `data: {"type":"response.created","response":{"id":"resp_1","object":"response","status":"queued","background":true,"output":[]}}` + "\n\n"
		done      = `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"web_search_call"}],"usage":{"input_tokens":1000000,"output_tokens":100000}}`
		completed = `data: {"type":"response.completed","response":` + done + "}\n\n"
	)
	for _, tt := range []struct {
		name, stream string
		polls        int // in each of two instances
	}{
		{"broken", created, 2},
		{"whole, polled", created + completed, 2},
		{"whole", created + completed, 0},
	} {
		w := newWorld(t)
		machine, key := w.priced()
		w.get(201, w.do("POST", "/"+machine+"/api/budgets", adminToken, `{"name":"b","unit":"usd","limit":10,"window":"day"}`), nil)
		answer := fake.OK("text/event-stream", tt.stream)
		w.Answer = func(*fake.Seen) fake.Answer { return answer }
		const body = `{"model":"openai/gpt-5.5","background":true,"stream":true,"input":"x","max_output_tokens":1000}`
		made := w.do("POST", "/v1/responses", key, body)
		if want := ": x-weir-cost 2.01\n"; made.status != 200 || strings.Contains(made.body, want) != (tt.stream != created) {
			t.Errorf("%s: %d %s", tt.name, made.status, made.body)
		}
		row := gjson.Get(w.do("GET", "/"+machine+"/api/requests", adminToken, "").body, "data.0")
		if known := tt.stream != created; row.Get("priced").Bool() != known || known == (row.Get("unpricedParts").Raw == `["background"]`) {
			t.Errorf("%s: the request is %s", tt.name, row.Raw)
		}
		answer = fake.JSON(done)
		for range 2 {
			for range tt.polls {
				if got := w.do("GET", "/v1/responses/resp_1", key, ""); got.status != 200 {
					t.Fatalf("%s: %d %s", tt.name, got.status, got.body)
				}
			}
			w.Clock.Add(2 * time.Second)
			w.do("POST", "/v1/embeddings", key, `{"model":"openai/none","input":"x"}`) // reports
			if got := gjson.Get(w.do("GET", "/"+machine+"/api/budgets", adminToken, "").body, "data.0.spent").Num; got != 2.01 {
				t.Errorf("%s: the budget has %v", tt.name, got)
			}
			usage := gjson.Get(w.do("GET", "/"+machine+"/api/usage?groupBy=model", adminToken, "").body, "data.0")
			if usage.Get("attempts").Int() != 1 || usage.Get("costUsd").Num != 2.01 || usage.Get("unpricedAttempts").Exists() {
				t.Errorf("%s: usage is %s", tt.name, usage.Raw)
			}
			w.Restart()
		}
	}
}

// A response in the background is counted once, with its usage, by the first call that gets
// it: also if several instances poll, and again and again.
func TestBackgroundResponseIsBilledOnce(t *testing.T) {
	for _, streams := range []bool{false, true} {
		w := newWorld(t)
		machine, key := w.priced()
		w.get(201, w.do("POST", "/"+machine+"/api/budgets", adminToken, `{"name":"b","unit":"usd","limit":10,"window":"day","tag":"project=a","tool":"codex"}`), nil)
		const queued = `{"id":"resp_1","object":"response","status":"queued","background":true,"output":[],"usage":null}`
		const completed = `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"web_search_call"}],"usage":{"input_tokens":1000000,"output_tokens":100000}}`
		answer := fake.JSON(queued)
		w.Answer = func(*fake.Seen) fake.Answer { return answer }
		made := w.do("POST", "/v1/responses", key, `{"model":"openai/gpt-5.5","background":true,"input":"x","max_output_tokens":1000}`,
			httpmsg.Field{Name: "x-weir-tags", Value: "project=a"}, httpmsg.Field{Name: "user-agent", Value: "codex_exec/1"})
		if made.status != 200 || made.header.Get("x-weir-cost") != "unknown" {
			t.Fatalf("%d, cost %q: %s", made.status, made.header.Get("x-weir-cost"), made.body)
		}
		if row := gjson.Get(w.do("GET", "/"+machine+"/api/requests", adminToken, "").body, "data.0"); row.Get("priced").Bool() || row.Get("unpricedParts").Raw != `["background"]` {
			t.Errorf("the request is %s", row.Raw)
		}
		poll := func() {
			t.Helper()
			path := "/v1/responses/resp_1"
			if streams && answer.Body != queued {
				path += "?stream=true"
			}
			if got := w.do("GET", path, key, ""); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		poll()
		if answer = fake.JSON(completed); streams {
			answer = fake.OK("text/event-stream", `data: {"type":"response.completed","response":`+completed+"}\n\n")
		}
		poll()
		poll()
		w.Clock.Add(2 * time.Second)
		w.do("POST", "/v1/embeddings", key, `{"model":"openai/none","input":"x"}`) // reports
		budget := func() float64 {
			return gjson.Get(w.do("GET", "/"+machine+"/api/budgets", adminToken, "").body, "data.0.spent").Num
		}
		if got := budget(); got != 2.01 {
			t.Errorf("stream %v: the budget has %v", streams, got)
		}
		w.Restart()
		poll()
		usage := gjson.Get(w.do("GET", "/"+machine+"/api/usage?groupBy=model", adminToken, "").body, "data.0")
		if usage.Get("attempts").Int() != 1 || usage.Get("costUsd").Num != 2.01 || usage.Get("inputTokens").Int() != 1_000_000 || usage.Get("unpricedAttempts").Exists() {
			t.Errorf("stream %v: usage is %s", streams, usage.Raw)
		}
		for query, name := range map[string]string{"tool": "codex", "tag:project": "project=a"} { // of the call that created it
			for _, r := range gjson.Get(w.do("GET", "/"+machine+"/api/usage?groupBy="+query, adminToken, "").body, "data").Array() {
				if (r.Get("costUsd").Num == 2.01) != (r.Get("tool").Str+r.Get("tag").Str == name) {
					t.Errorf("stream %v: by %s %s", streams, query, r.Raw)
				}
			}
		}
		if got := budget(); got != 2.01 {
			t.Errorf("stream %v: the budget has %v after a restart", streams, got)
		}
	}
}
