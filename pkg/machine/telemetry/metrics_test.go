package telemetry

import (
	"fmt"
	"testing"

	"weir/pkg/wire/metrics"
	"weir/pkg/wire/otlp"
)

func families(requests, cost float64, buckets ...int64) []metrics.Family {
	of := func(name string, typ metrics.Type, unit string, bounds []float64, s ...metrics.Series) metrics.Family {
		return metrics.Family{Name: name, Type: typ, Unit: unit, Labels: []string{"provider", "reason"}, Bounds: bounds, Series: s}
	}
	series := func(v float64, b ...int64) metrics.Series {
		return metrics.Series{Values: []string{"openai", ""}, Value: v, Buckets: b}
	}
	return []metrics.Family{
		of("weir.requests", metrics.Counter, "{request}", nil, series(requests)),
		of("weir.cost", metrics.Counter, "USD", nil, series(cost)),
		of("weir.request", metrics.Histogram, "s", []float64{1}, series(requests/2, buckets...)),
		of("weir.state", metrics.Gauge, "", nil, series(1)),
		of("weir.empty", metrics.Gauge, "", nil),
	}
}

func shown(list []otlp.Metric) (lines []string) {
	for _, m := range list {
		for _, p := range m.Points {
			lines = append(lines, fmt.Sprintf("%s [%s] kind %d delta %v %d-%d: %v %v %s", m.Name, m.Unit, m.Kind, m.Delta, p.Start/1e6, p.At/1e6, p.Value, p.Buckets, text(p.Attrs)))
		}
	}
	return lines
}

func text(attrs []otlp.Attr) (s string) {
	for _, a := range attrs {
		s += a.Key + "=" + a.Str + ";"
	}
	return s
}

func compare(t *testing.T, what string, got []otlp.Metric, want ...string) {
	t.Helper()
	if lines := shown(got); fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("%s: got %q, want %q", what, lines, want)
	}
}

func TestFamiliesBecomeMetrics(t *testing.T) {
	compare(t, "cumulative", Metrics("m1", families(4, 0.5, 3, 1), 100, 200),
		"weir.requests [{request}] kind 1 delta false 100-200: 4 [] machine=m1;provider=openai;",
		"weir.cost.usd [{USD}] kind 1 delta false 100-200: 0.5 [] machine=m1;provider=openai;",
		"weir.request [s] kind 2 delta false 100-200: 2 [3 1] machine=m1;provider=openai;",
		"weir.state [] kind 0 delta false 100-200: 1 [] machine=m1;provider=openai;")
}

func TestDeltasAreWhatCameSince(t *testing.T) {
	all := Metrics("m1", families(4, 0.5, 3, 1), 100, 200)
	first, totals := (&Totals{}).Since(all, 200)
	compare(t, "the first export has gauges alone", first, "weir.state [] kind 0 delta false 100-200: 1 [] machine=m1;provider=openai;")
	all = Metrics("m1", families(6, 0.5, 3, 2), 100, 300)
	second, totals := totals.Since(all, 300)
	compare(t, "what was added", second,
		"weir.requests [{request}] kind 1 delta true 200-300: 2 [] machine=m1;provider=openai;",
		"weir.request [s] kind 2 delta true 200-300: 1 [0 1] machine=m1;provider=openai;",
		"weir.state [] kind 0 delta false 100-300: 1 [] machine=m1;provider=openai;")
	if all[2].Points[0].Buckets[1] != 2 {
		t.Error("the metrics of other collectors have changed")
	}
	if third, _ := totals.Since(all, 400); len(third) != 1 {
		t.Errorf("nothing was added, and %v is exported", third)
	}
}

func TestLongFamiliesAreDivided(t *testing.T) {
	f := families(1, 1, 1, 0)[:1]
	for i := range 450 {
		f[0].Series = append(f[0].Series, metrics.Series{Values: []string{fmt.Sprint(i), ""}})
	}
	list := Metrics("m1", f, 1, 2)
	if len(list) != 3 || Points(list) != 451 || list[2].Name != "weir.requests" {
		t.Errorf("%d metrics with %d points", len(list), Points(list))
	}
}
