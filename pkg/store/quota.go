package store

import (
	"slices"
	"time"

	"weir/pkg/wire/quota"
)

// MaxWindows is the number of limits that are known of one account. Callers choose
// the names of models.
const MaxWindows = 16

// Quota is what the provider has said of the limits of an account.
type Quota struct {
	ConnectionID string         `json:"connectionId"`
	Windows      []quota.Window `json:"windows"`
}

// shownFor is how long a limit is shown that is lifted within less, as are many
// limits of a minute of which little is used.
const shownFor = int64(time.Minute / time.Millisecond)

// QuotaOver reports whether nothing is known of a window any more: it has begun
// again since.
func QuotaOver(w *quota.Window, now int64) bool {
	end := max(w.ResetsAt, w.At+shownFor)
	if w.ResetsAt == 0 {
		end = max(end, w.At+1000*w.Span)
	}
	return end <= now
}

// MergeWindows puts newer observations of windows into a list, and takes out those
// that are over. Of too many, those that were observed first are dropped. The list
// is changed.
func MergeWindows(list, newer []quota.Window, now int64) []quota.Window {
	for i := range newer {
		w := &newer[i]
		at := slices.IndexFunc(list, func(o quota.Window) bool { return o.Name == w.Name && o.Model == w.Model })
		switch {
		case at < 0:
			list = append(list, *w)
		case w.At >= list[at].At:
			list[at] = *w
		}
	}
	list = slices.DeleteFunc(list, func(w quota.Window) bool { return QuotaOver(&w, now) })
	for len(list) > MaxWindows {
		oldest := 0
		for i := range list {
			if list[i].At < list[oldest].At {
				oldest = i
			}
		}
		list = slices.Delete(list, oldest, oldest+1)
	}
	return list
}
