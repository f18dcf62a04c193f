package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"sync/atomic"

	"weir/server/program"
)

// A tester has the state of a server that tests read and set.
type tester struct {
	vendors string        // URL of the test upstream, or ""
	every   atomic.Int64  // one in this number of accesses to the storage fails; 0 for none
	thrown  atomic.Int64  // number of accesses that have failed
	access  atomic.Uint64 // number of accesses to the storage
	open    atomic.Int64  // upstream calls, to the end of their bodies

	program.Parts
}

func newTester(vendors string) *tester { return &tester{vendors: vendors} }

// started serves the control pipe of a server that serves.
func (t *tester) started(p program.Parts) {
	t.Parts = p
	f := os.NewFile(3, "control")
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return // started by hand
	}
	go t.serve(conn)
}

// command is a line of the control pipe, which begins with the server's url.
//
//	stats    → calls, streams, goroutines, memory
//	collect  collects garbage first
//	stacks   → stacks of all goroutines
//	rows     → rows
//	cron     runs the scheduled work
//	faults   every → thrown, since the last time
type command struct {
	ID      int    `json:"id"`
	Command string `json:"command"`
	Every   int64  `json:"every"`
}

func (t *tester) serve(conn net.Conn) {
	defer conn.Close()
	out := json.NewEncoder(conn)
	if out.Encode(map[string]string{"url": "http://" + t.Address.String()}) != nil {
		return
	}
	for in := bufio.NewScanner(conn); in.Scan(); {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return
		}
		answer := t.do(c)
		answer["id"] = c.ID
		if out.Encode(answer) != nil {
			return
		}
	}
}

func (t *tester) do(c command) map[string]any {
	switch c.Command {
	case "rows":
		rows, err := rowsOf(t.Engine)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"rows": rows}
	case "cron":
		t.Objects.Cron()
		return map[string]any{}
	case "faults":
		t.every.Store(c.Every)
		return map[string]any{"thrown": t.thrown.Load()}
	case "stacks":
		var b strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			return map[string]any{"stacks": err.Error()}
		}
		return map[string]any{"stacks": b.String()}
	case "collect":
		debug.FreeOSMemory()
	}
	calls, flows, afters := t.Host.InFlight()
	return map[string]any{
		"calls": calls + afters, "streams": max(int64(flows), t.open.Load()),
		"goroutines": runtime.NumGoroutine(), "memory": memory(),
	}
}

// memory returns the bytes that Go has from the system.
func memory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
