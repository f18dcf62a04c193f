package host

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// direct waits without a turn.
func direct(_ context.Context, wait func()) { wait() }

// caller returns a doer in front of a server with the handler, and its address.
func caller(t *testing.T, handler http.HandlerFunc) (doer, string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return doer{direct, &http.Transport{}, func(int, string) {}}, server.URL + "/"
}

// hang answers after the given bytes when the client has left.
func hang(head string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if head != "" {
			io.WriteString(w, head)
			w.(http.Flusher).Flush()
		}
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
}

const short = 30 * time.Millisecond

func TestTimeLimitsOfAnUpstreamCall(t *testing.T) {
	for _, tt := range []struct {
		name string
		head string
		req  upstream.Request
		want error
	}{
		{"no head", "", upstream.Request{HeaderTimeout: short}, upstream.ErrTimeout},
		{"no head, limit of the whole", "", upstream.Request{Timeout: short}, upstream.ErrTimeout},
		{"no head, both limits", "", upstream.Request{Timeout: short, HeaderTimeout: time.Hour}, upstream.ErrTimeout},
		{"body in memory, limit of the whole", "begun", upstream.Request{Timeout: short, MaxBody: 100}, stream.ErrTimeout},
		{"body in memory, silence", "begun", upstream.Request{Timeout: time.Hour, Idle: short, MaxBody: 100}, stream.ErrIdle},
	} {
		d, url := caller(t, hang(tt.head))
		tt.req.Method, tt.req.URL = "GET", url
		resp, err := upstream.Do(t.Context(), d, &tt.req)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, %v, want %v", tt.name, resp, err, tt.want)
		}
	}
}

func TestTimeLimitsOfAStream(t *testing.T) {
	d, url := caller(t, hang("begun"))
	for _, tt := range []struct {
		name string
		req  upstream.Request
		want error
	}{
		{"silence in a body that Go reads", upstream.Request{HeaderTimeout: short}, upstream.ErrTimeout},
		{"limit of the whole", upstream.Request{Timeout: short}, stream.ErrTimeout},
		{"silence in a body read whole", upstream.Request{Idle: short}, stream.ErrIdle},
	} {
		tt.req.Method, tt.req.URL = "GET", url
		resp, err := upstream.Do(t.Context(), d, &tt.req)
		for errors.Is(err, upstream.ErrTimeout) { // too short for the head on a busy computer
			tt.req.HeaderTimeout *= 2
			tt.req.Timeout *= 2
			resp, err = upstream.Do(t.Context(), d, &tt.req)
		}
		if err != nil {
			t.Fatal(tt.name, err)
		}
		if tt.req.Idle > 0 {
			_, err = stream.ReadAll(resp.Body, 100)
		} else {
			_, err = io.ReadAll(resp.Body)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		resp.Body.Close()
	}
}

func TestBodyOverTheLimitIsTooLarge(t *testing.T) {
	d, url := caller(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("chunked") != "" {
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, strings.Repeat("a", 1000))
	})
	for _, query := range []string{"?chunked=1", ""} {
		for max, want := range map[int64]error{999: stream.ErrTooLarge, 1000: nil} {
			_, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url + query, MaxBody: max})
			if !errors.Is(err, want) {
				t.Errorf("%s, at most %d: got %v, want %v", query, max, err, want)
			}
			resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url + query})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = stream.ReadAll(resp.Body, max); !errors.Is(err, want) {
				t.Errorf("%s, read at most %d: got %v, want %v", query, max, err, want)
			}
		}
	}
}

func TestIncompleteBodyIsAnError(t *testing.T) {
	d, url := caller(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "begun")
	})
	_, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url, MaxBody: 1000})
	if !errors.Is(err, upstream.ErrCut) || !errors.Is(err, upstream.ErrNetwork) {
		t.Fatalf("got %v", err)
	}
}

