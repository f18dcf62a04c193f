package gateway

import (
	"strconv"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

func TestShareOfIdsIsSampled(t *testing.T) {
	g := &Gateway{}
	for _, percent := range []int{0, 1, 10, 50, 99, 100} {
		const calls = 20_000
		n := 0
		for range calls {
			if sampled(g.requestID(), percent) {
				n++
			}
		}
		if want := calls * percent / 100; n < want-calls/50 || n > want+calls/50 || percent%100 == 0 && n != want {
			t.Errorf("%d of %d ids are sampled, want %d", n, calls, want)
		}
	}
}

// A call whose bodies are not stored has no capture, and the check allocates nothing.
func TestCallsWithoutCaptureAllocateNothing(t *testing.T) {
	none, all := 0, 100
	for _, tt := range []struct {
		name    string
		machine int
		key     *store.Key
		route   Route
		method  string
		want    bool
	}{
		{"off", 0, &store.Key{}, Route{Explain: true}, "POST", false},
		{"off without a key", 0, nil, Route{Explain: true}, "POST", false},
		{"off for the key", 100, &store.Key{CapturePercent: &none}, Route{Explain: true}, "POST", false},
		{"another kind of route", 100, &store.Key{}, Route{}, "POST", false},
		{"another method", 100, &store.Key{}, Route{Explain: true}, "GET", false},
		{"on", 100, &store.Key{}, Route{Explain: true}, "POST", true},
		{"on without a key", 100, nil, Route{Explain: true}, "POST", true},
		{"on for the key", 0, &store.Key{CapturePercent: &all}, Route{Explain: true}, "POST", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &Gateway{}
			c := &auth.Call{
				Request: &httpmsg.Request{ID: "req_" + strconv.Itoa(1), Method: tt.method}, Key: tt.key,
				Machine: snapshot.New(&store.Machine{ID: "m", Settings: store.Settings{CapturePercent: tt.machine}}),
			}
			allocated := testing.AllocsPerRun(10, func() { g.begin(c, &tt.route) })
			if (c.Capture != nil) != tt.want || !tt.want && allocated != 0 {
				t.Errorf("captured is %t, want %t; %v allocations", c.Capture != nil, tt.want, allocated)
			}
		})
	}
	(&Gateway{}).begin(&auth.Call{Request: &httpmsg.Request{Method: "POST"}}, &Route{Explain: true}) // without a machine
}
