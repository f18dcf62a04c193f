package llm

import "github.com/tidwall/gjson"

// UsageOf reads the usage out of an upstream's JSON answer. The body has been
// checked; an answer without usage gives Known false.
func UsageOf(from Dialect, body []byte) Usage {
	return dialects[from].usage(gjson.ParseBytes(body))
}

// joinLogprobs joins the logprobs objects of a stream's pieces.
func joinLogprobs(pieces []string) string {
	if len(pieces) == 0 {
		return ""
	}
	d := doc{}
	d.open("", '{')
	for _, name := range [...]string{"content", "refusal"} {
		list := doc{}
		list.open("", '[')
		some := false
		for _, s := range pieces {
			forEach(gjson.Get(s, name), func(_, v gjson.Result) bool {
				if v.IsObject() {
					list.raw("", v.Raw)
					some = true
				}
				return true
			})
		}
		list.close(']')
		if some {
			d.raw(name, string(list.b))
		} else {
			d.null(name)
		}
	}
	d.close('}')
	return string(d.b)
}
