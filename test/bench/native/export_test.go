//go:build unix

package native_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"weir/pkg/gateway"
	"weir/pkg/machine/deliver"
)

// BenchmarkExport measures the CPU of a call with all that follows it, and the time that 99
// of 100 calls take, without a collector, with one and with one that does not answer:
//
//	go test -run - -bench Export -benchtime 60000x ./test/bench/native
func BenchmarkExport(b *testing.B) {
	for _, c := range []struct{ name, endpoint, protocol string }{
		{"off", "", ""}, {"protobuf", "http://127.0.0.1:9", "http/protobuf"}, {"json", "http://127.0.0.1:9", "http/json"},
		{"stalled", "http://127.0.0.1:9/stalled", "http/protobuf"},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, func(g *gateway.Config) {
				for i, name := range deliver.EnvironmentVariables() {
					g.OTel[i] = map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": c.protocol}[name]
				}
			})
			chat := calls[1]
			took := make([]time.Duration, 0, 1<<17)
			from := cpu(b)
			for b.Loop() {
				began := time.Now()
				w.call(chat.path, chat.body, chat.length)
				took = append(took, time.Since(began))
			}
			b.ReportMetric(float64((cpu(b)-from).Nanoseconds())/float64(b.N), "cpu-ns/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// cpu returns the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
