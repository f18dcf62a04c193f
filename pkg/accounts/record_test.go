package accounts

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// recorded sends a call, records it as the gateway does, and returns the
// report to the object.
func (w *world) recorded(c *Call, after time.Duration) gjson.Result {
	w.req.ID, w.req.Method = "req_1", "POST"
	w.req.Route, w.trace.KeyID, w.trace.Asked = "/v1/embeddings", "k1", "fast"
	_, err := w.pool.Send(context.Background(), c)
	w.Add(after)
	status := 200
	var e *apierr.Error
	if err != nil {
		e = err.(*apierr.Error)
		status = e.Status
	}
	w.pool.Record(w.Now(), w.machine, w.req, &w.trace, status, e)
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, []byte(`{"generation":1}`), nil }
	w.pool.Flush(context.Background(), w.machine)
	return gjson.Parse(strings.TrimPrefix(w.object.Calls[len(w.object.Calls)-1], "report "))
}

func TestRequestRecordHasFailedAttempts(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.script[key("a")] = []fake.Answer{{Status: 429, Body: `{"error":{"message":"slow down"}}`}}
	w.script[key("b")] = []fake.Answer{{Status: 401, Body: `{"error":{"message":"who are you"}}`}}
	got := w.recorded(w.kind("llm"), 250*time.Millisecond)
	rec := got.Get("requests.0")
	for path, want := range map[string]string{
		"id": "req_1", "at": "1800000000000", "keyId": "k1", "endpoint": "/v1/embeddings", "asked": "fast", "model": "openai/gpt",
		"connectionId": "c", "status": "200", "latencyMs": "250", "attempts": "3", "failed.#": "2",
		"failed.0.connectionId": "a", "failed.0.status": "429", "failed.0.text": "Provider said: “slow down”",
		"failed.1.connectionId": "b", "failed.1.status": "401", "failed.1.text": "Provider said: “who are you”",
	} {
		if g := rec.Get(path).String(); g != want {
			t.Errorf("%s: got %s, want %s", path, g, want)
		}
	}
	// Each attempt is counted, and the time of the whole.
	for conn, want := range map[string]string{
		"a": "1 1 0 0[1,0,0,0,0,0,0,0]", "b": "1 1 0 0[0,1,0,0,0,0,0,0]", "c": "1 0 1 250",
	} {
		u := got.Get(`usage.#(connectionId=="` + conn + `")`)
		if g := fmt.Sprint(u.Get("requests").Int(), u.Get("errors").Int(), u.Get("calls").Int(), u.Get("latencyMs").Int(), u.Get("causes").Raw); g != want {
			t.Errorf("usage of %s: got %s, want %s", conn, g, want)
		}
	}
}

func TestRequestRecordHasTimesOfAttempts(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.script[key("a")] = []fake.Answer{{Status: 429, Takes: 30 * time.Millisecond}}
	w.script[key("b")] = []fake.Answer{{Status: 500, Takes: 20 * time.Millisecond}}
	w.script[key("c")] = []fake.Answer{{Status: 200, Body: "{}", Takes: 40 * time.Millisecond}}
	w.req.Length = 1234
	w.trace.AnswerBytes = 2
	rec := w.recorded(w.kind("llm"), 10*time.Millisecond).Get("requests.0")
	for path, want := range map[string]int64{
		"failed.0.sentMs": 0, "failed.0.ms": 30, "failed.1.sentMs": 30, "failed.1.ms": 20, "sentMs": 50, "latencyMs": 100, "requestBytes": 1234, "answerBytes": 2,
	} {
		if got := rec.Get(path).Int(); got != want {
			t.Errorf("%s: got %d, want %d in %s", path, got, want, rec.Raw)
		}
	}
}

// A provider may repeat in its refusal what it was asked.
func TestRefusedRequestTextIsNotStored(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{{Status: 400, Body: `{"error":{"message":"my secret prompt is too long","code":"too_long"}}`}}
	got := w.recorded(w.kind("llm"), 0)
	if strings.Contains(got.Raw, "secret prompt") || got.Get("requests.0.failed.0.code").Str != "too_long" || got.Get("requests.0.error").Str != "too_long" {
		t.Errorf("got %s", got.Raw)
	}
}

