package api

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// answerOf returns a stream of the dialect of a URL, with texts and the usage that it states
// at its end; begun is the input that it states at its beginning, if it does.
func answerOf(url string, texts []string, in, out int64) (body string, begun int64) {
	var b strings.Builder
	add := func(format string, values ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", values...) }
	switch {
	case strings.Contains(url, "/chat/completions"):
		add(`{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
		for _, s := range texts {
			add(`{"id":"c","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`, s)
		}
		add(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		add(`{"id":"c","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, in, out)
		b.WriteString("data: [DONE]\n\n")
	case strings.Contains(url, "/responses"):
		add(`{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}`)
		add(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`)
		for i, s := range texts {
			add(`{"type":"response.output_text.delta","sequence_number":%d,"output_index":0,"content_index":0,"item_id":"m","delta":"%s"}`, i, s)
		}
		add(`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":%d,"output_tokens":%d}}}`, in, out)
	case strings.Contains(url, "/messages"):
		begun = in
		add(`{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":%d,"output_tokens":1}}}`, in)
		add(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, s := range texts {
			add(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, s)
		}
		add(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}}`, out)
		add(`{"type":"message_stop"}`)
	default:
		for _, s := range texts {
			add(`{"candidates": [{"content": {"role": "model", "parts": [{"text": "%s"}]}}]}`, s)
		}
		add(`{"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": %d, "candidatesTokenCount": %d}}`, in, out)
	}
	return b.String(), begun
}

// textIn returns the length of the texts of the whole events in a part of a stream, and
// whether the part has the final usage.
func textIn(part string) (length int64, final bool) {
	for line := range strings.Lines(part) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || !gjson.Valid(data) {
			continue
		}
		for _, path := range []string{"choices.0.delta.content", "delta", "delta.text", "candidates.0.content.parts.0.text"} {
			if v := gjson.Get(data, path); v.Type == gjson.String {
				length += int64(len(v.Raw) - 2)
			}
		}
		final = final || gjson.Get(data, "usage").IsObject() || gjson.Get(data, "response.usage").IsObject() || gjson.Get(data, "usageMetadata").IsObject()
	}
	return length, final
}

// Random calls of every client's dialect to every upstream, whole, stopped, broken off at
// any byte, failed or tried again, have one cost, which the test computes for itself: in
// usage, requests, keys, providers, budgets, and for the key that asks.
func TestOneCostInAllPlaces(t *testing.T) {
	const inUSD, outUSD = 1e-6, 10e-6 // of a token, see priced
	w := newWorld(t)
	machine, key := w.priced()
	api := func(method, path, body string) gjson.Result {
		t.Helper()
		r := w.do(method, "/"+machine+"/api"+path, adminToken, body)
		if r.status >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
		}
		return gjson.Parse(r.body)
	}
	for _, provider := range []string{"openai", "anthropic", "gemini"} { // for another try
		api("POST", "/providers", `{"provider":"`+provider+`","name":"b","apiKey":"another-key","priority":2}`)
	}
	budget := api("POST", "/budgets", `{"name":"b","unit":"usd","limit":1000,"window":"total"}`).Get("id").Str
	tokens := api("POST", "/budgets", `{"name":"t","unit":"tokens","limit":1000000000,"window":"total"}`).Get("id").Str
	random := rand.New(rand.NewPCG(25, 1))
	var wantUSD float64
	var wantIn, wantOut, wantEstimated, calls, again int64
	for n := range 400 {
		model := []string{"openai/gpt-5.5", "anthropic/claude-opus-4-8", "gemini/gemini-3.8-flash"}[random.IntN(3)]
		client := []string{"/v1/responses", "/v1/messages", "/v1beta/models/", "/v1/chat/completions"}[random.IntN(4)]
		end := []string{"whole", "stopped", "cut", "reset", "error", "retried", "zeros"}[random.IntN(7)]
		texts := make([]string, 1+random.IntN(30))
		for i := range texts {
			texts[i] = strings.Repeat("word ", 1+random.IntN(9)) + `\n`
		}
		in, out := 1+random.Int64N(9000), 1+random.Int64N(9000)
		prompt := strings.Repeat("some words ", 1+random.IntN(50))
		path, body := client, `{"model":"`+model+`"`
		switch client {
		case "/v1/responses":
			body += `,"stream":true,"input":"` + prompt + `"}`
		case "/v1beta/models/":
			path += model + ":streamGenerateContent?alt=sse"
			body = `{"contents":[{"role":"user","parts":[{"text":"` + prompt + `"}]}]}`
		default:
			body += `,"stream":true,"messages":[{"role":"user","content":"` + prompt + `"}]}`
		}
		what := fmt.Sprintf("call %d, %s from %s, %s", n, model, client, end)
		var sent string
		var begun int64
		tries := 0
		w.Answer = func(s *fake.Seen) fake.Answer {
			if s.Method == "GET" { // a list of models
				return fake.Answer{Status: 404}
			}
			if tries++; end == "retried" && tries == 1 {
				return fake.Answer{Status: 500, Body: `{"error":{"message":"again"}}`}
			}
			if end == "zeros" {
				in, out = 0, 0
			}
			sent, begun = answerOf(s.URL, texts, in, out)
			a := fake.OK("text/event-stream", "")
			switch first := strings.Index(sent, "\n\n") + 2; end {
			case "cut", "reset":
				sent = sent[:first+random.IntN(len(sent)-first)]
				if end == "reset" {
					sent = sent[:strings.LastIndex(sent, "\n\n")+2]
					a.End = stream.ErrReset
				}
			case "error":
				sent = sent[:first]
				sent += `data: {"type":"error","error":{"type":"overloaded_error","message":"told","code":529}}` + "\n\n"
			}
			a.Pieces = []string{sent}
			return a
		}
		passed := w.stream(path, key, body, end == "stopped", random.IntN(len(texts)))
		if calls++; tries > 1 && sent != "" {
			again++
		}
		w.Add(2 * time.Second)
		w.do("GET", "/v1/models", key, "") // brings the last report
		row := api("GET", "/requests?limit=1", "").Get("data.0")
		gotIn, gotOut := row.Get("inputTokens").Int(), row.Get("outputTokens").Int()
		length, final := textIn(sent)
		estimate := llm.Estimate([]byte(body))
		if begun > 0 {
			estimate = begun
		}
		isEstimated := row.Get("estimated").Bool()
		switch {
		case tries == 0 || sent == "":
			if gotIn+gotOut != 0 {
				t.Fatalf("%s: got %s", what, row.Raw)
			}
			continue
		case end == "zeros":
			in, out = llm.Estimate([]byte(body)), (length+3)/4
		case end == "stopped" && isEstimated:
			if in = estimate; passed && gotOut == 0 || gotOut > (length+3)/4 {
				t.Fatalf("%s: %d tokens of %d bytes", what, gotOut, length)
			}
			out = gotOut
		case end == "stopped": // it was complete before the client left
		case !final:
			in, out = estimate, max((length+3)/4, min(begun, 1)) // Claude has stated one
		}
		wantsEstimate := end == "zeros" || end != "stopped" && !final
		if in != gotIn || out != gotOut || end != "stopped" && isEstimated != wantsEstimate {
			t.Fatalf("%s: got %d and %d tokens, want %d and %d: %s\nsent %s", what, gotIn, gotOut, in, out, row.Raw, sent)
		}
		if isEstimated {
			wantEstimated++
		}
		usd := float64(in)*inUSD + float64(out)*outUSD
		if got := row.Get("costUsd").Num; !row.Get("priced").Bool() || math.Abs(got-usd) > 1e-9 {
			t.Fatalf("%s: costs %g, want %g: %s", what, got, usd, row.Raw)
		}
		wantUSD, wantIn, wantOut = wantUSD+usd, wantIn+in, wantOut+out
	}
	t.Logf("%d calls, %d of them estimated, %d tried again, $%.6f", calls, wantEstimated, again, wantUSD)
	if wantEstimated < calls/4 || wantEstimated > calls*3/4 || again == 0 {
		t.Errorf("%d of %d calls are estimated, %d tried again", wantEstimated, calls, again)
	}
	same := func(place string, got float64) {
		t.Helper()
		if math.Abs(got-wantUSD) > 1e-9 {
			t.Errorf("%s: $%.9f, want $%.9f", place, got, wantUSD)
		}
	}
	total := api("GET", "/usage", "").Get("total")
	same("usage", total.Get("costUsd").Num)
	if got := total.Get("inputTokens").Int(); got != wantIn || total.Get("outputTokens").Int() != wantOut || total.Get("estimatedAttempts").Int() != wantEstimated || total.Get("unpricedAttempts").Int() != 0 {
		t.Errorf("usage: got %s, want %d and %d tokens, %d estimated", total.Raw, wantIn, wantOut, wantEstimated)
	}
	requests, cursor := 0.0, ""
	for range 100 {
		page := api("GET", "/requests?limit=100"+cursor, "")
		for _, r := range page.Get("data").Array() {
			requests += r.Get("costUsd").Num
		}
		if cursor = "&cursor=" + page.Get("cursor").Str; page.Get("cursor").Str == "" {
			break
		}
	}
	same("requests", requests)
	k := api("GET", "/keys", "").Get("data.0")
	same("keys", k.Get("spentUsd").Num)
	if k.Get("tokens").Int() != wantIn+wantOut {
		t.Errorf("keys: got %s", k.Raw)
	}
	providers := 0.0
	for _, p := range api("GET", "/providers", "").Get("data").Array() {
		providers += p.Get("spentMonthUsd").Num
	}
	same("providers", providers)
	same("budgets", api("GET", "/budgets/"+budget, "").Get("spent").Num)
	if got := api("GET", "/budgets/"+tokens, "").Get("spent").Int(); got != wantIn+wantOut {
		t.Errorf("the budget of tokens has spent %d, want %d", got, wantIn+wantOut)
	}
	own := gjson.Parse(w.do("GET", "/v1/usage", key, "").body)
	same("the key's own", own.Get("spentUsd").Num)
}

// stream makes a call and reads its stream to the end, or stops after some parts of it. It
// reports whether a text had come by then.
func (w *world) stream(path, key, body string, stops bool, parts int) (text bool) {
	w.t.Helper()
	path, query, _ := strings.Cut(path, "?")
	resp := w.App.Serve(context.Background(), &httpmsg.Request{
		Method: "POST", Path: path, Query: query, Origin: "http://gateway.example", Start: w.Now(), Length: int64(len(body)), Body: stream.FromString(body),
		Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}, {Name: "content-type", Value: "application/json"}},
	})
	buf := make([]byte, 300)
	for i := 0; resp.Body != nil && (!stops || i <= parts); i++ {
		n, err := resp.Body.Read(buf)
		text = text || strings.Contains(string(buf[:n]), "word")
		if err == io.EOF {
			break
		}
	}
	if c, ok := resp.Body.(io.Closer); ok {
		c.Close()
	}
	for _, after := range resp.After {
		after(context.Background())
	}
	return text
}
