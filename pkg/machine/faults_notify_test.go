package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
)

// notified is a world with a destination of notifications and two accounts of OpenAI.
type notified struct {
	*world
	hook      *fake.Upstream
	target    string
	one, two  string
	delivered int
}

func newNotified(t *testing.T, settings string) *notified {
	w := &notified{world: newWorld(t)}
	w.hook = &fake.Upstream{Clock: w.Clock}
	w.obj.Do = w.hook
	w.obj.PublicURL = "https://weir.example.com"
	w.Create()
	w.target = w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/a"`+settings+`},"events":["account.refused","account.sign_in","account.out_of_credit","account.cooling","model.down","recovered","key.created","budget.reached","errors.rate","spend.weekly","admin.sign_in","prices.stale"]}`).Get("id").Str
	w.one = w.Connect(`{"provider":"openai","name":"work \"1\"","apiKey":"sk-0123456789abcdef"}`)
	w.two = w.Connect(`{"provider":"openai","name":"spare","apiKey":"sk-0123456789abcdeg"}`)
	return w
}

// told returns the types and titles of what was delivered since the last call.
func (w *notified) told() string {
	w.Helper()
	w.Loc.Alarms(w.Ctx)
	var out []string
	for _, s := range w.hook.Seen[w.delivered:] {
		m := gjson.Parse(s.Body)
		out = append(out, m.Get("type").Str+" "+m.Get("data.connectionId").Str+m.Get("data.model").Str)
	}
	w.delivered = len(w.hook.Seen)
	return strings.NewReplacer(w.one, "one", w.two, "two").Replace(strings.Join(out, ", "))
}

func (w *notified) last() gjson.Result { return gjson.Parse(w.hook.Seen[len(w.hook.Seen)-1].Body) }

