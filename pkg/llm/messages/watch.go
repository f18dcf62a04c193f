package messages

import (
	"bytes"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Watch reads an event.
func Watch(w *ir.Watched, name, data []byte, whole bool) {
	kind := ir.EventName(name, data)
	if !whole {
		data = nil
	}
	switch kind {
	case "message_start":
		if u := usageOf(gjson.Get(ir.View(data), "message.usage")); u.Known {
			w.Usage.Merge(u)
		}
	case "message_delta":
		if u := lastUsage(gjson.Get(ir.View(data), "usage"), gjson.Get(ir.View(data), "delta")); u.Known {
			w.Usage.Merge(u)
		}
		w.Stopped = w.Stopped || ir.Str(gjson.Get(ir.View(data), "delta.stop_reason")) != ""
	case "message_stop":
		w.Done = true
	case "error":
		w.Fail(data, whole)
	}
}

// Harmless reports whether an event is the first one of a message.
func Harmless(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"type":"message_start",`)) }

// UsageObject reads the usage object of a long line.
func UsageObject(v gjson.Result) (u ir.Usage) {
	if v.Get("input_tokens").Type == gjson.Number {
		u = usageOf(v)
	}
	return u
}
