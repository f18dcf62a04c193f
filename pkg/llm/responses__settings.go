package llm

import "github.com/tidwall/gjson"

// maxSettings is how many bytes of settings are kept during a stream. If there are
// more, the tools, the instructions and all long members are not repeated.
const maxSettings = 256 << 10

// setting is a member of a Response that repeats one of the request.
type setting struct {
	name   string
	absent string // the value if it was not given; empty omits it
}

var repeated = [...]setting{
	{"instructions", "null"}, {"tools", "[]"}, // these two are the long ones
	{"tool_choice", `"auto"`}, {"parallel_tool_calls", "true"}, {"temperature", "null"}, {"top_p", "null"}, {"metadata", "{}"},
	{"max_output_tokens", "null"}, {"max_tool_calls", "null"}, {"reasoning", `{"effort":null,"summary":null}`},
	{"text", `{"format":{"type":"text"}}`}, {"truncation", `"disabled"`}, {"top_logprobs", ""},
	{"prompt_cache_key", ""}, {"prompt_cache_retention", ""}, {"safety_identifier", ""}, {"user", ""},
}

// asked collects the settings of a request, in raw JSON.
type asked [len(repeated)]string

func (a *asked) take(name, raw string) {
	for i := range repeated {
		if repeated[i].name == name {
			a[i] = raw
			return
		}
	}
}

// store copies the settings of a request into s.
func (a *asked) store(s *Settings) {
	length := 0
	for i := range a {
		length += len(a[i])
	}
	if length > maxSettings {
		a[0], a[1] = "", ""
		for i := range a {
			if len(a[i]) > maxSettings/len(repeated) {
				a[i] = ""
			}
		}
	}
	d := doc{b: make([]byte, 0, min(length, maxSettings)+512)}
	a.write(&d)
	s.raw = string(d.b)
}

func (a *asked) write(d *doc) {
	for i, m := range repeated {
		raw := oneLine(a[i])
		switch {
		case raw == "":
			raw = m.absent
		case m.name == "reasoning":
			raw = withMembers(raw, "effort", "null", "summary", "null")
		case m.name == "text":
			raw = withMembers(raw, "format", `{"type":"text"}`)
		}
		d.optRaw(m.name, raw)
	}
}

// withMembers adds the members that an object lacks, given as alternating names
// and values.
func withMembers(raw string, members ...string) string {
	v := gjson.Parse(raw)
	if !v.IsObject() {
		return raw
	}
	d := doc{}
	d.open("", '{')
	for i := 0; i < len(members); i += 2 {
		if !v.Get(members[i]).Exists() {
			d.raw(members[i], members[i+1])
		}
	}
	v.ForEach(func(k, x gjson.Result) bool {
		d.key("")
		d.b = append(append(append(d.b, k.Raw...), ':'), x.Raw...)
		return true
	})
	d.close('}')
	return string(d.b)
}

// defaults are the settings of a request without any.
var defaults = func() string {
	var d doc
	(&asked{}).write(&d)
	return string(d.b)
}()

// settings returns what a Response repeats of its request, as members of an
// object.
func settingsOf(o *Options) string {
	if o.Settings == nil || o.Settings.raw == "" {
		return defaults
	}
	return o.Settings.raw
}
