package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/budget"
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// budgeted is a world whose object has ledgers.
type budgeted struct {
	*world
	ledgers map[string]*budget.Ledger
	takes   int
	used    llm.Usage // of each answer
	model   string
	ask     Estimate
}

func newBudgeted(t *testing.T, budgets ...store.Budget) *budgeted {
	b := &budgeted{world: newWorld(t).add(accounts("a")...), ledgers: map[string]*budget.Ledger{}, model: "gpt-4o"}
	for i := range budgets {
		if budgets[i].ID == "" {
			budgets[i].ID = "b" + string(rune('1'+i))
		}
		b.ledgers[budgets[i].ID] = &budget.Ledger{}
	}
	rec := *b.machine.Machine
	rec.Budgets = budgets
	b.use(&rec)
	b.req.Method, b.req.Route = "POST", "/v1/chat/completions"
	b.trace.KeyID = "k1"
	b.pool.Rand = rand.NewChaCha8([32]byte{1})
	b.object.Answer = b.answer
	return b
}

func (b *budgeted) answer(op string, body []byte) (int, []byte, error) {
	var asks budget.Asks
	switch op {
	case "budget.take":
		b.takes++
		json.Unmarshal(body, &asks)
	case "report":
		var rep rpc.Report
		if json.Unmarshal(body, &rep); rep.Budgets != nil {
			asks = *rep.Budgets
		}
	}
	var grants []budget.Grant
	for i := range asks.Asks {
		if rec := b.machine.Budget(asks.Asks[i].Budget); rec != nil {
			if b.ledgers[rec.ID] == nil {
				b.ledgers[rec.ID] = &budget.Ledger{}
			}
			if g, ok := b.ledgers[rec.ID].Take(rec, asks.Holder, &asks.Asks[i], b.Now().UnixMilli(), nil); ok {
				grants = append(grants, g)
			}
		}
	}
	if op == "report" {
		out, err := json.Marshal(rpc.Reported{Budgets: grants})
		return 200, out, err
	}
	out, err := json.Marshal(rpc.Granted{Grants: grants})
	return 200, out, err
}

// to returns a call to a model.
func (b *budgeted) to(model string) *Call {
	call := b.world.call()
	call.Targets = []routing.Target{b.target(model)}
	return call
}

// call makes a call and reports it.
func (b *budgeted) call() error {
	b.Helper()
	call := b.to(b.model)
	call.Estimate = b.ask
	call.Read = func(a *Attempt, _ *upstream.Response) error { a.Used.Tokens = b.used; return nil }
	res, err := b.pool.Send(context.Background(), call)
	if err == nil {
		if _, whole := res.Body.(*stream.Bytes); !whole {
			res.Done(nil)
		}
	}
	b.pool.Flush(context.Background(), b.machine)
	return err
}

// report tells the object what a call has used, a second after the last report.
func (b *budgeted) report() {
	b.Clock.Add(time.Second)
	b.pool.reportOf(b.machine.ID)
	b.pool.Flush(context.Background(), b.machine)
}

func refusal(err error) (status int, code string, e *apierr.Error) {
	if errors.As(err, &e) {
		return e.Status, e.Code, e
	}
	return 0, "", nil
}

func TestRequestsOfABudgetAreCounted(t *testing.T) {
	b := newBudgeted(t, store.Budget{Name: "three a day", Unit: store.Requests, Limit: 3, Window: budget.Day})
	for i := range 3 {
		if err := b.call(); err != nil {
			t.Fatalf("call %d: %v", i+1, err)
		}
	}
	status, code, e := refusal(b.call())
	if status != 429 || code != "budget_exceeded" || !e.NoRetry || len(b.Seen) != 3 {
		t.Fatalf("got %d %s %+v, upstream saw %d calls", status, code, e, len(b.Seen))
	}
	if want := time.Duration(b.ledgers["b1"].End-b.Now().UnixMilli()) * time.Millisecond; e.RetryAfter != want {
		t.Errorf("the wait is %v, want %v", e.RetryAfter, want)
	}
	if !strings.Contains(e.Message, `"three a day" of 3 requests per day`) || !strings.Contains(e.Message, "is used up. Resets Jan 16, 00:00 UTC.") {
		t.Errorf("message: %s", e.Message)
	}
	takes := b.takes
	b.call()
	if b.takes != takes {
		t.Error("a refusal that is known asks the object again")
	}
}

