package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// alerted is a world with a budget of 100 requests and a webhook.
func alerted(t *testing.T) (w *world, hook *fake.Upstream, id string, use func(n int)) {
	w = newWorld(t)
	hook = &fake.Upstream{Clock: w.Clock}
	w.obj.Do = hook
	w.Create()
	id = w.budget(`{"name":"team","unit":"requests","limit":100,"window":"total","webhookUrl":"https://hooks.example.com/a"}`)
	use = func(n int) {
		w.Want(200, "report", fmt.Sprintf(`{"budgets":{"holder":"a","asks":[{"budget":%q,"used":%d}]}}`, id, n))
	}
	return w, hook, id, use
}

func TestAlertIsSignedAndSentOnce(t *testing.T) {
	w, hook, id, use := alerted(t)
	use(49)
	w.Loc.Alarms(w.Ctx)
	if len(hook.Seen) != 0 {
		t.Fatalf("at 49 %%: %v", hook.Seen[0].Body)
	}
	use(50)
	use(51)
	for range 3 {
		w.Clock.Add(time.Minute)
		w.Loc.Alarms(w.Ctx)
	}
	if len(hook.Seen) != 1 {
		t.Fatalf("%d alerts were sent, want one", len(hook.Seen))
	}
	s := hook.Seen[0]
	if got := gjson.Get(s.Body, "data.percent").Int(); s.URL != "https://hooks.example.com/a" || got != 50 || !strings.Contains(gjson.Get(s.Body, "text").Str, `"team" has reached 50 %`) {
		t.Errorf("sent %s: %s", s.URL, s.Body)
	}
	if s.Header.Get("x-weir-hop") != "1" {
		t.Error("an alert to a gateway does not count as a hop")
	}
	secret := w.OK("GET", "/api/budgets", "", atBudget(id)).Get("webhookSecret").Str
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("the secret is %q", secret)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", s.Header.Get("webhook-id"), s.Header.Get("webhook-timestamp"), s.Body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); s.Header.Get("webhook-signature") != want {
		t.Errorf("the signature is %s, want %s", s.Header.Get("webhook-signature"), want)
	}
	use(100)
	w.Loc.Alarms(w.Ctx)
	if len(hook.Seen) != 2 || gjson.Get(hook.Seen[1].Body, "data.percent").Int() != 100 {
		t.Errorf("the limit is not reported: %d alerts", len(hook.Seen))
	}
	if m := w.Replica(); m.Budgets[0].Webhook != "" {
		t.Error("the replica has the address of the webhook")
	}
}

// Reservations of a dead instance become spent, with the alert of the share that they pass:
// with the next call or the hour's work after the longest call, at once after a start of the only
// process, and a minute after one of several was last heard of. See docs/guides/budgets.md.
func TestReservationsOfDeadInstancesAreAlerted(t *testing.T) {
	next := func(w *world, id string) {
		w.Want(200, "budget.take", fmt.Sprintf(`{"holder":"b","asks":[{"budget":%q,"need":1,"own":1}]}`, id))
	}
	for _, tt := range []struct {
		name   string
		passes time.Duration
		again  bool // the process is started again
		calls  bool // a call follows
		spent  int64
		holder string
	}{
		{"alive", 10 * time.Minute, false, true, 10, "a"},
		{"of a server that lives", 10 * time.Minute, false, true, 10, "alive-a"},
		{"of a server that is not heard of", 59 * time.Second, false, true, 10, "dead-a"},
		{"of a server that has ended", time.Minute, false, true, 60, "dead-a"},
		{"a call after the longest one", 20 * time.Minute, false, true, 60, "a"},
		{"the hour's work", 61 * time.Minute, false, false, 60, "a"},
		{"a call after a start", time.Second, true, true, 60, "a"},
		{"the hour's work after a start", 61 * time.Minute, true, false, 60, "a"},
	} {
		w, hook, id, _ := alerted(t)
		w.obj.SeatAlive = func(seat string) bool { return seat != "dead" }
		w.Want(200, "budget.take", fmt.Sprintf(`{"holder":%q,"asks":[{"budget":%q,"used":10,"need":50,"own":50}]}`, tt.holder, id))
		w.Clock.Add(tt.passes)
		if tt.again {
			w.obj.Began = w.Clock.Now().UnixMilli()
		}
		if tt.calls {
			next(w, id)
		}
		w.Loc.Alarms(w.Ctx)
		spent := w.OK("GET", "/api/budgets", "", atBudget(id)).Get("spent").Int()
		alerts := len(hook.Seen)
		if spent != tt.spent || alerts != int(tt.spent/50) || alerts == 1 && gjson.Get(hook.Seen[0].Body, "data.percent").Int() != 50 {
			t.Errorf("%s: %d spent with %d alerts, want %d", tt.name, spent, alerts, tt.spent)
		}
	}
}