func TestUnreachableUpstreamIsANetworkErrorWithItsCause(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	d, plain := caller(t, func(http.ResponseWriter, *http.Request) {})
	untrusted := httptest.NewTLSServer(nil)
	t.Cleanup(untrusted.Close)
	for url, want := range map[string]error{
		"http://" + l.Addr().String() + "/":        upstream.ErrRefused,
		strings.Replace(plain, "http", "https", 1): upstream.ErrTLS,
		untrusted.URL: upstream.ErrTLS,
	} {
		_, err = upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url})
		if !errors.Is(err, want) || !errors.Is(err, upstream.ErrNetwork) || errors.Is(err, upstream.ErrCut) {
			t.Errorf("%s: got %v, want %v", url, err, want)
		}
	}
	if err := unreachable(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}); err != upstream.ErrName {
		t.Errorf("name: got %v", err)
	}
}

func TestOutlivingCallContinuesWithoutTheClient(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	d, url := caller(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-left
		io.WriteString(w, "created")
	})
	ctx, cancel := context.WithCancel(t.Context())
	p := d.Start(ctx, &upstream.Request{Method: "POST", URL: url, MaxBody: 100, Outlive: true})
	<-arrived
	cancel()
	close(left)
	resp, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := stream.ReadAll(resp.Body, 100); string(all) != "created" || err != nil {
		t.Fatalf("got %q, %v", all, err)
	}
}

func TestCanceledCallReportsTheClient(t *testing.T) {
	arrived := make(chan struct{})
	d, url := caller(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	p := d.Start(ctx, &upstream.Request{Method: "GET", URL: url})
	<-arrived
	cancel()
	if _, err := p.Wait(); !errors.Is(err, upstream.ErrCanceled) {
		t.Fatalf("got %v", err)
	}
}

func TestRedirectIsAnAnswer(t *testing.T) {
	d, url := caller(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url, MaxBody: 1000})
	if err != nil || resp.Status != 302 || resp.Header.Get("location") != "/elsewhere" {
		t.Fatalf("got %v, %v", resp, err)
	}
}

func TestRequestIsSentAsItIs(t *testing.T) {
	type seen struct {
		method, target, body string
		header               http.Header
		length               int64
	}
	got := make(chan seen, 1)
	d, url := caller(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, string(body), r.Header, r.ContentLength}
	})
	_, err := upstream.Do(t.Context(), d, &upstream.Request{
		Method: "POST", URL: url + "a%2Fb/c?q=%20&r", Body: stream.FromString("text"), MaxBody: 10,
		Header: httpmsg.Header{{Name: "x-two", Value: "1"}, {Name: "x-two", Value: "2"}, {Name: "content-type", Value: "text/plain"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := <-got
	if s.method != "POST" || s.target != "/a%2Fb/c?q=%20&r" || s.body != "text" || s.length != 4 {
		t.Errorf("got %+v", s)
	}
	if len(s.header["X-Two"]) != 2 || s.header.Get("Content-Type") != "text/plain" || s.header["User-Agent"] != nil {
		t.Errorf("got %v", s.header)
	}
}

// upper is a transform that stops after a full stop.
type upper struct {
	stream.Plain
	stop  bool
	cause error
	ends  int
}

func (u *upper) Push(p, out []byte) []byte {
	u.stop = bytes.Contains(p, []byte("."))
	return append(out, bytes.ToUpper(p)...)
}
func (u *upper) End(cause error, out []byte) []byte {
	u.cause = cause
	u.ends++
	return append(out, '!')
}
func (u *upper) Stopped() bool { return u.stop }

func TestTransformedBodyIsSent(t *testing.T) {
	got := make(chan string, 1)
	d, url := caller(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	})
	for _, tt := range []struct{ text, want string }{{"abc", "ABC!"}, {"abc.", "ABC.!"}, {"", "!"}} {
		u := &upper{}
		_, err := upstream.Do(t.Context(), d, &upstream.Request{
			Method: "POST", URL: url, MaxBody: 10, Body: &stream.Through{Src: &stream.Prefix{Head: []byte(tt.text)}, T: u},
		})
		if err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != tt.want || u.ends != 1 || u.cause != nil {
			t.Errorf("%q: got %q, %+v", tt.text, s, u)
		}
	}
}

// broken is a transform that panics.
type broken struct{ upper }

func (*broken) Push([]byte, []byte) []byte { panic("broken") }

// net/http reads the bodies of calls in goroutines of its own, where a panic would
// end the process.
func TestPanicOfATransformFailsItsCallAlone(t *testing.T) {
	d, url := caller(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	logged := make(chan string, 2)
	d.log = func(_ int, line string) { logged <- line }
	u := &broken{}
	_, err := upstream.Do(t.Context(), d, &upstream.Request{
		Method: "POST", URL: url, MaxBody: 10, Body: &stream.Through{Src: &stream.Prefix{Head: []byte("abc")}, T: u},
	})
	if !errors.Is(err, upstream.ErrCanceled) {
		t.Errorf("got %v, want an error that is not the upstream's", err)
	}
	if line := <-logged; !strings.Contains(line, "exchange_test.go") {
		t.Errorf("logged %q, want the place of the panic", line)
	}
}

// Over HTTP/2, net/http may close the body of a call while it reads it.
func TestTransformOfABodyThatIsClosedMeanwhileEndsOnce(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	u := &upper{}
	b := &transformed{source: source{ReadCloser: r}, t: u}
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(b)
		ended <- err
	}()
	io.WriteString(w, "abc") // returns when Read has it
	b.Close()
	go io.WriteString(w, "def") // not read if Close was before the transform
	if err := <-ended; !errors.Is(err, stream.ErrClient) {
		t.Errorf("got %v", err)
	}
	if u.ends != 1 || !errors.Is(u.cause, stream.ErrClient) {
		t.Errorf("got %+v", u)
	}
}

// blocked is a body whose Close waits.
type blocked struct {
	io.Reader
	closing, release chan struct{}
}

func (b blocked) Close() error {
	close(b.closing)
	<-b.release
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClosingABodyWaitsForNothing(t *testing.T) {
	d, url := caller(t, nil)
	b := blocked{strings.NewReader("unread"), make(chan struct{}), make(chan struct{})}
	defer close(b.release)
	d.transport = roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: b, ContentLength: -1}, nil
	})
	resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-b.closing
}

