package native_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/server/host"
)

// app is the program without a host, over the objects of a world. Its upstream
// answers at once.
type app struct {
	*world
	*gateway.App
}

func newApp(w *world) *app {
	p := host.Ports(&w.Host.Config)
	up := newUpstream()
	p.Do = fake.Fixed{
		"/embeddings": up.embedding, "/chat/completions": up.chat, "/messages": []byte(message), "/responses": []byte(response),
	}
	p.Pause = nil // what follows an answer does not wait
	return &app{w, gateway.New(w.Host.Config.Gateway, p)}
}

// requests returns calls as a host passes them.
func (a *app) requests(n int, path, body string) []*httpmsg.Request {
	list := make([]*httpmsg.Request, n)
	for i := range list {
		list[i] = &httpmsg.Request{
			Method: "POST", Path: path, Origin: "http://weir.test", Length: int64(len(body)), Start: time.Now(),
			Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + a.key}, {Name: "content-type", Value: "application/json"}},
			Body:   stream.FromString(body),
		}
	}
	return list
}

func (a *app) serve(r *httpmsg.Request) {
	resp := a.Serve(context.Background(), r)
	if resp.Status != 200 {
		a.Fatalf("%s: status %d", r.Path, resp.Status)
	}
	for _, after := range resp.After {
		after(context.Background())
	}
}

// programCalls are the calls whose allocations in the program alone are bounded, with
// the most of them, and of their bytes. Four of a call's are those of fake.Fixed; the
// answer of 8 KiB to embeddings is copied once.
var programCalls = []struct {
	name, path, body string
	allocations      float64
	bytes            uint64
}{
	{"embeddings", "/v1/embeddings", `{"model":"up/bench","input":"The food was delicious and the waiter friendly.","encoding_format":"base64"}`, 21, 16 << 10},
	{"chat", "/v1/chat/completions", `{"model":"up/bench","messages":[{"role":"user","content":"Say hello in a friendly way."}]}`, 30, 6 << 10},
	{"messages", "/v1/messages", `{"model":"claude/bench","max_tokens":100,"messages":[{"role":"user","content":"Say hello in a friendly way."}]}`, 30, 6 << 10},
	{"responses", "/v1/responses", `{"model":"up/bench","store":false,"input":"Say hello in a friendly way."}`, 30, 6 << 10},
}

// The program runs on the edge too, where an allocation costs eight times as much.
func TestAllocationsInTheProgram(t *testing.T) {
	a := newApp(newWorld(t))
	for _, c := range programCalls {
		const n = 1000                                    // with those that a report costs
		for _, r := range a.requests(n, c.path, c.body) { // fill what is cached
			a.serve(r)
		}
		list := a.requests(n+1, c.path, c.body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		i := 0
		got := testing.AllocsPerRun(n, func() { a.serve(list[i]); i++ })
		runtime.ReadMemStats(&after)
		size := (after.TotalAlloc - before.TotalAlloc) / (n + 1)
		t.Logf("%s: %.0f allocations, %d bytes", c.name, got, size)
		if got > c.allocations || size > c.bytes {
			t.Errorf("%s: %.0f allocations and %d bytes, at most %.0f and %d", c.name, got, size, c.allocations, c.bytes)
		}
	}
}

// BenchmarkProgram measures a call in the program, without a host:
//
//	go test -run - -bench Program ./test/bench/native
func BenchmarkProgram(b *testing.B) {
	a := newApp(newWorld(b))
	for _, c := range programCalls {
		b.Run(fmt.Sprint(c.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				list := a.requests(256, c.path, c.body)
				b.StartTimer()
				for _, r := range list {
					a.serve(r)
				}
			}
		})
	}
}
