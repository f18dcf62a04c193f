// Package socket is a WebSocket connection (RFC 6455) as the program sees it: one
// that a client has opened to the gateway, or that the gateway has opened to an
// upstream. The platform has the connection, its limits and its buffers.
package socket

import (
	"context"
	"fmt"
	"time"
)

// Conn is a connection. One goroutine uses it, in the events of one request.
type Conn interface {
	// Read waits for the next message. The error is a *Closed once the connection
	// has ended. Messages that arrive between two calls wait, within the limits.
	//
	// A client's connection also ends the context of its request, so a handler that
	// does something else meanwhile notices it.
	Read() (Message, error)
	// Write sends a message. It returns a *Closed if the connection has ended.
	Write(m Message) error
	// Close ends the connection, unless it has ended. A code that may not be sent is
	// replaced, see Sendable; a reason that is too long is cut.
	Close(code int, reason string)
	// Relay passes messages between the connection and another one, both ways, until
	// either has ended, or w ends them; then both are closed, with the same code. It
	// returns how they have ended, and whether the other one did. It is the last use of
	// both.
	Relay(to Conn, w Watch) (end *Closed, byOther bool)
	// Silent returns for how long no message has passed, and Evict ends the connection
	// of a client with TryLater, within seconds, to make way for another one. They may
	// also be called in the events of other requests, and after the end.
	Silent() time.Duration
	Evict()
}

// Evicted is the reason with which Evict ends a connection.
const Evicted = "too many connections are open, and this one is the longest silent"

// Message is a text or binary message. Data belongs to its receiver.
type Message struct {
	Binary bool
	Data   []byte
}

// Watch is what the program sees of the messages that a Relay passes.
type Watch struct {
	// Texts: a text message from the other connection that has one of them is also
	// shown to Seen. They must be ASCII.
	Texts []string
	// Seen receives such a message. It may call the host. It returns nil to continue,
	// or how the connections end.
	Seen func(data []byte) *Closed
	// Every is how often Check is called. It may call the host, and returns nil to
	// continue, or how the connections end.
	Every time.Duration
	Check func() *Closed
}

// Limits of a connection. One that goes beyond a limit is closed: with TooBig for a
// message over Message, with Policy for the others.
type Limits struct {
	Message int           // bytes of one message
	Idle    time.Duration // without a message in either direction
	Queue   int           // bytes that wait for Read besides one message
	// Unsent is how many bytes may be on their way to a peer that shows no sign of
	// reading: what was sent since its last message, less MinRate.
	Unsent int
}

// QueueLength is how many messages may wait for Read.
const QueueLength = 64

// MinRate is the least rate at which a peer is expected to read, in bytes a second.
const MinRate = 64 << 10

// WriteStall limits how long a message may take to be sent, where the platform knows.
const WriteStall = 2 * time.Minute

// Standard returns the limits of the gateway's connections.
func Standard() Limits {
	return Limits{Message: 16 << 20, Idle: 10 * time.Minute, Queue: 1 << 20, Unsent: 64 << 20}
}

// Codes of the end of a connection (RFC 6455, 7.4.1, and its registry at IANA).
const (
	Normal      = 1000
	GoingAway   = 1001
	Unsupported = 1003
	NoStatus    = 1005 // never sent: the peer named none
	Abnormal    = 1006 // never sent: the connection broke
	Policy      = 1008
	TooBig      = 1009
	Internal    = 1011
	Restart     = 1012
	TryLater    = 1013
)

// Sendable returns code, or the one to send in its place: codes that are reserved for
// an implementation's own use never go out.
func Sendable(code int) int {
	switch {
	case code == NoStatus:
		return Normal
	case code >= 1000 && code <= 1014 && code != 1004 && code != Abnormal, code >= 3000 && code <= 4999:
		return code
	}
	return Internal
}

// MaxReason is the length of a reason in bytes of UTF-8.
const MaxReason = 123

// Closed is how a connection has ended, or is to end.
type Closed struct {
	Code   int
	Reason string
}

func (c *Closed) Error() string {
	if c.Reason == "" {
		return fmt.Sprintf("the WebSocket connection was closed with %d", c.Code)
	}
	return fmt.Sprintf("the WebSocket connection was closed with %d: %s", c.Code, c.Reason)
}

// Upgrade is an answer of status 101 that continues as a WebSocket connection.
type Upgrade struct {
	Limits Limits
	// Machine is the machine whose share of memory messages take until the program reads
	// them. The gateway sets it.
	Machine string
	// Serve uses the connection, and may call the host. The connection is closed with
	// Normal when it returns, with Internal if it panics. It runs as part of the
	// request: what follows an answer follows it.
	Serve func(ctx context.Context, c Conn)
}

// Shorten returns a reason that may be sent: cut between two characters.
func Shorten(reason string) string {
	if len(reason) <= MaxReason {
		return reason
	}
	n := MaxReason
	for n > 0 && reason[n]&0xc0 == 0x80 {
		n--
	}
	return reason[:n]
}
