//go:build js && wasm

package bridge

import (
	"runtime"
	"strconv"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/upstream"
	"weir/worker/contract"
)

// webSocket is a WebSocket connection of the host.
type webSocket struct {
	call  *call
	id    int32          // 0 if it could not be opened
	ended *socket.Closed // nil while it is open
}

// converse answers a request with a WebSocket connection and serves it.
func (c *call) converse(resp *httpmsg.Response) {
	head := appendLimits(packed[:0], resp.Upgrade.Limits)
	head = append(append(head, ' '), resp.Upgrade.Machine...)
	head = packHeader(head, resp.Header)
	packed = head
	c.answered = true
	s := &webSocket{call: c, id: hostWSAccept(c.id, numbered(resp.Template), ptr(head), int32(len(head)))}
	defer s.Close(socket.Normal, "")
	defer func() {
		if p := recover(); p != nil {
			LogLine(2, redact.PanicLine(c.request.ID, p))
			s.Close(socket.Internal, "internal error")
		}
	}()
	resp.Upgrade.Serve(c, s)
}

// appendLimits appends the limits of a connection as one line of a head.
func appendLimits(b []byte, l socket.Limits) []byte {
	for i, n := range [...]int{l.Message, int(l.Idle.Milliseconds()), l.Queue, socket.QueueLength, l.Unsent,
		socket.MinRate} {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// dialSocket asks the host for the WebSocket of an upstream call.
func (p *pending) dialSocket(req *upstream.Request) {
	head := appendLimits(packed[:0], *req.Socket)
	head = append(head, '\n')
	head = append(head, req.URL...)
	head = packHeader(head, req.Header)
	packed = head
	hostWSDial(p.op.number, p.call.id, ptr(head), int32(len(head)), ms(req.HeaderTimeout), float64(req.MaxBody))
}

// Read waits for the next message.
func (s *webSocket) Read() (socket.Message, error) {
	e, err := s.next(func(op int32) { hostWSNext(op, s.id) })
	if err != nil {
		return socket.Message{}, err
	}
	return socket.Message{Binary: e.status == contract.BinaryMessage, Data: e.body}, nil
}

// next waits for an operation that ends with the connection.
func (s *webSocket) next(ask func(op int32)) (event, error) {
	if s.ended != nil {
		return event{}, s.ended
	}
	o := begin(s.call)
	if o.usable() {
		ask(o.number)
	}
	e := o.wait()
	switch e.outcome {
	case contract.OK, contract.Timeout:
		return e, nil
	case contract.EndOfBody:
		s.ended = &socket.Closed{Code: int(e.status), Reason: e.head}
	default:
		s.ended = &socket.Closed{Code: socket.Abnormal}
	}
	return e, s.ended
}

// Write sends a message.
func (s *webSocket) Write(m socket.Message) error {
	if s.ended == nil && !s.call.swept {
		if hostWSSend(s.id, ptr(m.Data), int32(len(m.Data)), kindOf(m)) == 0 {
			return nil
		}
	}
	if s.ended != nil {
		return s.ended
	}
	return &socket.Closed{Code: socket.Abnormal} // Read returns how it has ended
}

func kindOf(m socket.Message) int32 {
	if m.Binary {
		return contract.BinaryMessage
	}
	return contract.TextMessage
}

// Close ends the connection.
func (s *webSocket) Close(code int, reason string) {
	if s.ended != nil {
		return
	}
	code, reason = socket.Sendable(code), socket.Shorten(reason)
	s.ended = &socket.Closed{Code: code, Reason: reason}
	if !s.call.swept { // else the host cannot use it any more
		hostWSClose(s.id, int32(code), sptr(reason), int32(len(reason)))
	}
}

// Silent returns for how long no message has passed.
func (s *webSocket) Silent() time.Duration {
	return time.Duration(hostWSSilent(s.id)) * time.Millisecond
}

// Evict ends the connection in its own event, at its next check.
func (s *webSocket) Evict() {
	hostWSEvict(s.id, socket.TryLater, sptr(socket.Evicted), int32(len(socket.Evicted)))
}

// Relay passes messages between two connections of the call.
func (s *webSocket) Relay(to socket.Conn, w socket.Watch) (*socket.Closed, bool) {
	t := to.(*webSocket)
	var texts []byte
	for i, text := range w.Texts {
		if i > 0 {
			texts = append(texts, '\n')
		}
		texts = append(texts, text...)
	}
	if !s.call.swept {
		hostWSRelay(s.id, t.id, ptr(texts), int32(len(texts)), ms(w.Every))
		runtime.KeepAlive(texts)
	}
	for {
		e, err := s.next(func(op int32) { hostWSRelayed(op, s.id) })
		var end *socket.Closed
		switch {
		case err != nil:
			t.ended = s.ended // the host has closed both
			return s.ended, e.handle != 0
		case e.outcome == contract.Timeout:
			end = w.Check()
		default:
			end = w.Seen(e.body)
		}
		if end != nil {
			s.Close(end.Code, end.Reason)
			t.Close(end.Code, end.Reason)
			return end, false
		}
	}
}

var _ socket.Conn = (*webSocket)(nil)