func TestCallLargerThanABudgetIsToldSo(t *testing.T) {
	b := newBudgeted(t, store.Budget{Name: "small", Unit: store.USD, Limit: 50_000_000, Window: budget.Day})
	b.ask = Estimate{Input: 8, Output: 10_000, Text: true}
	// gpt-4o: $2.50 and $10 per million.
	_, code, e := refusal(b.call())
	want := `The budget "small" of $0.05 per day is too low: this call could cost $0.11. Ask for fewer output tokens or a higher limit.`
	if code != "budget_exceeded" || e.Message != want {
		t.Errorf("got %s %q, want %q", code, e.Message, want)
	}
	if e.RetryAfter != 0 || !e.NoRetry {
		t.Errorf("a call that never fits is asked to come again after %v", e.RetryAfter)
	}
}

// A regression: the floating-point error of a cost was rounded up to a nano-dollar.
func TestEstimateIsExact(t *testing.T) {
	e := Estimate{Input: 7, Output: 4096, Text: true}
	if _, got := e.of("4/20 request=0.002", 4096); got != 83_948_000 {
		t.Errorf("got %d nano-dollars, want 83,948,000", got)
	}
}

// An answer without a limit is estimated by the longest one of the model: of the catalogue,
// or what the operator's source states.
func TestEstimateWithoutALimit(t *testing.T) {
	m := snapshot.New(&store.Machine{CustomModels: []store.CustomModel{{ID: "own", ProviderAlias: "openai", ContextLength: 9000}}})
	for _, tt := range []struct {
		e           Estimate
		source      string
		model       string
		least, most int64
	}{
		{Estimate{}, "", "gpt-5.5", 0, 0},
		{Estimate{Text: true, Output: 70}, "", "gpt-5.5", 70, 70},
		{Estimate{Text: true, Output: 1 << 60}, "", "gpt-5.5", 128_000, 128_000},
		{Estimate{Text: true, Output: 1 << 60}, "", "own", 9000, 9000},
		{Estimate{Text: true, Output: 1 << 60}, "", "gpt-next", maxEstimate, maxEstimate},
		{Estimate{Text: true}, "", "gpt-5.5", leastOutput, 128_000},
		{Estimate{Text: true}, "openai/gpt-next\tl\t9000\t300\n", "gpt-next", 300, 300},
		{Estimate{Text: true}, "", "gpt-next", leastOutput, unknownOutput},
		{Estimate{Text: true}, "", "own", leastOutput, 9000},
		{Estimate{Text: true, Input: 2000}, "", "own", leastOutput, 7000},
		{Estimate{Text: true, Input: 8000}, "", "own", leastOutput, leastOutput},
	} {
		m.SetCatalog(nil)
		if tt.source != "" {
			m.SetCatalog(&catalog.Update{ModelText: tt.source})
		}
		to := &routing.Target{Provider: provider.Lookup("openai"), Alias: "openai", Model: tt.model}
		if least, most := tt.e.outputs(m, to); least != tt.least || most != tt.most {
			t.Errorf("%s, %+v: got %d to %d, want %d to %d", tt.model, tt.e, least, most, tt.least, tt.most)
		}
	}
}

func TestEstimateCountsChoicesSearchesAndTheTier(t *testing.T) {
	const price = "1/10 search=0.01 @priority=2/20"
	for _, tt := range []struct {
		e      Estimate
		output int64
		want   int64 // nano-dollars
	}{
		{Estimate{Input: 1000, Text: true}, 1000, 11_000_000},
		{Estimate{Input: 1000, Text: true, Choices: 8}, 1000, 81_000_000},
		{Estimate{Text: true, Searches: 10}, 100, 101_000_000},
		{Estimate{Text: true, Choices: 128}, 384_000, 491_520_000_000},
		{Estimate{Text: true, Searches: 1 << 60}, 0, 10_000_000_000},
		{Estimate{Input: 1000, Text: true, Service: "priority"}, 1000, 22_000_000},
		{Estimate{Input: 1000, Text: true, Service: "fast"}, 1000, 11_000_000}, // its price is not known
	} {
		if _, got := tt.e.of(price, tt.output); got != tt.want {
			t.Errorf("%+v: %d nano-dollars, want %d", tt.e, got, tt.want)
		}
	}
	if _, got := (&Estimate{Text: true, Searches: 3}).of("1/10", 100); got != 1_000_000 {
		t.Errorf("searches without a price: %d", got)
	}
}

