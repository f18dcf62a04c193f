package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// wsConn is a WebSocket connection. One goroutine reads it as long as it is open, which
// also answers pings.
type wsConn struct {
	ws     *websocket.Conn
	limits socket.Limits
	inbox  *inbox          // of all clients' connections; nil for an upstream's
	who    string          // the machine of the inbox
	left   func()          // of a client's connection, called when it has ended; else nil
	stop   <-chan struct{} // closed when the server stops; nil for an upstream's

	more   chan struct{} // has a value if queue has grown
	over   chan struct{} // closed with ended
	shut   sync.WaitGroup
	silent *time.Timer

	mu     sync.Mutex
	queue  []received
	queued int                  // bytes of queue
	pass   func(socket.Message) // of a relay; it waits until the message is sent
	lastAt time.Time
	ended  *socket.Closed
}

// received is a message that was read, and what the inbox counts of it.
type received struct {
	socket.Message
	counted int64
}

// inbox bounds the bytes that all clients' connections have received of messages over
// smallMessage and not passed on: of parts of messages, and of those that wait. Those of
// one machine have three quarters of it.
type inbox struct {
	max int64         // 0: maxInbox
	lag time.Duration // by which a message may fall behind stream.MinRate, 0: stream.MaxLag

	mu   sync.Mutex
	used int64
	of   map[string]int64 // by machine
}

const (
	maxInbox     = 256 << 20
	minInbox     = 32 << 20 // of a server with little memory
	smallMessage = 64 << 10
)

// add counts n bytes of a machine, and reports whether there is room for them.
func (b *inbox) add(who string, n int64) bool {
	if b == nil || n == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	most := cmp.Or(b.max, maxInbox)
	if n > 0 && (b.used+n > most || b.of[who]+n > most/4*3) {
		return false
	}
	if b.of == nil {
		b.of = map[string]int64{}
	}
	b.used += n
	if b.of[who] += n; b.of[who] == 0 {
		delete(b.of, who)
	}
	return true
}

// mostLag returns by how much a message may fall behind.
func (b *inbox) mostLag() time.Duration {
	if b == nil {
		return stream.MaxLag
	}
	return cmp.Or(b.lag, stream.MaxLag)
}

// errInbox reports a message for which the inbox has no space.
var errInbox = errors.New("the messages of all connections take too much memory")

// readMessage reads the next message of a connection. One that has begun arrives with
// stream.MinRate, else late is called.
func readMessage(ws *websocket.Conn, longest int, b *inbox, who string, late func()) (m received, err error) {
	kind, r, err := ws.Reader(context.Background())
	if err != nil {
		return m, err
	}
	most := b.mostLag()
	lag, asked := most, time.Now()
	limit := time.AfterFunc(lag, late)
	defer limit.Stop()
	m.Binary, m.Data = kind == websocket.MessageBinary, make([]byte, 0, 512)
	for {
		n, err := r.Read(m.Data[len(m.Data):cap(m.Data)])
		m.Data = m.Data[:len(m.Data)+n]
		if err == io.EOF {
			return m, nil
		}
		now := time.Now()
		lag = min(most, lag-now.Sub(asked)+time.Duration(n)*time.Second/stream.MinRate)
		asked = now
		limit.Reset(max(lag, time.Millisecond))
		if err == nil && len(m.Data) == cap(m.Data) {
			size := min(2*cap(m.Data), longest+512) // the end may follow in a read of its own
			more := int64(size) - m.counted
			switch {
			case size <= smallMessage:
				more = 0
			case !b.add(who, more):
				more, err = 0, errInbox
			}
			if m.counted += more; err == nil {
				m.Data = append(make([]byte, 0, size), m.Data...)
			}
		}
		if err != nil {
			b.add(who, -m.counted)
			return received{}, err
		}
	}
}

func newWSConn(ws *websocket.Conn, limits socket.Limits, b *inbox, who string, left func(),
	stop <-chan struct{}) *wsConn {
	ws.SetReadLimit(int64(limits.Message))
	c := &wsConn{
		ws: ws, limits: limits, inbox: b, who: who, left: left, stop: stop,
		more: make(chan struct{}, 1), over: make(chan struct{}), lastAt: time.Now(),
	}
	c.silent = time.AfterFunc(limits.Idle, c.checkIdle)
	c.shut.Add(1)
	go c.receive()
	return c
}

