package responses

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// FinishPath is the path of the reason why a response is incomplete. The reason of others is their
// status, completed.
const FinishPath = "incomplete_details.reason"

// Watch reads an event.
func Watch(w *ir.Watched, name, data []byte, whole bool) {
	kind := ir.EventName(name, data)
	if strings.HasSuffix(kind, ".delta") {
		if !strings.HasSuffix(kind, "audio.delta") { // it is no text
			w.CountTexts(data, `"delta"`)
		}
		return
	}
	if !whole {
		data = nil
	}
	switch kind {
	case "response.output_item.done":
		if hasBilled(ir.View(data)) {
			countItem(&w.Usage, &w.Container, gjson.Get(ir.View(data), "item"))
		}
	case "response.image_generation_call.completed": // the item itself may be long
		w.Usage.NoRate("image_generation")
	case "response.created":
		toolOptions(&w.Usage, gjson.Get(ir.View(data), "response"))
	case "response.completed", "response.incomplete":
		response := gjson.Get(ir.View(data), "response")
		if u := ReadUsage(response); u.Known {
			w.Usage.Merge(u)
		}
		w.Stop(cmp.Or(ir.Str(response.Get(FinishPath)), strings.TrimPrefix(kind, "response.")))
		w.Done = true
	case "error":
		w.Fail(data, whole)
	case "response.failed":
		if w.Failure != nil {
			break
		}
		w.Failure, w.Done = ir.StatusError(500), true
		if whole && ir.Check(data) == nil {
			if e := ir.ErrorIn(gjson.Parse(ir.View(data)).Get("response")); e != nil {
				w.Failure = e
			}
		}
	}
}

// Harmless reports whether an event is the first one of a response.
func Harmless(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"type":"response.created",`)) }

// UsageObject reads the usage object of a long line.
func UsageObject(v gjson.Result) (u ir.Usage) {
	if v.Get("input_tokens").Type == gjson.Number {
		u = usageOf(v)
	}
	return u
}
