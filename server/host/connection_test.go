package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pkg/wire/stream"
)

// raw sends bytes over a connection of their own and returns all that comes back
// until it is closed.
func (w *world) raw(bytes string) string {
	w.Helper()
	c, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, bytes)
	all, err := io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		w.Errorf("%.40q: the connection stays open; got %q", bytes, all)
	}
	return string(all)
}

// A proxy in front may have taken what follows a malformed chunk for a part of the
// body: it is not the next request.
func TestMalformedBodyEndsTheConnection(t *testing.T) {
	w := newWorld(t, upstreams)
	for _, head := range []string{
		"POST /v1/embeddings HTTP/1.1\r\nAuthorization: Bearer " + w.key,
		"POST /v1/embeddings HTTP/1.1",
		"POST /v1/nothing HTTP/1.1",
		"POST /nothing HTTP/1.1",
		"POST /<> HTTP/1.1",
	} {
		got := w.raw(head + "\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nGET /health HTTP/1.1\r\nHost: b\r\n\r\n")
		if strings.Count(got, "HTTP/1.1 ") != 1 || !strings.HasPrefix(got, "HTTP/1.1 4") {
			t.Errorf("%s: got %q", head, got)
		}
	}
}

func TestUnreadBodyDoesNotHoldTheConnection(t *testing.T) {
	w := newWorld(t, upstreams)
	var calls sync.WaitGroup
	for _, head := range []string{
		"POST /v1/embeddings HTTP/1.1\r\nTransfer-Encoding: chunked",
		"POST /v1/embeddings HTTP/1.1\r\nContent-Length: 100000",
		"POST /nothing HTTP/1.1\r\nTransfer-Encoding: chunked",
		"POST /<> HTTP/1.1\r\nContent-Length: 10",
		"POST /v1/models HTTP/1.1\r\nContent-Length: 100000\r\nX-Model: " + strings.Repeat("a", maxHead),
	} {
		calls.Go(func() {
			if got := w.raw(head + "\r\nHost: a\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 4") {
				t.Errorf("%.60s: got %q", head, got)
			}
		})
	}
	calls.Wait()
}

func TestConnectionOfAWholeBodyStaysOpen(t *testing.T) {
	w := newWorld(t, upstreams)
	c, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for _, n := range []int{1, stream.SmallBody, 1} {
		body := `{"model":"up/m","encoding_format":"base64","input":"` + strings.Repeat("a", n) + `"}`
		fmt.Fprintf(c, "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", w.key, len(body), body)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.Close || res.StatusCode != 200 {
			t.Fatalf("got %d %s, %v, close %v", res.StatusCode, answer, err, res.Close)
		}
	}
}

// deadlines records the write deadline at each write and flush of an answer.
type deadlines struct {
	*httptest.ResponseRecorder
	until  time.Time
	writes int // and flushes
	open   int // of them without a deadline
}

func (d *deadlines) SetWriteDeadline(at time.Time) error { d.until = at; return nil }
func (d *deadlines) SetReadDeadline(time.Time) error     { return nil }

func (d *deadlines) Write(p []byte) (int, error) {
	d.note()
	return d.ResponseRecorder.Write(p)
}

func (d *deadlines) FlushError() error {
	d.note()
	return nil
}

func (d *deadlines) note() {
	d.writes++
	if d.until.IsZero() {
		d.open++
	}
}

func TestEveryWriteHasADeadline(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/completions") {
			upstreams(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
		w.(http.Flusher).Flush()
		io.WriteString(w, "data: [DONE]\n\n")
	})
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/health", ""},
		{"GET", "/nothing", ""},
		{"POST", "/v1/embeddings", `{"model":"up/m","input":"a","encoding_format":"base64"}`},
		{"POST", "/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"a"}]}`},
	} {
		for major := 1; major <= 2; major++ {
			rec := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			req := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
			req.ProtoMajor = major
			req.Header.Set("Authorization", "Bearer "+w.key)
			req.Header.Set("Content-Type", "application/json")
			w.host.ServeHTTP(rec, req)
			if rec.writes == 0 || rec.open > 0 {
				t.Errorf("%s in HTTP/%d: %d writes, %d without a deadline", tt.path, major, rec.writes, rec.open)
			}
		}
	}
}

// The deadline of a stream of HTTP/2 resets it also while nothing is written.
func TestWaitingStreamOfHTTP2HasNoDeadline(t *testing.T) {
	rec := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	out := answerWriter{w: rec, rc: http.NewResponseController(rec), each: true}
	if out.write([]byte("a")) != nil || rec.open > 0 || !rec.until.IsZero() {
		t.Fatalf("%d writes without a deadline, then %v", rec.open, rec.until)
	}
}

func TestLinesOfTheServerLogAreJSON(t *testing.T) {
	var got string
	h := &Host{Config: Config{Log: func(_ int, line string) { got = line }}}
	h.ErrorLog().Printf("http: bad %s", "\x00\a\xff\U000e0001\"")
	if !json.Valid([]byte(got)) {
		t.Fatal(got)
	}
}
