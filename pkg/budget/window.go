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

// Windows lists them, the shortest first.
func Windows() []string { return []string{Minute, FiveHours, Day, Week, Month, Total} }

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
	switch name {
	case Minute:
		start = now - mod(now, minute)
		return start, start + minute
	case FiveHours:
		return now, now + 5*hour
	case Total:
		return 0, 0
	}
	local := time.UnixMilli(now + zone.at(now)).UTC()
	y, m, d := local.Date()
	days := 1
	switch name {
	case Week:
		d -= (int(local.Weekday()) + 6) % 7
		days = 7
	case Month:
		return zone.midnight(y, m, 1), zone.midnight(y, m+1, 1)
	}
	return zone.midnight(y, m, d), zone.midnight(y, m, d+days)
}

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
