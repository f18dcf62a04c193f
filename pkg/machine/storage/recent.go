package storage

import "weir/pkg/usage"

// RecentStep is the length of a step of the last hour, in milliseconds.
const RecentStep = 5 * Minute

// recentSteps is the number of steps that are stored.
const recentSteps = Hour / RecentStep

// RecentUsage is what a machine used within a step.
//
//easyjson:json
type RecentUsage struct {
	At int64 `json:"at"` // start of the step, Unix milliseconds
	usage.Row
}

// Recent returns the usage of the last hour in the order of time, an entry for each
// step. The last step is the current one.
func (t *Tx) Recent() []RecentUsage {
	var stored []RecentUsage
	t.Load(RecentRow, &stored)
	steps := make([]RecentUsage, recentSteps)
	first := t.Now - t.Now%RecentStep - (recentSteps-1)*RecentStep
	for i := range steps {
		steps[i].At = first + int64(i)*RecentStep
	}
	for i := range stored {
		if at := (stored[i].At - first) / RecentStep; stored[i].At >= first && at < recentSteps {
			steps[at].Row = stored[i].Row
		}
	}
	return steps
}

// addRecent adds usage to the step of a time. Steps without usage are not stored.
func (t *Tx) addRecent(at int64, list []usage.Row) {
	steps := t.Recent()
	step := (min(at, t.Now) - steps[0].At) / RecentStep
	if at < steps[0].At {
		return
	}
	for i := range list {
		if list[i].Valid() {
			steps[step].Add(&list[i])
		}
	}
	used := steps[:0]
	for i := range steps {
		if steps[i].Requests > 0 || steps[i].Calls > 0 {
			used = append(used, steps[i])
		}
	}
	if len(used) > 0 {
		t.Put(RecentRow, used)
	}
}