// A request that no account could take is recorded with the text that its client got: which
// account, what happened and what to do.
func TestUntriedRequestHasMessage(t *testing.T) {
	const secret = "sk-proj-1234567890abcdefghij"
	for _, name := range []string{"refused", "limited"} {
		a := store.Connection{ID: "a", Name: "work " + secret}
		if name == "refused" {
			a.Status = needsReauth
		}
		w := newWorld(t).add(a)
		if name == "limited" {
			w.machine.Cool(store.Cooldown{ConnectionID: "a", Until: w.Now().UnixMilli() + 7000, Reason: store.RateLimited})
		}
		w.req.Method, w.req.Route = "POST", "/v1/embeddings"
		_, e := w.send()
		rec := w.pool.Record(w.Now(), w.machine, w.req, &w.trace, e.Status, e)
		want := apierr.Shorten(redact.Patterns(e.Message), maxRefusalText)
		if rec.Attempts != 0 || rec.Outcome != store.NoAccount || rec.Message != want || strings.Contains(rec.Message, secret) {
			t.Errorf("%s: %d attempts, %s, message %q, want %q", name, rec.Attempts, rec.Outcome, rec.Message, want)
		}
	}
	w := newWorld(t)
	w.req.Method, w.req.Route = "POST", "/v1/embeddings"
	if rec := w.pool.Record(w.Now(), w.machine, w.req, &w.trace, 499, apierr.ClientLeft(nil)); rec.Outcome != store.Left || rec.Message != "" {
		t.Errorf("left: got %+v", rec)
	}
}

// Each attempt that was sent is recorded once, whatever its result; one that
// could not be built, or whose client disconnected, is not.
func TestEachAttemptIsRecordedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		used  Used
		left  bool // the client disconnects in the last attempt
		want  string
		spent store.Used
	}{
		"stated cost":    {used: StatedCost(0.25, true), want: "a 1 1 0 0, c 1 0 0.25 0", spent: store.Used{CostUSD: 0.25, Priced: true}},
		"unknown cost":   {used: StatedCost(0, false), want: "a 1 1 0 0, c 1 0 0 1"},
		"negative cost":  {used: StatedCost(-1, true), want: "a 1 1 0 0, c 1 0 0 1"},
		"unknown tokens": {want: "a 1 1 0 0, c 1 0 0 1", spent: store.Used{Unpriced: []string{"tokens"}}},
		"unknown unit":   {used: Used{Tokens: llm.Usage{Input: 1e6, Known: true, Cost: 9, Charged: true}}, want: "a 1 1 0 0, c 1 0 2.5 0", spent: store.Used{Input: 1e6, CostUSD: 2.5, Priced: true}},
		"tokens":         {used: Used{Tokens: llm.Usage{Input: 1e6, Known: true}}, want: "a 1 1 0 0, c 1 0 2.5 0", spent: store.Used{Input: 1e6, CostUSD: 2.5, Priced: true}},
		"client left":    {left: true, want: "a 1 1 0 0"},
	} {
		w := newWorld(t).add(accounts("abc")...)
		w.script[key("a")] = []fake.Answer{{Status: 503}}
		w.script[key("c")] = []fake.Answer{{Status: 200, Body: "{}"}}
		if tt.left {
			w.script[key("c")] = []fake.Answer{{Err: upstream.ErrCanceled}}
		}
		c := w.call()
		c.Targets[0].Model = "gpt-4o"
		build := c.Build
		c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
			if conn.ID == "b" {
				return nil, provider.ErrIncomplete
			}
			return build(to, conn, before)
		}
		c.Read = func(a *Attempt, _ *upstream.Response) error {
			a.Used = tt.used
			return nil
		}
		w.recorded(c, time.Second)
		var got []string
		for _, u := range gjson.Get(strings.TrimPrefix(w.object.Calls[len(w.object.Calls)-1], "report "), "usage").Array() {
			if n := u.Get("requests").Int(); n > 0 {
				got = append(got, fmt.Sprint(u.Get("connectionId").Str, " ", n, u.Get("errors").Int(), u.Get("costUsd").Num, u.Get("unpriced").Int()))
			}
		}
		if g := strings.Join(got, ", "); g != tt.want {
			t.Errorf("%s: got %s, want %s", name, g, tt.want)
		}
		if !reflect.DeepEqual(w.trace.Used, tt.spent) {
			t.Errorf("%s: the request used %+v, want %+v", name, w.trace.Used, tt.spent)
		}
	}
}

// Reports of more machines than have room lose no count, up to four times as many.
func TestReportsOfManyMachinesLoseNoCount(t *testing.T) {
	const machines, requests = 2 * maxReports, 20
	p := &Pool{}
	for i := range machines {
		r := p.reportOf(fmt.Sprint(i))
		r.Usage = usage.Add(r.Usage, usage.Row{Calls: requests})
		for j := range requests {
			p.record(r, &store.Request{Outcome: store.ProviderFailed, Status: 500 - 300*(j%2), LatencyMs: int64(j)})
		}
	}
	var all, failed, calls, listed int64
	for _, r := range p.reports {
		listed += int64(len(r.Requests))
		all, failed, calls = all+r.Unlisted, failed+r.UnlistedFailed, calls+r.Usage[0].Calls
	}
	if all += listed; len(p.reports) != machines || all != machines*requests || calls != all || failed < (machines-maxReports-1)*requests/2 || listed == all {
		t.Errorf("%d machines, %d requests of which %d are listed and %d failed ones are not, %d calls", len(p.reports), all, listed, failed, calls)
	}
	for i := range 3 * maxMachines {
		p.reportOf(fmt.Sprint("m", i))
	}
	if len(p.reports) > maxMachines {
		t.Errorf("%d machines", len(p.reports))
	}
}

