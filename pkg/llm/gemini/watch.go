package gemini

import (
	"bytes"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Watch reads an event. The end of one that is too long is searched for its usage and
// its finish reason.
func Watch(w *ir.Watched, _, data []byte, whole bool) {
	if !whole {
		countText(w, data)
		return
	}
	var candidate, feedback, usage, failure gjson.Result
	gjson.Parse(ir.View(data)).ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "candidates":
			candidate = v
		case "promptFeedback":
			feedback = v
		case "usageMetadata":
			usage = v
		case "error":
			failure = v
		}
		return true
	})
	if failure.IsObject() {
		w.Fail(data, whole)
		return
	}
	if u := usageOf(usage); u.Known {
		w.Usage.Merge(u)
	}
	countGrounding(&w.Usage, candidate)
	countText(w, data)
	if candidate.Exists() {
		w.Stop(ir.Str(candidate.Get("0.finishReason")))
	} else if feedback.Exists() {
		w.Stop(ir.Str(feedback.Get("blockReason")))
	}
}

// countText counts the texts and the calls of an event.
func countText(w *ir.Watched, data []byte) {
	w.CountTexts(data, `"text"`)
	if !bytes.Contains(data, []byte(`"functionCall"`)) {
		return
	}
	ir.Each(gjson.Get(ir.View(data), "candidates"), func(_, c gjson.Result) bool {
		ir.Each(c.Get("content.parts"), func(_, p gjson.Result) bool {
			w.Count(p.Get("functionCall.name"))
			w.Count(p.Get("functionCall.args"))
			return true
		})
		return true
	})
}

// Harmless reports whether an event begins like one with candidates. An error comes
// alone.
func Harmless(data []byte) bool { return bytes.HasPrefix(data, []byte(`{"candidates"`)) }

// UsageObject reads the usage object of a long line.
func UsageObject(v gjson.Result) (u ir.Usage) {
	if v.Get("promptTokenCount").Type == gjson.Number {
		u = usageOf(v)
	}
	return u
}

// CountUsage reads the usage object of an answer.
func CountUsage(v gjson.Result) ir.Usage { return usageOf(v) }
