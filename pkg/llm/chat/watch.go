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

// Watch reads a chunk. Only one with usage or an error is parsed. Of a chunk that
// is too long, the beginning counts as its text.
func Watch(w *ir.Watched, _, data []byte, whole bool) {
	if !whole {
		at, end := textOf(w, data)
		w.Text += end - at
		return
	}
	if string(data) == "[DONE]" {
		w.Done = true
		return
	}
	at, end := textOf(w, data)
	if at < end && !more(data[end:]) {
		w.Text += end - at
	} else {
		at, end = 0, 0
		countText(w, data)
	}
	usual := !w.Stopped && going(data)
	if !usual {
		watchFinish(w, data)
	}
	withoutUsage := bytes.HasSuffix(data, []byte(`"usage":null}`)) && !bytes.HasPrefix(data, []byte(`{"error"`))
	if withoutUsage || !containsAny(data, usageMember, errorMember) {
		if usual && end > at {
			w.Usual.Learn(ir.EventText, 0, data, at, end)
		}
		return
	}
	if ir.Check(data) != nil {
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

var (
	deltaMember = []byte(`"delta":{`)
	// firstTexts begin a delta whose first member is the text; laterTexts are
	// members after another one.
	firstTexts = [...][]byte{[]byte(`"content":"`), []byte(`"reasoning_content":"`), []byte(`"reasoning":"`)}
	laterTexts = [...][]byte{[]byte(`"content":"`), []byte(`"arguments":"`)}
)

// textOf returns where the text of a chunk begins and ends, without parsing it. The
// chunks of a stream are alike, so the delta is first looked for at its place in
// the last one.
func textOf(w *ir.Watched, data []byte) (at, end int) {
	if w.TextAt > len(data) || !bytes.HasPrefix(data[w.TextAt:], deltaMember) {
		i := bytes.Index(data, deltaMember)
		if i < 0 {
			return 0, 0
		}
		w.TextAt = i
	}
	at = w.TextAt + len(deltaMember)
	for _, name := range firstTexts {
		if bytes.HasPrefix(data[at:], name) {
			at += len(name)
			return at, at + ir.StringLength(data[at:])
		}
	}
	for _, name := range laterTexts {
		if i := bytes.Index(data[at:], name); i >= 0 {
			at += i + len(name)
			return at, at + ir.StringLength(data[at:])
		}
	}
	return 0, 0
}

// more reports whether another text may follow one in a chunk.
func more(rest []byte) bool {
	return bytes.Contains(rest, deltaMember) || bytes.Contains(rest, laterTexts[1])
}

// countText counts the texts of a chunk in any form.
func countText(w *ir.Watched, data []byte) {
	if !bytes.Contains(data, []byte(`"delta"`)) {
		return
	}
	ir.Each(gjson.Get(ir.View(data), "choices"), func(_, c gjson.Result) bool {
		reasoned := false
		ir.Each(c.Get("delta"), func(k, v gjson.Result) bool {
			switch k.Str {
			case "content":
				countContent(w, v)
			case "reasoning", "reasoning_content": // some servers write both
				if !reasoned {
					w.Count(v)
				}
				reasoned = reasoned || ir.Str(v) != ""
			case "refusal":
				w.Count(v)
			case "function_call":
				countCall(w, v)
			case "tool_calls":
				ir.Each(v, func(_, call gjson.Result) bool {
					countCall(w, call.Get("function"))
					countCall(w, call.Get("custom"))
					return true
				})
			case "audio":
				w.Count(v.Get("transcript"))
			}
			return true
		})
		return true
	})
}

// countContent counts a text, or Mistral's list of texts and thoughts.
func countContent(w *ir.Watched, v gjson.Result) {
	if !v.IsArray() {
		w.Count(v)
		return
	}
	ir.Each(v, func(_, p gjson.Result) bool {
		w.Count(p.Get("text"))
		ir.Each(p.Get("thinking"), func(_, x gjson.Result) bool { w.Count(x.Get("text")); return true })
		return true
	})
}

// countCall counts a call of a function, or of a custom tool.
func countCall(w *ir.Watched, f gjson.Result) {
	w.Count(f.Get("name"))
	w.Count(f.Get("arguments"))
	w.Count(f.Get("input"))
}

// going reports whether a chunk ends like most chunks, without a finish reason.
// If it returns false, watchFinish decides.
func going(data []byte) bool {
	data = bytes.TrimSuffix(data, []byte(`,"usage":null}`))
	return bytes.HasSuffix(bytes.TrimRight(data, "}]"), []byte(`"finish_reason":null`))
}

// Harmless reports whether a chunk, which is valid JSON, reports no failure for
// certain: it has no error member, and no finish reason, which can be one.
func Harmless(data []byte) bool {
	return going(data) && bytes.Count(data, reasonName) == 1 && !containsAny(data, errorMember, errorMember) &&
		!bytes.Contains(data, []byte(`"x_groq"`)) && !bytes.Contains(data, []byte(`"base_resp"`))
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
		w.Stop(ir.View(rest[1 : 1+ir.StringLength(rest[1:])]))
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
