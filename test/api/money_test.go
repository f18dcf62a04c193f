package api

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// answerOf returns a stream of the dialect of a URL, with texts and the usage that it states
// at its end; begun is the input that it states at its beginning, if it does. A server that
// was not asked for its usage states none.
func answerOf(s *fake.Seen, texts []string, in, out int64) (body string, begun int64) {
	var b strings.Builder
	add := func(format string, values ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", values...) }
	switch {
	case strings.Contains(s.URL, "/chat/completions"):
		add(`{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
		for _, s := range texts {
			add(`{"id":"c","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`, s)
		}
		add(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		if strings.Contains(s.Body, "include_usage") {
			add(`{"id":"c","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, in, out)
		}
		b.WriteString("data: [DONE]\n\n")
	case strings.Contains(s.URL, "/responses"):
		add(`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}`)
		add(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`)
		for i, s := range texts {
			add(`{"type":"response.output_text.delta","sequence_number":%d,"output_index":0,"content_index":0,"item_id":"m","delta":"%s"}`, i, s)
		}
		add(`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":%d,"output_tokens":%d}}}`, in, out)
	case strings.Contains(s.URL, "/messages"):
		begun = in
		add(`{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":%d,"output_tokens":1}}}`, in)
		add(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, s := range texts {
			add(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, s)
		}
		add(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, out)
		add(`{"type":"message_stop"}`)
	case strings.Contains(s.URL, "/v2/chat"):
		add(`{"type":"message-start","id":"m","delta":{"message":{"role":"assistant","content":[]}}}`)
		add(`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`)
		for _, s := range texts {
			add(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"%s"}}}}`, s)
		}
		add(`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":%d,"output_tokens":%d}}}}`, in, out)
	default:
		for _, s := range texts {
			add(`{"candidates": [{"content": {"role": "model", "parts": [{"text": "%s"}]}}]}`, s)
		}
		add(`{"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": %d, "candidatesTokenCount": %d}}`, in, out)
	}
	return b.String(), begun
}

// wholeOf returns an answer in JSON with a text and its usage.
func wholeOf(url, text string, in, out int64) string {
	switch {
	case strings.Contains(url, "/chat/completions"):
		return fmt.Sprintf(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, text, in, out)
	case strings.Contains(url, "/responses"):
		return fmt.Sprintf(`{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"%s"}]}],"usage":{"input_tokens":%d,"output_tokens":%d}}`, text, in, out)
	case strings.Contains(url, "/messages"):
		return fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%d}}`, text, in, out)
	case strings.Contains(url, "/v2/chat"):
		return fmt.Sprintf(`{"id":"m","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"%s"}]},"usage":{"tokens":{"input_tokens":%d,"output_tokens":%d}}}`, text, in, out)
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":"%s"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d}}`, text, in, out)
}

// textIn returns the length of the texts of the whole events in a part of a stream, and
// whether the part has the final usage.
func textIn(part string) (length int64, final bool) {
	for line := range strings.Lines(part) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || !gjson.Valid(data) {
			continue
		}
		for _, path := range []string{"choices.0.delta.content", "delta", "delta.text", "candidates.0.content.parts.0.text", "delta.message.content.text"} {
			if v := gjson.Get(data, path); v.Type == gjson.String {
				length += int64(len(v.Raw) - 2)
			}
		}
		for _, path := range []string{"usage", "response.usage", "usageMetadata", "delta.usage"} {
			final = final || gjson.Get(data, path).IsObject()
		}
	}
	return length, final
}

// split cuts a text into pieces of random lengths.
func split(random *rand.Rand, s string) (pieces []string) {
	for len(s) > 0 {
		n := min(1+random.IntN(300), len(s))
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return pieces
}

// used is what calls have used: prices are whole nano-dollars, so sums are exact.
type used struct{ in, out, estimated int64 }

func (u used) plus(o used) used { return used{u.in + o.in, u.out + o.out, u.estimated + o.estimated} }

func (u used) nanoUSD() int64 { return u.in*1_000 + u.out*10_000 }
func (u used) usd() float64   { return float64(u.nanoUSD()) / 1e9 }

// ledger makes random calls and computes for itself what each has used.
type ledger struct {
	*world
	machine, key string
	random       *rand.Rand
	total        used

	calls, estimated, again int64

	labels map[string]used // by tool and by tag, "" without one
}

var (
	ledgerModels = []string{
		"openai/gpt-5.5", "anthropic/claude-opus-4-8", "gemini/gemini-3.8-flash", "xai/grok-4.3", "cohere/command-a-03-2025", "up/some-model",
	}
	ledgerClients = []string{"/v1/responses", "/v1/messages", "/v1beta/models/", "/v1/chat/completions"}
	ledgerEnds    = []string{"whole", "stopped", "cut", "reset", "error", "zeros", "retried", "retried after a cut answer", "no answer"}
)

func (l *ledger) api(method, path, body string) gjson.Result {
	l.t.Helper()
	r := l.do(method, "/"+l.machine+"/api"+path, adminToken, body)
	if r.status >= 300 {
		l.t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
	}
	return gjson.Parse(r.body)
}

// call makes one call and compares what is shown of it.
func (l *ledger) call() {
	random := l.random
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	model, client, end, streams := pick(ledgerModels), pick(ledgerClients), pick(ledgerEnds), random.IntN(4) > 0
	switch end {
	case "stopped", "cut", "reset", "error":
		streams = true
	case "retried after a cut answer":
		streams = false
	}
	texts := make([]string, 1+random.IntN(30))
	for i := range texts {
		if texts[i] = strings.Repeat("word ", 1+random.IntN(9)); streams { // whose escapes count
			texts[i] += `\n`
		}
	}
	in, out := 1+random.Int64N(9000), 1+random.Int64N(9000)
	if end == "zeros" {
		in, out = 0, 0
	}
	path, body := client, `{"model":"`+model+`"`
	switch prompt := strings.Repeat("some words ", 1+random.IntN(50)); {
	case client == "/v1beta/models/" && streams:
		path, body = client+model+":streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"`+prompt+`"}]}]}`
	case client == "/v1beta/models/":
		path, body = client+model+":generateContent", `{"contents":[{"role":"user","parts":[{"text":"`+prompt+`"}]}]}`
	case client == "/v1/responses":
		body += fmt.Sprintf(`,"stream":%v,"input":"%s"}`, streams, prompt)
	default:
		body += fmt.Sprintf(`,"stream":%v,"max_tokens":20000,"messages":[{"role":"user","content":"%s"}]}`, streams, prompt)
	}
	what := fmt.Sprintf("call %d, %s from %s, %s, stream %v", l.calls, model, client, end, streams)
	var sent string
	var begun int64
	taken, tries, passes := 0, int64(0), false
	l.Answer = func(s *fake.Seen) fake.Answer {
		if s.Method == "GET" { // a list of models
			return fake.Answer{Status: 404}
		}
		tries++
		passes = strings.Contains(s.URL, strings.TrimPrefix(client, "/v1"))
		if !streams {
			sent = wholeOf(s.URL, strings.Join(texts, ""), in, out)
		} else {
			sent, begun = answerOf(s, texts, in, out)
		}
		first := strings.Index(sent, "\n\n") + 2
		switch a := fake.OK("text/event-stream", ""); {
		case end == "no answer":
			return fake.Answer{Err: upstream.ErrTimeout}
		case end == "retried" && tries == 1:
			return fake.Answer{Status: 500, Body: `{"error":{"message":"again"}}`}
		case end == "retried after a cut answer" && tries == 1:
			return fake.Answer{Header: fake.JSON("").Header, Body: sent[:len(sent)/2], Cut: true}
		case !streams:
			return fake.JSON(sent)
		case end == "error":
			a.Pieces = split(random, sent[:first]+`data: {"type":"error","error":{"type":"overloaded_error","message":"told","code":529}}`+"\n\n")
			return a
		case end == "cut" || end == "reset":
			if sent = sent[:first+random.IntN(len(sent)-first)]; end == "reset" {
				a.End = stream.ErrReset
			}
			fallthrough
		default:
			a.Pieces, a.Taken = split(random, sent), &taken
			return a
		}
	}
	reads := -1
	if end == "stopped" {
		reads = 1 + random.IntN(40)
	}
	project := pick([]string{"", "project=a", "project = a", "project=A", "project=a,project=b", "1,2,3,4,5,6,7,8,project=a", "project=b, project=a"})
	tool := pick([]string{"codex_exec/1", "curl/8.1", ""})
	l.read(path, l.key, body, reads, httpmsg.Field{Name: "x-weir-tags", Value: project}, httpmsg.Field{Name: "user-agent", Value: tool})
	if l.calls++; tries > 1 {
		l.again++
	}
	l.Add(2 * time.Second)
	l.do("GET", "/v1/models", l.key, "") // brings the last report

	estimate := llm.Estimate([]byte(body))
	want := used{in: in, out: out}
	length, final := int64(len(strings.Join(texts, ""))), true
	if streams {
		part := sent
		switch end {
		case "stopped", "reset": // of a line that has not ended, or an event to be translated, nothing is known
			mark := "\n\n"
			if passes {
				mark = "\n"
			}
			part = sent[:strings.LastIndex(sent[:taken], mark)+1]
		case "error":
			part = sent[:strings.Index(sent, "\n\n")+2]
		}
		length, final = textIn(part)
	}
	if begun > 0 && end != "zeros" {
		estimate = begun
	}
	switch {
	case end == "no answer":
		want = used{in: tries * llm.Estimate([]byte(body)), estimated: tries}
	case end == "zeros" || !final:
		want = used{in: estimate, out: max((length+3)/4, min(begun, 1)), estimated: 1} // Claude has stated one
	case end == "retried after a cut answer":
		want = used{in: in + estimate, out: out, estimated: 1}
	}
	row := l.api("GET", "/requests?limit=1", "").Get("data.0")
	own := gjson.Parse(l.do("GET", "/v1/usage/requests/"+row.Get("id").Str, l.key, "").body)
	for place, r := range map[string]gjson.Result{"requests": row, "the key's own request": own} {
		got := used{r.Get("inputTokens").Int(), r.Get("outputTokens").Int(), 0}
		if got.in != want.in || got.out != want.out || r.Get("costUsd").Num != want.usd() || !r.Get("priced").Bool() || r.Get("estimated").Bool() != (want.estimated > 0) {
			l.t.Fatalf("%s, %s: want %+v, $%v: %s\ntook %d of %q", what, place, want, want.usd(), r.Raw, taken, sent)
		}
	}
	if want.estimated > 0 {
		l.estimated++
	}
	l.total = l.total.plus(want)
	tag := map[string]string{"project = a": "project=a", "project=a,project=b": "project=a", "1,2,3,4,5,6,7,8,project=a": "",
		"project=b, project=a": "project=b"}
	if at, ok := tag[project]; ok {
		project = at
	}
	project, tool = "tag "+project, "tool "+map[string]string{"codex_exec/1": "codex", "curl/8.1": "curl", "": "other"}[tool]
	l.labels[project], l.labels[tool] = l.labels[project].plus(want), l.labels[tool].plus(want)
}

// Random calls of every client's dialect to every upstream, in JSON and as streams, whole,
// stopped or broken off at any byte, failed or tried again, have one cost, which the test
// computes for itself: in requests, usage, keys, providers and budgets, and for the key that
// asks.
func TestOneCostInAllPlaces(t *testing.T) {
	for seed := range uint64(2) {
		l := &ledger{world: newWorld(t), labels: map[string]used{}, random: rand.New(rand.NewPCG(25, seed))}
		l.machine, l.key = l.priced()
		l.api("PATCH", "/settings", `{"allowUnknown":true,"modelPrices":{"openai/gpt-5.5":"1/10","anthropic/claude-opus-4-8":"1/10","gemini/gemini-3.8-flash":"1/10","xai/grok-4.3":"1/10","cohere/command-a-03-2025":"1/10","up/some-model":"1/10"}}`)
		for _, priority := range []string{"1", "2"} { // the second one for another try
			for _, provider := range []string{"openai", "anthropic", "gemini", "xai", "cohere"} {
				l.api("POST", "/providers", `{"provider":"`+provider+`","name":"p`+priority+`","apiKey":"key-`+priority+`","priority":`+priority+`}`)
			}
			l.api("POST", "/providers", `{"provider":"openai-compatible-0123abcd","name":"p`+priority+`","apiKey":"key-`+priority+`","priority":`+priority+`,"providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`)
		}
		budget := l.api("POST", "/budgets", `{"name":"b","unit":"usd","limit":1000,"window":"total"}`).Get("id").Str
		tokens := l.api("POST", "/budgets", `{"name":"t","unit":"tokens","limit":1000000000,"window":"total"}`).Get("id").Str
		byLabel := map[string]string{}
		for name, of := range map[string]string{"tag project=a": `"tag":"project=a"`, "tag project=b": `"tag":"project=b"`, "tag project=A": `"tag":"project=A"`,
			"tool codex": `"tool":"codex"`, "tool curl": `"tool":"curl"`} {
			byLabel[name] = l.api("POST", "/budgets", `{"name":"`+name+`","unit":"usd","limit":1000,"window":"total",`+of+`}`).Get("id").Str
		}
		for range 300 {
			l.call()
		}
		want := l.total
		if l.estimated < l.calls/4 || l.estimated > l.calls*9/10 || l.again == 0 {
			t.Errorf("%d of %d calls are estimated, %d tried again", l.estimated, l.calls, l.again)
		}
		sum := func(rows gjson.Result, field string) (nano int64) {
			for _, r := range rows.Array() {
				nano += int64(r.Get(field).Num*1e9 + 0.5)
			}
			return nano
		}
		var requests int64
		for cursor := ""; ; {
			page := l.api("GET", "/requests?limit=100"+cursor, "")
			requests += sum(page.Get("data"), "costUsd")
			if cursor = "&cursor=" + page.Get("cursor").Str; cursor == "&cursor=" {
				break
			}
		}
		usage, key := l.api("GET", "/usage", "").Get("total"), l.api("GET", "/keys", "").Get("data.0")
		for place, got := range map[string]int64{
			"requests":      requests,
			"usage":         sum(gjson.Parse("["+usage.Raw+"]"), "costUsd"),
			"models":        sum(l.api("GET", "/usage?groupBy=model", "").Get("data"), "costUsd"),
			"keys":          sum(gjson.Parse("["+key.Raw+"]"), "spentUsd"),
			"providers":     sum(l.api("GET", "/providers", "").Get("data"), "spentMonthUsd"),
			"budgets":       sum(gjson.Parse("["+l.api("GET", "/budgets/"+budget, "").Raw+"]"), "spent"),
			"the key's own": sum(gjson.Parse("["+l.do("GET", "/v1/usage", l.key, "").body+"]"), "spentUsd"),
		} {
			if got != want.nanoUSD() {
				t.Errorf("%s: %d nano-dollars, want %d", place, got, want.nanoUSD())
			}
		}
		for _, kind := range []string{"tool", "tag:project"} {
			report := l.api("GET", "/usage?groupBy="+kind, "")
			rows := report.Get("data").Array()
			if len(rows) < 3 || report.Get("total.attempts").Int() != usage.Get("attempts").Int() || report.Get("total.requests").Int() != usage.Get("requests").Int() {
				t.Errorf("by %s: %s, all usage is %s", kind, report.Get("total").Raw, usage.Raw)
			}
			for _, r := range rows {
				name := strings.TrimSuffix(kind, ":project") + " " + r.Get("tool").Str + r.Get("tag").Str
				if got := (used{r.Get("inputTokens").Int(), r.Get("outputTokens").Int(), r.Get("estimatedAttempts").Int()}); got != l.labels[name] {
					t.Errorf("%s: got %+v, want %+v", name, got, l.labels[name])
				}
			}
		}
		for name, id := range byLabel {
			if got := sum(gjson.Parse("["+l.api("GET", "/budgets/"+id, "").Raw+"]"), "spent"); got != l.labels[name].nanoUSD() || got == 0 {
				t.Errorf("the budget of %s: %d nano-dollars, want %d", name, got, l.labels[name].nanoUSD())
			}
		}
		if got := (used{usage.Get("inputTokens").Int(), usage.Get("outputTokens").Int(), usage.Get("estimatedAttempts").Int()}); got != want || usage.Get("unpricedAttempts").Exists() {
			t.Errorf("usage: got %s, want %+v", usage.Raw, want)
		}
		if spent := l.api("GET", "/budgets/"+tokens, "").Get("spent").Int(); spent != want.in+want.out || key.Get("tokens").Int() != spent {
			t.Errorf("the budget of tokens has spent %d, want %d; the key %s", spent, want.in+want.out, key.Raw)
		}
	}
}

// read makes a call and reads its answer to the end, or stops after some reads if that is no
// negative number.
func (w *world) read(path, key, body string, reads int, header ...httpmsg.Field) {
	w.t.Helper()
	path, query, _ := strings.Cut(path, "?")
	resp := w.App.Serve(context.Background(), &httpmsg.Request{
		Method: "POST", Path: path, Query: query, Origin: "http://gateway.example", Start: w.Now(), Length: int64(len(body)), Body: stream.FromString(body),
		Header: append(header, httpmsg.Field{Name: "authorization", Value: "Bearer " + key}, httpmsg.Field{Name: "content-type", Value: "application/json"}),
	})
	buf := make([]byte, 300)
	for i := 0; resp.Body != nil && i != reads; i++ {
		if _, err := resp.Body.Read(buf); err == io.EOF {
			break
		}
	}
	if c, ok := resp.Body.(io.Closer); ok {
		c.Close()
	}
	for _, after := range resp.After {
		after(context.Background())
	}
}
