package storage

import (
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// Spans of time in milliseconds.
const (
	Minute = int64(time.Minute / time.Millisecond)
	Hour   = int64(time.Hour / time.Millisecond)
	Day    = int64(24 * time.Hour / time.Millisecond)
)

// CountRow counts the requests of a key.
type CountRow struct {
	Minute   int64 `json:"minute"` // since 1970
	InMinute int   `json:"inMinute"`
	Day      int64 `json:"day"`
	InDay    int   `json:"inDay"`
}

// At returns the counts as they are at a time. A clock that went back keeps
// counting in the later window for as long as that is near.
func (c CountRow) At(now int64) CountRow {
	if m := now / Minute; m > c.Minute || m < c.Minute-1 {
		c.Minute, c.InMinute = m, 0
	}
	if d := now / Day; d > c.Day || d < c.Day-1 {
		c.Day, c.InDay = d, 0
	}
	return c
}

// CountRequests adds requests to keys and finds those that have reached a
// limit. The counts arrive in batches, about one a second and isolate, so a
// limit is passed by at most what the isolates let through in that time.
// reached reports whether a key has reached a limit with these requests.
func (t *Tx) CountRequests(keys []rpc.KeyCount) (limited []store.LimitedKey, reached bool) {
	for _, k := range keys {
		var row Key
		if k.Requests <= 0 || k.Requests > 1_000_000 || !rpc.IsRowID(k.KeyID) || !t.Load(KeyPrefix+k.KeyID, &row) {
			continue
		}
		var c CountRow
		t.Load(CountPrefix+k.KeyID, &c)
		c = c.At(t.Now)
		before := limitedUntil(&row, c)
		c.InMinute += k.Requests
		c.InDay += k.Requests
		t.Put(CountPrefix+k.KeyID, c)
		until := limitedUntil(&row, c)
		if until > t.Now {
			reached = reached || until != before
			limited = append(limited, store.LimitedKey{KeyID: k.KeyID, Until: until})
		}
	}
	return limited, reached
}

// KeyCounts returns the requests of a key that has a limit.
func (t *Tx) KeyCounts(id string) (c CountRow) {
	t.Load(CountPrefix+id, &c)
	return c.At(t.Now)
}

// LimitedUntil returns when a key may be used again, 0 if it may now.
func (t *Tx) LimitedUntil(k *Key) int64 {
	var c CountRow
	if k.RPM == 0 && k.DailyMax == 0 || !t.Load(CountPrefix+k.ID, &c) {
		return 0
	}
	if until := limitedUntil(k, c.At(t.Now)); until > t.Now {
		return until
	}
	return 0
}

// limited returns the keys that have reached a limit.
func (t *Tx) limited() (keys []store.LimitedKey) {
	for _, k := range t.Keys() {
		if until := t.LimitedUntil(&k); until > 0 {
			keys = append(keys, store.LimitedKey{KeyID: k.ID, Until: until})
		}
	}
	return keys
}

// limitedUntil returns when a key may be used again: at the next minute, or at
// the next UTC day; 0 when it may now.
func limitedUntil(k *Key, c CountRow) int64 {
	var until int64
	if k.RPM > 0 && c.InMinute >= k.RPM {
		until = (c.Minute + 1) * Minute
	}
	if k.DailyMax > 0 && c.InDay >= k.DailyMax {
		until = (c.Day + 1) * Day
	}
	return until
}