func TestReadBytesCanBeReturned(t *testing.T) {
	d, url := caller(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello world") })
	for _, whole := range []bool{true, false} {
		resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url})
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 5)
		io.ReadFull(resp.Body, head)
		resp.Body.(interface{ Unread([]byte) }).Unread(head)
		var all []byte
		if whole {
			all, err = stream.ReadAll(resp.Body, 100)
		} else {
			s := open(resp.Body, 0)
			all, err = io.ReadAll(s)
			s.Close()
		}
		if string(all) != "hello world" || err != nil {
			t.Errorf("whole %v: got %q, %v", whole, all, err)
		}
	}
}

// An error that came together with the bytes that were read first ends the body too.
func TestErrorBesideTheFirstBytesEndsTheBody(t *testing.T) {
	for _, tt := range []struct {
		name      string
		err, want error
	}{
		{"end", io.EOF, nil},
		{"cut", io.ErrUnexpectedEOF, stream.ErrReset},
		{"checksum", gzip.ErrChecksum, stream.ErrReset},
	} {
		d, url := caller(t, nil)
		d.transport = roundTripper(func(*http.Request) (*http.Response, error) {
			body := iotest.DataErrReader(io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(tt.err)))
			return &http.Response{StatusCode: 200, Body: io.NopCloser(body), ContentLength: -1}, nil
		})
		resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url})
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 100)
		n, _ := resp.Body.Read(head)
		resp.Body.(interface{ Unread([]byte) }).Unread(head[:n])
		s := open(resp.Body, 0)
		all, err := io.ReadAll(s)
		s.Close()
		if string(all) != "hello" || !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: got %q, %v, want %v", tt.name, all, err, tt.want)
		}
	}
}

// A limit of the gateway's own is no failure of the upstream.
func TestNoDescriptorIsNotTheUpstreamsFailure(t *testing.T) {
	d, url := caller(t, nil)
	for _, no := range []error{syscall.EMFILE, syscall.ENFILE} {
		d.transport = roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", no)}
		})
		if _, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: url}); !errors.Is(err, upstream.ErrLocal) || errors.Is(err, upstream.ErrNetwork) {
			t.Errorf("%v: got %v", no, err)
		}
	}
}

