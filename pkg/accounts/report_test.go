package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/httpmsg"
)

func TestReportReachesObject(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script[key("a")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "7"}}, Body: `{"error":{"message":"slow down ` + key("a") + `"}}`}}
	w.send()
	w.object.Answer = func(op string, body []byte) (int, []byte, error) { return 200, []byte(`{"generation":5}`), nil }
	w.pool.Flush(context.Background(), w.machine)
	if len(w.object.Calls) != 1 || !strings.HasPrefix(w.object.Calls[0], "report ") {
		t.Fatalf("calls %v", w.object.Calls)
	}
	body := strings.TrimPrefix(w.object.Calls[0], "report ")
	want := `{"cooldowns":[{"connectionId":"a","model":"gpt","until":1800000007000,"reason":"rate_limited","failures":1,"since":1800000000000}],"errors":[{"connectionId":"a","text":"Provider said: “slow down ***”"}]}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	w.pool.Flush(context.Background(), w.machine)
	if len(w.object.Calls) != 1 {
		t.Error("told twice")
	}
	w.Add(8 * time.Second)
	w.script[key("a")] = []fake.Answer{{Status: 200}}
	w.send()
	w.pool.Flush(context.Background(), w.machine)
	if got := w.object.Calls[len(w.object.Calls)-1]; got != `report {"cleared":[{"connectionId":"a","model":"gpt","at":1800000008000}],"errors":[{"connectionId":"a","text":""}]}` {
		t.Errorf("got %s", got)
	}
	w.send()
	if w.pool.Unreported() > 0 {
		t.Error("a second success says nothing new")
	}
}

func TestReportIsKeptUntilDelivered(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.script[key("a")] = []fake.Answer{{Status: 401}}
	w.script[key("b")] = []fake.Answer{{Status: 429}}
	w.send()
	failing := func(string, []byte) (int, []byte, error) {
		w.Add(3 * time.Minute)
		w.script[key("a")] = []fake.Answer{{Status: 200}} // meanwhile a works again
		w.machine.Clear("a", "", w.Now().UnixMilli())
		w.pool.cleared(mid, "a", "")
		return 0, nil, errors.New("unreachable")
	}
	w.object.Answer = failing
	w.pool.Flush(context.Background(), w.machine)
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	w.pool.Flush(context.Background(), w.machine)
	body := strings.TrimPrefix(w.object.Calls[len(w.object.Calls)-1], "report ")
	if got := gjson.Get(body, "cooldowns.#.connectionId").Raw + gjson.Get(body, "cleared.#.connectionId").Raw + gjson.Get(body, "errors.#.text").Raw; got != `["b"]["a"]["","The provider answered with status 429."]` {
		t.Errorf("got %s", body)
	}
}

func TestReportsAreBounded(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{{Status: 429}}
	for i := range 200 {
		c := w.call()
		c.Targets = []routing.Target{w.target(strings.Repeat("m", i+1))}
		w.sendCall(c)
	}
	if n := len(w.pool.reports[mid].Cooldowns); n != maxPerReport {
		t.Errorf("%d kept, want %d", n, maxPerReport)
	}
}

func TestLateReportGoesWithTheNextCallOfAnother(t *testing.T) {
	for _, kind := range []string{"the object has failed", "the event has ended while counts were gathered"} {
		w := newWorld(t).add(accounts("a")...)
		w.pool.add(w.machine, &httpmsg.Request{}, &Trace{}, &usage.Row{Requests: 1})
		w.object.Answer = func(string, []byte) (int, []byte, error) { return 0, nil, errors.New("unreachable") }
		if kind != "the object has failed" {
			w.machine.CountsDue(w.Now()) // a report has just been sent
			w.pool.Pause = &fake.Clock{Canceled: true}
		}
		w.pool.Flush(context.Background(), w.machine)
		if len(w.pool.late) == 0 {
			t.Fatalf("%s: the report is not late", kind)
		}
		w.Add(time.Second)
		w.object.Calls, w.object.Answer = nil, func(string, []byte) (int, []byte, error) { return 200, []byte(`{}`), nil }
		w.pool.FlushLate(context.Background(), mid)
		if len(w.object.Calls) != 0 {
			t.Errorf("%s: sent by a call of the same machine, which sends it itself", kind)
		}
		w.pool.FlushLate(context.Background(), "mch_other")
		if len(w.object.Calls) != 1 || len(w.pool.late) > 0 || w.pool.Unreported() > 0 {
			t.Errorf("%s: calls %v, late %v", kind, w.object.Calls, len(w.pool.late))
		}
	}
}

func TestCountsOfAnUndeliveredReportAreAddedUp(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	since := w.pool.reportOf(mid)
	since.Unlisted, since.UnlistedFailed = 5, 3
	old := &report{}
	old.Unlisted, old.UnlistedFailed = 20, 10
	w.pool.restore(mid, old)
	if since.Unlisted != 25 || since.UnlistedFailed != 13 {
		t.Errorf("%d are not listed, %d of them failed", since.Unlisted, since.UnlistedFailed)
	}
}

func TestRefusedFieldIsRememberedForADay(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	res, e := w.send()
	if e != nil {
		t.Fatal(e)
	}
	res.Refuses([]string{"seed"}, true)
	for after, want := range map[time.Duration]string{0: "[seed]", 24*time.Hour - time.Millisecond: "[seed]", 24 * time.Hour: "[]"} {
		if got := fmt.Sprint(w.machine.Refused("a", w.Now().Add(after).UnixMilli())); got != want {
			t.Errorf("after %v: %s", after, got)
		}
	}
	if list := w.pool.reportOf(mid).Refusals; len(list) != 1 || list[0] != (store.Refusal{ConnectionID: "a", Field: "seed", Until: w.Now().Add(24 * time.Hour).UnixMilli()}) {
		t.Errorf("reported: %+v", list)
	}
	res.Refuses([]string{"seed"}, false)
	if got := w.machine.Refused("a", w.Now().UnixMilli()); len(got) > 0 {
		t.Errorf("accepted again: %v", got)
	}
}