// Of 200 calls at once, each without a limit and with an answer of any length, a budget
// serves more than a few, each at most as much as it may use, and all of it in the end.
func TestBudgetHoldsForCallsWithoutALimit(t *testing.T) {
	const limit = 20_000_000_000 // $20; the longest answer costs $3.84
	for _, stated := range []int64{0, 32_000} {
		b := newBudgeted(t, store.Budget{Unit: store.USD, Limit: limit, Window: budget.Total})
		b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
		rnd := rand.New(rand.NewPCG(uint64(stated), 7))
		type open struct {
			res   *Result
			limit int64
		}
		var running []open
		served, refused, most, cut := 0, 0, 0, 0
		for step := range 20_000 {
			if len(running) < 200 && step < 15_000 {
				call := b.to("gpt-5.5")
				call.Trace = &Trace{}
				call.Estimate = Estimate{Input: 1000, Output: stated, Text: true}
				res, err := b.pool.Send(context.Background(), call)
				if err == nil {
					o := open{res, call.Targets[0].OutputLimit}
					if o.limit == 0 {
						o.limit = 128_000
					} else if stated == 0 {
						cut++
					}
					running, served = append(running, o), served+1
					most = max(most, len(running))
				} else if _, code, _ := refusal(err); code == CodeBudgetExceeded {
					refused++
				} else {
					t.Fatal(err)
				}
			}
			if n := len(running); n > 0 && rnd.IntN(2) == 0 {
				i := rnd.IntN(n)
				o := running[i]
				running = append(running[:i], running[i+1:]...)
				o.res.Attempt.Used.Tokens = llm.Usage{Known: true, Input: 1000, Output: min(1+rnd.Int64N(128_000), o.limit)}
				o.res.Done(nil)
			}
			if step%50 == 0 {
				b.pool.Flush(context.Background(), b.machine)
				b.Clock.Add(time.Second)
			}
		}
		b.pool.Flush(context.Background(), b.machine)
		l := b.ledgers["b1"]
		t.Logf("limit %d: %d served, %d at once, %d with a lower limit, %d refused, $%.2f spent", stated, served, most, cut, refused, float64(l.Spent)/1e9)
		if l.Spent > limit {
			t.Errorf("limit %d: %d nano-dollars are spent of %d", stated, l.Spent, int64(limit))
		}
		if l.Spent < limit*9/10 || stated == 0 && (most < 15 || cut == 0) {
			t.Errorf("limit %d: %d nano-dollars are spent, %d calls at once, %d with a lower limit", stated, l.Spent, most, cut)
		}
	}
}

func TestEstimateOfMedia(t *testing.T) {
	for _, tt := range []struct {
		ordered usage.Media
		price   catalog.Price
		want    int64
	}{
		{usage.Media{Images: 2}, "image=0.04", 80_000_000},
		{usage.Media{Images: 2, Options: []string{"hd"}}, "image@hd=0.08 image=0.04", 160_000_000},
		{usage.Media{Images: 2}, "image@hd=0.08", 0},
		{usage.Media{Characters: 1000}, "character=15", 15_000_000},
		{usage.Media{Seconds: 8}, "second=0.1", 800_000_000},
		{usage.Media{Images: 1 << 62}, "image=0.04", 40_000_000_000},
		{usage.Media{Seconds: 1e300}, "second=0.001", 86_400_000_000},
	} {
		e := Estimate{Media: &tt.ordered}
		if _, got := e.of(tt.price, 0); max(got, 0) != tt.want {
			t.Errorf("%+v at %s: %d, want %d", tt.ordered, tt.price, got, tt.want)
		}
	}
}

