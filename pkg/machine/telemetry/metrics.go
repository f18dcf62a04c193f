package telemetry

import (
	"slices"
	"strings"

	"weir/pkg/wire/metrics"
	"weir/pkg/wire/otlp"
)

// maxPoints is the number of points of one metric in an export. More are in further ones of
// the same name.
const maxPoints = 200

// Metrics returns the families of GET /metrics for a collector, whose Prometheus then has
// the same names and labels. Times are Unix milliseconds; from is that since which the
// counters count.
func Metrics(machineID string, list []metrics.Family, from, at int64) (out []otlp.Metric) {
	for i := range list {
		f := &list[i]
		m := otlp.Metric{Name: f.Name, Unit: f.Unit, Help: f.Help,
			Kind: [...]otlp.MetricKind{metrics.Gauge: otlp.Gauge, metrics.Counter: otlp.Counter,
				metrics.Histogram: otlp.Histogram}[f.Type]}
		if f.Unit == "USD" { // a unit in braces is not added to the name
			m.Name, m.Unit = f.Name+".usd", "{USD}"
		}
		for j := range f.Series {
			s := &f.Series[j]
			p := otlp.Point{Start: uint64(from) * 1e6, At: uint64(at) * 1e6, Value: s.Value, Bounds: f.Bounds,
				Attrs: []otlp.Attr{otlp.String("machine", machineID)}}
			for k, v := range s.Values {
				if v != "" {
					p.Attrs = append(p.Attrs, otlp.String(f.Labels[k], v))
				}
			}
			for _, n := range s.Buckets {
				p.Buckets = append(p.Buckets, uint64(n))
			}
			m.Points = append(m.Points, p)
			if len(m.Points) == maxPoints {
				out = append(out, m)
				m.Points = nil
			}
		}
		if len(m.Points) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// Points returns the number of points of metrics.
func Points(list []otlp.Metric) (n int64) {
	for i := range list {
		n += int64(len(list[i].Points))
	}
	return n
}

// Totals are the counters of the last export with delta temporality, by their series: the
// value, and the buckets of a histogram.
type Totals struct {
	At     int64                `json:"at"`
	Series map[string][]float64 `json:"series"`
}

// Since changes cumulative metrics to what was added since the last export, and returns the
// totals for the next one. Without a last one only the gauges are left.
func (last *Totals) Since(list []otlp.Metric, at int64) (deltas []otlp.Metric, next Totals) {
	next = Totals{At: at, Series: map[string][]float64{}}
	for _, m := range list {
		if m.Kind == otlp.Gauge {
			deltas = append(deltas, m)
			continue
		}
		points := m.Points
		m.Delta, m.Points = true, nil
		for _, p := range points {
			key := seriesKey(m.Name, p.Attrs)
			total := append(make([]float64, 0, 1+len(p.Buckets)), p.Value)
			for _, n := range p.Buckets {
				total = append(total, float64(n))
			}
			next.Series[key] = total
			if last.At == 0 || !subtract(&p, last.Series[key]) {
				continue
			}
			p.Start = uint64(min(last.At, at)) * 1e6
			m.Points = append(m.Points, p)
		}
		if len(m.Points) > 0 {
			deltas = append(deltas, m)
		}
	}
	return deltas, next
}

// subtract takes earlier totals off a point. It reports whether anything was added since.
func subtract(p *otlp.Point, earlier []float64) (added bool) {
	if len(earlier) == 1+len(p.Buckets) {
		p.Value -= earlier[0]
		p.Buckets = slices.Clone(p.Buckets) // another collector gets the totals
		for i := range p.Buckets {
			p.Buckets[i] -= min(uint64(earlier[i+1]), p.Buckets[i])
		}
	}
	p.Value = max(p.Value, 0)
	count := uint64(0)
	for _, n := range p.Buckets {
		count += n
	}
	return p.Value > 0 || count > 0
}

// seriesKey returns a name for a series.
func seriesKey(name string, attrs []otlp.Attr) string {
	var b strings.Builder
	b.WriteString(name)
	for i := range attrs {
		b.WriteString("\x00" + attrs[i].Key + "\x00" + attrs[i].Str)
	}
	return b.String()
}
