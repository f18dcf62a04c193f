// Package metrics has the table of a machine's metrics: GET /metrics and the export by OTLP
// show the same.
//
// To add a metric: add a row to table, whose function reads it, and its line to
// docs/guides/observability.md.
package metrics

import (
	"weir/pkg/budget"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/metrics"
)

// Options are what a reading depends on besides the machine.
type Options struct {
	Keys bool // with the series of each key
	// Conventions adds the metrics of the GenAI conventions of a version, if it is not
	// "".
	Conventions string
	Zone        budget.Zone // of the machine, for the windows of its budgets
}

// reading is what the functions of the table read.
type reading struct {
	*storage.Tx
	Options
	used *storage.Lifetime
}

// row is a metric: its family, and what adds its series. keys marks one of each key, genAI one
// of the GenAI conventions of a version, and of both if it is genAIBoth.
type row struct {
	metrics.Family
	fill  func(r *reading, f *metrics.Family)
	keys  bool
	genAI string
}

// wanted reports whether a reading has the metric.
func (w *row) wanted(o *Options) bool {
	if w.genAI != "" {
		return w.genAI == o.Conventions || w.genAI == genAIBoth && o.Conventions != ""
	}
	return o.Keys || !w.keys
}

// other is the value of the labels of what has no series of its own.
const other = "other"

// Bounds of the series of connections, budgets and destinations.
const (
	maxConnections  = 200
	maxBudgets      = 100
	maxDestinations = 20
)

