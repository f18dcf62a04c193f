package accounts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
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
	if w.pool.Pending(mid) {
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
