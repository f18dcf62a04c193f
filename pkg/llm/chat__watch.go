package llm

import (
	"bytes"

	"github.com/tidwall/gjson"
)

var (
	usageMember = []byte(`"usage"`)
	errorMember = []byte(`"error"`)
)

// watchChat reads a chunk. Only one with usage or an error is parsed.
func watchChat(w *watched, _, data []byte, whole bool) {
	if !whole {
		return
	}
	if string(data) == "[DONE]" {
		w.done = true
		return
	}
	if w.stopped || !going(data) {
		watchFinish(w, data)
	}
	if bytes.HasSuffix(data, []byte(`"usage":null}`)) && !bytes.HasPrefix(data, []byte(`{"error"`)) {
		return
	}
	if !has(data, usageMember, errorMember) || check(data) != nil {
		return
	}
	root := gjson.Parse(view(data))
	if u := chatUsage(root); u.Known {
		w.usage.merge(u)
	}
	if e := failureIn(root); e != nil && w.failure == nil {
		w.failure = e
	}
}

// going reports whether a chunk ends like most: without a finish reason. If it
// returns false, watchFinish decides.
func going(data []byte) bool {
	data = bytes.TrimSuffix(data, []byte(`,"usage":null}`))
	return bytes.HasSuffix(bytes.TrimRight(data, "}]"), []byte(`"finish_reason":null`))
}

var reasonName = []byte(`"finish_reason"`)

// watchFinish looks for a finish reason in a chunk, and for text after one: a stream
// of several choices ends with the last.
func watchFinish(w *watched, data []byte) {
	at := bytes.Index(data, reasonName)
	if at < 0 {
		return
	}
	rest := bytes.TrimLeft(data[at+len(reasonName):], " :\t")
	if len(rest) > 2 && rest[0] == '"' && rest[1] != '"' {
		w.stopped = true
	} else if w.stopped && check(data) == nil {
		forEach(gjson.Get(view(data), "choices"), func(_, c gjson.Result) bool {
			forEach(c.Get("delta"), func(k, v gjson.Result) bool {
				w.stopped = w.stopped && (k.Str == "role" || v.Type != gjson.String && !v.IsArray() || len(v.Raw) <= 2)
				return true
			})
			return true
		})
	}
}

// seenChatUsage reads the usage object of a long line.
func seenChatUsage(v gjson.Result) (u Usage) {
	if v.Get("prompt_tokens").Type == gjson.Number {
		u = chatUsage(gjson.Parse(`{"usage":` + v.Raw + `}`))
	}
	return u
}

// has tells whether one of two names of seven bytes is in data, by skipping
// ahead (Boyer, Moore, Horspool).
func has(data, a, b []byte) bool {
	const n = 7
	for i := n - 1; i < len(data); i += int(skips[data[i]]) {
		if data[i] == '"' {
			if w := data[i-n+1 : i+1]; bytes.Equal(w, a) || bytes.Equal(w, b) {
				return true
			}
		}
	}
	return false
}

// skips tells how far the end of a seven-byte window may move on, by its last
// byte, without missing "usage" or "error" with their quotes.
var skips = func() (t [256]uint8) {
	for i := range t {
		t[i] = 7
	}
	for _, w := range [...]string{`"usage"`, `"error"`} {
		for i := 0; i < 6; i++ {
			if s := uint8(6 - i); s < t[w[i]] {
				t[w[i]] = s
			}
		}
	}
	return t
}()
