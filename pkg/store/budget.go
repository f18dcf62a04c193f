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
)

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
type Budget struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	KeyID string `json:"keyId,omitempty"` // calls of this key only; "" for those of all
	// Models are public ids, names that clients ask for, or beginnings that end in
	// "*". None means all.
	Models []string `json:"models,omitempty"`
	Unit   string   `json:"unit"`   // USD, Tokens, Requests
	Limit  int64    `json:"limit"`  // nano-dollars, tokens or requests
	Window string   `json:"window"` // minute, 5h, day, week, month, total
	// RefuseUnpriced refuses calls whose price is not known; it is for USD.
	RefuseUnpriced bool   `json:"refuseUnpriced,omitempty"`
	Webhook        string `json:"webhookUrl,omitempty"` // receives alerts
	CreatedAt      int64  `json:"createdAt"`
	UpdatedAt      int64  `json:"updatedAt"`
	Generation     int64  `json:"generation"`
}

// Covers reports whether the budget is one of a key's calls to a model, by its
// public id and the name that the client asked for.
func (b *Budget) Covers(keyID, publicID, asked string) bool {
	if b.KeyID != "" && b.KeyID != keyID {
		return false
	}
	if len(b.Models) == 0 {
		return true
	}
	for _, m := range b.Models {
		if head, ok := strings.CutSuffix(m, "*"); ok && (strings.HasPrefix(publicID, head) || strings.HasPrefix(asked, head)) || m == publicID || m == asked {
			return true
		}
	}
	return false
}
