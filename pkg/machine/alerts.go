package machine

import (
	"fmt"
	"strconv"
	"time"

	"weir/pkg/budget"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/weburl"
)

const (
	alertsAtOnce  = 5
	alertTimeout  = 10 * time.Second
	maxAlertReply = 64 << 10 // bytes
)

// alert stores an alert if a budget has reached another share of its limit.
func (o *Object) alert(t *storage.Tx, b *store.Budget, l *budget.Ledger) {
	percent := l.Reached(b)
	if percent == 0 || b.Webhook == "" {
		return
	}
	t.AddAlert(storage.Alert{Budget: *b, Percent: percent, Spent: l.Spent, Start: l.Start, End: l.End})
}

// sendAlerts posts the alerts that are due to their webhooks. One that fails is sent
// again after 2, 4, 8 … minutes, at most an hour apart, for about seven hours.
func (o *Object) sendAlerts(r *storage.Call) {
	if r.Meta.AlertAt == 0 || !r.Exists() {
		return
	}
	for _, key := range r.DueAlerts(alertsAtOnce) {
		var a storage.Alert
		if !r.Load(key, &a) {
			continue
		}
		var now storage.Budget // it may have been deleted, or have another address
		if !r.Load(storage.BudgetPrefix+a.Budget.ID, &now) || now.Webhook == "" {
			r.Del(key)
			if r.Commit() != nil {
				r.Reload(o.Now())
				return
			}
			continue
		}
		a.Budget.Webhook = now.Webhook
		err := o.post(r, &a)
		r.Reload(o.Now())
		if !r.AlertSent(key, err == nil) {
			o.WriteLog(fmt.Sprintf("machine %s: gave up the alert of budget %s: %v", r.ID, a.Budget.ID, err))
		}
		r.PlanAlerts()
		if r.Commit() != nil {
			r.Reload(o.Now())
			return
		}
	}
	r.PlanAlerts()
}

// post sends an alert. The address is judged again, as the operator's settings may
// have changed; natively each connection is judged after DNS. Redirects are not
// followed.
func (o *Object) post(r *storage.Call, a *storage.Alert) error {
	canonical, ok := weburl.Canonical(a.Budget.Webhook)
	if !ok {
		return provider.ErrBaseURL
	}
	if err := provider.CheckBaseURL(canonical, o.AllowPrivate, o.OwnHosts...); err != nil {
		return err
	}
	ctx, err := r.Outside()
	if err != nil {
		return err
	}
	body := manage.AlertBody(r.ID, a)
	at := strconv.FormatInt(r.Now/1000, 10)
	resp, err := upstream.Do(ctx, o.Do, &upstream.Request{
		Method: "POST", URL: canonical, Body: stream.FromBytes(body), Timeout: alertTimeout, MaxBody: maxAlertReply,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "application/json"}, {Name: "webhook-id", Value: a.ID},
			{Name: "webhook-timestamp", Value: at},
			{Name: "webhook-signature", Value: o.SignWebhook(r.ID, a.Budget.ID, a.ID, at, body)},
			{Name: clientheader.Hop, Value: "1"}, // the address may lead to a gateway
		},
	})
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.Status < 200 || resp.Status > 299 {
		return fmt.Errorf("status %d", resp.Status)
	}
	return nil
}
