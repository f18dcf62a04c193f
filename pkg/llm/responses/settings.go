package responses

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// maxSettings is the maximum number of bytes of settings that are stored during
// a stream. If there are more, the tools, the instructions and all long members
// are not repeated.
const maxSettings = 256 << 10

// setting is a member of a Response that repeats one of the request.
type setting struct {
	name   string
	absent string // the value if the request has none; empty omits it
}

var repeatedSettings = [...]setting{
	{"instructions", "null"}, {"tools", "[]"}, // these two are the long ones
	{"tool_choice", `"auto"`}, {"parallel_tool_calls", "true"}, {"temperature", "null"}, {"top_p", "null"},
	{"metadata", "{}"},
	{"max_output_tokens", "null"}, {"max_tool_calls", "null"}, {"reasoning", `{"effort":null,"summary":null}`},
	{"text", `{"format":{"type":"text"}}`}, {"truncation", `"disabled"`}, {"top_logprobs", ""},
	{"prompt_cache_key", ""}, {"prompt_cache_retention", ""}, {"safety_identifier", ""}, {"user", ""},
}

// settings are the settings of a request, in raw JSON.
type settings [len(repeatedSettings)]string

func (a *settings) take(name, raw string) {
	for i := range repeatedSettings {
		if repeatedSettings[i].name == name {
			a[i] = raw
			return
		}
	}
}

// store copies the settings of a request into s.
func (a *settings) store(s *ir.Settings) {
	length := 0
	for i := range a {
		length += len(a[i])
	}
	if length > maxSettings {
		a[0], a[1] = "", ""
		for i := range a {
			if len(a[i]) > maxSettings/len(repeatedSettings) {
				a[i] = ""
			}
		}
	}
	d := ir.Writer{Buf: make([]byte, 0, min(length, maxSettings)+512)}
	a.write(&d)
	s.Raw = string(d.Buf)
}

func (a *settings) write(d *ir.Writer) {
	for i, m := range repeatedSettings {
		raw := ir.OneLine(a[i])
		switch {
		case raw == "":
			raw = m.absent
		case m.name == "reasoning":
			raw = withMembers(raw, "effort", "null", "summary", "null")
		case m.name == "text":
			raw = withMembers(raw, "format", `{"type":"text"}`)
		}
		d.OptRaw(m.name, raw)
	}
}

// withMembers adds the members that an object lacks, given as alternating names
// and values.
func withMembers(raw string, members ...string) string {
	v := gjson.Parse(raw)
	if !v.IsObject() {
		return raw
	}
	d := ir.Writer{}
	d.Open("", '{')
	for i := 0; i < len(members); i += 2 {
		if !v.Get(members[i]).Exists() {
			d.Raw(members[i], members[i+1])
		}
	}
	v.ForEach(func(k, x gjson.Result) bool {
		d.Key("")
		d.Buf = append(append(append(d.Buf, k.Raw...), ':'), x.Raw...)
		return true
	})
	d.Close('}')
	return string(d.Buf)
}

// defaults are the settings of a request without any.
var defaults = func() string {
	var d ir.Writer
	(&settings{}).write(&d)
	return string(d.Buf)
}()

// settingsOf returns the settings that a Response repeats of its request, as
// members of an object.
func settingsOf(o *ir.Options) string {
	if o.Settings == nil || o.Settings.Raw == "" {
		return defaults
	}
	return o.Settings.Raw
}