var table = [...]row{
	{
		Family: metrics.Family{Name: "weir.requests", Type: metrics.Counter, Unit: "{request}",
			Help:   "Requests of clients by outcome: succeeded, provider_failed, no_account, refused (by weir, with the reason), left.",
			Labels: []string{"endpoint", "outcome", "reason"}},
		fill: requests,
	},
	{
		Family: metrics.Family{Name: "weir.attempts", Type: metrics.Counter, Unit: "{attempt}",
			Help:   "Calls of providers by result: ok, or the cause of the failure.",
			Labels: []string{"provider", "connection", "result"}},
		fill: attempts,
	},
	{
		Family: metrics.Family{Name: "weir.tokens", Type: metrics.Counter, Unit: "{token}",
			Help:   "Tokens. input includes cache_read and cache_write, output includes reasoning.",
			Labels: []string{"provider", "model", "direction"}},
		fill: tokens,
	},
	{
		Family: metrics.Family{Name: "weir.cost", Type: metrics.Counter, Unit: "USD",
			Help:   "Cost of the calls of providers in US dollars, without those of weir_unpriced_attempts_total.",
			Labels: []string{"provider", "model"}},
		fill: ofModels(func(s *storage.TotalSeries) float64 { return float64(s.NanoUSD) / store.NanoDollars }),
	},
	{
		Family: metrics.Family{Name: "weir.unpriced_attempts", Type: metrics.Counter, Unit: "{attempt}",
			Help:   "Calls of providers whose cost is not known.",
			Labels: []string{"provider", "model"}},
		fill: ofModels(func(s *storage.TotalSeries) float64 { return float64(s.Of.Unpriced) }),
	},
	{
		Family: metrics.Family{Name: "weir.request", Type: metrics.Histogram, Unit: "s",
			Help:   "Time from the arrival of a request to the end of its answer, without refused requests and those without an account.",
			Labels: []string{"provider"}, Bounds: bounds()},
		fill: durations(func(s *storage.TotalSeries) (int64, []int64) { return s.Of.LatencyMs, s.Latency }),
	},
	{
		Family: metrics.Family{Name: "weir.first_token", Type: metrics.Histogram, Unit: "s",
			Help:   "Time from the arrival of a request to the first event of its stream.",
			Labels: []string{"provider"}, Bounds: bounds()},
		fill: durations(func(s *storage.TotalSeries) (int64, []int64) { return s.Of.FirstTokenMs, s.FirstToken }),
	},
	{
		Family: metrics.Family{Name: "weir.key.requests", Type: metrics.Counter, Unit: "{request}",
			Help: "Requests of clients by the id of their key.", Labels: []string{"key"}},
		keys: true,
		fill: ofKeys(func(s *storage.TotalSeries) float64 { return float64(s.Of.Calls) }),
	},
	{
		Family: metrics.Family{Name: "weir.key.tokens", Type: metrics.Counter, Unit: "{token}",
			Help: "Input and output tokens by the id of the key.", Labels: []string{"key"}},
		keys: true,
		fill: ofKeys(func(s *storage.TotalSeries) float64 { return float64(s.Of.InputTokens + s.Of.OutputTokens) }),
	},
	{
		Family: metrics.Family{Name: "weir.key.cost", Type: metrics.Counter, Unit: "USD",
			Help: "Cost in US dollars by the id of the key.", Labels: []string{"key"}},
		keys: true,
		fill: ofKeys(func(s *storage.TotalSeries) float64 { return float64(s.NanoUSD) / store.NanoDollars }),
	},
	{
		Family: metrics.Family{Name: "weir.connection.state", Type: metrics.Gauge,
			Help:   "The state of each account, with the value 1; over 200 their number by state.",
			Labels: []string{"connection", "name", "provider", "state"}},
		fill: connections,
	},
	{
		Family: metrics.Family{Name: "weir.budget.limit", Type: metrics.Gauge,
			Help:   "The limit of each budget in its unit: usd, tokens or requests.",
			Labels: []string{"budget", "name", "unit", "window"}},
		fill: budgets(func(b *storage.Budget, _ *budget.Ledger) float64 { return store.ShownAmount(b.Unit, b.Limit) }),
	},
	{
		Family: metrics.Family{Name: "weir.budget.used", Type: metrics.Gauge, Unit: "1",
			Help:   "The used share of the limit of each budget in its present window.",
			Labels: []string{"budget", "name", "unit", "window"}},
		fill: budgets(func(b *storage.Budget, l *budget.Ledger) float64 {
			if !l.Open || b.Limit <= 0 {
				return 0
			}
			return float64(l.Spent) / float64(b.Limit)
		}),
	},
	{
		Family: metrics.Family{Name: "weir.export.dropped", Type: metrics.Counter, Unit: "{entry}",
			Help:   "Notifications, spans, lines and other entries that a destination did not get.",
			Labels: []string{"destination", "name", "kind"}},
		fill: destinations(func(o *storage.Outbox) float64 { return float64(o.Dropped) }),
	},
	{
		Family: metrics.Family{Name: "weir.export.queued", Type: metrics.Gauge,
			Help: "Deliveries that wait for a destination.", Labels: []string{"destination", "name", "kind"}},
		fill: destinations(func(o *storage.Outbox) float64 { return float64(len(o.Items)) }),
	},
	{
		Family: metrics.Family{Name: "weir.export.failures", Type: metrics.Gauge,
			Help:   "Deliveries in a row that a destination did not take. One that is disabled has at least 1.",
			Labels: []string{"destination", "name", "kind"}},
		fill: destinations(func(o *storage.Outbox) float64 {
			if o.Disabled != "" {
				return float64(max(o.Fails, o.Refused, 1))
			}
			return float64(max(o.Fails, o.Refused))
		}),
	},
	{
		Family: metrics.Family{Name: "weir.machine.info", Type: metrics.Gauge,
			Help: "The name of the machine.", Labels: []string{"name"}},
		fill: func(r *reading, f *metrics.Family) { f.Add(1, r.Meta.Name) },
	},
	{
		Family: metrics.Family{Name: "gen_ai.client.inference.duration", Type: metrics.Histogram, Unit: "s",
			Help: "Time from the arrival of a request to the end of its answer.", Labels: genAILabels(), Bounds: durationBounds()},
		genAI: rpc.GenAI, fill: operations(latency),
	},
	{
		Family: metrics.Family{Name: "gen_ai.client.inference.time_to_first_chunk", Type: metrics.Histogram, Unit: "s",
			Help:   "Time from the arrival of a request to the first event of its stream.",
			Labels: genAILabels(), Bounds: durationBounds()},
		genAI: rpc.GenAI, fill: operations(firstToken),
	},
	{
		Family: metrics.Family{Name: "gen_ai.client.inference.operation.input_tokens", Type: metrics.Histogram,
			Unit: "{token}", Help: "Input tokens of an answer.", Labels: genAILabels(), Bounds: sizeBounds()},
		genAI: rpc.GenAI, fill: operations(sizes),
	},
	{
		Family: metrics.Family{Name: "gen_ai.client.inference.operation.output_tokens", Type: metrics.Histogram,
			Unit: "{token}", Help: "Output tokens of an answer.", Labels: genAILabels(), Bounds: sizeBounds()},
		genAI: rpc.GenAI, fill: operations(outputSizes),
	},
	usageOf("input_tokens", func(u *usage.Row) int64 { return u.InputTokens }),
	usageOf("output_tokens", func(u *usage.Row) int64 { return u.OutputTokens }),
	usageOf("cache_read.input_tokens", func(u *usage.Row) int64 { return u.CacheReadTokens }),
	usageOf("cache_write.input_tokens", func(u *usage.Row) int64 { return u.CacheWriteTokens }),
	usageOf("reasoning.output_tokens", func(u *usage.Row) int64 { return u.ReasoningTokens }),
	{
		Family: metrics.Family{Name: "gen_ai.client.operation.duration", Type: metrics.Histogram, Unit: "s",
			Help: "Time from the arrival of a request to the end of its answer.", Labels: genAILabels(), Bounds: durationBounds()},
		genAI: genAIBoth, fill: operations(latency),
	},
	{
		Family: metrics.Family{Name: "gen_ai.client.operation.time_to_first_chunk", Type: metrics.Histogram, Unit: "s",
			Help:   "Time from the arrival of a request to the first event of its stream.",
			Labels: genAILabels(), Bounds: durationBounds()},
		genAI: rpc.GenAI141, fill: operations(firstToken),
	},
	{
		Family: metrics.Family{Name: "gen_ai.client.token.usage", Type: metrics.Histogram, Unit: "{token}",
			Help: "Tokens of an answer.", Labels: genAILabels("gen_ai.token.type"), Bounds: sizeBounds()},
		genAI: rpc.GenAI141,
		fill:  func(r *reading, f *metrics.Family) { operations(sizes)(r, f); operations(outputSizes)(r, f) },
	},
}

