package chat

import (
	"bytes"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

var (
	usageMember = []byte(`"usage"`)
	errorMember = []byte(`"error"`)
)

// Watch reads a chunk. Only one with usage or an error is parsed.
func Watch(w *ir.Watched, _, data []byte, whole bool) {
	if !whole {
		return
	}
	if string(data) == "[DONE]" {
		w.Done = true
		return
	}
	if w.Stopped || !going(data) {
		watchFinish(w, data)
	}
	if bytes.HasSuffix(data, []byte(`"usage":null}`)) && !bytes.HasPrefix(data, []byte(`{"error"`)) {
		return
	}
	if !containsAny(data, usageMember, errorMember) || ir.Check(data) != nil {
		return
	}
	root := gjson.Parse(ir.View(data))
	if u := ReadUsage(root); u.Known {
		w.Usage.Merge(u)
	}
	if e := ir.ErrorIn(root); e != nil && w.Failure == nil {
		w.Failure = e
	}
}

// going reports whether a chunk ends like most chunks, without a finish reason.
// If it returns false, watchFinish decides.
func going(data []byte) bool {
	data = bytes.TrimSuffix(data, []byte(`,"usage":null}`))
	return bytes.HasSuffix(bytes.TrimRight(data, "}]"), []byte(`"finish_reason":null`))
}

var reasonName = []byte(`"finish_reason"`)

// watchFinish looks for a finish reason in a chunk, and for text after one: a stream
// of several choices ends with the last.
func watchFinish(w *ir.Watched, data []byte) {
	at := bytes.Index(data, reasonName)
	if at < 0 {
		return
	}
	rest := bytes.TrimLeft(data[at+len(reasonName):], " :\t")
	if len(rest) > 2 && rest[0] == '"' && rest[1] != '"' {
		w.Stopped = true
	} else if w.Stopped && ir.Check(data) == nil {
		ir.Each(gjson.Get(ir.View(data), "choices"), func(_, c gjson.Result) bool {
			ir.Each(c.Get("delta"), func(k, v gjson.Result) bool {
				w.Stopped = w.Stopped && (k.Str == "role" || v.Type != gjson.String && !v.IsArray() || len(v.Raw) <= 2)
				return true
			})
			return true
		})
	}
}

// UsageObject reads the usage object of a long line.
func UsageObject(v gjson.Result) (u ir.Usage) {
	if v.Get("prompt_tokens").Type == gjson.Number {
		u = ReadUsage(gjson.Parse(`{"usage":` + v.Raw + `}`))
	}
	return u
}

// containsAny reports whether one of two names of seven bytes is in data
// (Boyer, Moore, Horspool).
func containsAny(data, a, b []byte) bool {
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

// skips is how far the end of a seven-byte window may advance, by its last
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
