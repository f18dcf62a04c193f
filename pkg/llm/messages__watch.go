package llm

import "github.com/tidwall/gjson"

// watchMessages reads an event.
func watchMessages(w *watched, name, data []byte, whole bool) {
	kind := eventName(name, data)
	if !whole {
		data = nil
	}
	switch kind {
	case "message_start":
		if u := messagesUsage(gjson.Get(view(data), "message.usage")); u.Known {
			w.usage.merge(u)
		}
	case "message_delta":
		if u := lastUsage(gjson.Get(view(data), "usage")); u.Known {
			w.usage.merge(u)
		}
		w.stopped = w.stopped || str(gjson.Get(view(data), "delta.stop_reason")) != ""
	case "message_stop":
		w.done = true
	case "error":
		w.fail(data, whole)
	}
}

// seenMessagesUsage reads the usage object of a long line.
func seenMessagesUsage(v gjson.Result) (u Usage) {
	if v.Get("input_tokens").Type == gjson.Number {
		u = messagesUsage(v)
	}
	return u
}
