package messages

import (
	"bytes"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Watch reads an event.
func Watch(w *ir.Watched, name, data []byte, whole bool) {
	kind := ir.EventName(name, data)
	switch kind {
	case "content_block_delta", "content_block_start":
		countText(w, data)
		return
	}
	if !whole {
		data = nil
	}
	switch kind {
	case "message_start":
		if u := usageOf(gjson.Get(ir.View(data), "message.usage")); u.Known {
			u.Begun = true
			w.Usage.Merge(u)
		}
	case "message_delta":
		if u := lastUsage(gjson.Get(ir.View(data), "usage"), gjson.Get(ir.View(data), "delta")); u.Known {
			w.Usage.Merge(u)
		}
		w.Stop(ir.Str(gjson.Get(ir.View(data), "delta.stop_reason")))
	case "message_stop":
		w.Done = true
	case "error":
		w.Fail(data, whole)
	}
}

// countText counts the text of a block, which most events of a stream have, and learns
// how these look.
func countText(w *ir.Watched, data []byte) {
	block := gjson.Get(ir.View(data), "delta")
	if !block.Exists() {
		block = gjson.Get(ir.View(data), "content_block")
	}
	ir.Each(block, func(k, v gjson.Result) bool {
		switch k.Str {
		case "text", "thinking", "partial_json":
			w.Count(v)
			if at := v.Index + 1; v.Type == gjson.String && len(v.Raw) > 2 && v.Index+len(v.Raw) <= len(data) {
				w.Usual.Learn(ir.EventText, 0, data, at, at+len(v.Raw)-2)
			}
		case "name":
			w.Count(v)
		case "input":
			if len(v.Raw) > 2 {
				w.Count(v)
			}
		}
		return true
	})
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
