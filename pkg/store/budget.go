package store

import (
	"math"
	"strconv"
	"strings"
)

// Units of a budget.
const (
	USD      = "usd" // counted in nano-dollars
	Tokens   = "tokens"
	Requests = "requests"
	Calls    = "calls" // under way at a time; only limits have it
)

// MaxCalls is the highest limit of calls under way.
const MaxCalls = 1_000_000

// NanoDollars is the number of nano-dollars in a US dollar.
const NanoDollars = 1e9

// Dollars rounds an amount in US dollars to nano-dollars: a sum of costs has digits that
// come from its addition in floating point.
func Dollars(usd float64) float64 { return math.Round(usd*NanoDollars) / NanoDollars }

// ShownAmount returns an amount as users see it: US dollars, tokens or requests.
func ShownAmount(unit string, n int64) float64 {
	if unit == USD {
		return float64(n) / NanoDollars
	}
	return float64(n)
}

// AmountText returns an amount with its unit, as messages state it: dollars with cents, or
// below a cent with two digits that are not 0.
func AmountText(unit string, n int64) string {
	switch {
	case unit == USD:
		return dollars(float64(n) / NanoDollars)
	case n == 1:
		return "1 " + strings.TrimSuffix(unit, "s")
	}
	return strconv.FormatInt(n, 10) + " " + unit
}

func dollars(n float64) string {
	places := 2
	for least := 0.1; places < 9 && n > 0 && n < least; least /= 10 {
		places++
	}
	s := strconv.FormatFloat(n, 'f', places, 64)
	if places > 2 {
		s = strings.TrimRight(s, "0")
		for len(s) < len("0.00") {
			s += "0"
		}
	}
	return "$" + strings.TrimSuffix(s, ".00")
}

// Budget limits what calls may use within a window. See
// docs/decisions/0126-budgets-are-lent.md.
//
//easyjson:json
type Budget struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	KeyID string `json:"keyId,omitempty"` // calls of this key only; "" for those of all
	// Models are public ids, names that clients ask for, or beginnings that end in
	// "*". None means all.
	Models []string `json:"models,omitempty"`
	// Tag, "project=atlas", and Tool, see setup.ToolOf, are those of the calls; "" is any.
	Tag    string `json:"tag,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Unit   string `json:"unit"`   // USD, Tokens, Requests
	Limit  int64  `json:"limit"`  // nano-dollars, tokens or requests
	Window string `json:"window"` // see budget.Windows
	// RefuseUnpriced refuses calls whose price is not known; it is for USD.
	RefuseUnpriced bool   `json:"refuseUnpriced,omitempty"`
	Webhook        string `json:"webhookUrl,omitempty"` // receives alerts
	CreatedAt      int64  `json:"createdAt"`
	UpdatedAt      int64  `json:"updatedAt"`
	Generation     int64  `json:"generation"`
}

// Names of the limits of a key, before its id in the id of a budget, and of the machine's, which
// has no id there. Ids of stored budgets have no colon.
const (
	limitRPM      = "rpm:"
	limitDay      = "day:" // of requests
	limitTPM      = "tpm:"
	limitParallel = "parallel:"
)

// Limits returns the limits of a key as budgets. Their days are those of UTC.
func (k *Key) Limits() (list []Budget) {
	add := func(name string, limit int, unit, window string) {
		if limit > 0 {
			list = append(list, Budget{ID: name + k.ID, KeyID: k.ID, Unit: unit, Limit: int64(limit), Window: window})
		}
	}
	add(limitRPM, k.RPM, Requests, "minute")
	add(limitDay, k.DailyMax, Requests, "day")
	add(limitTPM, k.TPM, Tokens, "minute")
	add(limitParallel, k.MaxParallel, Calls, "total")
	return list
}

// Limits returns the limits of a machine as budgets.
func (s *Settings) Limits() []Budget {
	if s.MaxParallel == 0 {
		return nil
	}
	return []Budget{{ID: limitParallel, Unit: Calls, Limit: int64(s.MaxParallel), Window: "total"}}
}

// IsLimit reports whether the budget is a limit of a key or of the machine.
func (b *Budget) IsLimit() bool {
	_, limit := Limited(b.ID)
	return limit
}

// Limited reports whether a budget is a limit, by its id, and returns the key that it is of,
// "" for the machine.
func Limited(budgetID string) (keyID string, limit bool) {
	_, keyID, limit = strings.Cut(budgetID, ":")
	return keyID, limit
}

// Names reports whether Models names a model: as it is written, in another case, or by
// its beginning. Space around a name does not count.
func (b *Budget) Names(name string) bool {
	name = strings.TrimSpace(name)
	for _, m := range b.Models {
		head, begins := strings.CutSuffix(m, "*")
		if begins && len(name) >= len(head) && strings.EqualFold(name[:len(head)], head) || SameName(m, name) {
			return true
		}
	}
	return false
}

// FoldName returns a key for the name of a model: it is equal for two names if SameName
// reports true.
func FoldName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// SameName reports whether two names of a model differ in case and surrounding space
// at most, which some providers ignore.
func SameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}
