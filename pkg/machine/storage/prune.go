package storage

import (
	"encoding/json"
	"time"
)

// Spans of time in milliseconds.
const (
	Minute = int64(time.Minute / time.Millisecond)
	Hour   = int64(time.Hour / time.Millisecond)
	Day    = int64(24 * time.Hour / time.Millisecond)
)

// RemoveIf removes the rows under a prefix that over says so of.
func RemoveIf[T any](t *Tx, prefix string, over func(key string, v T) bool) {
	t.Pages(prefix, Page, func(r Row) bool {
		var v T
		if json.Unmarshal(r.Value, &v) == nil && over(r.Key, v) {
			t.Del(r.Key)
		}
		return len(t.Order) < MaxRemoved
	})
}

// pruneMost is the number of rows that one turn removes about; after it the
// next follows sooner.
const (
	MaxRemoved = 5000
	PruneAgain = int64(10 * time.Second / time.Millisecond)
)
