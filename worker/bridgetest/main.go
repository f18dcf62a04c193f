//go:build js && wasm

// Command bridgetest is the program that the bridge's own tests run in workerd:
// each path shows one kind of answer. It is not part of the gateway.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/worker/bridge"
)

func main() {
	bridge.Run(func() bridge.App {
		return &app{template: httpmsg.Template{Fields: httpmsg.Header{{Name: "content-type", Value: "application/json"},
			{Name: "x-constant", Value: "1"}}}}
	})
}

type app struct {
	lastWatch string
	ends      []string // how sockets have ended
	seen      []string // messages of relays
	checks    int      // of relays
	after     int
	aborted   int
	alarms    int
	hold      [][]byte
	owed      int // reports that wait for the end of a request
	template  httpmsg.Template
}

func text(status int, s string) *httpmsg.Response {
	return &httpmsg.Response{Status: status, Header: httpmsg.Header{{Name: "content-type", Value: "text/plain"}},
		Body: stream.FromString(s)}
}

// Serve routes by the path; the query is the upstream's address.
func (a *app) Serve(ctx context.Context, r *httpmsg.Request) *httpmsg.Response {
	resp, err := a.serve(ctx, r)
	if err != nil {
		return text(502, err.Error())
	}
	if a.owed > 0 && r.Path != "/owe" {
		a.owed--
	}
	return resp
}

