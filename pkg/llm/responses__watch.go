package llm

import "github.com/tidwall/gjson"

// watchResponses reads an event.
func watchResponses(w *watched, name, data []byte, whole bool) {
	kind := eventName(name, data)
	if !whole {
		data = nil
	}
	switch kind {
	case "response.completed", "response.incomplete":
		if u := responsesUsage(gjson.Get(view(data), "response.usage")); u.Known {
			w.usage.merge(u)
		}
		w.done = true
	case "error":
		w.fail(data, whole)
	case "response.failed":
		if w.failure != nil {
			break
		}
		w.failure, w.done = ofStatus(500), true
		if whole && check(data) == nil {
			if e := failureIn(gjson.Parse(view(data)).Get("response")); e != nil {
				w.failure = e
			}
		}
	}
}

// seenResponsesUsage reads the usage object of a long line.
func seenResponsesUsage(v gjson.Result) (u Usage) {
	if v.Get("input_tokens").Type == gjson.Number {
		u = responsesUsage(v)
	}
	return u
}
