package storage

import (
	"time"

	"weir/pkg/usage"
)

// UsageRow is a day's use by one key, of one account and model.
type UsageRow struct {
	Day string `json:"day"` // 2026-11-21, UTC
	usage.Row
}

func DayOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// AddUsage adds to the rows of a day.
func (t *Tx) AddUsage(day string, list []usage.Row) {
	countKey := usageCountPrefix + day
	var rows int
	t.Load(countKey, &rows)
	was := rows
	for i := range list {
		v := &list[i]
		if !v.Valid() {
			continue
		}
		name := UsagePrefix + day + ":" + DigestOf(v.KeyID, v.ConnectionID, v.Model, v.Endpoint)
		row := UsageRow{Day: day}
		if !t.Load(name, &row) {
			if rows >= maxUsageRows {
				name = UsagePrefix + day + ":" + DigestOf("", "", "", "")
				if !t.Load(name, &row) {
					row.Row = usage.Row{}
				}
			} else {
				rows++
				row.Row = v.Kind()
			}
		}
		row.Add(v)
		t.Put(name, row)
	}
	if rows != was {
		t.Put(countKey, rows)
	}
}