func TestAlertOfARefusalSaysSo(t *testing.T) {
	w, hook, id, use := alerted(t)
	ask := func(used, own int) {
		w.Want(200, "budget.take", fmt.Sprintf(`{"holder":"a","asks":[{"budget":%q,"used":%d,"own":%d,"need":%d}]}`, id, used, own, own))
		w.Loc.Alarms(w.Ctx)
	}
	use(1)
	ask(1, 100)
	if b := w.OK("GET", "/api/budgets", "", atBudget(id)); len(hook.Seen) != 0 || b.Get("exhausted").Bool() {
		t.Fatalf("a call that needs all of it: %d alerts, %s", len(hook.Seen), b.Raw)
	}
	ask(97, 5)
	if len(hook.Seen) != 1 {
		t.Fatalf("%d alerts were sent, want one", len(hook.Seen))
	}
	if got, want := gjson.Get(hook.Seen[0].Body, "text").Str, `The budget "team" has refused a call: 97 requests of 100 requests.`; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

func TestAlertIsRepeatedForAnotherLimitOnly(t *testing.T) {
	w, hook, id, use := alerted(t)
	use(60)
	w.Loc.Alarms(w.Ctx)
	for _, change := range []struct {
		body string
		sent int
	}{{`{"name":"people"}`, 1}, {`{"limit":100}`, 1}, {`{"limit":110}`, 2}} {
		if status, a := w.API("PUT", "/api/budgets", change.body, atBudget(id)); status != 200 {
			t.Fatalf("%s: %d %s", change.body, status, a.Raw)
		}
		use(61)
		w.Loc.Alarms(w.Ctx)
		if len(hook.Seen) != change.sent {
			t.Errorf("%s: %d alerts, want %d", change.body, len(hook.Seen), change.sent)
		}
	}
}

func TestAlertStatesSmallAmounts(t *testing.T) {
	w, hook, _, _ := alerted(t)
	id := w.budget(`{"name":"small","unit":"usd","limit":0.005,"window":"total","webhookUrl":"https://hooks.example.com/b"}`)
	w.Want(200, "report", fmt.Sprintf(`{"budgets":{"holder":"a","asks":[{"budget":%q,"used":4123456}]}}`, id))
	w.Loc.Alarms(w.Ctx)
	if len(hook.Seen) != 1 {
		t.Fatalf("%d alerts", len(hook.Seen))
	}
	if got, want := gjson.Get(hook.Seen[0].Body, "text").Str, `The budget "small" has reached 80 %: $0.0041 of $0.005.`; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

// The webhook is down for a day: an alert is tried again after seconds, then minutes, then
// every hour, always with the same id.
func TestFailedAlertIsSentAgain(t *testing.T) {
	w, hook, _, use := alerted(t)
	hook.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 500} }
	use(60)
	w.Loc.Alarms(w.Ctx)
	w.Loc.Alarms(w.Ctx)
	if len(hook.Seen) != 1 {
		t.Fatalf("%d tries at once", len(hook.Seen))
	}
	w.obj.buffers = buffers{} // a restart of the program
	for i, wait := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, time.Hour} {
		w.Clock.Add(wait - time.Millisecond)
		w.Loc.Alarms(w.Ctx)
		if len(hook.Seen) != i+1 {
			t.Fatalf("%d tries before %v were over", len(hook.Seen), wait)
		}
		w.Clock.Add(time.Millisecond)
		w.Loc.Alarms(w.Ctx)
		if n := len(hook.Seen); n != i+2 || hook.Seen[n-1].Header.Get("webhook-id") != hook.Seen[0].Header.Get("webhook-id") {
			t.Fatalf("after %v: %d tries", wait, n)
		}
	}
	if a := w.OK("GET", "/api/health", ""); a.Get("alerts.failing").Int() != 1 || a.Get("ok").Bool() {
		t.Errorf("health: %s", a.Raw)
	}
	for range 30 {
		w.Clock.Add(time.Hour)
		w.Loc.Alarms(w.Ctx)
	}
	if len(hook.Seen) != 29 || !strings.Contains(strings.Join(w.Logs, "\n"), "gave up delivery") {
		t.Errorf("%d tries, logs %q", len(hook.Seen), w.Logs)
	}
	if strings.Contains(strings.Join(w.Logs, "\n"), "hooks.example.com") {
		t.Error("the address is in the log")
	}
}