// fails reports an attempt of an account that failed with a status.
func (w *notified) fails(id string, status int) {
	w.Helper()
	now := w.Clock.Now().UnixMilli()
	reason := map[int]string{401: "key_refused", 402: "out_of_credit", 429: "rate_limited"}[status]
	w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"until":%d,"since":%d,"reason":%q}],"requests":[{"id":"r%d","at":%d,"endpoint":"/v1/embeddings","status":%d,"error":"x","attempts":1,"failed":[{"connectionId":%q,"status":%d,"text":"bad key sk-canary-0123456789abcdef"}]}]}`,
		id, now+120_000, now, reason, now, now, status, id, status))
}

func (w *notified) works(id string) {
	w.Helper()
	now := w.Clock.Now().UnixMilli()
	w.Want(200, "report", fmt.Sprintf(`{"cleared":[{"connectionId":%q,"at":%d}],"requests":[{"id":"s%d","at":%d,"endpoint":"/v1/embeddings","status":200,"attempts":1,"connectionId":%q}]}`, id, now, now, now, id))
}

func (w *notified) later(d time.Duration) {
	for range 10 {
		w.Clock.Add(d / 10)
		w.Loc.Alarms(w.Ctx)
	}
}

func (w *notified) want(when, want string) {
	w.Helper()
	if got := w.told(); got != want {
		w.Errorf("%s: got %q, want %q", when, got, want)
	}
}

func TestFaultIsReportedOnceAndWhenItIsOver(t *testing.T) {
	w := newNotified(t, "")
	w.want("at first", "")
	w.fails(w.one, 401)
	w.later(11 * time.Second)
	w.want("after a refusal", "account.refused one")
	m := w.last()
	if got, want := m.Get("text").Str, `The provider has refused its key since `+w.obj.Clock(w.tx(), w.tx().Faults().All["account.refused:"+w.one].Since)+`. Set a new key, then test the account.`; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	for range 20 {
		w.fails(w.one, 401)
		w.later(time.Minute)
	}
	w.want("after 20 more", "")
	w.later(3 * time.Hour)
	w.want("after hours", "")
	w.works(w.one)
	w.later(11 * time.Second)
	w.want("after a success", "recovered one")
	if text := w.last().Get("text").Str; !strings.Contains(text, "and lasted 3 h 20 min: ") {
		t.Errorf("the text is %q", text)
	}
	w.later(2 * time.Hour)
	w.want("hours later", "")
	w.fails(w.one, 402)
	w.later(11 * time.Second)
	w.want("without credit", "account.out_of_credit one")
	w.fails(w.one, 401)
	w.later(11 * time.Second)
	w.want("with another reason", "account.refused one")
	w.fails(w.two, 401)
	w.later(11 * time.Second)
	w.want("both accounts", "account.refused two, model.down openai")
	if title := w.last().Get("title").Str; title != "All accounts of OpenAI are down" {
		t.Errorf("the title is %q", title)
	}
	w.works(w.two)
	w.later(11 * time.Second)
	w.want("one of them again", "recovered two, recovered openai")
	for _, s := range w.hook.Seen {
		if strings.Contains(s.Body, "canary") {
			t.Errorf("an error text of the provider is in %s", s.Body)
		}
	}
}

// A provider whose accounts have prefixes of their own is one fault, and a model of a group
// that is down as a whole does not work again.
func TestProviderWithSeveralPrefixesIsOneFault(t *testing.T) {
	w := newNotified(t, "")
	account := func(prefix string) string {
		return w.Connect(`{"provider":"openai-compatible-0123abcd","name":"GPU ` + prefix + `","providerSpecificData":{"baseUrl":"https://up.example/v1","prefix":"` + prefix + `"}}`)
	}
	a, b := account("one"), account("two")
	now := w.Clock.Now().UnixMilli()
	failed := func(id string) string {
		return fmt.Sprintf(`{"id":"r","at":%d,"endpoint":"/v1/embeddings","status":401,"error":"x","attempts":1,"failed":[{"connectionId":%q,"status":401}]}`, now, id)
	}
	w.Want(200, "report", `{"requests":[`+failed(a)+`,`+failed(b)+`]}`)
	w.later(21 * time.Second)
	if got := w.told(); strings.Count(got, "model.down") != 1 || !strings.HasSuffix(got, "model.down openai-compatible-0123abcd/*") {
		t.Errorf("both: got %q", got)
	}
	if title := w.last().Get("title").Str; title != "All accounts of GPU one, GPU two are down" {
		t.Errorf("the title is %q", title)
	}
	if m := gjson.Parse(w.hook.Seen[0].Body); !strings.HasSuffix(m.Get("title").Str, `" needs a key`) ||
		!strings.HasPrefix(m.Get("text").Str, "The provider has refused calls without a key since ") {
		t.Errorf("without a key: %s", m.Raw)
	}
	w.works(a)
	w.works(b)
	w.later(11 * time.Second)
	if title := w.last().Get("title").Str; title != "GPU two works again" {
		t.Errorf("the last title is %q", title)
	}
	if got := w.told(); !strings.HasSuffix(got, "recovered two") || strings.Count(got, "recovered") != 3 || strings.Contains(got, "down") {
		t.Errorf("both work: got %q", got)
	}
}

