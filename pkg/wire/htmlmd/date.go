package htmlmd

import (
	"strconv"
	"strings"
	"time"
)

// layouts are the ways in which providers and pages write dates.
var layouts = [...]struct {
	layout string
	day    bool // no time of day
}{
	{time.RFC3339, false}, {"2006-01-02T15:04:05", false}, {"2006-01-02T15:04", false}, {"2006-01-02 15:04:05", false},
	{"2006-01-02 15:04:05 -0700", false},
	{"2006-01-02T15:04:05-0700", false}, {"2006-01-02T15:04Z07:00", false},
	{time.RFC1123, false}, {time.RFC1123Z, false}, {"Mon, 2 Jan 2006 15:04:05 MST", false},
	{"Mon, 2 Jan 2006 15:04:05 -0700", false},
	{"2006-01-02", true}, {"2006/01/02", true}, {"Jan 2, 2006", true}, {"January 2, 2006", true}, {"2 Jan 2006", true},
	{"2 January 2006", true},
	{"02.01.2006", true},
}

// Date returns a date in the form of RFC 3339: with the time in UTC where it is
// known, else the day. Dates like "3 days ago" are counted from now and are as
// exact as their unit. An unknown form is "".
func Date(s string, now time.Time) string {
	s = strings.TrimSpace(s)
	if len(s) < 4 || len(s) > 64 {
		return ""
	}
	for i := range layouts {
		t, err := time.Parse(layouts[i].layout, s)
		if err != nil {
			continue
		}
		if t.Year() < 1970 || t.Year() > now.Year()+10 {
			return ""
		}
		if layouts[i].day {
			return t.Format(time.DateOnly)
		}
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return ago(s, now)
}

// ago reads "3 days ago" and "yesterday".
func ago(s string, now time.Time) string {
	words := strings.Fields(strings.ToLower(s))
	if len(words) == 1 && words[0] == "yesterday" {
		return now.UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	}
	if len(words) != 3 || words[2] != "ago" {
		return ""
	}
	n, err := strconv.Atoi(words[0])
	if words[0] == "a" || words[0] == "an" {
		n, err = 1, nil
	}
	if err != nil || n < 0 || n > 1000 {
		return ""
	}
	unit, months, days, exact := strings.TrimSuffix(words[1], "s"), 0, 0, time.Duration(0)
	switch unit {
	case "second", "sec":
		exact = time.Second
	case "minute", "min":
		exact = time.Minute
	case "hour":
		exact = time.Hour
	case "day":
		days = 1
	case "week":
		days = 7
	case "month":
		months = 1
	case "year":
		months = 12
	default:
		return ""
	}
	t := now.UTC().Add(-time.Duration(n)*exact).AddDate(0, -n*months, -n*days)
	if exact > 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format(time.DateOnly)
}
