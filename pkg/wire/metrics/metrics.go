// Package metrics has families of metrics, and writes them in the formats that Prometheus
// reads: the text format 0.0.4 and OpenMetrics 1.0.0.
//
// See https://prometheus.io/docs/instrumenting/exposition_formats/ and
// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md.
package metrics

import "strings"

// Type is the type of a family.
type Type uint8

// The types.
const (
	Gauge Type = iota
	Counter
	Histogram
)

var typeNames = [...]string{Gauge: "gauge", Counter: "counter", Histogram: "histogram"}

// Family is a metric with its series.
type Family struct {
	Name   string    `json:"name"` // as OpenTelemetry has it: "weir.first_token"
	Type   Type      `json:"type"`
	Unit   string    `json:"unit"` // in UCUM: "s", "By", "1" for a ratio, "{request}", or "USD"
	Help   string    `json:"help"`
	Labels []string  `json:"labels,omitempty"` // the names of the values of each series
	Bounds []float64 `json:"bounds,omitempty"` // the ends of the buckets of a histogram
	Series []Series  `json:"series"`
}

// Series is a series of a family.
type Series struct {
	Values []string `json:"values,omitempty"`
	Value  float64  `json:"value"` // of a histogram the sum
	// Buckets has the number of observations in each bucket, one more than Bounds: the last is
	// of those over every bound.
	Buckets []int64 `json:"buckets,omitempty"`
}

// Add adds a series with a value, and the values of the labels.
func (f *Family) Add(value float64, labels ...string) {
	f.Series = append(f.Series, Series{Values: labels, Value: value})
}

// units are the endings of names by their unit.
var units = map[string]string{"s": "_seconds", "By": "_bytes", "1": "_ratio", "USD": "_usd"}

// prometheusName returns the name of a family without the ending of counters:
// "weir_first_token_seconds".
func (f *Family) prometheusName() string {
	return underscored(f.Name) + units[f.Unit]
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }
