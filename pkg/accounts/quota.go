package accounts

import (
	"time"

	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/quota"
)

// quotas notes what an answer says of the account's limits: each that refuses the
// call, with its body, and one a second of the others. It returns the wait for the
// last window of an hour or more that is used up, 0 for none, and what the window is.
func (pl *plan) quotas(a *Attempt, h httpmsg.Header, refusal []byte, at time.Time) (used exhausted) {
	call, to := pl.call, a.Target
	now := at.UnixMilli()
	if !quota.Stated(h) && refusal == nil || call.Credential != nil || len(to.Model) > store.MaxCooledModel ||
		refusal == nil && !call.Machine.QuotaDue(a.Connection.ID, now) {
		return used
	}
	c := quota.Call{Model: to.Model, Requests: int64(to.Provider.RequestsPer / time.Second), Now: now}
	var few [2 * quota.MaxWindows]quota.Window
	list := quota.Read(few[:0], h, c)
	if refusal != nil {
		list = quota.ReadBody(list, refusal, c)
	}
	if len(list) == 0 {
		return used
	}
	call.Machine.NoteQuota(a.Connection.ID, list, now)
	for i := range list {
		w := &list[i]
		if wait := time.Duration(w.ResetsAt-now) * time.Millisecond; w.Long() && w.Used(now) && wait > used.wait {
			used = exhausted{wait: wait, weekly: w.Weekly(), account: w.Model == ""}
		}
	}
	return used
}

// exhausted is a window that is used up.
type exhausted struct {
	wait    time.Duration
	weekly  bool
	account bool // it applies to the whole account
}
