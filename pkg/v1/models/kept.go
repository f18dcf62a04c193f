package models

import (
	"time"

	"weir/pkg/auth"
)

const (
	maxKept  = 128
	maxBytes = 8 << 20 // of all kept answers
)

// question is what an answer depends on besides the upstreams' lists: the
// machine as it was published, the kinds, the caller's dialect, whether it is
// for people who manage, the recursion header, and the key where it may not see
// all.
type question struct {
	machine    string
	generation int64
	published  int64
	kinds      string
	key        string
	anthropic  bool
	detailed   bool
	internal   bool
}

// kept is a finished answer. It must not be changed.
type kept struct {
	until   time.Time // when the first of the lists in it grows old
	created int64
	body    []byte
	entries []Entry // of the list that is paged instead
}

func (k *kept) size() int { return len(k.body) + 200*len(k.entries) }

func questionOf(c *auth.Call, kinds string, anthropic bool) question {
	q := question{kinds: kinds, anthropic: anthropic}
	if m := c.Machine; m != nil {
		q.machine, q.generation, q.published = m.ID, m.Generation, m.PublishedAt
		q.internal = internal(c)
		if c.Key != nil && len(c.Key.Models) > 0 {
			q.key = c.Key.ID
		}
	}
	return q
}

func (h *Handler) find(q question) *kept {
	if k := h.kept[q]; k != nil && h.Now().Before(k.until) {
		return k
	}
	return nil
}

// keep remembers an answer and forgets the oldest ones over the limits.
func (h *Handler) keep(q question, k *kept) {
	if h.kept == nil {
		h.kept = map[question]*kept{}
	}
	if old := h.kept[q]; old != nil {
		h.bytes -= old.size()
	} else {
		h.order = append(h.order, q)
	}
	h.kept[q] = k
	h.bytes += k.size()
	for len(h.order) > maxKept || h.bytes > maxBytes && len(h.order) > 1 {
		h.bytes -= h.kept[h.order[0]].size()
		delete(h.kept, h.order[0])
		h.order = append(h.order[:0], h.order[1:]...)
	}
}
