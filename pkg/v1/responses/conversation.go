package responses

import (
	"container/list"
	"sync"
)

// How much of the conversations that sockets may continue is in memory. A response
// whose conversation is longer, or has made way for others, is not found later.
const (
	maxConversation  = 4 << 20 // bytes of one
	maxConversations = 12 << 20
)

// conversation is what a response is continued with: the items of its input and of
// its output.
type conversation struct {
	id    string // of the response
	after string // the stored response that the items follow, or ""
	items []byte // JSON values, separated by commas
	place *list.Element
}

// conversations are those of all sockets of an instance, within a limit.
type conversations struct {
	mu    sync.Mutex // of these fields, and of items and place of each
	used  list.List  // of *conversation, the one used last in front
	bytes int
}

// add stores a conversation, if it is not too long; those that were not used for
// longest make way.
func (s *conversations) add(c *conversation) {
	if len(c.items) > maxConversation {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.place = s.used.PushFront(c)
	s.bytes += len(c.items)
	for s.bytes > maxConversations {
		s.drop(s.used.Back().Value.(*conversation))
	}
}

// use returns the items of a conversation. ok is false if they are not in memory.
func (s *conversations) use(c *conversation) (items []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place == nil {
		return nil, false
	}
	s.used.MoveToFront(c.place)
	return c.items, true
}

// remove frees the memory of a conversation; nil has none.
func (s *conversations) remove(c *conversation) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place != nil {
		s.drop(c)
	}
}

// drop is remove for a caller that has the lock.
func (s *conversations) drop(c *conversation) {
	s.used.Remove(c.place)
	s.bytes -= len(c.items)
	c.items, c.place = nil, nil
}
