package machine

import (
	"cmp"
	"slices"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/metrics"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/telemetry"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/otlp"
)

// Bounds of an item for a collector.
const (
	maxEntries   = 512 // spans, or lines of a log
	maxEntryBody = 256 << 10
	// telemetryFor is how long an item is tried.
	telemetryFor = storage.Hour
	// metricsEvery is how often the metrics of a machine that is in use are exported.
	metricsEvery = storage.Minute
)

// collectors returns the destinations of telemetry: those of a machine, and the operator's.
func (o *Object) collectors(t *storage.Tx) []storage.Destination {
	list := deliver.Targets(t, storage.Telemetry)
	if o.Collector != nil {
		list = append(list, o.Collector.Destination)
	}
	return list
}

// export stores the spans and the logs of requests for the collectors of a machine. lost is
// the number of requests that the gateway could not report one by one.
func (o *Object) export(t *storage.Tx, list []store.Request, lost int64) {
	collectors := o.collectors(t)
	t.Meta.Traced = false
	for i := range collectors {
		d := &collectors[i]
		if deliver.TakesSignal(d.Options, deliver.Metrics) && t.Meta.MetricsAt == 0 {
			t.Meta.MetricsAt = max(t.Now, min(t.Meta.MetricsSent, t.Now)+metricsEvery)
		}
		traces, logs := deliver.TakesSignal(d.Options, deliver.Traces), deliver.TakesSignal(d.Options, deliver.Logs)
		if traces || logs {
			t.Meta.Traced = true
			exportRequests(t, d, traces, logs, list, lost)
		}
	}
}

// exportRequests stores the spans and the logs of requests for a collector, of as many
// requests at a time as an item usually has.
func exportRequests(t *storage.Tx, d *storage.Destination, traces, logs bool, list []store.Request, lost int64) {
	if lost > 0 {
		t.Lose(d.ID, lost)
	}
	f := telemetry.Fold{Sample: deliver.SampleOf(d.Options), BaseURL: baseURLs(t)}
	var spans []otlp.Span
	var lines []otlp.Log
	var memory []byte
	for part := range slices.Chunk(list, maxEntries/2) {
		f.Reset()
		spans, lines = spans[:0], lines[:0]
		for i := range part {
			if traces {
				spans = f.Spans(spans, &part[i])
			}
			if logs {
				lines = f.Log(lines, &part[i])
			}
		}
		memory = enqueue(t, d, deliver.Traces, spans, memory)
		memory = enqueue(t, d, deliver.Logs, lines, memory)
	}
}

// resourceOf returns the attributes of the resource, with the machine.
func resourceOf(t *storage.Tx, d *storage.Destination) []otlp.Attr {
	return append(deliver.ResourceOf(d.Options), otlp.String("weir.machine", t.ID))
}

// exportMetrics stores the metrics of a machine for its collectors, once after calls.
func (o *Object) exportMetrics(t *storage.Tx) {
	late := t.Meta.MetricsAt <= t.Now || t.Meta.MetricsAt > t.Now+2*metricsEvery // the clock went back
	if t.Meta.MetricsAt == 0 || !late || !t.Exists() {
		return
	}
	t.Meta.MetricsAt, t.Meta.MetricsSent = 0, t.Now
	sets := map[string][]otlp.Metric{}
	for _, d := range o.collectors(t) {
		if !deliver.TakesSignal(d.Options, deliver.Metrics) {
			continue
		}
		set := cmp.Or(d.Options[deliver.Conventions], rpc.GenAI)
		if sets[set] == nil {
			list := metrics.Families(t, metrics.Options{Zone: o.Zone(t), Conventions: set})
			sets[set] = telemetry.Metrics(t.ID, list, t.Meta.CreatedAt, t.Now)
		}
		out := sets[set]
		if d.Options[deliver.Temporality] == "delta" {
			var last, next telemetry.Totals
			t.Load(storage.TotalsPrefix+d.ID, &last)
			out, next = last.Since(out, t.Now)
			t.Put(storage.TotalsPrefix+d.ID, next)
		}
		enqueue(t, &d, deliver.Metrics, out, nil)
	}
}

// enqueue stores entries in as many items as the bounds require. A single entry that is too
// large is dropped and counted by the outbox. It uses memory, which may be nil, and returns it
// for the next entries.
func enqueue[E otlp.Entry](t *storage.Tx, d *storage.Destination, signal string, entries []E, memory []byte) []byte {
	if len(entries) == 0 {
		return memory
	}
	format, resource, gzip := deliver.OTLPFormat(d.Options), resourceOf(t, d), deliver.StoresGzip(d.Options)
	for len(entries) > 0 {
		body, n := otlp.Body(memory, format, resource, entries[:min(len(entries), maxEntries)], maxEntryBody)
		count := int64(n)
		if list, ok := any(entries[:n]).([]otlp.Metric); ok {
			count = telemetry.Points(list)
		}
		if gzip {
			memory, body = body, contentcoding.Gzip(body)
		}
		t.Enqueue(storage.Delivery{DestinationID: d.ID, Type: storage.Telemetry, Title: signal, Body: body,
			Entries: count, Until: t.Now + telemetryFor})
		entries = entries[n:]
	}
	return memory
}

// baseURLs returns a function that finds where the calls of an account go. It reads each
// account once.
func baseURLs(t *storage.Tx) func(connection, providerID string) string {
	known := map[string]string{}
	return func(connection, providerID string) string {
		url, ok := known[connection]
		if !ok {
			var c store.Connection
			if rpc.IsRowID(connection) {
				t.Load(storage.ConnectionPrefix+connection, &c)
			}
			url = c.Data.BaseURL
			if d := provider.Lookup(providerID); url == "" && d != nil {
				url = d.BaseURL
			}
			known[connection] = url
		}
		return url
	}
}

// collector returns the operator's collector, opened for a machine, or nil.
func (o *Object) collector(machineID string) *deliver.Opened {
	if o.Collector == nil {
		return nil
	}
	d := *o.Collector
	d.MachineID, d.Now, d.Policy = machineID, o.Now(), o.Policy()
	return &d
}