// A stream's usage is recorded when it has ended.
func TestUsageOfAStreamIsRecordedAtItsEnd(t *testing.T) {
	for cause, want := range map[error]string{nil: "1 0", stream.ErrReset: "1 1", stream.ErrClient: "1 0"} {
		w := newWorld(t).add(accounts("a")...)
		w.req.Method = "POST"
		c := w.call()
		c.Read = func(_ *Attempt, resp *upstream.Response) error {
			resp.Body = io.NopCloser(resp.Body)
			return nil
		}
		res, e := w.sendCall(c)
		if e != nil {
			t.Fatal(e)
		}
		if n := len(w.pool.reportOf(mid).Usage); n != 0 {
			t.Errorf("%v: %d rows before the end", cause, n)
		}
		res.Attempt.Used = StatedCost(0.5, true)
		res.Done(cause)
		rows := w.pool.reportOf(mid).Usage
		if len(rows) != 1 || fmt.Sprint(rows[0].Requests, rows[0].Errors) != want || rows[0].CostUSD != 0.5 {
			t.Errorf("%v: got %+v, want %s", cause, rows, want)
		}
	}
}

// A call of the gateway's own needs no account and is free.
func TestDirectCallIsRecordedWithoutAccount(t *testing.T) {
	w := newWorld(t)
	w.req.Method = "POST"
	to := w.target("fetch")
	to.Connections = []*store.Connection{{}}
	for _, err := range []error{nil, apierr.New(502, "", "no"), apierr.ClientLeft(nil)} {
		w.pool.RecordDirect(w.machine, w.req, &w.trace, &to, err)
	}
	rows := w.pool.reportOf(mid).Usage
	if len(rows) != 1 || rows[0].Requests != 2 || rows[0].Errors != 1 || rows[0].Unpriced != 0 || rows[0].ConnectionID != "" || rows[0].Provider != "openai" {
		t.Errorf("got %+v", rows)
	}
}

// Successes push no failure out of a report, nor the slowest and the dearest calls.
func TestFullReportKeepsFailures(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	const calls, failed = 5000, 100
	for i := range calls {
		r := &httpmsg.Request{ID: fmt.Sprint(i), Method: "POST", Start: w.Now(), Route: "/v1/embeddings"}
		status, e, trace := 200, (*apierr.Error)(nil), &Trace{Asked: strings.Repeat("m", 500)}
		switch {
		case i%(calls/failed) == 7:
			status, e = 400, apierr.Invalid("model", "no such model")
		case i == 3:
			trace.Used.CostUSD = 9
		case i == 4:
			r.Start = r.Start.Add(-time.Minute)
		}
		w.pool.Record(w.Now(), w.machine, r, trace, status, e)
	}
	for _, r := range []*httpmsg.Request{
		{Method: "GET", Route: "/v1/models"}, {Method: "POST", Route: "/api/keys"},
	} {
		w.pool.Record(w.Now(), w.machine, r, &Trace{}, 200, nil)
	}
	rep := w.pool.reportOf(mid)
	var failures, last int
	for i := range rep.Requests {
		at, _ := strconv.Atoi(rep.Requests[i].ID)
		if at < last {
			t.Fatalf("%d after %d", at, last)
		}
		if last = at; rep.Requests[i].HasFailed() {
			failures++
		}
	}
	if len(rep.Requests) > maxRecords || int64(len(rep.Requests))+rep.Unlisted != calls || failures != failed || rep.UnlistedFailed != 0 {
		t.Errorf("%d listed, %d not; %d failures", len(rep.Requests), rep.Unlisted, failures)
	}
	if rep.Requests[0].ID != "3" || rep.Requests[1].ID != "4" {
		t.Errorf("first %s and %s", rep.Requests[0].ID, rep.Requests[1].ID)
	}
	if r := rep.Requests[0]; len(r.Asked) != maxRecordText {
		t.Errorf("got %+v", r)
	}
	if u := rep.Usage; len(u) != 1 || u[0].Calls != calls || u[0].Requests != 0 {
		t.Errorf("got %+v", u)
	}
}

