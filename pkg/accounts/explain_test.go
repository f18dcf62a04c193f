package accounts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

func (w *world) explain(pin string) string {
	var b strings.Builder
	for _, s := range Explain(w.call(), pin, w.Now(), nil, "") {
		fmt.Fprintf(&b, "%d:%s:%s:%s ", s.Try, s.Connection.ID, s.Skipped, s.Wait)
	}
	return strings.TrimSpace(b.String())
}

func TestExplainEqualsSend(t *testing.T) {
	w := newWorld(t).add(accounts("abcd")...).add(store.Connection{ID: "r", Status: "needs_reauth"})
	w.script[key("b")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "9"}}}}
	w.script[key("a")] = []fake.Answer{{Status: 401}, {Status: 529}}
	w.send()
	w.Add(4 * time.Second)
	if got, want := w.explain(""), "1:c::0s 2:d::0s 0:a:key_refused:1m56s 0:b:rate_limited:5s 0:r:needs_reauth:0s"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.script[key("c")], w.script[key("d")] = []fake.Answer{{Status: 529}}, []fake.Answer{{Status: 529}}
	if w.send(); w.saw() != "cd" {
		t.Errorf("upstream saw %s", w.saw())
	}
	if got, want := w.explain("c"), "1:c::0s 0:a:pinned:0s 0:b:pinned:0s 0:d:pinned:0s 0:r:pinned:0s"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.Add(2 * time.Minute)
	steps := Explain(w.call(), "", w.Now(), nil, "")
	for _, s := range steps {
		if s.Trial != (s.Connection.ID == "a") {
			t.Errorf("%s: trial %v", s.Connection.ID, s.Trial)
		}
	}
}

func TestExplainDoesNotAdvanceRoundRobin(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.machine.Settings.Strategy = store.RoundRobin
	w.send()
	for range 3 {
		if got := w.explain(""); got != "1:b::0s 2:c::0s 3:a::0s" {
			t.Fatalf("got %s", got)
		}
	}
	if w.send(); w.saw() != "b" {
		t.Errorf("upstream saw %s, want b", w.saw())
	}
	if got := Explain(&Call{Machine: w.machine}, "", w.Now(), nil, ""); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
