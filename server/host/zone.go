package host

import (
	"time"
	_ "time/tzdata" // a system may have no time zones
)

// zoneOffset returns how far a time zone of the IANA database is ahead of UTC at a
// time, in seconds. It reports false for an unknown one.
func zoneOffset(name string, unixMilli int64) (seconds int, ok bool) {
	if name == "" || name == "Local" {
		return 0, false
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return 0, false
	}
	_, seconds = time.UnixMilli(unixMilli).In(zone).Zone()
	return seconds, true
}