// Families returns the metrics of a machine. The caller commits the turn. Values of counters
// never fall from one reading to the next.
func Families(t *storage.Tx, o Options) []metrics.Family {
	r := &reading{t, o, t.Lifetime()}
	out := make([]metrics.Family, 0, len(table))
	for i := range table {
		if !table[i].wanted(&o) {
			continue
		}
		f := table[i].Family
		table[i].fill(r, &f)
		out = append(out, f)
	}
	return out
}

// bounds returns the ends of the buckets of a histogram, in seconds.
func bounds() []float64 { return seconds(storage.LifetimeBounds[:]) }

func seconds(buckets []int) (ends []float64) {
	for _, i := range buckets {
		ends = append(ends, float64(usage.BucketEnd(i))/1000)
	}
	return ends
}

// each calls fill with the counts of a group, and with label, which returns the name of a
// label's value.
func (r *reading) each(group int, fill func(s *storage.TotalSeries, label func(string) string)) {
	for i := range r.used.Groups[group] {
		s := r.used.Groups[group][i].Total()
		unnamed := i == 0
		fill(&s, func(name string) string {
			if unnamed {
				return other
			}
			return name
		})
	}
}

// addCounts adds the series of counts that are not 0, with a last label.
func addCounts(f *metrics.Family, labels []string, counts ...count) {
	for _, c := range counts {
		if c.n > 0 {
			f.Add(float64(c.n), append(labels[:len(labels):len(labels)], c.labels...)...)
		}
	}
}

// count is a number with the values of its last labels.
type count struct {
	n      int64
	labels []string
}

func of(n int64, labels ...string) count { return count{n, labels} }

func requests(r *reading, f *metrics.Family) {
	r.each(storage.ByEndpoint, func(s *storage.TotalSeries, label func(string) string) {
		u, v := &s.Of, s.Of.View()
		addCounts(f, []string{label(u.Endpoint)},
			of(v.Succeeded, store.Succeeded, ""), of(v.ProviderFailed, store.ProviderFailed, ""),
			of(v.NoAccount, store.NoAccount, ""), of(v.Left, store.Left, ""),
			of(u.RefusedKeyLimit, store.Refused, store.RefusedByKeyLimit),
			of(u.RefusedBudget, store.Refused, store.RefusedByBudget),
			of(u.RefusedConcurrency, store.Refused, store.RefusedByConcurrency),
			of(u.RefusedKey, store.Refused, store.RefusedByKey), of(u.RefusedModel, store.Refused, store.RefusedByModel),
			of(u.RefusedRequest, store.Refused, store.RefusedByRequest))
	})
}

func attempts(r *reading, f *metrics.Family) {
	r.each(storage.ByAccount, func(s *storage.TotalSeries, label func(string) string) {
		u := &s.Of
		ok, counts := u.Requests, []count{} // Errors may come before their Requests
		for i, n := range u.Causes {
			counts = append(counts, of(n, usage.CauseNames[i]))
			ok -= n
		}
		addCounts(f, []string{label(u.Provider), label(u.ConnectionID)}, append(counts, of(ok, "ok"))...)
	})
}