// An earlier version stored alerts in rows of their own.
func TestAlertOfAnEarlierVersionIsSent(t *testing.T) {
	w, hook, id, _ := alerted(t)
	tx := w.tx()
	now := w.Clock.Now().UnixMilli()
	tx.Set("alert:000000000000007", []byte(fmt.Sprintf(`{"id":"demo-7","budget":{"id":%q,"name":"team","unit":"requests","limit":100,"window":"total","webhookUrl":"https://hooks.example.com/old"},"percent":80,"spent":81,"start":1,"at":%d,"tries":1,"from":%d}`, id, now, now)))
	tx.Meta.SendAt = now
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	w.Clock.Add(time.Second)
	w.Loc.Alarms(w.Ctx)
	w.Clock.Add(time.Hour)
	w.Loc.Alarms(w.Ctx)
	if len(hook.Seen) != 1 || hook.Seen[0].URL != "https://hooks.example.com/a" || hook.Seen[0].Header.Get("webhook-id") != "demo-7" {
		t.Fatalf("%d alerts were sent, want one", len(hook.Seen))
	}
	want := fmt.Sprintf(`{"type":"budget.reached","timestamp":%q,"title":"The budget \"team\" has reached 80 %%","text":"The budget \"team\" has reached 80 %%: 81 requests of 100 requests.","data":{"machineId":%q,"budgetId":%q,"name":"team","percent":80,"spent":81,"limit":100,"unit":"requests","window":"total","startedAt":1}}`, time.UnixMilli(now).UTC().Format(time.RFC3339), mid, id)
	if hook.Seen[0].Body != want {
		t.Errorf("the body is\n%s\nwant\n%s", hook.Seen[0].Body, want)
	}
	if rows := w.tx().List("alert:"); len(rows) != 0 {
		t.Errorf("%d rows are left", len(rows))
	}
}

func TestWebhooksStayOutsideThePrivateNetwork(t *testing.T) {
	w, hook, id, use := alerted(t)
	for _, bad := range []string{"http://hooks.example.com/a", "https://10.0.0.1/a", "https://localhost/a", "https://a:b@hooks.example.com/", "https://hooks.example.com/?a=b", "ftp://x.example.com", "nothing"} {
		if status, a := w.API("PUT", "/api/budgets", fmt.Sprintf(`{"webhookUrl":%q}`, bad), atBudget(id)); status != 400 {
			t.Errorf("%s: got %d %s", bad, status, a.Raw)
		}
	}
	w.obj.OwnHosts = []string{"hooks.example.com"} // the rules have changed since
	use(60)
	w.Loc.Alarms(w.Ctx)
	if len(hook.Seen) != 0 {
		t.Error("an address that is refused by now was called")
	}
}

func TestAlertFollowsItsBudget(t *testing.T) {
	w, hook, id, use := alerted(t)
	hook.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 500} }
	use(60)
	w.Loc.Alarms(w.Ctx)
	if status, a := w.API("PUT", "/api/budgets", `{"webhookUrl":"https://hooks.example.com/b"}`, atBudget(id)); status != 200 {
		t.Fatalf("got %d %s", status, a.Raw)
	}
	w.Clock.Add(time.Hour)
	w.Loc.Alarms(w.Ctx)
	if n := len(hook.Seen); n != 2 || hook.Seen[1].URL != "https://hooks.example.com/b" {
		t.Fatalf("%d tries, the last at %s", n, hook.Seen[n-1].URL)
	}
	w.API("DELETE", "/api/budgets", "", atBudget(id))
	w.Clock.Add(time.Hour)
	w.Loc.Alarms(w.Ctx)
	if n := len(hook.Seen); n != 2 {
		t.Errorf("an alert of a deleted budget was sent: %d tries", n)
	}
}
