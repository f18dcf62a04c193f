package telemetry

import (
	"fmt"
	"testing"

	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/otlp"
)

// BenchmarkExport measures what the export of one request costs, with compression.
func BenchmarkExport(b *testing.B) {
	r := requests()["success"]
	f := fold(100)
	for _, format := range []otlp.Format{otlp.Protobuf, otlp.JSON} {
		b.Run(format.ContentType(), func(b *testing.B) {
			b.ReportAllocs()
			var spans []otlp.Span
			for n := 0; n < b.N; n += 256 {
				f.Reset()
				spans = spans[:0]
				for i := range 256 {
					r.ID, r.At = fmt.Sprintf("req_%032x", (n+i)*7919), r.At+3
					spans = f.Spans(spans, &r)
				}
				for rest := spans; len(rest) > 0; {
					body, n := otlp.Body(nil, format, nil, rest, 256<<10)
					rest = rest[n:]
					if len(contentcoding.Gzip(body)) == 0 {
						b.Fatal("nothing")
					}
				}
			}
		})
	}
}