func (a *app) serve(ctx context.Context, r *httpmsg.Request) (*httpmsg.Response, error) {
	var doer bridge.Doer
	patience := time.Minute // with an upstream
	if strings.Contains(r.Query, "!stall") {
		patience = 1500 * time.Millisecond
	}
	get := func(maxBody int64) *upstream.Request {
		return &upstream.Request{Method: "GET", URL: r.Query, HeaderTimeout: patience, MaxBody: maxBody}
	}
	switch r.Path {
	case "/health":
		return text(200, "ok"), nil
	case "/template": // constant header fields, and fields of the answer
		return &httpmsg.Response{Status: 200, Template: &a.template,
			Header: httpmsg.Header{{Name: "x-query", Value: r.Query}, {Name: "x-two", Value: "a"}, {Name: "x-two", Value: "b"}},
			Body:   stream.FromString("{}")}, nil
	case "/echo":
		b, err := stream.ReadAll(r.Body, 8<<20)
		if err != nil {
			return text(400, err.Error()), nil
		}
		return &httpmsg.Response{Status: 200, Body: stream.FromBytes(b)}, nil
	case "/call": // the whole answer with its head
		up, err := upstream.Do(ctx, doer, get(1<<20))
		if err != nil {
			return nil, err
		}
		b, err := stream.ReadAll(up.Body, 1<<20)
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Header: httpmsg.Header{{Name: "x-upstream",
			Value: up.Header.Get("x-test")}}, Body: stream.FromBytes(append([]byte("call:"), b...))}, nil
	case "/again": // repeats a call that fails
		up, err := upstream.Do(ctx, doer, get(1<<20))
		if err != nil {
			a.aborted++
			up, err = upstream.Do(ctx, doer, get(1<<20))
		}
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Body: up.Body}, nil
	case "/post": // a JSON call: body in, whole answer out
		b, err := stream.ReadAll(r.Body, 8<<20)
		if err != nil {
			return nil, err
		}
		up, err := upstream.Do(ctx, doer, &upstream.Request{Method: "POST", URL: r.Query, Body: stream.FromBytes(b),
			MaxBody: 32 << 20, Timeout: time.Minute,
			Header: httpmsg.Header{{Name: "content-type", Value: "application/json"},
				{Name: "authorization", Value: "Bearer sk-upstream"}}})
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"},
			{Name: "x-request-id", Value: "req_1"}, {Name: "cache-control", Value: "no-store"},
			{Name: "access-control-allow-origin", Value: "*"}}, Body: up.Body}, nil
	case "/read": // chunk by chunk into Go
		up, err := upstream.Do(ctx, doer, get(0))
		if err != nil {
			return nil, err
		}
		b, err := stream.ReadAll(up.Body, 1<<20)
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Body: stream.FromBytes(b)}, nil
	case "/splice":
		up, err := upstream.Do(ctx, doer, get(0))
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Body: up.Body}, nil
	case "/upload":
		up, err := upstream.Do(ctx, doer, &upstream.Request{Method: "POST", URL: r.Query, Body: r.Body,
			Header: httpmsg.Header{{Name: "content-type", Value: "application/octet-stream"}}})
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Body: up.Body}, nil
	case "/uploadtwice": // held by the host and sent twice
		h, err := stream.Hold(&stream.Metered{ReadCloser: r.Body, Length: -1,
			Grow: func(int64, bool) error { return nil }}, 64<<20)
		if err != nil {
			return nil, err
		}
		defer h.Release()
		var sum string
		for range 2 {
			up, err := upstream.Do(ctx, doer, &upstream.Request{Method: "POST", URL: r.Query, Body: h.Open(), MaxBody: 1 << 20})
			if err != nil {
				return nil, err
			}
			b, _ := stream.ReadAll(up.Body, 1<<20)
			sum += fmt.Sprintf("%s/%d ", b, h.Size())
		}
		return text(200, sum), nil
	case "/prefix": // the first chunk is read in Go, the rest spliced
		up, err := upstream.Do(ctx, doer, get(0))
		if err != nil {
			return nil, err
		}
		first := make([]byte, 8)
		n, err := up.Body.Read(first)
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Body: &stream.Prefix{Head: first[:n], Rest: up.Body}}, nil
	case "/through":
		up, err := upstream.Do(ctx, doer, get(0))
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: up.Status, Body: &stream.Through{Src: up.Body, T: upper{}, Idle: patience}}, nil
	case "/watch", "/watchprefix":
		up, err := upstream.Do(ctx, doer, get(0))
		if err != nil {
			return nil, err
		}
		src := up.Body
		if r.Path == "/watchprefix" {
			first := make([]byte, 8)
			n, err := up.Body.Read(first)
			if err != nil {
				return nil, err
			}
			src = &stream.Prefix{Head: first[:n], Rest: up.Body}
		}
		w := &watcher{}
		return &httpmsg.Response{Status: up.Status, Body: &stream.Through{Src: src, T: w, Idle: patience, Watch: true},
			After: []func(context.Context){func(context.Context) {
				a.lastWatch = fmt.Sprintf("%d %v %s", w.n, w.cause, bytes.TrimSpace(w.text))
				a.after++
			}}}, nil
	case "/watched":
		return text(200, a.lastWatch), nil
	case "/fan": // several calls before the first is waited for
		var calls []upstream.Pending
		for i := range 5 {
			req := get(1 << 20)
			req.URL += strconv.Itoa(i)
			calls = append(calls, doer.Start(ctx, req))
		}
		var out []string
		for _, p := range calls {
			up, err := p.Wait()
			if err != nil {
				return nil, err
			}
			b, _ := stream.ReadAll(up.Body, 1<<20)
			out = append(out, string(b))
		}
		return text(200, strings.Join(out, ",")), nil
	case "/socket", "/socket-short": // says what it reads, with its kind
		l := socket.Standard()
		if r.Path == "/socket-short" {
			l = socket.Limits{Message: 1000, Idle: 300 * time.Millisecond, Queue: 2000, Unsent: 4000}
		}
		if r.Query == "fill" {
			l.Idle = time.Minute
		}
		return a.upgrade(l, func(ctx context.Context, c socket.Conn) { a.talk(ctx, c, r.Query) }), nil
	case "/relay", "/relay-short":
		l := socket.Standard()
		if r.Path == "/relay-short" {
			l = socket.Limits{Message: 1000, Idle: 300 * time.Millisecond, Queue: 2000, Unsent: 4000}
		}
		req := get(1 << 20)
		req.Socket = &l
		req.Header = httpmsg.Header{{Name: "authorization", Value: "Bearer sk-upstream"},
			{Name: "sec-websocket-protocol", Value: "realtime"}}
		up, err := upstream.Do(ctx, doer, req)
		if err != nil {
			return nil, err
		}
		if up.Socket == nil {
			b, err := stream.ReadAll(up.Body, 1<<20)
			return text(up.Status, "refused: "+string(b)), err
		}
		return a.upgrade(l, func(ctx context.Context, c socket.Conn) {
			end, byOther := c.Relay(up.Socket, socket.Watch{
				Texts: []string{`"seen"`},
				Seen: func(data []byte) *socket.Closed {
					a.seen = append(a.seen, string(data))
					if strings.Contains(string(data), "stop") {
						return &socket.Closed{Code: socket.Policy, Reason: "stopped"}
					}
					return nil
				},
				Every: 100 * time.Millisecond,
				Check: func() *socket.Closed { a.checks++; return nil },
			})
			a.ends = append(a.ends, fmt.Sprintf("%d %s %v", end.Code, end.Reason, byOther))
		}), nil
	case "/socketed": // what sockets have left
		return text(200, fmt.Sprintf("ends %q seen %q checks %v after %d", a.ends, a.seen, a.checks > 0, a.after)), nil
	case "/pause":
		d, _ := time.ParseDuration(r.Query)
		if err := (bridge.Pauser{}).Pause(ctx, d); err != nil {
			a.aborted++
		}
		return text(200, "paused"), nil
	case "/after":
		resp := text(200, "answered")
		resp.After = append(resp.After, func(ctx context.Context) {
			if up, err := upstream.Do(ctx, doer, get(1<<20)); err == nil && up.Status == 200 {
				a.after++
			}
		})
		return resp, nil
	case "/panic":
		var m map[string]int
		//lint:ignore SA5000 a test asks for the panic
		m[r.Query] = 1
	case "/panicvalue":
		panic("sk-secret-in-a-panic " + r.Query)
	case "/trap":
		deep(1)
	case "/alarm":
		if r.Query == "" {
			return text(200, fmt.Sprint(a.alarms)), nil
		}
		status, b, err := (bridge.Stub{}).Call(ctx, r.Query, "alarm", nil)
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: status, Body: stream.FromBytes(b)}, nil
	case "/object":
		status, b, err := (bridge.Stub{}).Call(ctx, r.Query, "incr", []byte("1"))
		if err != nil {
			return nil, err
		}
		return &httpmsg.Response{Status: status, Body: stream.FromBytes(b)}, nil
	case "/hold": // grows the linear memory
		n, _ := strconv.Atoi(r.Query)
		a.hold = append(a.hold, make([]byte, n<<20))
		return text(200, "held"), nil
	case "/owe":
		a.owed, _ = strconv.Atoi(r.Query)
		return text(200, "owed"), nil
	case "/variable":
		return text(200, bridge.Variable(r.Query)), nil
	case "/random":
		return text(200, randomHex()), nil
	case "/stats":
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		calls, ops, streams := bridge.InFlight()
		b, _ := json.Marshal(map[string]any{"goroutines": runtime.NumGoroutine() - bridge.Idle(), "calls": calls, "ops": ops,
			"streams": streams, "heap": mem.HeapAlloc, "sys": mem.Sys, "after": a.after, "aborted": a.aborted, "owed": a.owed})
		return &httpmsg.Response{Status: 200, Body: stream.FromBytes(b)}, nil
	}
	return text(404, "no such path"), nil
}

