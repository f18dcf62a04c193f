package objects

import (
	"context"
	"testing"

	"weir/pkg/machine/storage"
)

// BenchmarkCall measures an operation that reads one row.
func BenchmarkCall(b *testing.B) {
	o := &fake{call: func(_ context.Context, st storage.Storage, _, _ string, _ []byte) (int, []byte) {
		v, _ := st.Get("meta")
		return 200, v
	}}
	r := start(b, o)
	r.engine.Rows("m").Write(row("meta", "value"), storage.KeepAlarm)
	b.ReportAllocs()
	for b.Loop() {
		r.Call(b.Context(), "m", "snapshot", nil)
	}
}