// receive reads messages until the connection has ended.
func (c *wsConn) receive() {
	defer c.shut.Done()
	for {
		m, err := readMessage(c.ws, c.limits.Message, c.inbox, c.who, c.late)
		if err == errInbox {
			c.fail(socket.TryLater, "the gateway has too little memory, try again")
			return
		}
		if err != nil {
			c.end(endOf(err))
			c.ws.CloseNow()
			return
		}
		c.mu.Lock()
		c.lastAt = time.Now()
		pass := c.pass
		if pass == nil {
			c.store(m)
		}
		c.mu.Unlock()
		if pass != nil {
			pass(m.Message)
			c.inbox.add(c.who, -m.counted)
		}
	}
}

// late ends a client's connection whose message arrives too slowly.
func (c *wsConn) late() {
	if c.left != nil {
		c.fail(socket.Policy, "a message arrives too slowly")
	}
}

// endOf returns how a connection has ended by the error of its Read.
func endOf(err error) *socket.Closed {
	var ce websocket.CloseError
	switch {
	case errors.As(err, &ce):
		return &socket.Closed{Code: int(ce.Code), Reason: ce.Reason}
	case errors.Is(err, websocket.ErrMessageTooBig): // the library has closed it
		return &socket.Closed{Code: socket.TooBig, Reason: "a message is too big"}
	}
	return &socket.Closed{Code: socket.Abnormal}
}

// store adds a message to the queue. It is called with the lock.
func (c *wsConn) store(m received) {
	if c.ended != nil {
		c.inbox.add(c.who, -m.counted)
		return
	}
	behind := 0
	if len(c.queue) > 0 {
		behind = c.queued - len(c.queue[0].Data) + len(m.Data)
	}
	if len(c.queue) >= socket.QueueLength || behind > c.limits.Queue {
		c.inbox.add(c.who, -m.counted)
		go c.fail(socket.Policy, "too many messages wait")
		return
	}
	c.queue = append(c.queue, m)
	c.queued += len(m.Data)
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// end records how the connection has ended, once, and reports whether it was open.
func (c *wsConn) end(how *socket.Closed) bool {
	c.mu.Lock()
	open := c.ended == nil
	if open {
		c.ended = how
		if c.left != nil { // a client's
			for _, m := range c.queue {
				c.inbox.add(c.who, -m.counted)
			}
			c.queue = nil
		}
		close(c.over)
	}
	c.mu.Unlock()
	if open {
		c.silent.Stop()
		if c.left != nil {
			c.left()
		}
	}
	return open
}

// fail ends the connection with a code. It does not wait for the peer.
func (c *wsConn) fail(code int, reason string) {
	if !c.end(&socket.Closed{Code: code, Reason: reason}) {
		return
	}
	c.shut.Add(1)
	go func() {
		defer c.shut.Done()
		c.ws.Close(websocket.StatusCode(socket.Sendable(code)), socket.Shorten(reason))
	}()
}

func (c *wsConn) checkIdle() {
	c.mu.Lock()
	left := c.limits.Idle - time.Since(c.lastAt)
	open := c.ended == nil
	if open && left > 0 {
		c.silent.Reset(left)
	}
	c.mu.Unlock()
	if open && left <= 0 {
		c.fail(socket.Policy, "no message for too long")
	}
}

// next returns the next message, or the end of the connection.
func (c *wsConn) next() (m socket.Message, ok bool, end *socket.Closed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return m, false, c.ended
	}
	first := c.queue[0]
	c.queue[0] = received{}
	c.queue = c.queue[1:]
	c.queued -= len(first.Data)
	c.inbox.add(c.who, -first.counted)
	return first.Message, true, nil
}