func tokens(r *reading, f *metrics.Family) {
	r.each(storage.ByModel, func(s *storage.TotalSeries, label func(string) string) {
		u := &s.Of
		addCounts(f, []string{label(u.Provider), label(u.Model)},
			of(u.InputTokens, "input"), of(u.OutputTokens, "output"), of(u.CacheReadTokens, "cache_read"),
			of(u.CacheWriteTokens, "cache_write"), of(u.ReasoningTokens, "reasoning"))
	})
}

// ofModels returns a fill with one value of each model, if it is not 0.
func ofModels(value func(s *storage.TotalSeries) float64) func(r *reading, f *metrics.Family) {
	return func(r *reading, f *metrics.Family) {
		r.each(storage.ByModel, func(s *storage.TotalSeries, label func(string) string) {
			if v := value(s); v > 0 {
				f.Add(v, label(s.Of.Provider), label(s.Of.Model))
			}
		})
	}
}

// ofKeys returns a fill with one value of each key. The name of the last is "" if calls need
// no key.
func ofKeys(value func(s *storage.TotalSeries) float64) func(r *reading, f *metrics.Family) {
	return func(r *reading, f *metrics.Family) {
		r.each(storage.ByKey, func(s *storage.TotalSeries, label func(string) string) {
			if v := value(s); v > 0 {
				f.Add(v, label(s.Of.KeyID))
			}
		})
	}
}

// durations returns a fill with the histogram of each provider.
func durations(of func(s *storage.TotalSeries) (ms int64, counts []int64)) func(r *reading, f *metrics.Family) {
	return func(r *reading, f *metrics.Family) {
		r.each(storage.ByProvider, func(s *storage.TotalSeries, label func(string) string) {
			ms, counts := of(s)
			if len(counts) == 0 {
				return
			}
			f.Series = append(f.Series, metrics.Series{Values: []string{label(s.Of.Provider)}, Value: float64(ms) / 1000,
				Buckets: buckets(storage.LifetimeBounds[:], counts)})
		})
	}
}

// buckets adds up the counts of a usage.Histogram to buckets that end with those at ends.
func buckets(ends []int, counts []int64) (sums []int64) {
	from := 0
	for _, end := range append(ends[:len(ends):len(ends)], len(counts)-1) {
		var n int64
		for ; from <= end; from++ {
			n += counts[from]
		}
		sums = append(sums, n)
	}
	return sums
}

func connections(r *reading, f *metrics.Family) {
	rows, cools := r.Connections(), r.Cooldowns()
	more, states := map[string]int{}, []string{}
	for i := range rows {
		c := &rows[i]
		state, _ := r.Health(c, cools)
		switch {
		case c.Status != "":
			state = c.Status
		case c.Inactive:
			state = "inactive"
		}
		if i < maxConnections {
			f.Add(1, c.ID, c.Name, c.Provider, state)
			continue
		}
		if more[state] == 0 {
			states = append(states, state)
		}
		more[state]++
	}
	for _, state := range states {
		f.Add(float64(more[state]), other, "", "", state)
	}
}

// destinations returns a fill with one value of each destination, and of the operator's if
// that has an outbox.
func destinations(value func(o *storage.Outbox) float64) func(r *reading, f *metrics.Family) {
	return func(r *reading, f *metrics.Family) {
		rows := r.Destinations()
		for i := range rows[:min(len(rows), maxDestinations)] {
			d := &rows[i]
			o := r.Outbox(d.ID)
			f.Add(value(&o), d.ID, d.Name, d.Kind)
		}
		if _, ok := r.Get(storage.OutboxPrefix + storage.OfEnvironment); ok {
			o := r.Outbox(storage.OfEnvironment)
			f.Add(value(&o), storage.OfEnvironment, "", "otlp")
		}
	}
}

// budgets returns a fill with one value of each budget.
func budgets(value func(b *storage.Budget, l *budget.Ledger) float64) func(r *reading, f *metrics.Family) {
	return func(r *reading, f *metrics.Family) {
		rows := r.Budgets()
		for i := range rows[:min(len(rows), maxBudgets)] {
			b := &rows[i]
			l := r.Ledger(&b.Budget, r.Zone)
			f.Add(value(b, &l), b.ID, b.Name, b.Unit, b.Window)
		}
	}
}
