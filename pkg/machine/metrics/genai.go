package metrics

import (
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/telemetry"
	"weir/pkg/usage"
	"weir/pkg/wire/metrics"
)

// genAIBoth marks the metrics of both versions of the GenAI conventions.
const genAIBoth = "both"

// genAILabels returns the names of the labels that all metrics of the conventions have, and
// further ones.
func genAILabels(more ...string) []string {
	return append([]string{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}, more...)
}

func durationBounds() []float64 { return seconds(storage.DurationBounds[:]) }

// sizeBounds returns the ends of the buckets of tokens but the last: 1, 4, 16 and so on.
func sizeBounds() (ends []float64) {
	for i := range usage.SizeBuckets - 1 {
		ends = append(ends, float64(int64(1)<<(2*i)))
	}
	return ends
}

// A measure returns the histogram of a series with the values of its last labels. It has no
// buckets if nothing was observed.
type measure func(s *storage.TotalSeries) (h metrics.Series)

func latency(s *storage.TotalSeries) metrics.Series { return ofMs(s.Of.LatencyMs, s.Latency) }

func firstToken(s *storage.TotalSeries) metrics.Series { return ofMs(s.Of.FirstTokenMs, s.FirstToken) }

func ofMs(ms int64, counts []int64) (h metrics.Series) {
	if len(counts) > 0 {
		h = metrics.Series{Value: float64(ms) / 1000, Buckets: buckets(storage.DurationBounds[:], counts)}
	}
	return h
}

func sizes(s *storage.TotalSeries) metrics.Series {
	return metrics.Series{Values: []string{"input"}, Value: float64(s.Of.InputTokens), Buckets: usage.Sizes(s.Sizes, false)}
}

func outputSizes(s *storage.TotalSeries) metrics.Series {
	return metrics.Series{Values: []string{"output"}, Value: float64(s.Of.OutputTokens), Buckets: usage.Sizes(s.Sizes, true)}
}

// operations returns a fill with a histogram of each operation, provider and model. In the
// conventions 0.1.0 a metric is either that of inference or that of the other operations.
func operations(of measure) func(r *reading, f *metrics.Family) {
	return func(r *reading, f *metrics.Family) {
		r.eachOperation(f, func(s *storage.TotalSeries, labels []string) {
			h := of(s)
			if h.Values = append(labels, h.Values...)[:len(f.Labels)]; len(h.Buckets) > 0 {
				f.Series = append(f.Series, h)
			}
		})
	}
}

// eachOperation calls fill with the counts of each operation that belongs to a family, and the
// values of its first labels.
func (r *reading) eachOperation(f *metrics.Family, fill func(s *storage.TotalSeries, labels []string)) {
	inference := strings.HasPrefix(f.Name, "gen_ai.client.inference.")
	r.each(storage.ByOperation, func(s *storage.TotalSeries, label func(string) string) {
		operation := label(s.Of.Endpoint)
		if r.Conventions == rpc.GenAI && inference != usage.IsInference(operation) {
			return
		}
		fill(s, []string{operation, label(telemetry.ProviderName(s.Of.Provider)), label(strings.TrimPrefix(s.Of.Model, "/"))})
	})
}

// usageOf returns the counter of a kind of tokens. Their modality is not known.
func usageOf(tokens string, count func(u *usage.Row) int64) row {
	return row{
		Family: metrics.Family{Name: "gen_ai.client.inference.usage." + tokens, Type: metrics.Counter, Unit: "{token}",
			Help: "Tokens of answers.", Labels: genAILabels("gen_ai.token.modality")},
		genAI: rpc.GenAI,
		fill: func(r *reading, f *metrics.Family) {
			r.eachOperation(f, func(s *storage.TotalSeries, labels []string) {
				if n := count(&s.Of); n > 0 {
					f.Add(float64(n), append(labels, "unknown")...)
				}
			})
		},
	}
}
