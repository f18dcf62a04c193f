package storage

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/usage"
)

// KeyUse is what a key was used for since its creation. It outlives the rows of
// usage.
//
//easyjson:json
type KeyUse struct {
	LastAt   int64   `json:"lastAt"`   // Unix milliseconds
	Requests int64   `json:"requests"` // of clients, with those refused
	Refused  int64   `json:"refused,omitempty"`
	Tokens   int64   `json:"tokens"`
	CostUSD  float64 `json:"costUsd,omitempty"`
	Unpriced int64   `json:"unpriced,omitempty"` // attempts that are not in CostUSD
	// Day and Month are those of the costs beside them, UTC: "2026-11-22", "2026-11".
	Day      string  `json:"day"`
	DayUSD   float64 `json:"dayUsd,omitempty"`
	Month    string  `json:"month"`
	MonthUSD float64 `json:"monthUsd,omitempty"`
	// Hours has the requests of the last hours up to Hour, counted from 1970; that of
	// an hour is at its number modulo 24.
	Hour  int64     `json:"hour"`
	Hours [24]int64 `json:"hours"`
}

// At returns the use as it is at a time: what has begun since is empty.
func (u KeyUse) At(now int64) KeyUse {
	day := DayOf(now)
	if month := day[:len("2026-11")]; u.Month < month {
		u.Month, u.MonthUSD = month, 0
	}
	if u.Day < day {
		u.Day, u.DayUSD = day, 0
	}
	n := int64(len(u.Hours))
	hour := now / Hour
	for h := max(u.Hour+1, hour-n+1); h <= hour; h++ {
		u.Hours[h%n] = 0
	}
	u.Hour = max(u.Hour, hour)
	return u
}

// InDay returns the requests of the current hour and the 23 hours before it.
func (u *KeyUse) InDay() (n int64) {
	for _, requests := range u.Hours {
		n += requests
	}
	return n
}

// Today returns the requests of the UTC day so far.
func (u *KeyUse) Today() (n int64) {
	for h := range u.Hour%int64(len(u.Hours)) + 1 { // the first hour of a day is a multiple of 24
		n += u.Hours[h]
	}
	return n
}

// KeyUse returns what a key was used for.
func (t *Tx) KeyUse(id string) (u KeyUse) {
	t.Load(KeyUsePrefix+id, &u)
	return u.At(t.Now)
}

// addKeyUse adds usage to the rows of the keys.
func (t *Tx) addKeyUse(at int64, list []usage.Row) {
	for i := range list {
		r := &list[i]
		if !r.Valid() || !rpc.IsRowID(r.KeyID) {
			continue
		}
		var u KeyUse
		t.Load(KeyUsePrefix+r.KeyID, &u)
		u = u.At(at)
		u.LastAt = max(u.LastAt, at)
		u.Requests += r.Calls
		u.Refused += r.Refused()
		u.Tokens += r.InputTokens + r.OutputTokens
		u.CostUSD += r.CostUSD
		u.DayUSD += r.CostUSD
		u.MonthUSD += r.CostUSD
		u.Unpriced += r.Unpriced
		u.Hours[u.Hour%int64(len(u.Hours))] += r.Calls
		t.Put(KeyUsePrefix+r.KeyID, u)
	}
}
