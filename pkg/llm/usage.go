package llm

import "github.com/tidwall/gjson"

// UsageOf reads the usage out of an upstream's JSON answer. The body has been
// checked; an answer without usage gives Known false.
func UsageOf(from Dialect, body []byte) Usage {
	switch from {
	case Responses:
		return responsesUsage(gjson.GetBytes(body, "usage"))
	case Messages:
		return messagesUsage(gjson.GetBytes(body, "usage"))
	case Gemini:
		return geminiUsage(gjson.GetBytes(body, "usageMetadata"))
	case Cohere:
		return cohereUsage(gjson.GetBytes(body, "usage"))
	case Converse:
		return converseUsage(gjson.GetBytes(body, "usage"))
	}
	return chatUsage(gjson.ParseBytes(body))
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

// Asked tells whether a client's request wants a stream, and whether usage in
// it: chat clients must ask for that, the others always get it. The body has
// been checked.
func Asked(from Dialect, body []byte) (stream, usage bool) {
	stream = gjson.GetBytes(body, "stream").Type == gjson.True
	if from != Chat {
		return stream, true
	}
	return stream, stream && gjson.GetBytes(body, "stream_options.include_usage").Type == gjson.True
}

// Judge looks at a JSON answer (status 2xx) that passes to a client of the
// same dialect. The error is an *apierr.Error: 502 for what is no answer of
// the dialect, else that of an error which came in spite of the status. A
// Response that failed is an answer like others; its status says so.
func Judge(d Dialect, body []byte) (Usage, error) {
	if check(body) != nil {
		return Usage{}, badBody()
	}
	root := gjson.Parse(view(body))
	has := func(name string) bool { return root.Get(name).IsArray() }
	switch {
	case !root.IsObject():
		return Usage{}, badBody()
	case d == Responses && has("output"):
		return UsageOf(d, body), nil
	}
	if e := failureIn(root); e != nil {
		return Usage{}, e
	}
	if d == Chat && !has("choices") || d == Messages && !has("content") || d == Responses {
		return Usage{}, badBody()
	}
	return UsageOf(d, body), nil
}