// Object counts its calls, to show that storage calls do not interleave. The operation
// "alarm" sets the alarm.
func (a *app) Object(_ context.Context, st storage.Storage, _, op string, _ []byte) (int, []byte) {
	if op == "alarm" {
		if err := st.Write(nil, time.Now().UnixMilli()); err != nil {
			return 500, []byte(err.Error())
		}
		return 200, []byte("set")
	}
	v, err := st.Get("n")
	n, _ := strconv.Atoi(string(v))
	if err == nil {
		err = st.Write([]storage.Row{{Key: "n", Value: []byte(strconv.Itoa(n + 1))}}, storage.KeepAlarm)
	}
	if err != nil {
		return 500, []byte(err.Error())
	}
	rows, err := st.List("", "", 0)
	if err != nil || len(rows) != 1 || rows[0].Key != "n" || string(rows[0].Value) != strconv.Itoa(n+1) {
		return 500, fmt.Appendf(nil, "rows %q", rows)
	}
	return 200, rows[0].Value
}

// Alarm fails the first time.
func (a *app) Alarm(context.Context, storage.Storage, string) error {
	if a.alarms++; a.alarms == 1 {
		return storage.ErrStorage
	}
	return nil
}

// Unreported is what /owe says, less one for each request since.
func (a *app) Unreported() int { return a.owed }

