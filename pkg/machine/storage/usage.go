package storage

import (
	"strings"
	"time"

	"weir/pkg/usage"
)

// UsageRow is a day's use by one key, of one account and model.
//
//easyjson:json
type UsageRow struct {
	Day string `json:"day"` // 2026-11-21, UTC
	usage.Row
}

// UsageHours is for how long the usage of each hour is stored.
const UsageHours = 8 * 24

// DayOf returns the UTC day of a time: "2026-11-21".
func DayOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// HourOf returns the UTC hour of a time: "2026-11-21T19".
func HourOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15") }

// AddUsage adds what was used at a time, Unix milliseconds, to the rows of the day,
// to those of the hour, to the last hour's, and to those of the keys.
func (t *Tx) AddUsage(at int64, list []usage.Row) {
	if len(list) == 0 {
		return
	}
	t.addDay(DayOf(at), list)
	t.addLate(DayOf(at), list)
	t.addHour(HourOf(at), list)
	t.addRecent(at, list)
	t.addKeyUse(at, list)
}

// addHour adds to the row of an hour. The rows of an hour are stored in one, because
// the platform bills each row that is written.
func (t *Tx) addHour(hour string, list []usage.Row) {
	var rows []usage.Row
	t.Load(HourPrefix+hour, &rows)
	for i := range list {
		if list[i].Valid() {
			rows = usage.Add(rows, list[i])
		}
	}
	if rows != nil {
		t.putUsage(HourPrefix+hour, rows)
	}
}

// maxUsageBytes is the size of rows of usage that are stored in one. A larger one than
// maxValueBytes would fail each turn that writes it, and with it all that calls change.
const maxUsageBytes = 512 << 10

// putUsage stores rows of usage in one. If they are too large, the last are added up without
// their names.
func (t *Tx) putUsage(key string, rows []usage.Row) {
	raw := encode(rows)
	for keep := len(rows) / 2; len(raw) > maxUsageBytes && len(rows) > 1; keep /= 2 {
		rows = usage.Fold(rows, keep)
		raw = encode(rows)
	}
	t.Set(key, raw)
}

// Hours calls each with the rows of usage of the hours between two times, Unix
// milliseconds. One hour at a time is in memory.
func (t *Tx) Hours(from, to int64, each func(hour string, r *usage.Row)) {
	for at := from; at <= to; at += Hour {
		hour := HourOf(at)
		var rows []usage.Row
		t.Load(HourPrefix+hour, &rows)
		for i := range rows {
			each(hour, &rows[i])
		}
	}
}

// PruneHours removes the hours that are no longer stored.
func (t *Tx) PruneHours() {
	first := HourPrefix + HourOf(t.Now-UsageHours*Hour)
	t.Pages(HourPrefix, 4, func(r Row) bool {
		if r.Key >= first {
			return false
		}
		t.Del(r.Key)
		return true
	})
}

// PruneUsage removes the days that are no longer stored. The keys are in the order of the
// days, so that it reads little else than what it removes.
func (t *Tx) PruneUsage() {
	for prefix, days := range map[string]int64{
		UsagePrefix: UsageDays, usageCountPrefix: UsageDays, LabelPrefix: UsageDays, healthDayPrefix: HealthDays,
	} {
		first := DayOf(t.Now - days*Day)
		t.Pages(prefix, 16, func(r Row) bool {
			if strings.TrimPrefix(r.Key, prefix) >= first {
				return false
			}
			t.Del(r.Key)
			return len(t.Order) < MaxRemoved
		})
	}
}

// addDay adds to the rows of a day.
func (t *Tx) addDay(day string, list []usage.Row) {
	t.forgetHealthDay(day)
	countKey := usageCountPrefix + day
	var rows int
	t.Load(countKey, &rows)
	was := rows
	for i := range list {
		v := &list[i]
		if !v.Valid() {
			continue
		}
		if rows >= maxRefusedRows && v.Requests == 0 && v.Refused() > 0 {
			unnamed := *v
			unnamed.Model, unnamed.Provider = "", ""
			v = &unnamed
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
