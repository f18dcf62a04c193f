package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
)

const (
	rateMinutes  = 10
	rateLeast    = 20 // requests, for a rate that means something
	errorPercent = 50 // if a destination has not set it
)

// wanting returns the destinations that have chosen an event.
func wanting(t *storage.Tx, event string) []storage.Destination {
	return slices.DeleteFunc(deliver.Targets(t, storage.Notification), func(d storage.Destination) bool {
		return !deliver.Wants(&d, event)
	})
}

func percentOf(d *storage.Destination) int {
	n, _ := strconv.Atoi(d.Options["errorPercent"])
	return cmp.Or(n, errorPercent)
}

// count counts the requests of a report that succeeded, that providers failed or that found no
// account, if a destination wants to know their error rate. Its usage has all of them, its list may be thinned.
func (o *Object) count(t *storage.Tx, rep *rpc.Report) {
	now := storage.Minutely{At: t.Now / storage.Minute}
	for i := range rep.Usage {
		r := &rep.Usage[i]
		now.All += r.Calls - r.LeftCalls - r.Refused()
		now.Failed += r.FailedCalls - r.Refused()
	}
	if now.All <= 0 || len(wanting(t, deliver.ErrorRate)) == 0 {
		return
	}
	f := t.Faults()
	if n := len(f.Rate); n > 0 && f.Rate[n-1].At == now.At {
		f.Rate[n-1].All, f.Rate[n-1].Failed = f.Rate[n-1].All+now.All, f.Rate[n-1].Failed+now.Failed
	} else {
		f.Rate = append(recent(&f, t.Now), now)
	}
	t.PutFaults(&f)
	t.Suspect = true
}

// recent returns the minutes of the window of the error rate.
func recent(f *storage.Faults, now int64) []storage.Minutely {
	minute := now / storage.Minute
	return slices.DeleteFunc(f.Rate, func(m storage.Minutely) bool { return m.At <= minute-rateMinutes || m.At > minute })
}

// rate adds the fault of an error rate that a destination wants to know of.
func rate(t *storage.Tx, all faultSet, f *storage.Faults) {
	f.Rate = recent(f, t.Now)
	sum := storage.Minutely{}
	for _, m := range f.Rate {
		sum.All, sum.Failed = sum.All+m.All, sum.Failed+m.Failed
	}
	if sum.All < rateLeast || sum.Failed == 0 {
		return
	}
	percent, least := int(sum.Failed*100/sum.All), 101
	for _, d := range wanting(t, deliver.ErrorRate) {
		least = min(least, percentOf(&d))
	}
	if percent < least {
		return
	}
	all[deliver.ErrorRate] = storage.Fault{Event: deliver.ErrorRate, Subject: "Requests", Name: "requests", Since: t.Now,
		Why: fmt.Sprintf("%d of %d requests of the last ten minutes have failed", sum.Failed, sum.All), Level: percent,
		Until: (f.Rate[0].At + rateMinutes) * storage.Minute}
}

// weekly notifies of the spend of a week that is over, in the time zone of the machine, and
// plans the next time.
func (o *Object) weekly(t *storage.Tx, f *storage.Faults) {
	if len(wanting(t, deliver.WeeklySpend)) == 0 {
		f.Week = 0
		return
	}
	offset := int64(0)
	if z := o.Zone(t); z != nil {
		offset = int64(z(t.Now)) * 1000
	}
	const week = 7 * storage.Day
	const monday = 4 * storage.Day // the first one of Unix time
	begin := (t.Now+offset-monday)/week*week + monday - offset
	if f.Week > 0 && f.Week < begin {
		usd, requests := 0.0, int64(0)
		t.Hours(begin-week, begin-1, func(_ string, r *usage.Row) {
			usd, requests = usd+r.CostUSD, requests+r.Calls
		})
		from := time.UnixMilli(begin - week + offset).UTC().Format("Jan 2")
		spent := store.AmountText(store.USD, int64(usd*store.NanoDollars))
		o.Notify(t, deliver.WeeklySpend, &deliver.Message{Title: "Spend of the week: " + spent, Link: o.Link(t, "usage"),
			Text: fmt.Sprintf("In the week from %s, %d requests have cost %s.", from, requests, spent),
			Data: storage.EncodeJSON(map[string]any{"from": begin - week, "to": begin, "usd": store.Dollars(usd), "requests": requests}),
		}, nil)
	}
	f.Week = begin
	t.Meta.JudgeAt = begin + week
}