// Read waits for the next message. A server that stops ends a connection that waits.
func (c *wsConn) Read() (socket.Message, error) {
	for {
		m, ok, end := c.next()
		if ok {
			return m, nil
		}
		if end != nil {
			return m, end
		}
		select {
		case <-c.more:
		case <-c.over:
		case <-c.stop:
			c.fail(socket.Restart, stopping)
		}
	}
}

const stopping = "the gateway is stopping, connect again"

// Write sends a message.
func (c *wsConn) Write(m socket.Message) error {
	c.mu.Lock()
	end := c.ended
	c.lastAt = time.Now()
	c.mu.Unlock()
	if end != nil {
		return end
	}
	kind := websocket.MessageText
	if m.Binary {
		kind = websocket.MessageBinary
	}
	ctx, cancel := context.WithTimeout(context.Background(), socket.WriteStall)
	defer cancel()
	if c.ws.Write(ctx, kind, m.Data) == nil {
		return nil
	}
	c.end(&socket.Closed{Code: socket.Abnormal}) // the library closes the connection
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Silent returns for how long no message has passed.
func (c *wsConn) Silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastAt)
}

// Evict ends the connection to make way for another one.
func (c *wsConn) Evict() { c.fail(socket.TryLater, socket.Evicted) }

// Close ends the connection.
func (c *wsConn) Close(code int, reason string) { c.fail(code, reason) }

// Relay passes messages between two connections.
func (c *wsConn) Relay(to socket.Conn, w socket.Watch) (end *socket.Closed, byOther bool) {
	other := to.(*wsConn)
	seen, done := make(chan []byte), make(chan struct{})
	defer close(done)
	texts := make([][]byte, len(w.Texts))
	for i, t := range w.Texts {
		texts[i] = []byte(t)
	}
	var due <-chan time.Time
	if w.Every > 0 {
		t := time.NewTicker(w.Every)
		defer t.Stop()
		due = t.C
	}
	c.relayTo(other, nil)
	other.relayTo(c, func(m socket.Message) {
		if m.Binary || !containsOne(m.Data, texts) {
			return
		}
		select {
		case seen <- m.Data:
		case <-done:
		}
	})
	for end == nil {
		var shown []byte
		check := false
		select {
		case shown = <-seen:
		case <-due:
			check = true
		case <-c.over:
			end = c.how()
		case <-other.over:
			end, byOther = other.how(), true
		case <-c.stop:
			end = &socket.Closed{Code: socket.Restart, Reason: stopping}
		}
		if end != nil {
			select { // what was sent before the end
			case shown = <-seen:
				end, byOther = nil, false
			default:
			}
		}
		switch {
		case shown != nil:
			end = w.Seen(shown)
		case check:
			end = w.Check()
		}
	}
	c.fail(end.Code, end.Reason)
	other.fail(end.Code, end.Reason)
	return end, byOther
}