func TestCallsOfTheGeminiAPIAreRecorded(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	const route = "/v1beta/models/{model}:embedContent"
	w.pool.Record(w.Now(), w.machine, &httpmsg.Request{ID: "1", Method: "POST", Start: w.Now(), Route: route}, &Trace{}, 200, nil)
	if list := w.pool.reportOf(mid).Requests; len(list) != 1 || list[0].Endpoint != route {
		t.Errorf("got %+v", list)
	}
}

// Requests, failed requests and attempts are three numbers, and a client that
// leaves has not failed.
func TestRecordCountsFailedCalls(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	record := func(status int, e *apierr.Error, cause error) store.Request {
		r := &httpmsg.Request{ID: "r", Method: "POST", Start: w.Now(), Route: "/v1/chat/completions"}
		w.pool.Record(w.Now(), w.machine, r, &Trace{Err: cause}, status, e)
		list := w.pool.reportOf(mid).Requests
		return list[len(list)-1]
	}
	record(200, nil, nil)
	record(400, apierr.Invalid("model", "no such model"), nil)
	record(200, nil, apierr.New(502, "upstream_cut", "The provider's stream ended early."))
	for _, r := range []store.Request{record(499, apierr.ClientLeft(nil), nil), record(200, nil, apierr.ClientLeft(stream.ErrClient))} {
		if r.Error != "client_closed" {
			t.Errorf("error %q, want client_closed", r.Error)
		}
	}
	if u := w.pool.reportOf(mid).Usage; len(u) != 1 || u[0].Calls != 5 || u[0].FailedCalls != 2 || u[0].Requests != 0 {
		t.Errorf("got %+v", u)
	}
}

func TestRequestsOfFailedReportStayInOrder(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = w.Clock
	record := func(id string) {
		w.pool.Record(w.Now(), w.machine, &httpmsg.Request{ID: id, Method: "POST", Start: w.Now(), Route: "/v1/rerank"}, &Trace{}, 200, nil)
	}
	record("1")
	w.pool.Flush(context.Background(), w.machine) // the object cannot be reached
	record("2")
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	w.pool.Flush(context.Background(), w.machine)
	got := gjson.Parse(strings.TrimPrefix(w.object.Calls[len(w.object.Calls)-1], "report ")).Get("requests.#.id").Raw
	if got != `["1","2"]` {
		t.Errorf("got %s", got)
	}
}

// Reports that get through leave the memory of their requests to later ones.
func TestReportsReuseMemory(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	r := &httpmsg.Request{ID: "1", Method: "POST", Start: w.Now(), Route: "/v1/rerank"}
	report := func() *store.Request {
		for range maxRecords {
			w.pool.Record(w.Now(), w.machine, r, &Trace{Asked: "m"}, 200, nil)
		}
		first := &w.pool.reportOf(mid).Requests[0]
		w.Add(countsEvery)
		w.pool.Flush(context.Background(), w.machine)
		return first
	}
	first := report()
	if again := report(); again != first {
		t.Error("the memory is allocated again")
	}
	if first.ID != "" || first.Asked != "" {
		t.Errorf("a reported request is kept: %+v", first)
	}
	list := gjson.Parse(strings.TrimPrefix(w.object.Calls[len(w.object.Calls)-1], "report ")).Get("requests").Array()
	if len(list) != maxRecords || list[maxRecords-1].Get("id").Str != "1" {
		t.Errorf("reported %d requests", len(list))
	}
}

// A second of many calls is listed whole: a list that is half full is reported at once, unless
// the object does not answer.
func TestBusySecondIsListedWhole(t *testing.T) {
	const calls = 4*maxRecords + 3
	busy := func(status int) (w *world) {
		w = newWorld(t).add(accounts("a")...)
		w.object.Answer = func(string, []byte) (int, []byte, error) { return status, nil, nil }
		r := &httpmsg.Request{ID: "1", Method: "POST", Start: w.Now(), Route: "/v1/rerank"}
		for range calls {
			w.pool.Record(w.Now(), w.machine, r, &Trace{Asked: "m"}, 200, nil)
			w.pool.Flush(context.Background(), w.machine)
		}
		w.Add(countsEvery)
		w.pool.Flush(context.Background(), w.machine)
		return w
	}
	w, listed := busy(200), 0
	for _, call := range w.object.Calls {
		report := gjson.Parse(strings.TrimPrefix(call, "report "))
		listed += len(report.Get("requests").Array())
	}
	if n := len(w.object.Calls); listed != calls || n > 2+calls/(maxRecords/2) {
		t.Errorf("%d of %d calls are listed by %d reports", listed, calls, n)
	}
	if w = busy(503); len(w.object.Calls) > 3 {
		t.Errorf("an object that fails got %d reports of a second", len(w.object.Calls))
	}
}