func TestTrueUseReplacesTheEstimate(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Tokens, Limit: 10_000, Window: budget.Total})
	b.ask, b.used = Estimate{Input: 100, Output: 900, Text: true}, llm.Usage{Known: true, Input: 90, Output: 10}
	for i := range 90 {
		if err := b.call(); err != nil {
			t.Fatalf("call %d: %v", i+1, err)
		}
	}
	if err := b.call(); err != nil {
		t.Errorf("1,000 tokens are left, the call is refused: %v", err)
	}
	if _, code, _ := refusal(b.call()); code != "budget_exceeded" {
		t.Error("900 tokens are left, a call that may use 1,000 is served")
	}
	if l := b.ledgers["b1"]; l.Spent != 9100 {
		t.Errorf("spent is %d, want 9,100", l.Spent)
	}
}

// A call is refused if others take what was lent for it, each time that it asks.
func TestCallWhoseSliceIsTakenIsRefused(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Requests, Limit: 100, Window: budget.Total})
	b.object.Answer = func(string, []byte) (int, []byte, error) {
		b.takes++
		out, err := json.Marshal(rpc.Granted{Grants: []budget.Grant{{Budget: "b1", Seq: int64(b.takes), Unspent: 100, For: 50_000}}})
		return 200, out, err
	}
	status, code, e := refusal(b.call())
	if status != 429 || code != CodeBudgetExceeded || e.RetryAfter != time.Second || e.Err != errLent || b.takes != askTries {
		t.Errorf("got %d %s %+v after %d asks", status, code, e, b.takes)
	}
}

func TestSteadyCallsAskTheObjectForNothing(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.USD, Limit: 1000e9, Window: budget.Month})
	b.ask, b.used = Estimate{Input: 1000, Text: true}, llm.Usage{Known: true, Input: 1000, Output: 100}
	for range 100 {
		if err := b.call(); err != nil {
			t.Fatal(err)
		}
		b.Clock.Add(time.Second)
	}
	if b.takes != 1 {
		t.Errorf("100 calls asked %d times for a slice, want once", b.takes)
	}
	// gpt-4o: $2.50 and $10 per million.
	if got := b.ledgers["b1"].Spent; got != 100*3_500_000 {
		t.Errorf("spent is %d nano-dollars, want %d", got, 100*3_500_000)
	}
}

func TestFailedCallUsesNothing(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Requests, Limit: 1, Window: budget.Total})
	b.script["*"] = []fake.Answer{{Status: 400, Body: `{"error":{"message":"no"}}`}, {Status: 400, Body: `{"error":{"message":"no"}}`}, {Body: `{}`}}
	for range 2 {
		if status, _, _ := refusal(b.call()); status != 400 {
			t.Fatalf("got %d", status)
		}
	}
	if err := b.call(); err != nil {
		t.Errorf("failed calls have used the budget: %v", err)
	}
}

func TestUnknownUseCountsAsEstimated(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.USD, Limit: 100e9, Window: budget.Total})
	b.ask = Estimate{Input: 1_000_000, Output: 10_000, Text: true}
	if err := b.call(); err != nil {
		t.Fatal(err)
	}
	if got := b.ledgers["b1"].Spent; got != 2_600_000_000 {
		t.Errorf("spent is %d, want the estimate of $2.60", got)
	}
}

// The searches that a request allows are reserved at the vendor's rate where the model's
// price has none.
func TestSearchesAreReservedAtTheRateOfTheVendor(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.USD, Limit: 100e9, Window: budget.Total})
	b.ask = Estimate{Input: 1_000_000, Output: 10_000, Searches: 10, Text: true}
	call := b.to(b.model)
	call.Estimate = b.ask
	charges, _ := chargesOf(call, &call.Targets[0], func(*store.Budget) int64 { return 100e9 })
	if len(charges) != 1 || charges[0].Amount != 2_700_000_000 {
		t.Errorf("explained as %+v, want $2.70", charges)
	}
	if err := b.call(); err != nil {
		t.Fatal(err)
	}
	if got := b.ledgers["b1"].Spent; got != 2_700_000_000 {
		t.Errorf("spent is %d, want the estimate of $2.70", got)
	}
}

