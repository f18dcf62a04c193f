package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// talker is a host whose every request is a WebSocket that serve has.
type talker struct {
	*testing.T
	host  *Host
	url   string
	ended sync.WaitGroup
}

func newTalker(t *testing.T, limits socket.Limits, serve func(ctx context.Context, w *talker, c socket.Conn)) *talker {
	w := &talker{T: t, host: &Host{Config: Config{Log: func(int, string) {}}, stopped: make(chan struct{})}}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, hr *http.Request) {
		w.ended.Add(1)
		defer w.ended.Done()
		w.host.converse(rw, hr, &httpmsg.Request{}, &httpmsg.Response{
			Status: 101, Header: httpmsg.Header{{Name: "x-own", Value: "1"}},
			Upgrade: &socket.Upgrade{Limits: limits, Machine: hr.RemoteAddr, Serve: func(ctx context.Context, c socket.Conn) { serve(ctx, w, c) }},
		})
	}))
	w.url = s.URL
	t.Cleanup(func() { w.ended.Wait(); s.Close() })
	return w
}

func (b *inbox) size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// open connects a client.
func (w *talker) open() *websocket.Conn {
	w.Helper()
	c, res, err := websocket.Dial(context.Background(), w.url, nil)
	if err != nil {
		w.Fatal(err)
	}
	if got := res.Header.Get("X-Own"); got != "1" {
		w.Errorf("the answer's own field: got %q", got)
	}
	c.SetReadLimit(64 << 20)
	w.Cleanup(func() { c.CloseNow() })
	return c
}

func (w *talker) send(c *websocket.Conn, text string) {
	w.Helper()
	if err := c.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		w.Fatal(err)
	}
}

