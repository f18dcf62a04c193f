package responses

import (
	"strconv"
	"sync"
	"testing"
)

// Sockets at the same time share the memory of conversations.
func TestConcurrentSocketsShareConversations(t *testing.T) {
	var s conversations
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			var mine []*conversation
			for n := range 200 {
				c := &conversation{id: strconv.Itoa(n), items: make([]byte, 64<<10)}
				c.items[0] = byte(i)
				s.add(c)
				if items, ok := s.use(c); ok && items[0] != byte(i) { // others may have made room
					t.Errorf("the items are those of %d", items[0])
				}
				if mine = append(mine, c); n%2 == 0 {
					s.remove(mine[n/2])
				}
			}
			for _, c := range mine {
				s.remove(c)
			}
		})
	}
	all.Wait()
	if s.bytes != 0 || s.used.Len() != 0 {
		t.Errorf("%d bytes of %d conversations are left", s.bytes, s.used.Len())
	}
}
