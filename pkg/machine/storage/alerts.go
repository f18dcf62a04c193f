package storage

import (
	"fmt"
	"strings"

	"weir/pkg/store"
)

// Alert states that a budget has reached a share of its limit. It is stored until its
// webhook has it. Amounts are those of the budget's unit; dollars are counted in nano-dollars.
type Alert struct {
	ID      string       `json:"id"`
	Budget  store.Budget `json:"budget"`
	Percent int          `json:"percent"`
	Spent   int64        `json:"spent"`
	Start   int64        `json:"start"` // of the window
	End     int64        `json:"end,omitempty"`
	At      int64        `json:"at"`
	Tries   int          `json:"tries,omitempty"`
	From    int64        `json:"from"` // the next try
}

const (
	alertPrefix = "alert:"
	maxAlerts   = 100 // of a machine; more replace the oldest
	alertTries  = 12  // within about seven hours
)

// AddAlert stores an alert, which the alarm sends.
func (t *Tx) AddAlert(a Alert) {
	if rows := t.List(alertPrefix); len(rows) >= maxAlerts {
		t.Del(rows[0].Key)
	}
	seq := t.nextSeq()
	a.ID, a.At, a.From = fmt.Sprintf("%s-%d", t.ID, seq), t.Now, t.Now
	t.Put(fmt.Sprintf("%s%015d", alertPrefix, seq), a)
	t.Meta.AlertAt = t.Now
}

// Alerts returns the alerts that were not delivered.
func (t *Tx) Alerts() []Alert { return RowsOf[Alert](t, alertPrefix) }

// DueAlerts returns the keys of at most n alerts that are to be sent now.
func (t *Tx) DueAlerts(n int) (keys []string) {
	for _, row := range t.List(alertPrefix) {
		var a Alert
		if len(keys) < n && t.Load(row.Key, &a) && (a.From <= t.Now || a.From > t.Now+2*hour) {
			keys = append(keys, row.Key)
		}
	}
	return keys
}

const hour = 60 * Minute

// AlertSent removes an alert that was delivered, or notes a failed try. again reports
// whether there is another one.
func (t *Tx) AlertSent(key string, delivered bool) (again bool) {
	var a Alert
	if !strings.HasPrefix(key, alertPrefix) || !t.Load(key, &a) {
		return true
	}
	if a.Tries++; delivered || a.Tries >= alertTries {
		t.Del(key)
		return delivered
	}
	a.From = t.Now + min(Minute<<a.Tries, hour)
	t.Put(key, a)
	return true
}

// PlanAlerts sets Meta.AlertAt to the time of the next try, or to 0 without an alert.
func (t *Tx) PlanAlerts() {
	t.Meta.AlertAt = 0
	for _, row := range t.List(alertPrefix) {
		var a Alert
		if t.Load(row.Key, &a) && (t.Meta.AlertAt == 0 || a.From < t.Meta.AlertAt) {
			t.Meta.AlertAt = a.From
		}
	}
}
