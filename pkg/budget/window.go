package budget

import "time"

// The windows of a budget. Days, weeks, which begin on Monday, and months are those
// of the machine's time zone. Minutes are those of the clock. A window of five hours
// begins with the first call after the last one.
const (
	Minute    = "minute"
	FiveHours = "5h"
	Day       = "day"
	Week      = "week"
	Month     = "month"
	Total     = "total" // never ends
)

// window is a window of budgets. text follows the limit in an error, label is its beginning
// as the dashboard shows it. bounds returns the window that contains a time, see Window.
type window struct {
	name, text, label string
	bounds            func(now int64, zone Zone) (start, end int64)
}

// windows are the windows, the shortest first. The dashboard (pages/budgets/windows.ts) and the
// description of the API take them from here: GOLDEN=update go test ./pkg/budget
// ./internal/openapi writes both. docs/guides/budgets.md names them.
var windows = [...]window{
	{Minute, " per minute", "Every minute", func(now int64, _ Zone) (start, end int64) {
		start = now - mod(now, minute)
		return start, start + minute
	}},
	{FiveHours, " per 5 hours", "5 hours after the first request", func(now int64, _ Zone) (start, end int64) {
		return now, now + 5*hour
	}},
	{Day, " per day", "Every day", func(now int64, zone Zone) (start, end int64) {
		y, m, d := zone.local(now).Date()
		return zone.midnight(y, m, d), zone.midnight(y, m, d+1)
	}},
	{Week, " per week", "Every Monday", func(now int64, zone Zone) (start, end int64) {
		local := zone.local(now)
		y, m, d := local.Date()
		d -= (int(local.Weekday()) + 6) % 7
		return zone.midnight(y, m, d), zone.midnight(y, m, d+7)
	}},
	{Month, " per month", "Every month", func(now int64, zone Zone) (start, end int64) {
		y, m, _ := zone.local(now).Date()
		return zone.midnight(y, m, 1), zone.midnight(y, m+1, 1)
	}},
	{Total, "", "Never", func(int64, Zone) (start, end int64) { return 0, 0 }},
}

// find returns the window of a name, a day for a name that it does not know, which is never stored.
func find(name string) *window {
	for i := range windows {
		if windows[i].name == name {
			return &windows[i]
		}
	}
	return find(Day)
}

// Windows lists the names of the windows, the shortest first.
func Windows() []string {
	names := make([]string, len(windows))
	for i := range windows {
		names[i] = windows[i].name
	}
	return names
}

// Per returns what follows the limit of a budget of a window in an error: " per day".
func Per(name string) string { return find(name).text }

// Zone returns how far a time zone is ahead of UTC at a time, in seconds. Nil is UTC.
type Zone func(unixMilli int64) int

const (
	second = int64(time.Second / time.Millisecond)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// Window returns the window that contains a time, as Unix milliseconds. The end is
// not part of it; it is 0 for Total.
func Window(name string, now int64, zone Zone) (start, end int64) {
	return find(name).bounds(now, zone)
}

// local returns a time of the zone as if it were of UTC.
func (z Zone) local(now int64) time.Time { return time.UnixMilli(now + z.at(now)).UTC() }

func (z Zone) at(unixMilli int64) int64 {
	if z == nil {
		return 0
	}
	return int64(z(unixMilli)) * second
}

// midnight returns when a day of the zone begins. Where the clock is put forward at
// midnight that is one o'clock; where it is put back over midnight, the first of the
// two.
func (z Zone) midnight(y int, m time.Month, d int) int64 {
	local := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMilli()
	before := local - z.at(local-day)
	after := local - z.at(local+day)
	if before+z.at(before) == local || after+z.at(after) != local {
		return before
	}
	return after
}

func mod(n, by int64) int64 { return (n%by + by) % by }