func TestModelsWithoutAPrice(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		b := newBudgeted(t, store.Budget{Name: "n", Unit: store.USD, Limit: 1, Window: budget.Day, RefuseUnpriced: refuse})
		b.model = "a-model-without-a-price"
		b.used = llm.Usage{Known: true, Input: 1000}
		status, code, _ := refusal(b.call())
		if refuse && (status != 403 || code != "model_not_priced") || !refuse && status != 0 {
			t.Errorf("refuse %v: got %d %s", refuse, status, code)
		}
		want := int64(1)
		if refuse {
			want = 0
		}
		if l := b.ledgers["b1"]; l.Unpriced != want || l.Spent != 0 {
			t.Errorf("refuse %v: counted %+v", refuse, l)
		}
	}
}

func TestBudgetOfAnotherKeyOrModelDoesNotCount(t *testing.T) {
	b := newBudgeted(t,
		store.Budget{KeyID: "k2", Unit: store.Requests, Limit: 1, Window: budget.Total},
		store.Budget{Models: []string{"openai/gpt-5*", "group"}, Unit: store.Requests, Limit: 1, Window: budget.Total},
		store.Budget{KeyID: "k1", Models: []string{"openai/gpt-4o"}, Unit: store.Requests, Limit: 5, Window: budget.Total})
	for range 5 {
		if err := b.call(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, e := refusal(b.call()); e == nil || b.ledgers["b3"].Spent != 5 || b.ledgers["b1"].Open || b.ledgers["b2"].Open {
		t.Errorf("got %v, %+v", e, b.ledgers)
	}
	b.trace.Asked = "group"
	b.model = "gpt-4o-mini"
	if err := b.call(); err != nil {
		t.Fatal(err)
	}
	if _, _, e := refusal(b.call()); e == nil {
		t.Error("the name that the client asked for does not count")
	}
	b.trace.Asked = "claude-weir/group" // the same name
	if _, _, e := refusal(b.call()); e == nil {
		t.Error("the prefix of names that Claude Code shows passes the budget")
	}
}

func TestAllBudgetsOfACallMustHaveIt(t *testing.T) {
	b := newBudgeted(t,
		store.Budget{Unit: store.Requests, Limit: 10, Window: budget.Total},
		store.Budget{Unit: store.Requests, Limit: 1, Window: budget.Total})
	b.call()
	for range 3 {
		if _, code, _ := refusal(b.call()); code != "budget_exceeded" {
			t.Fatal("the second budget does not hold")
		}
	}
	b.report()
	if l := b.ledgers["b1"]; l.Spent != 1 || l.Leases[0].Held != 0 {
		t.Errorf("refused calls count in the first: %+v", l)
	}
}

func TestComboSkipsAModelWithoutBudget(t *testing.T) {
	b := newBudgeted(t, store.Budget{Models: []string{"openai/gpt-4o"}, Unit: store.Requests, Limit: 1, Window: budget.Total})
	served := func() string {
		call := b.to("gpt-4o")
		second := b.to("gpt-4o-mini")
		call.Targets = append(call.Targets, second.Targets...)
		res, err := b.pool.Send(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		return res.Target.Model
	}
	if got := served() + " " + served(); got != "gpt-4o gpt-4o-mini" {
		t.Errorf("served by %s", got)
	}
}

func TestUnreachableObjectRefusesWithoutASlice(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Requests, Limit: 1000, Window: budget.Total})
	if err := b.call(); err != nil {
		t.Fatal(err)
	}
	b.object.Answer = nil
	if err := b.call(); err != nil {
		t.Errorf("a call with a slice is refused: %v", err)
	}
	b.Clock.Add(2 * time.Minute)
	if status, _, e := refusal(b.call()); status != 503 || e.RetryAfter == 0 {
		t.Errorf("got %d", status)
	}
}

func TestStreamIsSettledAtItsEnd(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Tokens, Limit: 1000, Window: budget.Total})
	call := b.to(b.model)
	call.Estimate = Estimate{Input: 100, Output: 500, Text: true}
	b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
	res, err := b.pool.Send(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	w := b.machine.Local.CurrentWallet()
	if _, ok := w.Reserve(&b.machine.Budgets[0], 401, b.Now().UnixMilli()); ok {
		t.Error("what a stream has reserved is free")
	}
	res.Attempt.Used.Tokens = llm.Usage{Known: true, Input: 100, Output: 30}
	res.Done(nil)
	b.pool.Flush(context.Background(), b.machine)
	if l := b.ledgers["b1"]; l.Spent != 130 {
		t.Errorf("spent is %d", l.Spent)
	}
}

