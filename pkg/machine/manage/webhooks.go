package manage

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/weburl"
)

// webhook reads the address that alerts are sent to. It must be one that a
// connection may have too.
func (o *Manager) webhook(in *Input, name string) (address string, given bool) {
	raw, ok := in.text(name, 2000)
	if !ok || raw == "" {
		return "", ok
	}
	canonical, valid := weburl.Canonical(raw)
	if !valid {
		in.fail(name, "is not a valid http or https URL")
		return "", true
	}
	if err := provider.CheckBaseURL(canonical, o.AllowPrivate, o.OwnHosts...); err != nil {
		in.fail(name, "must be a public https address without a query")
	}
	return canonical, true
}

// WebhookKey returns the key by which the deliveries to a budget's webhook, or to a
// destination, are signed. It follows from the worker secret API_KEY_SECRET, so that it is
// not stored.
func (o *Manager) WebhookKey(machineID, id string) []byte {
	mac := hmac.New(sha256.New, o.KeySecret)
	fmt.Fprintf(mac, "webhook:%s:%s", machineID, id)
	return mac.Sum(nil)
}

// webhookSecret returns the key as verifiers take it (standardwebhooks.com).
func (o *Manager) webhookSecret(machineID, id string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(o.WebhookKey(machineID, id))
}

// BudgetMessage returns the alert of a budget.
func BudgetMessage(machineID string, a *storage.Reached) *deliver.Message {
	b := &a.Budget
	type data struct {
		MachineID string  `json:"machineId"`
		BudgetID  string  `json:"budgetId"`
		Name      string  `json:"name"`
		Percent   int     `json:"percent"`
		Spent     float64 `json:"spent"`
		Limit     float64 `json:"limit"`
		Unit      string  `json:"unit"`
		Window    string  `json:"window"`
		StartedAt int64   `json:"startedAt,omitempty"`
		ResetsAt  int64   `json:"resetsAt,omitempty"`
	}
	spent, limit := store.ShownAmount(b.Unit, a.Spent), store.ShownAmount(b.Unit, b.Limit)
	what, level := fmt.Sprintf("has reached %d %%", a.Percent), deliver.Warn
	if a.Percent == 100 {
		level = deliver.Bad
	}
	if a.Percent == 100 && a.Spent < b.Limit {
		what = "has refused a call" // that needs more than is left
	}
	title := fmt.Sprintf("The budget %s %s", strconv.Quote(b.Name), what)
	return &deliver.Message{
		Type: "budget.reached", At: a.At, Level: level, Title: title,
		Text: fmt.Sprintf("%s: %s of %s.", title, store.AmountText(b.Unit, a.Spent), store.AmountText(b.Unit, b.Limit)),
		Data: storage.EncodeJSON(data{machineID, b.ID, b.Name, a.Percent, spent, limit, b.Unit, b.Window, a.Start, a.End}),
	}
}
