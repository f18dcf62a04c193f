package models

import (
	"time"

	"weir/pkg/auth"
)

const (
	maxCached = 128
	maxBytes  = 8 << 20 // of all cached lists
)

// cacheKey has everything that a list depends on apart from the upstreams' lists: the
// published machine, the kinds, the form, the recursion header, and the key if its
// models are limited.
type cacheKey struct {
	machine    string
	generation int64
	published  int64
	kinds      string
	key        string
	form       form
	prices     int64 // when those of the operator's source were fetched
	internal   bool
}

// cachedList is a finished list. It must not be changed.
type cachedList struct {
	until   time.Time // when the first of the lists in it grows old
	created int64
	body    []byte
	entries []Entry // of the list that is paged instead
}

func (k *cachedList) size() int { return len(k.body) + 200*len(k.entries) }

func cacheKeyOf(c *auth.Call, kinds string, f form) cacheKey {
	q := cacheKey{kinds: kinds, form: f}
	if m := c.Machine; m != nil {
		q.machine, q.generation, q.published = m.ID, m.Generation, m.PublishedAt
		q.internal = internal(c)
		q.prices = m.Catalog().At()
		if c.Key != nil && len(c.Key.Models) > 0 {
			q.key = c.Key.ID
		}
	}
	return q
}

func (h *Handler) cachedFor(q cacheKey) *cachedList {
	h.mu.Lock()
	k := h.cached[q]
	h.mu.Unlock()
	if k != nil && h.Now().Before(k.until) {
		return k
	}
	return nil
}

// store caches a list and removes the oldest ones over the limits.
func (h *Handler) store(q cacheKey, k *cachedList) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cached == nil {
		h.cached = map[cacheKey]*cachedList{}
	}
	if old := h.cached[q]; old != nil {
		h.bytes -= old.size()
	} else {
		h.order = append(h.order, q)
	}
	h.cached[q] = k
	h.bytes += k.size()
	for len(h.order) > maxCached || h.bytes > maxBytes && len(h.order) > 1 {
		h.bytes -= h.cached[h.order[0]].size()
		delete(h.cached, h.order[0])
		h.order = append(h.order[:0], h.order[1:]...)
	}
}