// An upstream must not turn a budget off by what it states of an answer.
func TestHostileUsageLeavesTheBudgetInForce(t *testing.T) {
	const most = 1<<63 - 1
	for _, tt := range []struct {
		name, unit, model string
		used              llm.Usage
		media             *usage.Media
	}{
		{"a sum that overflows", store.Tokens, "gpt-4o", llm.Usage{Known: true, Input: most, Output: most}, nil},
		{"a negative sum", store.Tokens, "gpt-4o", llm.Usage{Known: true, Input: -most}, nil},
		{"a cost that overflows", store.USD, "gpt-4o", llm.Usage{Known: true, Input: most, Output: most}, nil},
		{"an endless speech", store.USD, "whisper-1", llm.Usage{}, &usage.Media{Seconds: 1e308}},
	} {
		b := newBudgeted(t, store.Budget{Unit: tt.unit, Limit: 100, Window: budget.Total})
		b.model, b.used = tt.model, tt.used
		call := b.to(tt.model)
		call.Read = func(a *Attempt, _ *upstream.Response) error {
			a.Used = Used{Tokens: tt.used, Media: tt.media}
			return nil
		}
		if _, err := b.pool.Send(context.Background(), call); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		b.pool.Flush(context.Background(), b.machine)
		if l := b.ledgers["b1"]; l.Spent < 0 {
			t.Errorf("%s: spent is %d", tt.name, l.Spent)
		}
		b.model, b.used, b.ask = "gpt-4o", llm.Usage{}, Estimate{Input: 1 << 30, Text: true}
		if _, code, _ := refusal(b.call()); code != "budget_exceeded" {
			t.Errorf("%s: a call beyond the limit is served: %+v", tt.name, b.ledgers["b1"])
		}
	}
}

func TestSocketWithoutAnswersUsesNothing(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Requests, Limit: 2, Window: budget.Total})
	for i := range 5 {
		call := b.to(b.model)
		b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
		res, err := b.pool.Send(context.Background(), call)
		if err != nil {
			t.Fatalf("socket %d: %v", i+1, err)
		}
		res.Closed()
	}
	if err := b.call(); err != nil {
		t.Errorf("sockets that were closed have used the budget: %v", err)
	}
}

// A regression: an open socket went on however much its answers used.
func TestSocketEndsWithItsBudget(t *testing.T) {
	b := newBudgeted(t, store.Budget{Unit: store.Requests, Limit: 2, Window: budget.Total})
	b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
	res, err := b.pool.Send(context.Background(), b.to(b.model))
	if err != nil {
		t.Fatal(err)
	}
	res.Use(Used{Tokens: llm.Usage{Known: true, Input: 5}})
	if e := res.Next(context.Background()); e != nil {
		t.Fatalf("after one of two answers: %v", e)
	}
	res.Use(Used{Tokens: llm.Usage{Known: true, Input: 5}})
	if e := res.Next(context.Background()); e == nil || e.Code != CodeBudgetExceeded {
		t.Errorf("after two of two answers: %v", e)
	}
	res.Closed()
	b.pool.Flush(context.Background(), b.machine)
	if l := b.ledgers["b1"]; l.Spent != 2 || l.Leases[0].Held != 0 {
		t.Errorf("%+v", l)
	}
}

