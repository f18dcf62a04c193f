package host

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/stream"
)

// flowing returns the flow of a body that a transform changes, to a recorder, and what is
// logged of it.
func flowing(t *testing.T, transform stream.Transform, src *stream.Prefix) (h *Host, f *flow, logged chan string) {
	t.Helper()
	logged = make(chan string, 9)
	h = &Host{Config: Config{Log: func(_ int, line string) { logged <- line }}}
	f = flowOf(&stream.Through{Src: src, T: transform})
	rec := httptest.NewRecorder()
	f.client, f.log = &answerWriter{w: rec, rc: http.NewResponseController(rec)}, h.Log
	return h, f, logged
}

// The end of a stream counts what it has used, so it comes after a panic too.
func TestPanicOfAStreamEndsIt(t *testing.T) {
	u := &broken{}
	h, f, _ := flowing(t, u, &stream.Prefix{Head: []byte("abc")})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		h.flow(httptest.NewRequestWithContext(context.Background(), "GET", "/", nil), f)
	}()
	if u.ends != 1 || !errors.Is(u.cause, stream.ErrReset) {
		t.Errorf("ended %d times with %v", u.ends, u.cause)
	}
	if calls, flows, afters := h.InFlight(); calls+flows+afters != 0 {
		t.Errorf("under way: %d, %d, %d", calls, flows, afters)
	}
}

// breathless panics instead of a heartbeat.
type breathless struct{ upper }

func (*breathless) Beat([]byte) []byte { panic("no heartbeat") }

// Heartbeats run in a goroutine of their own, where a panic would end the process.
func TestPanicOfAHeartbeatIsLogged(t *testing.T) {
	_, f, logged := flowing(t, &breathless{}, &stream.Prefix{Head: []byte("abc")})
	f.every = time.Millisecond
	f.start()
	if line := <-logged; !strings.Contains(line, "flow_test.go") {
		t.Errorf("logged %q, want the place of the panic", line)
	}
	f.stop()
}
