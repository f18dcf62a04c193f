package metrics

import "testing"

func TestTextOfFamilies(t *testing.T) {
	gauge := Family{Name: "weir.up", Help: "Up.", Labels: []string{"name"}}
	gauge.Add(1, "a\"\\\n\x01")
	counter := Family{Name: "weir.cost", Type: Counter, Unit: "USD", Help: "A \"cost\"."}
	counter.Add(0.25)
	histogram := Family{Name: "weir.request", Type: Histogram, Unit: "s", Help: "Time.", Bounds: []float64{0.5},
		Series: []Series{{Value: 3, Buckets: []int64{2, 1}}}}
	parts := []Part{{Machine: "m", Families: []Family{gauge, counter}}, {Families: []Family{counter, histogram}}}
	for f, want := range map[Format]string{
		{}: `# HELP weir_up Up.
# TYPE weir_up gauge
weir_up{machine="m",name="a\"\\\n` + "\ufffd" + `"} 1
# HELP weir_cost_usd_total A "cost".
# TYPE weir_cost_usd_total counter
weir_cost_usd_total{machine="m"} 0.25
weir_cost_usd_total 0.25
# HELP weir_request_seconds Time.
# TYPE weir_request_seconds histogram
weir_request_seconds_bucket{le="0.5"} 2
weir_request_seconds_bucket{le="+Inf"} 3
weir_request_seconds_sum 3
weir_request_seconds_count 3
`,
		{OpenMetrics: true}: `# HELP weir_up Up.
# TYPE weir_up gauge
weir_up{machine="m",name="a\"\\\n` + "\ufffd" + `"} 1
# HELP weir_cost_usd A \"cost\".
# TYPE weir_cost_usd counter
# UNIT weir_cost_usd usd
weir_cost_usd_total{machine="m"} 0.25
weir_cost_usd_total 0.25
# HELP weir_request_seconds Time.
# TYPE weir_request_seconds histogram
# UNIT weir_request_seconds seconds
weir_request_seconds_bucket{le="0.5"} 2
weir_request_seconds_bucket{le="+Inf"} 3
weir_request_seconds_sum 3
weir_request_seconds_count 3
# EOF
`,
	} {
		if got := string(Text(parts, f)); got != want {
			t.Errorf("%+v: got\n%s\nwant\n%s", f, got, want)
		}
	}
}

func TestFormatIsThatOfAccept(t *testing.T) {
	for accept, want := range map[string]Format{
		"":                             {},
		"*/*":                          {},
		"text/html,*/*;q=0.1":          {},
		"application/openmetrics-text": {OpenMetrics: true},
		"application/openmetrics-text; version=1.0.0; charset=utf-8":                          {OpenMetrics: true},
		"application/openmetrics-text;version=0.0.1":                                          {},
		"application/openmetrics-text;version=1.0.0;q=0":                                      {},
		"application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.3":     {},
		"application/openmetrics-text;version=\"1.0.0\";q=0.5,text/plain;version=0.0.4;q=0.3": {OpenMetrics: true},
		"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3":  {Escaping: true},
		"application/openmetrics-text;version=1.0.0;escaping=dots;q=0.6,*/*;q=0.2":            {OpenMetrics: true, Escaping: true},
		"application/openmetrics-text;q=9,;;=,\"":                                             {OpenMetrics: true},
	} {
		if got := Accepted(accept); got != want {
			t.Errorf("%q: got %+v, want %+v", accept, got, want)
		}
	}
}