func TestCoveredModelDoesNotWorkAgain(t *testing.T) {
	w := newNotified(t, "")
	for _, id := range []string{w.one, w.two} {
		now := w.Clock.Now().UnixMilli()
		w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"model":"gpt-5","until":%d,"since":%d,"reason":"rate_limited"}]}`, id, now+7_200_000, now))
	}
	w.later(2 * time.Minute)
	w.want("a model", "account.cooling one, account.cooling two, model.down openai/gpt-5")
	w.fails(w.one, 401)
	w.fails(w.two, 401)
	w.later(11 * time.Second)
	if got := w.told(); !strings.Contains(got, "model.down openai") || strings.Contains(got, "recovered") {
		t.Errorf("all of them: got %q", got)
	}
}

func TestFlappingIsReportedOnceAnHour(t *testing.T) {
	w := newNotified(t, "")
	count := map[string]int{}
	for range 60 {
		w.fails(w.one, 401)
		w.later(time.Minute)
		w.works(w.one)
		w.later(time.Minute)
		for _, s := range strings.Split(w.told(), ", ") {
			count[s]++
		}
	}
	if count["account.refused one"] < 2 || count["account.refused one"] > 3 || count["recovered one"] > count["account.refused one"] {
		t.Errorf("in two hours: %v", count)
	}
}

// A limit is reported if it lasts as long as the destination has set, and a model without
// an account after a minute.
func TestLimitsAreReportedIfTheyLast(t *testing.T) {
	w := newNotified(t, `,"coolingMinutes":"30"`)
	limit := func(id, model string, d time.Duration) {
		now := w.Clock.Now().UnixMilli()
		w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"model":%q,"until":%d,"since":%d,"reason":"rate_limited"}]}`, id, model, now+d.Milliseconds(), now))
		w.later(11 * time.Second)
	}
	limit(w.one, "", 5*time.Minute)
	w.want("five minutes", "")
	w.later(5 * time.Minute)
	limit(w.one, "", 5*time.Minute)
	w.want("five more", "")
	limit(w.one, "", time.Hour)
	w.want("an hour", "account.cooling one")
	limit(w.two, "gpt-5", 40*time.Second)
	w.later(2 * time.Minute)
	w.want("a short limit of the other one", "")
	limit(w.two, "gpt-5", 10*time.Minute)
	w.want("a longer one", "")
	w.later(time.Minute)
	w.want("after a minute", "model.down openai/gpt-5")
	w.later(11 * time.Minute)
	w.want("when it is over", "recovered openai/gpt-5")
	w.later(time.Hour)
	w.want("when the hour is over", "recovered one")
}

func TestSignInIsReported(t *testing.T) {
	w := newNotified(t, "")
	status := func(s string) {
		tx := w.tx()
		for _, c := range tx.Connections() {
			if c.ID == w.one {
				c.Status = s
				tx.PutConnection(&c)
			}
		}
		tx.Judge = w.obj.judge
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		w.Loc.Storage(mid).Flush()
	}
	status("needs_reauth")
	w.want("the sign-in has ended", "account.sign_in one")
	status("")
	w.want("signed in again", "recovered one")
	status("needs_reauth")
	w.API("DELETE", "/api/providers/"+w.one, "")
	w.later(2 * time.Hour)
	w.want("the account is deleted", "")
}

// A program that is killed after the turn of the cause, or after the delivery and before its
// result is stored, delivers the same item.
func TestNotificationSurvivesKills(t *testing.T) {
	w := newNotified(t, "")
	w.fails(w.one, 401)
	w.Want(200, "flush", `{}`)
	w.obj.buffers = buffers{}
	w.want("killed before the delivery", "account.refused one")
	w.obj.buffers = buffers{}
	w.want("killed after it", "")

	w.later(2 * time.Hour)
	w.fails(w.two, 401)
	st := w.Loc.Storage(mid)
	w.hook.Answer = func(s *fake.Seen) fake.Answer {
		st.Fault = func(string) bool { return true } // the result is not stored
		return fake.Answer{Status: 200}
	}
	w.later(time.Minute)
	first := len(w.hook.Seen)
	w.hook.Answer, st.Fault = nil, nil
	w.obj.buffers = buffers{}
	w.later(2 * time.Minute)
	w.Want(200, "tick", `{}`) // the cron sets a lost alarm
	w.later(time.Second)
	ids := map[string]int{}
	for _, s := range w.hook.Seen[1:] {
		ids[s.Header.Get("webhook-id")]++
	}
	if first < 2 || len(ids) != 2 {
		t.Errorf("%d deliveries, then %v: want a repeat with the same id", first, ids)
	}
}

func TestQuietHoursEndWithOneSummary(t *testing.T) {
	w := newNotified(t, `,"quietHours":"22:00-07:00"`)
	w.obj.ZoneOffset = func(string, int64) (int, bool) { return 3600, true }
	w.OK("PATCH", "/api/settings", `{"timeZone":"Europe/Berlin"}`)
	at := func(hour, minute int) {
		now := w.Clock.Now().UTC()
		next := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, time.UTC)
		if !next.After(now) {
			next = next.AddDate(0, 0, 1)
		}
		w.Clock.Add(next.Sub(now))
		w.Loc.Alarms(w.Ctx)
	}
	at(20, 59)
	w.fails(w.one, 401)
	w.later(11 * time.Second)
	w.want("before", "account.refused one")
	at(21, 0)
	w.works(w.one)
	w.later(11 * time.Second)
	w.fails(w.two, 402)
	w.later(11 * time.Second)
	w.want("at night", "")
	at(5, 59)
	w.want("a minute before the end", "")
	at(6, 0)
	w.want("at the end", "summary ")
	if m := w.last(); m.Get("data.count").Int() != 2 || strings.Count(m.Get("text").Str, "\n") != 1 || !strings.Contains(m.Get("text").Str, "works again") {
		t.Errorf("the summary is %s", m.Raw)
	}
	w.fails(w.one, 401)
	w.later(11 * time.Second)
	w.want("by day", "account.refused one, model.down openai")
}

// Quiet hours may be longer than the longest wait for another try, and a run of the alarm
// for another destination does not end them.
func TestQuietHoursHoldForTheirWholeLength(t *testing.T) {
	w := newNotified(t, `,"quietHours":"22:00-07:00"`)
	w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/b"},"events":["account.refused"]}`)
	for w.Clock.Now().UTC().Hour() != 22 {
		w.Clock.Add(time.Minute)
	}
	w.Loc.Alarms(w.Ctx)
	n := len(w.hook.Seen)
	w.fails(w.one, 401)
	w.later(11 * time.Second)
	for _, s := range w.hook.Seen[n:] {
		if strings.HasSuffix(s.URL, "/a") {
			t.Errorf("at %v: %s %s", w.Clock.Now(), s.URL, s.Body)
		}
	}
}

// Callers choose the names of models, so the row of faults is bounded.
func TestFaultsOfManyModelsAreBounded(t *testing.T) {
	w := newNotified(t, "")
	w.works(w.one)
	for minute := range 8 {
		now := w.Clock.Now().UnixMilli()
		var cools []string
		for i := range 60 {
			model := fmt.Sprintf("m-%d-%d-%s", minute, i, strings.Repeat("<", 200))
			for _, id := range []string{w.one, w.two} {
				cools = append(cools, fmt.Sprintf(`{"connectionId":%q,"model":%q,"until":%d,"since":%d,"reason":"rate_limited"}`, id, model, now+90_000, now))
			}
		}
		w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[%s]}`, strings.Join(cools, ",")))
		w.later(2 * time.Minute)
	}
	row := w.Loc.Storage(mid).Dump()["faults"]
	if n := len(w.tx().Faults().All); n > maxFaults || len(row) == 0 || len(row) > 1<<20 || len(w.hook.Seen) == 0 {
		t.Errorf("%d faults in %d bytes, %d notifications", n, len(row), len(w.hook.Seen))
	}
}

// One destination that stalls delays the others by its time limit at most, and only once.
func TestDeadDestinationDoesNotHoldUpOthers(t *testing.T) {
	w := newNotified(t, "")
	w.OK("PUT", "/api/destinations/"+w.target, `{"settings":{"url":"https://dead.example.com/"}}`)
	w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://alive.example.com/"}}`)
	w.hook.Answer = func(s *fake.Seen) fake.Answer {
		if strings.Contains(s.URL, "dead") {
			return fake.Answer{Takes: time.Hour}
		}
		return fake.Answer{Status: 200}
	}
	w.fails(w.one, 401)
	w.later(11 * time.Second)
	w.fails(w.two, 402)
	w.later(24 * time.Hour)
	calls := map[string]int{}
	for _, s := range w.hook.Seen {
		calls[s.URL]++
	}
	if calls["https://alive.example.com/"] != 3 || calls["https://dead.example.com/"] > 200 {
		t.Errorf("calls: %v", calls)
	}
}

func TestNewKeyIsReported(t *testing.T) {
	w := newNotified(t, "")
	w.OK("POST", "/api/keys", `{"name":"ci \"x\""}`)
	w.want("a key", "key.created ")
	if m := w.last(); !strings.HasPrefix(m.Get("text").Str, `The key "ci \"x\"" (`) || strings.Contains(m.Raw, "canary") {
		t.Errorf("the text is %s", m.Get("text").Str)
	}
}

