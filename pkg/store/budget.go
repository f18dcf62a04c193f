package store

import "strings"

// Units of a budget.
const (
	USD      = "usd" // counted in nano-dollars
	Tokens   = "tokens"
	Requests = "requests"
)

// NanoDollars is the number of nano-dollars in a US dollar.
const NanoDollars = 1e9

// ShownAmount returns an amount as users see it: US dollars, tokens or requests.
func ShownAmount(unit string, n int64) float64 {
	if unit == USD {
		return float64(n) / NanoDollars
	}
	return float64(n)
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