// An upload that makes progress was cut once the head of the answer took too long from the
// first byte on, and was sent again to the next account.
func TestProgressOfAnUploadRenewsTheLimitOfTheHead(t *testing.T) {
	for _, tt := range []struct {
		size   int64
		renews bool
	}{{1 << 20, true}, {1 << 10, false}} {
		d, url := caller(t, nil)
		renewed := 0
		d.transport = roundTripper(func(hr *http.Request) (*http.Response, error) {
			b, ok := hr.Body.(*sentBody)
			if ok != tt.renews {
				t.Fatalf("%d bytes: %T", tt.size, hr.Body)
			}
			var last time.Time
			for piece := make([]byte, 32<<10); ok; {
				_, err := b.Read(piece)
				if until := b.x.limits.until; until.After(last) {
					renewed++
					last = until
				}
				if err != nil {
					break
				}
			}
			io.Copy(io.Discard, hr.Body)
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		req := &upstream.Request{Method: "POST", URL: url, HeaderTimeout: time.Hour, Body: stream.FromBytes(make([]byte, tt.size))}
		resp, err := upstream.Do(t.Context(), d, req)
		if err != nil || resp.Status != 200 {
			t.Fatal(resp, err)
		}
		if tt.renews && renewed < 30 {
			t.Errorf("renewed %d times", renewed)
		}
		if x := resp.Body.(*upstreamBody).exchange; !x.limits.until.IsZero() {
			t.Error("the limit of the head holds after it")
		}
	}
}

// TestCutBodySaysThatMuchWasSent covers the error of a body that was cut: what
// had been sent decides whether it is sent again.
func TestCutBodySaysThatMuchWasSent(t *testing.T) {
	for size, much := range map[int64]bool{3 << 20: true, 1 << 19: false, 1 << 10: false} {
		d, url := caller(t, nil)
		d.transport = roundTripper(func(hr *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, hr.Body)
			return nil, syscall.ECONNRESET
		})
		req := &upstream.Request{Method: "POST", URL: url, HeaderTimeout: time.Hour, Body: stream.FromBytes(make([]byte, size))}
		_, err := upstream.Do(t.Context(), d, req)
		if !errors.Is(err, upstream.ErrNetwork) || errors.Is(err, upstream.ErrSent) != much {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	connections := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections++
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	d := doer{direct, &http.Transport{}, nil}
	for range 50 {
		resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: server.URL + "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.ReadAll(resp.Body, 10); err != nil {
			t.Fatal(err)
		}
		if _, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "GET", URL: server.URL + "/", MaxBody: 10}); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	if connections != 1 {
		t.Fatalf("%d connections", connections)
	}
}

// A regression: net/http sent a call with Idempotency-Key again on another
// connection, and a video was generated twice.
func TestCallIsNotSentAgainAfterABrokenConnection(t *testing.T) {
	var calls atomic.Int32
	d, url := caller(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	send := func() error {
		_, err := upstream.Do(t.Context(), d, &upstream.Request{
			Method: "POST", URL: url, Body: stream.FromString("text"), MaxBody: 10,
			Header: httpmsg.Header{{Name: "idempotency-key", Value: "k"}, {Name: "x-idempotency-key", Value: "k"}},
		})
		return err
	}
	if err := send(); err != nil { // opens the connection, which the next one uses
		t.Fatal(err)
	}
	if err := send(); !errors.Is(err, upstream.ErrNetwork) {
		t.Errorf("got %v", err)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestSwitchedProtocolHasNoBody(t *testing.T) {
	closed := make(chan error, 1)
	d, url := caller(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			closed <- err
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nmore")
		c.SetReadDeadline(time.Now().Add(time.Minute))
		_, err = c.Read(make([]byte, 1))
		closed <- err
	})
	resp, err := upstream.Do(t.Context(), d, &upstream.Request{Method: "POST", URL: url, MaxBody: 10})
	if err != nil || resp.Status != 101 {
		t.Fatalf("got %+v, %v", resp, err)
	}
	if all, err := stream.ReadAll(resp.Body, 10); len(all) > 0 || err != nil {
		t.Fatalf("got %q, %v", all, err)
	}
	if err := <-closed; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection stays open")
	}
}
