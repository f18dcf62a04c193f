package budget

import (
	"testing"
	"time"
	_ "time/tzdata"

	"weir/pkg/store"
)

func zoneOf(t *testing.T, name string) Zone {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(ms int64) int {
		_, off := time.UnixMilli(ms).In(loc).Zone()
		return off
	}
}

func at(t *testing.T, s string) int64 {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UnixMilli()
}

func TestWindows(t *testing.T) {
	for _, tt := range []struct{ window, zone, now, start, end string }{
		{Minute, "UTC", "2026-11-22T12:34:56Z", "2026-11-22T12:34:00Z", "2026-11-22T12:35:00Z"},
		{FiveHours, "UTC", "2026-11-22T12:34:56Z", "2026-11-22T12:34:56Z", "2026-11-22T17:34:56Z"},
		{Day, "UTC", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{Day, "UTC", "2026-11-22T23:59:59Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"},
		{Week, "UTC", "2026-11-22T12:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"}, // a Sunday
		{Week, "UTC", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"}, // a Monday
		{Month, "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{Month, "UTC", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{Day, "Asia/Kolkata", "2026-11-22T18:29:59Z", "2026-11-21T18:30:00Z", "2026-11-22T18:30:00Z"},
		{Day, "Asia/Kolkata", "2026-11-22T18:30:00Z", "2026-11-22T18:30:00Z", "2026-11-23T18:30:00Z"},
		// The clock goes forward: a day of 23 hours, and back: one of 25.
		{Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{Month, "Europe/Berlin", "2026-10-31T22:59:59Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"},
		{Month, "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"},
		{Week, "Europe/Berlin", "2026-03-25T12:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		// There is no midnight: the day begins at one o'clock.
		{Day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		// There are two: the clock goes back to 23:00 of the day before.
		{Day, "America/Sao_Paulo", "2018-02-18T12:00:00Z", "2018-02-18T03:00:00Z", "2018-02-19T03:00:00Z"},
		// The clock goes back from 01:00 to 00:00: the first of the two midnights.
		{Day, "America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
	} {
		start, end := Window(tt.window, at(t, tt.now), zoneOf(t, tt.zone))
		if start != at(t, tt.start) || end != at(t, tt.end) {
			t.Errorf("%s of %s in %s: got %s to %s, want %s to %s", tt.window, tt.now, tt.zone,
				time.UnixMilli(start).UTC().Format(time.RFC3339), time.UnixMilli(end).UTC().Format(time.RFC3339), tt.start, tt.end)
		}
	}
	if start, end := Window(Total, noon, nil); start != 0 || end != 0 {
		t.Errorf("total: got %d to %d", start, end)
	}
}

// Every moment of a year lies in the window that it is said to be in, and the next
// window begins where it ends.
func TestWindowsFollowEachOther(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "America/Havana", "Asia/Kathmandu", "Pacific/Chatham"} {
		zone := zoneOf(t, name)
		for _, window := range []string{Day, Week, Month} {
			for _, year := range []string{"2018", "2026"} {
				now := at(t, year+"-01-01T12:00:00Z")
				for until := now + 370*day; now < until; {
					start, end := Window(window, now, zone)
					if now < start || now >= end {
						t.Fatalf("%s in %s: %d is not in %d to %d", window, name, now, start, end)
					}
					if next, _ := Window(window, end, zone); next != end {
						t.Fatalf("%s in %s: after the end %d follows %d", window, name, end, next)
					}
					if s, e := Window(window, end-1, zone); s != start || e != end {
						t.Fatalf("%s in %s: the last moment before %d is in %d to %d", window, name, end, s, e)
					}
					now = end
				}
			}
		}
	}
}

func TestClockThatGoesBackKeepsTheWindow(t *testing.T) {
	b := store.Budget{Limit: 10, Window: Day}
	var l Ledger
	l.Roll(&b, at(t, "2026-12-01T00:00:01Z"), nil)
	l.Spent = 7
	l.Roll(&b, at(t, "2026-11-30T23:59:59Z"), nil)
	if l.Spent != 7 {
		t.Error("two seconds back began another window")
	}
	l.Roll(&b, at(t, "2026-11-01T00:00:00Z"), nil)
	if l.Spent != 0 {
		t.Error("a month back kept the window")
	}
	l.Spent = 7
	l.Roll(&b, at(t, "2026-11-02T00:00:00Z"), nil)
	if l.Spent != 0 {
		t.Error("the next day kept the window")
	}
}
