package machine

import (
	"time"
	"weir/pkg/machine/rpc"
)

const (
	minuteMs = int64(time.Minute / time.Millisecond)
	dayMs    = int64(24 * time.Hour / time.Millisecond)
)

// countRow counts the requests of a key.
type countRow struct {
	Minute   int64 `json:"minute"` // since 1970
	InMinute int   `json:"inMinute"`
	Day      int64 `json:"day"`
	InDay    int   `json:"inDay"`
}

// at gives the counts as they are at a time. A clock that went back keeps
// counting in the later window for as long as that is near.
func (c countRow) at(now int64) countRow {
	if m := now / minuteMs; m > c.Minute || m < c.Minute-1 {
		c.Minute, c.InMinute = m, 0
	}
	if d := now / dayMs; d > c.Day || d < c.Day-1 {
		c.Day, c.InDay = d, 0
	}
	return c
}

// count adds requests to keys and finds those that have reached a limit. The
// counts arrive in batches, about one a second and isolate, so a limit is
// passed by at most what the isolates let through in that time.
func (t *tx) count(keys []rpc.KeyCount) []rpc.LimitedKey {
	var limited []rpc.LimitedKey
	for _, k := range keys {
		var row keyRow
		if k.Requests <= 0 || k.Requests > 1_000_000 || !rpc.IsRowID(k.KeyID) || !t.load(keyPrefix+k.KeyID, &row) {
			continue
		}
		var c countRow
		t.load(countPrefix+k.KeyID, &c)
		c = c.at(t.now)
		c.InMinute += k.Requests
		c.InDay += k.Requests
		t.put(countPrefix+k.KeyID, c)
		until := limitedUntil(&row, c)
		if until > row.LimitedUntil || row.LimitedUntil > t.now+2*dayMs {
			row.LimitedUntil = until
			t.touch()
			t.put(keyPrefix+k.KeyID, row)
		}
		if until > t.now {
			limited = append(limited, rpc.LimitedKey{KeyID: k.KeyID, Until: until})
		}
	}
	return limited
}

// limitedUntil tells when a key may be used again: at the next minute, or at
// the next UTC day; 0 when it may now.
func limitedUntil(k *keyRow, c countRow) int64 {
	var until int64
	if k.RPM > 0 && c.InMinute >= k.RPM {
		until = (c.Minute + 1) * minuteMs
	}
	if k.DailyMax > 0 && c.InDay >= k.DailyMax {
		until = (c.Day + 1) * dayMs
	}
	return until
}
