package accounts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/budget"
	"weir/pkg/llm"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func TestUsageIsGatheredIntoOneReport(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = w.Clock
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, []byte(`{"generation":1}`), nil }
	used := func() {
		w.pool.add(w.machine, &httpmsg.Request{}, &Trace{}, &usage.Row{KeyID: "k", Model: "m", Requests: 1, InputTokens: 10, CostUSD: 0.5})
	}
	flush := func() { w.pool.Flush(context.Background(), w.machine) }
	used()
	flush() // the first tells at once
	used()
	w.Meanwhile = func() { used(); flush(); used(); flush() } // others do not wait
	flush()
	if w.Pauses() != 1 || len(w.object.Calls) != 2 {
		t.Fatalf("%d pauses, calls %v", w.Pauses(), w.object.Calls)
	}
	for i, want := range []string{
		`report {"usage":[{"keyId":"k","model":"m","requests":1,"inputTokens":10,"costUsd":0.5}],` +
			`"labels":[{"kind":"tool","rows":[{"value":"other","keyId":"k","requests":1,"inputTokens":10,"costUsd":0.5}]}]}`,
		`report {"usage":[{"keyId":"k","model":"m","requests":3,"inputTokens":30,"costUsd":1.5}],` +
			`"labels":[{"kind":"tool","rows":[{"value":"other","keyId":"k","requests":3,"inputTokens":30,"costUsd":1.5}]}]}`,
	} {
		if w.object.Calls[i] != want {
			t.Errorf("got  %s\nwant %s", w.object.Calls[i], want)
		}
	}
	if w.pool.Unreported() > 0 {
		t.Error("something is left")
	}
}

func TestUsageOfFailedReportIsKept(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = w.Clock
	w.pool.add(w.machine, &httpmsg.Request{}, &Trace{}, &usage.Row{Model: "m", Requests: 1})
	w.pool.Flush(context.Background(), w.machine) // the object cannot be reached
	w.pool.add(w.machine, &httpmsg.Request{}, &Trace{}, &usage.Row{Model: "m", Requests: 1})
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	w.pool.Flush(context.Background(), w.machine)
	if got := w.object.Calls[len(w.object.Calls)-1]; !strings.Contains(got, `{"model":"m","requests":2}`) {
		t.Errorf("got %s", got)
	}
}

// The attempts and the call of a request count for its tool and for each name of its tags, also
// if the list of requests is thinned, and if a report does not get through.
func TestRequestCountsForItsLabels(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script[key("a")] = []fake.Answer{{Status: 500}}
	w.req.Header = httpmsg.Header{{Name: "user-agent", Value: "claude-cli/2.1"}, {Name: "x-weir-tags", Value: "project=atlas, nightly,team=core"}}
	w.pool.MaxRecords = 2
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 503, nil, nil }
	for range 5 {
		w.pool.Record(w.Now(), w.machine, &httpmsg.Request{Method: "POST", Route: "/v1/embeddings", Header: w.req.Header}, &Trace{KeyID: "k1"}, 400, &apierr.Error{Status: 400})
	}
	w.pool.Flush(context.Background(), w.machine)
	got := w.recorded(w.kind("llm"), time.Second)
	if n := got.Get("labels.#").Int(); n != 3 || got.Get("unlisted").Int() != 4 {
		t.Errorf("%d labels, %d requests are not listed", n, got.Get("unlisted").Int())
	}
	for name, value := range map[string]string{"": "claude-code", "project": "atlas", "team": "core"} {
		var l gjson.Result
		for _, r := range got.Get("labels").Array() {
			if r.Get("name").Str == name {
				l = r
			}
		}
		row := l.Get("rows.0")
		if g := fmt.Sprint(l.Get("rows.#").Int(), row.Get("value").Str, row.Get("keyId").Str, row.Get("requests").Int(), row.Get("errors").Int(), row.Get("calls").Int(),
			row.Get("failedCalls").Int()); g != fmt.Sprint(1, value, "k1", 2, 1, 6, 5) {
			t.Errorf("%s: got %s", name, g)
		}
	}
}

