package manage

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

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

// webhookKey returns the key by which a budget's alerts are signed. It follows from
// the worker secret API_KEY_SECRET, so that it is not stored.
func (o *Manager) webhookKey(machineID, budgetID string) []byte {
	mac := hmac.New(sha256.New, o.KeySecret)
	fmt.Fprintf(mac, "webhook:%s:%s", machineID, budgetID)
	return mac.Sum(nil)
}

// webhookSecret returns the key as verifiers take it (standardwebhooks.com).
func (o *Manager) webhookSecret(machineID, budgetID string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(o.webhookKey(machineID, budgetID))
}

// SignWebhook returns the field webhook-signature of the Standard Webhooks
// specification:
//
//	v1,base64(HMAC-SHA256(key, id "." timestamp "." body))
func (o *Manager) SignWebhook(machineID, budgetID, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, o.webhookKey(machineID, budgetID))
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// AlertBody returns the body of an alert. Slack and those that read its messages show
// text.
func AlertBody(machineID string, a *storage.Alert) []byte {
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
	what := fmt.Sprintf("has reached %d %%", a.Percent)
	if a.Percent == 100 && a.Spent < b.Limit {
		what = "has refused a call" // that needs more than is left
	}
	return storage.Encode(struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Text      string `json:"text"`
		Data      data   `json:"data"`
	}{
		"budget.reached", time.UnixMilli(a.At).UTC().Format(time.RFC3339),
		fmt.Sprintf("The budget %s %s: %s of %s.", strconv.Quote(b.Name), what, store.AmountText(b.Unit, a.Spent),
			store.AmountText(b.Unit, b.Limit)),
		data{machineID, b.ID, b.Name, a.Percent, spent, limit, b.Unit, b.Window, a.Start, a.End},
	})
}