func (w *talker) read(c *websocket.Conn) string {
	w.Helper()
	_, data, err := c.Read(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}

// closed returns how a connection ends.
func (w *talker) closed(c *websocket.Conn) string {
	for {
		if _, _, err := c.Read(context.Background()); err != nil {
			var ce websocket.CloseError
			if !errors.As(err, &ce) {
				return err.Error()
			}
			return fmt.Sprintf("%d %s", ce.Code, ce.Reason)
		}
	}
}

// echo says what it reads until a word ends it.
func echo(_ context.Context, _ *talker, c socket.Conn) {
	for {
		m, err := c.Read()
		if err != nil {
			return
		}
		switch string(m.Data) {
		case "close":
			c.Close(4001, "as asked")
			return
		case "return":
			return
		case "panic":
			panic("as asked")
		}
		c.Write(socket.Message{Binary: m.Binary, Data: fmt.Appendf(nil, "%v %d %.20s", m.Binary, len(m.Data), m.Data)})
	}
}

// All connections together have a limited number of bytes, in parts of messages and in
// messages that wait. The program's own reading frees them.
func TestReceivedMessagesAreBounded(t *testing.T) {
	limits := socket.Standard()
	limits.Message = 1 << 20
	read := make(chan struct{})
	w := newTalker(t, limits, func(ctx context.Context, w *talker, c socket.Conn) {
		<-read
		echo(ctx, w, c)
	})
	w.host.inbox.max = 2 << 20
	large := strings.Repeat("x", 900<<10)
	half := func(c *websocket.Conn) {
		wr, err := c.Writer(context.Background(), websocket.MessageText)
		if err == nil {
			_, err = wr.Write([]byte(large))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := w.open(), w.open()
	w.send(a, large)
	half(b)
	for w.host.inbox.size() <= 3<<19 {
		time.Sleep(time.Millisecond)
	}
	late := w.open()
	w.send(late, large)
	if got := w.closed(late); !strings.HasPrefix(got, "1013 ") {
		t.Errorf("one message more: %s", got)
	}
	small := w.open()
	w.send(small, "small")
	close(read)
	for c, want := range map[*websocket.Conn]string{a: "false 921600 xxxxxxxxxxxxxxxxxxxx", small: "false 5 small"} {
		if got := w.read(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b.CloseNow()
	for w.host.inbox.size() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// Waiting messages of one machine left no memory for those of others.
func TestReceivedMessagesOfAMachineHaveAShare(t *testing.T) {
	b := inbox{max: 16 << 20}
	n := 0
	for b.add("a", 1<<20) {
		n++
	}
	if n != 12 || !b.add("b", 4<<20) || b.add("c", 1) {
		t.Errorf("%d MiB of one machine, %d in all", n, b.size()>>20)
	}
	for range n {
		b.add("a", -1<<20)
	}
	if b.add("b", -4<<20); b.size() != 0 || len(b.of) != 0 {
		t.Errorf("%d bytes are left, %v", b.size(), b.of)
	}
}

// A message that is begun and never ended takes memory that others need.
func TestUnfinishedMessageEndsTheConnection(t *testing.T) {
	w := newTalker(t, socket.Standard(), echo)
	w.host.inbox.lag = short
	c := w.open()
	wr, err := c.Writer(context.Background(), websocket.MessageText)
	if err == nil {
		_, err = wr.Write([]byte(strings.Repeat("x", 100<<10)))
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := w.closed(c); !strings.HasPrefix(got, "1008 ") {
		t.Errorf("got %s", got)
	}
	for w.host.inbox.size() != 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestWebSocketCarriesMessages(t *testing.T) {
	w := newTalker(t, socket.Standard(), echo)
	c := w.open()
	w.send(c, "one ☃")
	c.Write(context.Background(), websocket.MessageBinary, []byte{1, 2})
	for _, want := range []string{"false 7 one ☃", "true 2 \x01\x02"} {
		if got := w.read(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	w.send(c, strings.Repeat("x", 16<<20))
	if got, want := w.read(c), fmt.Sprintf("false %d %s", 16<<20, strings.Repeat("x", 20)); got != want {
		t.Errorf("16 MiB: got %q", got)
	}
	w.send(c, strings.Repeat("x", 16<<20+1))
	if got := w.closed(c); !strings.HasPrefix(got, "1009") {
		t.Errorf("a byte more: got %q", got)
	}
}

func TestProgramEndsWebSocket(t *testing.T) {
	w := newTalker(t, socket.Standard(), echo)
	for word, want := range map[string]string{"close": "4001 as asked", "return": "1000 ", "panic": "1011 internal error"} {
		c := w.open()
		w.send(c, word)
		if got := w.closed(c); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestSilentWebSocketIsClosed(t *testing.T) {
	w := newTalker(t, socket.Limits{Message: 1000, Idle: 50 * time.Millisecond, Queue: 1000}, echo)
	if got := w.closed(w.open()); got != "1008 no message for too long" {
		t.Errorf("got %q", got)
	}
}

func TestUnreadMessagesAreBounded(t *testing.T) {
	go1 := make(chan struct{})
	deaf := func(ctx context.Context, w *talker, _ socket.Conn) {
		<-ctx.Done() // the client's end
		close(go1)
	}
	for _, size := range []int{1, 900} {
		go1 = make(chan struct{})
		w := newTalker(t, socket.Limits{Message: 1000, Idle: time.Minute, Queue: 2000}, deaf)
		c := w.open()
		for range socket.QueueLength + 1 {
			if c.Write(context.Background(), websocket.MessageText, make([]byte, size)) != nil {
				break // closed already
			}
		}
		if got := w.closed(c); got != "1008 too many messages wait" {
			t.Errorf("%d bytes: got %q", size, got)
		}
		<-go1
	}
}

func TestClientThatLeavesEndsContext(t *testing.T) {
	ended := make(chan string, 1)
	w := newTalker(t, socket.Standard(), func(ctx context.Context, w *talker, c socket.Conn) {
		<-ctx.Done()
		_, err := c.Read()
		ended <- err.Error()
	})
	w.open().Close(4000, "enough")
	if got := <-ended; got != "the WebSocket connection was closed with 4000: enough" {
		t.Errorf("got %s", got)
	}
}

func TestServerThatStopsEndsWaitingWebSockets(t *testing.T) {
	w := newTalker(t, socket.Standard(), echo)
	c := w.open()
	w.send(c, "a")
	w.read(c)
	w.host.Drain()
	if got := w.closed(c); got != "1012 "+stopping {
		t.Errorf("got %q", got)
	}
}

func TestHandshakesThatAreRefused(t *testing.T) {
	good := func() *http.Request {
		return &http.Request{ProtoMajor: 1, Header: http.Header{"Connection": {"keep-alive, Upgrade"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="}}}
	}
	if e := badHandshake(good()); e != nil {
		t.Error(e)
	}
	for name, change := range map[string]func(*http.Request){
		"HTTP/2":       func(r *http.Request) { r.ProtoMajor = 2 },
		"connection":   func(r *http.Request) { r.Header.Del("Connection") },
		"version":      func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") },
		"no key":       func(r *http.Request) { r.Header.Del("Sec-WebSocket-Key") },
		"a short key":  func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "YQ==") },
		"another text": func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "?") },
	} {
		r := good()
		change(r)
		if e := badHandshake(r); e == nil || e.Status != 400 {
			t.Errorf("%s: got %v", name, e)
		}
	}
}

// relay lets an upstream talk to a client, and returns what the program has seen and
// how both ended.
func relay(t *testing.T, talk http.HandlerFunc, watch socket.Watch) (w *talker, seen func() []string, end func() string) {
	up := httptest.NewServer(talk)
	t.Cleanup(up.Close)
	var mu sync.Mutex
	var texts []string
	ends := make(chan string, 1)
	if watch.Seen == nil {
		watch.Seen = func(data []byte) *socket.Closed {
			mu.Lock()
			defer mu.Unlock()
			texts = append(texts, string(data))
			return nil
		}
	}
	w = newTalker(t, socket.Standard(), func(ctx context.Context, w *talker, c socket.Conn) {
		l := socket.Standard()
		d := doer{direct, http.DefaultTransport, func(int, string) {}}
		res, err := upstream.Do(ctx, d, &upstream.Request{Method: "GET", URL: up.URL + "/", Socket: &l, MaxBody: 1000, HeaderTimeout: time.Minute})
		if err != nil || res.Socket == nil {
			c.Close(socket.Internal, "no upstream")
			return
		}
		how, byOther := c.Relay(res.Socket, watch)
		ends <- fmt.Sprintf("%d %s %v", how.Code, how.Reason, byOther)
	})
	seen = func() []string { mu.Lock(); defer mu.Unlock(); return texts }
	return w, seen, func() string { return <-ends }
}

// talking returns the handler of an upstream that answers each message.
func talking(answer func(c *websocket.Conn, text string)) http.HandlerFunc {
	return func(rw http.ResponseWriter, hr *http.Request) {
		c, err := websocket.Accept(rw, hr, nil)
		if err != nil {
			return
		}
		c.SetReadLimit(64 << 20)
		for {
			_, data, err := c.Read(context.Background())
			if err != nil {
				return
			}
			answer(c, string(data))
		}
	}
}

func TestRelayPassesBothWays(t *testing.T) {
	checks := make(chan struct{}, 100)
	w, seen, end := relay(t, talking(func(c *websocket.Conn, text string) {
		c.Write(context.Background(), websocket.MessageText, []byte("up:"+text))
	}), socket.Watch{Texts: []string{`"seen"`}, Every: time.Millisecond, Check: func() *socket.Closed {
		select {
		case checks <- struct{}{}:
		default:
		}
		return nil
	}})
	c := w.open()
	for _, text := range []string{"a", `{"seen":1}`, strings.Repeat("x", 5<<20)} {
		w.send(c, text)
		if got := w.read(c); got != "up:"+text {
			t.Errorf("got %.40q", got)
		}
	}
	<-checks
	c.Close(4002, "client")
	if got := end(); got != "4002 client false" {
		t.Errorf("got %q", got)
	}
	if got := seen(); len(got) != 1 || got[0] != `up:{"seen":1}` {
		t.Errorf("seen: got %q", got)
	}
}

func TestUpstreamEndsRelay(t *testing.T) {
	talk := talking(func(c *websocket.Conn, text string) {
		c.Write(context.Background(), websocket.MessageText, []byte(`the last, "seen"`))
		if text == "cut" {
			c.CloseNow()
		} else {
			c.Close(4003, "up")
		}
	})
	for word, want := range map[string]string{"bye": "4003 up", "cut": "1011 "} {
		w, seen, end := relay(t, talk, socket.Watch{Texts: []string{`"seen"`}})
		c := w.open()
		w.send(c, word)
		w.read(c)
		if got := w.closed(c); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
		if got := end(); !strings.HasSuffix(got, "true") || len(seen()) != 1 {
			t.Errorf("%s: got %q after %q", word, got, seen())
		}
	}
}

func TestProgramEndsRelay(t *testing.T) {
	stop := func([]byte) *socket.Closed { return &socket.Closed{Code: socket.Policy, Reason: "stopped"} }
	w, _, _ := relay(t, talking(func(c *websocket.Conn, text string) {
		c.Write(context.Background(), websocket.MessageText, []byte(text))
	}), socket.Watch{Texts: []string{"seen"}, Seen: stop})
	c := w.open()
	w.send(c, "seen")
	w.read(c)
	if got := w.closed(c); got != "1008 stopped" {
		t.Errorf("got %q", got)
	}
}

func TestUpstreamThatRefusesWebSocketIsAnAnswer(t *testing.T) {
	body := strings.Repeat("x", 5000)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		w.Write([]byte(body))
	}))
	defer up.Close()
	l := socket.Standard()
	ask := func(url string, limit int64) (*upstream.Response, error) {
		return upstream.Do(context.Background(), doer{direct, http.DefaultTransport, func(int, string) {}}, &upstream.Request{Method: "GET", URL: url, Socket: &l, MaxBody: limit, HeaderTimeout: time.Minute})
	}
	res, err := ask(up.URL+"/", 5000)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := stream.ReadAll(res.Body, 5000)
	if res.Status != 401 || res.Socket != nil || string(got) != body {
		t.Errorf("got %d with %d bytes", res.Status, len(got))
	}
	if _, err := ask(up.URL+"/", 4999); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("a longer body: got %v", err)
	}
	if _, err := ask("http://127.0.0.1:1/", 1); !errors.Is(err, upstream.ErrNetwork) {
		t.Errorf("no server: got %v", err)
	}
}