// Failures of providers count, refusals by limits do not.
func TestErrorRateIsReported(t *testing.T) {
	w := newNotified(t, `,"errorPercent":"30"`)
	send := func(n int, outcome string) {
		row := usage.Row{Endpoint: "/v1/embeddings"}
		failed := 0
		for range n {
			row.Call(20, 0, outcome, store.RefusedByKeyLimit)
		}
		if outcome == store.ProviderFailed || outcome == store.Refused {
			failed = n
		}
		// The list may have none of them.
		w.Want(200, "report", fmt.Sprintf(`{"usage":[%s],"unlisted":%d,"unlistedFailed":%d}`, storage.Encode(row), n, failed))
		w.later(11 * time.Second)
	}
	send(15, "provider_failed")
	w.want("too few for a rate", "")
	send(100, "refused")
	w.want("refusals", "")
	send(30, "succeeded")
	w.want("a third", "errors.rate ")
	if m := w.last(); m.Get("text").Str[:63] != "15 of 45 requests of the last ten minutes have failed since Jan" {
		t.Errorf("the text is %q", m.Get("text").Str)
	}
	w.later(15 * time.Minute)
	w.want("minutes later", "recovered ")
}

func TestSpendOfTheWeekIsReportedOnMonday(t *testing.T) {
	w := newNotified(t, "")
	w.obj.ZoneOffset = func(string, int64) (int, bool) { return 7200, true }
	w.OK("PATCH", "/api/settings", `{"timeZone":"Europe/Berlin"}`)
	for now := w.Clock.Now(); now.Weekday() != time.Wednesday; now = w.Clock.Now() {
		w.later(24 * time.Hour)
	}
	w.told()
	for range 4 {
		w.Want(200, "report", `{"usage":[{"keyId":"k","connectionId":"`+w.one+`","model":"openai/m","requests":4,"calls":3,"costUsd":0.625}]}`) // one was tried twice
		w.later(time.Hour)
	}
	sunday := time.Date(w.Clock.Now().Year(), w.Clock.Now().Month(), w.Clock.Now().Day(), 21, 0, 0, 0, time.UTC).AddDate(0, 0, 4)
	w.Clock.Add(sunday.Sub(w.Clock.Now()))
	w.want("on Sunday", "")
	w.later(2 * time.Hour)
	w.want("on Monday", "spend.weekly ")
	if m := w.last(); m.Get("data.usd").Num != 2.5 || m.Get("data.requests").Int() != 12 {
		t.Errorf("the spend is %s", m.Raw)
	}
	w.later(6 * 24 * time.Hour)
	w.want("days later", "")
}

// The registry tells the machines of what concerns the gateway, once.
func TestNoticesReachTheMachines(t *testing.T) {
	w := newNotified(t, "")
	signIn := func(from string) {
		if status, a := w.At(rpc.RegistryID, "session.open", fmt.Sprintf(`{"digest":%q,"from":%q,"address":"192.0.2.7"}`, strings.Repeat("a", 64), strings.Repeat(from, 32))); status != 200 {
			t.Fatalf("sign-in: %d %s", status, a.Raw)
		}
	}
	cron := func() {
		w.Loc.Storage(rpc.RegistryID).Flush()
		w.obj.Cron(w.Ctx)
		w.later(time.Minute)
	}
	cron()
	signIn("a")
	cron()
	w.want("the first address", "")
	signIn("b")
	cron()
	w.want("another one", "admin.sign_in ")
	if text := w.last().Get("text").Str; !strings.HasPrefix(text, "It was the operator token, from 192.0.2.7 at Jan") {
		t.Errorf("the text is %q", text)
	}
	signIn("b")
	signIn("a")
	cron()
	w.want("known ones", "")
	for range 3 {
		w.At(rpc.RegistryID, "notice", `{"event":"prices.stale","title":"a","text":"b"}`)
		cron()
	}
	w.want("three times the same", "prices.stale ")
	if status, _ := w.At(rpc.RegistryID, "notice", `{"event":"none"}`); status != 400 {
		t.Errorf("an unknown event: %d", status)
	}
}
