package storage

import "weir/pkg/usage"

// ConnUse is what a connection was lately used for.
//
//easyjson:json
type ConnUse struct {
	// Day and Month are those of the costs beside them, UTC: "2026-11-22", "2026-11".
	// Unpriced counts the attempts of the month that are not in MonthUSD.
	Day      string  `json:"day"`
	DayUSD   float64 `json:"dayUsd,omitempty"`
	Month    string  `json:"month"`
	MonthUSD float64 `json:"monthUsd,omitempty"`
	Unpriced int64   `json:"unpriced,omitempty"`
	// Attempts and Failed count the attempts in each span of five minutes up to Span,
	// counted from 1970; that of a span is at its number modulo 12.
	Span     int64     `json:"span"`
	Attempts [12]int64 `json:"attempts"`
	Failed   [12]int64 `json:"failed"`
}

// At returns the use as it is at a time: what has begun since is empty.
func (u ConnUse) At(now int64) ConnUse {
	day := DayOf(now)
	if month := day[:len("2026-11")]; u.Month < month {
		u.Month, u.MonthUSD, u.Unpriced = month, 0, 0
	}
	if u.Day < day {
		u.Day, u.DayUSD = day, 0
	}
	n := int64(len(u.Attempts))
	span := now / RecentStep
	for s := max(u.Span+1, span-n+1); s <= span; s++ {
		u.Attempts[s%n], u.Failed[s%n] = 0, 0
	}
	u.Span = max(u.Span, span)
	return u
}

// InHour returns the attempts of the last 55 to 60 minutes, and those that failed.
func (u *ConnUse) InHour() (attempts, failed int64) {
	for i := range u.Attempts {
		attempts += u.Attempts[i]
		failed += u.Failed[i]
	}
	return attempts, failed
}

// ConnUse returns what a connection was lately used for.
func (t *Tx) ConnUse(id string) (u ConnUse) {
	t.Load(ConnUsePrefix+id, &u)
	return u.At(t.Now)
}

// AddConnUse adds what was used at a time to the rows of the connections that exist.
func (t *Tx) AddConnUse(at int64, list []usage.Row, has func(string) bool) {
	for i := range list {
		r := &list[i]
		if !r.Valid() || r.Requests == 0 || !has(r.ConnectionID) {
			continue
		}
		var u ConnUse
		t.Load(ConnUsePrefix+r.ConnectionID, &u)
		u = u.At(at)
		u.DayUSD += r.CostUSD
		u.MonthUSD += r.CostUSD
		u.Unpriced += r.Unpriced
		n := u.Span % int64(len(u.Attempts))
		u.Attempts[n] += r.Requests
		u.Failed[n] += r.Errors
		t.Put(ConnUsePrefix+r.ConnectionID, u)
	}
}