func (a *app) Cron(context.Context, string) {}
func (a *app) HandOver() []byte             { return nil }
func (a *app) TakeOver([]byte)              {}

// upper is a transform whose work can be seen in its output.
type upper struct{ stream.Plain }

func (upper) Push(chunk, out []byte) []byte { return append(out, bytes.ToUpper(chunk)...) }
func (upper) End(cause error, out []byte) []byte {
	return fmt.Appendf(out, "<end %v>", cause)
}

type watcher struct {
	stream.Plain
	n     int
	text  []byte
	cause error
}

func (w *watcher) Push(p, out []byte) []byte {
	w.n += len(p)
	if len(w.text) < 64 {
		w.text = append(w.text, p[:min(len(p), 64)]...)
	}
	return append(out, p...)
}

func (w *watcher) End(cause error, out []byte) []byte {
	w.cause = cause
	if cause != nil {
		out = fmt.Appendf(out, "<end %v>", cause)
	}
	return out
}

//go:noinline
func deep(n int) int {
	var pad [64]int
	pad[n%64] = n
	//lint:ignore SA5007 a test asks for the stack overflow
	return deep(n+1) + pad[(n+1)%64]
}

func (a *app) upgrade(l socket.Limits, serve func(context.Context, socket.Conn)) *httpmsg.Response {
	return &httpmsg.Response{
		Status: 101, Header: httpmsg.Header{{Name: "x-own", Value: "1"}}, Upgrade: &socket.Upgrade{Limits: l, Serve: serve},
		After: []func(context.Context){func(context.Context) { a.after++ }},
	}
}

// talk answers the messages of a client until one ends it. how is what it does first.
func (a *app) talk(ctx context.Context, c socket.Conn, how string) {
	switch how {
	case "busy": // reads nothing for a while
		(bridge.Pauser{}).Pause(ctx, 500*time.Millisecond)
	case "fill":
		for range 4 {
			c.Write(socket.Message{Data: bytes.Repeat([]byte{'x'}, 900)})
		}
	case "flood":
		for i := 0; c.Write(socket.Message{Data: bytes.Repeat([]byte{'x'}, 999)}) == nil; i++ {
		}
	}
	for {
		m, err := c.Read()
		if err != nil {
			a.ends = append(a.ends, fmt.Sprintf("%v %v", err, ctx.Err()))
			return
		}
		switch text := string(m.Data); {
		case text == "close":
			c.Close(4001, "as asked")
			return
		case text == "return":
			return
		case text == "panic":
			panic("as asked")
		case text == "hold": // until the client leaves
			for ctx.Err() == nil {
				(bridge.Pauser{}).Pause(ctx, 20*time.Millisecond)
			}
		case text == "wait":
			err := (bridge.Pauser{}).Pause(ctx, 200*time.Millisecond)
			c.Write(socket.Message{Data: fmt.Appendf(nil, "waited %v", err)})
		default:
			c.Write(socket.Message{Data: fmt.Appendf(nil, "%v %d %.20s", m.Binary, len(m.Data), m.Data), Binary: m.Binary})
		}
	}
}
