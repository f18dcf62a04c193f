package fake

import (
	"time"

	"weir/pkg/wire/socket"
)

// Socket is a connection whose client sends messages one after the other, and leaves
// after the last one. It is a socket.Conn.
type Socket struct {
	Messages []string
	Binary   bool
	// Before, if set, is called before the message i is read.
	Before func(i int)
	// Leaves, if positive, is after how many messages to it the client has left.
	Leaves int

	Quiet time.Duration // that Silent returns

	Received []string
	Reads    int            // messages read
	Closed   *socket.Closed // how the program has closed it, or nil
}

// Read returns the next message.
func (s *Socket) Read() (socket.Message, error) {
	if s.Reads == len(s.Messages) {
		return socket.Message{}, &socket.Closed{Code: socket.GoingAway}
	}
	if s.Before != nil {
		s.Before(s.Reads)
	}
	s.Reads++
	return socket.Message{Data: []byte(s.Messages[s.Reads-1]), Binary: s.Binary}, nil
}

// Write adds a message to Received.
func (s *Socket) Write(m socket.Message) error {
	if s.Leaves > 0 && len(s.Received) == s.Leaves {
		return &socket.Closed{Code: socket.GoingAway}
	}
	s.Received = append(s.Received, string(m.Data))
	return nil
}

// Close sets Closed.
func (s *Socket) Close(code int, reason string) {
	if s.Closed == nil {
		s.Closed = &socket.Closed{Code: code, Reason: reason}
	}
}

// Relay is not scripted.
func (s *Socket) Relay(socket.Conn, socket.Watch) (*socket.Closed, bool) {
	panic("fake: a Socket does not relay")
}

// Silent returns Quiet.
func (s *Socket) Silent() time.Duration { return s.Quiet }

// Evict closes the connection.
func (s *Socket) Evict() { s.Close(socket.TryLater, socket.Evicted) }
