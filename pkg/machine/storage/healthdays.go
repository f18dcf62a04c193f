package storage

import "weir/pkg/usage"

// HealthDays is the number of days of a time line, the current one included.
const HealthDays = 30

// HealthDay calls each with the usage of the day of a time, Unix milliseconds, added up by
// account and model. That of a day which is over is stored when it is first asked for,
// because the rows of usage of a month may be a hundred thousand.
func (t *Tx) HealthDay(at int64, each func(r *usage.Row)) {
	day := DayOf(at)
	over := day < DayOf(t.Now)
	var rows []usage.Row
	if !over || !t.Load(healthDayPrefix+day, &rows) {
		for _, u := range RowsOf[UsageRow](t, UsagePrefix+day) {
			group, _ := u.GroupedBy([]string{"connection", "provider", "model"})
			var row *usage.Row
			rows, row = usage.Of(rows, &group)
			row.Add(&u.Row)
		}
		if over && len(rows) > 0 {
			t.putUsage(healthDayPrefix+day, rows)
		}
	}
	for i := range rows {
		each(&rows[i])
	}
}

// forgetHealthDay removes the stored sum of a day whose usage changes: a report came late,
// or the clock had been ahead.
func (t *Tx) forgetHealthDay(day string) {
	if _, ok := t.Get(healthDayPrefix + day); ok {
		t.Del(healthDayPrefix + day)
	}
}