// A regression: answers with audio, whose price is not known, neither used a budget in
// dollars nor counted as unpriced, because the model's text has a price.
func TestAnswersWithoutAKnownCostCountAsUnpriced(t *testing.T) {
	audio := Used{Tokens: llm.Usage{Known: true, Input: 50, AudioInput: 40}}
	b := newBudgeted(t, store.Budget{Unit: store.USD, Limit: 1e9, Window: budget.Total})
	open := func() *Result {
		b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
		res, err := b.pool.Send(context.Background(), b.to(b.model))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := open()
	for range 2 {
		res.Use(audio)
		if e := res.Next(context.Background()); e != nil {
			t.Fatal(e)
		}
	}
	b.machine.Settings.ModelPrices = map[string]string{"openai/gpt-4o": "4/16 audioInput=32"}
	res.Use(audio) // 10 · 4 + 40 · 32 for a million
	res.Closed()
	b.pool.Flush(context.Background(), b.machine)
	if l := b.ledgers["b1"]; l.Unpriced != 2 || l.Spent < 1_320_000 || l.Spent > 1_320_002 {
		t.Errorf("%+v, want two unpriced answers and $0.00132", l)
	}
	b.machine.Settings.ModelPrices = nil
	b.machine.Budgets[0].RefuseUnpriced = true
	res = open()
	res.Use(audio)
	if e := res.Next(context.Background()); e == nil || e.Code != CodeUnpriced {
		t.Errorf("a budget that refuses what is not priced: %v", e)
	}
}

// counted is an Estimator of a test.
type counted struct{ input, output int64 }

func (c counted) InputTokens() int64  { return c.input }
func (c counted) OutputTokens() int64 { return c.output }

// A budget counts the same as usage and the list of requests: what the answer states, or
// what is estimated of it.
func TestBudgetCountsWhatUsageCounts(t *testing.T) {
	for _, tt := range []struct {
		stated llm.Usage
		tokens int64
	}{
		{llm.Usage{Known: true, Input: 90, Output: 40}, 130},
		{llm.Usage{Known: true, Input: 90, Output: 1, Begun: true}, 97},
		{llm.Usage{Known: true}, 87},
		{llm.Usage{}, 87},
		{llm.Usage{Known: true, Input: 1 << 40, Output: 1 << 40}, 87},
	} {
		b := newBudgeted(t,
			store.Budget{Unit: store.Tokens, Limit: 100_000, Window: budget.Total},
			store.Budget{Unit: store.USD, Limit: 100e9, Window: budget.Total})
		call := b.to(b.model)
		call.Estimate = Estimate{Input: 80, Output: 500, Text: true}
		b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
		res, err := b.pool.Send(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		res.Attempt.Used.Tokens, res.Attempt.Estimator = tt.stated, counted{80, 7}
		res.Done(stream.ErrClient)
		used := b.trace.Used
		b.pool.Flush(context.Background(), b.machine)
		if got := b.ledgers["b1"].Spent; got != tt.tokens || used.Input+used.Output != got || used.Estimated != (tt.tokens != 130) {
			t.Errorf("%+v: the budget has spent %d, want %d; the request %+v", tt.stated, got, tt.tokens, used)
		}
		if got := b.ledgers["b2"].Spent; !used.Priced || float64(got)/1e9 != used.CostUSD {
			t.Errorf("%+v: the budget has spent %d nano-dollars, the request has %+v", tt.stated, got, used)
		}
	}
}

// A refusal states what is left and when to come again, and speaks of calls under way only
// while some are.
func TestRefusalStatesItsReason(t *testing.T) {
	const cent = store.NanoDollars / 100
	b := &store.Budget{Name: "b", Unit: store.USD, Limit: 200 * cent, Window: budget.Month}
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, tt := range []struct {
		grant  budget.Grant
		amount int64
		want   string
		wait   time.Duration
	}{
		{budget.Grant{Unspent: 40 * cent, End: end, Wait: 3_600_000}, 96 * cent, `The budget "b" of $2 per month has $0.40 left; this call could cost $0.96. Ask for fewer output tokens. Resets Dec 1, 00:00 UTC.`, time.Hour},
		{budget.Grant{End: end, Wait: 3_600_000}, 96 * cent, `The budget "b" of $2 per month is used up. Resets Dec 1, 00:00 UTC.`, time.Hour},
		{budget.Grant{Unspent: 150 * cent, Lent: true, Busy: true, Wait: 2000}, 96 * cent, `The budget "b" of $2 per month has $1.50 left, reserved by calls under way; this call could cost $0.96. Try again in 2 seconds.`, 2 * time.Second},
		{budget.Grant{Unspent: 100 * cent, Lent: true, Wait: 59_000}, 96 * cent, `The budget "b" of $2 per month has $1 left, lent to another instance of the gateway; this call could cost $0.96. Try again in 59 seconds.`, 59 * time.Second},
		{budget.Grant{Unspent: 150 * cent, Wait: 2000}, 201 * cent, `The budget "b" of $2 per month is too low: this call could cost $2.01. Ask for fewer output tokens or a higher limit.`, 0},
	} {
		e := exceeded(b, &tt.grant, tt.amount)
		if e.Message != tt.want || e.RetryAfter != tt.wait || !e.NoRetry || (e.Err == errLent) != tt.grant.Lent {
			t.Errorf("got %q, wait %v\nwant %q, wait %v", e.Message, e.RetryAfter, tt.want, tt.wait)
		}
	}
}

// A budget of a tag or a tool counts the calls that have it and no others, and an exhausted one
// refuses no others. The tags of a key count whatever its client sends.
func TestBudgetOfATagOrATool(t *testing.T) {
	b := newBudgeted(t,
		store.Budget{ID: "atlas", Tag: "project=atlas", Unit: store.Requests, Limit: 3, Window: budget.Day},
		store.Budget{ID: "codex", Tool: "codex", Unit: store.Requests, Limit: 4, Window: budget.Day},
		store.Budget{ID: "both", Tag: "project=atlas", Tool: "codex", KeyID: "k1", Unit: store.Requests, Limit: 9, Window: budget.Day},
		store.Budget{ID: "all", Unit: store.Requests, Limit: 100, Window: budget.Day})
	rec := *b.machine.Machine
	rec.Keys = []store.Key{{ID: "fixed", Tags: []string{"project=atlas"}}}
	b.use(&rec)
	call := func(key, tags, agent string) int {
		b.trace = Trace{KeyID: key}
		b.req.Header = httpmsg.Header{{Name: "x-weir-tags", Value: tags}, {Name: "user-agent", Value: agent}}
		status, _, _ := refusal(b.call())
		return status
	}
	for i, tt := range []struct {
		key, tags, agent string
		status           int
		counts           [4]int64 // of atlas, codex, both and all
	}{
		{"k1", "", "curl/8", 0, [4]int64{0, 0, 0, 1}},
		{"k1", "project=other,team=atlas", "curl/8", 0, [4]int64{0, 0, 0, 2}},
		{"k1", "nightly,project=atlas", "curl/8", 0, [4]int64{1, 0, 0, 3}},
		{"k1", "project=atlas", "codex_exec/1", 0, [4]int64{2, 1, 1, 4}},
		{"k2", "", "codex-tui/2", 0, [4]int64{2, 2, 1, 5}},
		{"fixed", "project=other", "curl/8", 0, [4]int64{3, 2, 1, 6}},
		{"k1", "project=atlas", "curl/8", 429, [4]int64{3, 2, 1, 6}},
		{"fixed", "", "curl/8", 429, [4]int64{3, 2, 1, 6}},
		{"k1", "project = atlas", "curl/8", 429, [4]int64{3, 2, 1, 6}},
		{"k1", "Project=atlas,project=Atlas,atlas", "curl/8", 0, [4]int64{3, 2, 1, 7}},
		{"k1", "1,2,3,4,5,6,7,8,project=atlas", "curl/8", 0, [4]int64{3, 2, 1, 8}},
		{"k1", "", "codex_cli_rs/1", 0, [4]int64{3, 3, 1, 9}},
		{"k1", "project=a", "codex_cli_rs/1", 0, [4]int64{3, 4, 1, 10}},
		{"k1", "project=a", "codex_cli_rs/1", 429, [4]int64{3, 4, 1, 10}},
		{"k1", "project=a", "", 0, [4]int64{3, 4, 1, 11}},
	} {
		status := call(tt.key, tt.tags, tt.agent)
		b.report()
		got := [4]int64{b.ledgers["atlas"].Spent, b.ledgers["codex"].Spent, b.ledgers["both"].Spent, b.ledgers["all"].Spent}
		if status != tt.status || got != tt.counts {
			t.Errorf("call %d: status %d, want %d; counted %v, want %v", i+1, status, tt.status, got, tt.counts)
		}
	}
}