func TestUsageOfPostsAndSocketsIsRecorded(t *testing.T) {
	for _, tt := range []struct {
		method, upgrade string
		recorded        bool
	}{
		{"POST", "", true}, {"POST", "websocket", true}, {"GET", "WebSocket", true},
		{"GET", "", false}, {"GET", "h2c", false}, {"DELETE", "websocket", false}, {"DELETE", "", false},
	} {
		r := &httpmsg.Request{Method: tt.method}
		if tt.upgrade != "" {
			r.Header.Add("upgrade", tt.upgrade)
		}
		if got := recorded(r); got != tt.recorded {
			t.Errorf("%s with upgrade %q: %v", tt.method, tt.upgrade, got)
		}
	}
}

// An answer whose usage another call gets leaves a row for the case that none does. Budgets count
// the estimate until then, or what the end of a stream states.
func TestAnswerThatIsBilledLater(t *testing.T) {
	known := llm.Usage{Known: true, Input: 90, Output: 10}
	for _, tt := range []struct {
		name     string
		stream   bool
		used     llm.Usage // at the end
		cause    error     // of the end
		spent    int64
		cost     string
		recorded string // of the report
	}{
		{"in the background", false, llm.Usage{}, nil, 1000, "unknown", ""},
		{"in the background, with tokens", false, known, nil, 1000, "unknown", ""},
		{"a stream that states its tokens", true, known, nil, 100, "0.000325", ""},
		{"a stream that does not", true, llm.Usage{}, nil, 1000, "unknown", ""},
		{"a stream that fails", true, llm.Usage{}, apierr.New(502, "", "broken"), 1000, "unknown", `[{"keyId":"k1","connectionId":"a","provider":"openai","model":"openai/gpt-4o","endpoint":"/v1/chat/completions","requests":0,"errors":1}]`},
	} {
		b := newBudgeted(t, store.Budget{Unit: store.Tokens, Limit: 10_000, Window: budget.Total})
		answer := fake.Answer{Body: `{}`}
		if tt.stream {
			answer = fake.Answer{Pieces: []string{"data: {}\n\n"}}
		}
		b.script["*"] = []fake.Answer{answer}
		call := b.to(b.model)
		call.Estimate = Estimate{Input: 100, Output: 900, Text: true}
		call.Read = func(a *Attempt, _ *upstream.Response) error {
			if a.Used.Price = Later; !tt.stream {
				a.Used.Tokens = tt.used
			}
			return nil
		}
		res, err := b.pool.Send(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		a := res.Attempt
		if a.Unbilled == nil || a.Unbilled.Unpriced != 1 || a.Unbilled.Model != "openai/gpt-4o" || a.Counted["b1"] != 1000 || len(a.Labels) == 0 {
			t.Fatalf("%s: %+v, %v, %v", tt.name, a.Unbilled, a.Counted, a.Labels)
		}
		if tt.stream {
			a.Used.Tokens = tt.used
			res.Done(tt.cause)
		}
		b.report()
		report := strings.TrimPrefix(b.object.Calls[len(b.object.Calls)-1], "report ")
		if cost := b.trace.Cost(); b.ledgers["b1"].Spent != tt.spent || cost != tt.cost || gjson.Get(report, "usage").Raw != tt.recorded {
			t.Errorf("%s: spent %d, cost %q, recorded %s", tt.name, b.ledgers["b1"].Spent, cost, gjson.Get(report, "usage").Raw)
		}
	}
}

// One call at a time waits for the counts of a machine. A wait that has not ended after staleWait,
// or that began in the future, is lost.
func TestWaitForCountsIsOneAtATime(t *testing.T) {
	w := newWorld(t)
	begin := w.Now()
	for _, tt := range []struct {
		after time.Duration
		waits bool
	}{{0, true}, {0, false}, {staleWait - 1, false}, {-1, true}, {staleWait - 1, true}} {
		if got := w.pool.waits("m", begin.Add(tt.after)); got != tt.waits {
			t.Errorf("after %v: %v", tt.after, got)
		}
	}
	for i := range 2 * maxReports {
		w.pool.waits(fmt.Sprint(i), begin)
		if n := len(w.pool.waiting); n != (i+1)%maxReports+1 || w.pool.waiting[fmt.Sprint(i)] != begin {
			t.Fatalf("%d machines wait after %d", n, i+2)
		}
	}
}