// relayTo sends what arrives from now on to another connection, after what waits.
// shown receives each message that was sent; it may be nil.
func (c *wsConn) relayTo(to *wsConn, shown func(socket.Message)) {
	var order sync.Mutex // held while one is sent
	pass := func(m socket.Message) {
		if to.Write(m) == nil && shown != nil {
			shown(m)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.queue
	c.queue, c.queued = nil, 0
	c.pass = func(m socket.Message) {
		order.Lock()
		defer order.Unlock()
		pass(m)
	}
	if len(waiting) == 0 {
		return
	}
	order.Lock()
	c.shut.Add(1)
	go func() {
		defer c.shut.Done()
		defer order.Unlock()
		for _, m := range waiting {
			pass(m.Message)
			c.inbox.add(c.who, -m.counted)
		}
	}()
}

// how returns how the connection has ended.
func (c *wsConn) how() *socket.Closed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func containsOne(data []byte, texts [][]byte) bool {
	return slices.ContainsFunc(texts, func(t []byte) bool { return bytes.Contains(data, t) })
}

// converse answers a request with a WebSocket connection and serves it.
func (h *Host) converse(w http.ResponseWriter, hr *http.Request, r *httpmsg.Request, resp *httpmsg.Response) {
	if e := badHandshake(hr); e != nil {
		h.abandon(r, resp)
		h.refuse(w, hr, r, e)
		return
	}
	header := w.Header()
	for _, c := range h.constants(resp.Template) {
		header[c.name] = c.values
	}
	for _, f := range resp.Header {
		header[headerName(f.Name)] = []string{f.Value}
	}
	// A key admits the client, never a cookie, so its origin does not matter.
	ws, err := websocket.Accept(w, hr, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		h.ErrorLog().Print(err)
		h.abandon(r, resp)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(hr.Context()))
	defer cancel()
	c := newWSConn(ws, resp.Upgrade.Limits, &h.inbox, resp.Upgrade.Machine, cancel, h.stopped)
	stop := context.AfterFunc(hr.Context(), func() {
		if isCut(hr.Context()) {
			c.fail(socket.Restart, stopping)
		}
	})
	defer stop()
	h.talk(ctx, r, resp, c)
	c.Close(socket.Normal, "")
	c.shut.Wait()
}

// talk runs the program for a connection.
func (h *Host) talk(ctx context.Context, r *httpmsg.Request, resp *httpmsg.Response, c *wsConn) {
	defer func() {
		if p := recover(); p != nil {
			h.Log(2, redact.PanicLine(r.ID, p))
			c.Close(socket.Internal, "internal error")
		}
	}()
	resp.Upgrade.Serve(ctx, c)
}

// abandon lets the program end what it has for a connection that was not opened.
func (h *Host) abandon(r *httpmsg.Request, resp *httpmsg.Response) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := &wsConn{over: make(chan struct{}), ended: &socket.Closed{Code: socket.Abnormal}}
	close(c.over)
	h.talk(ctx, r, resp, c)
}

// badHandshake returns what is wrong with the request for a WebSocket, or nil
// (RFC 6455, 4.2.1).
func badHandshake(hr *http.Request) *apierr.Error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(hr.Header.Get("Sec-WebSocket-Key")))
	switch {
	case hr.ProtoMajor != 1 || !strings.Contains(strings.ToLower(strings.Join(hr.Header["Connection"], ",")), "upgrade"):
		return apierr.New(400, "", "The request for a WebSocket needs Connection: Upgrade over HTTP/1.1.")
	case hr.Header.Get("Sec-WebSocket-Version") != "13":
		return apierr.New(400, "", "Only version 13 of the WebSocket protocol is supported.")
	case err != nil || len(key) != 16:
		return apierr.New(400, "", "Sec-WebSocket-Key is missing or invalid.")
	}
	return nil
}

// sendSocket makes a call that opens a WebSocket.
func (x *exchange) sendSocket(hr *http.Request) {
	t := &refusals{next: x.transport, url: hr.URL, max: x.req.MaxBody}
	ws, res, err := websocket.Dial(x.ctx, x.req.URL, &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader: hr.Header, Host: hr.Host,
		Subprotocols: hr.Header["Sec-Websocket-Protocol"],
	})
	defer x.finish()
	switch {
	case err == nil:
		c := newWSConn(ws, *x.req.Socket, nil, "", nil, nil)
		x.answer = &upstream.Response{Status: res.StatusCode, Header: answerHeader(res.Header, res.StatusCode),
			Body: stream.FromBytes(nil), Socket: c}
	case t.answer != nil:
		x.answer = t.answer
	default:
		x.err = x.failed(err, upstream.ErrNetwork)
	}
}

// refusals sends the request for a WebSocket to the address as it is written, and
// stores the answer of an upstream that refuses, of which the library reads a part
// only.
type refusals struct {
	next   http.RoundTripper
	url    *url.URL
	max    int64
	answer *upstream.Response
}

func (t *refusals) RoundTrip(hr *http.Request) (*http.Response, error) {
	hr.URL = t.url
	res, err := t.next.RoundTrip(hr)
	if err != nil || res.StatusCode == http.StatusSwitchingProtocols {
		return res, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, t.max+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > t.max:
		return nil, stream.ErrTooLarge
	}
	t.answer = &upstream.Response{Status: res.StatusCode, Header: answerHeader(res.Header, res.StatusCode),
		Body: stream.FromBytes(body), Owned: true}
	res.Body = http.NoBody
	return res, nil
}
