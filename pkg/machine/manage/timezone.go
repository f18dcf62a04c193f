package manage

import (
	"weir/pkg/budget"
	"weir/pkg/machine/storage"
)

// Zone returns the time zone of a machine, in which its days begin.
func (o *Manager) Zone(t *storage.Tx) budget.Zone {
	if o.ZoneOffset == nil {
		return nil
	}
	return func(unixMilli int64) int {
		name := t.Settings().TimeZone
		if name == "" {
			return 0
		}
		seconds, _ := o.ZoneOffset(name, unixMilli)
		return seconds
	}
}

// knownZone reports whether a machine may have a time zone.
func (o *Manager) knownZone(name string) bool {
	if o.ZoneOffset == nil {
		return false
	}
	_, ok := o.ZoneOffset(name, o.Now().UnixMilli())
	return ok
}
