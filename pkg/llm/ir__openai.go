package llm

import "strings"

// openaiReasons tells whether a model of OpenAI is one that reasons: it
// refuses sampling values, stop sequences and penalties.
func openaiReasons(id string) bool {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	if len(id) > 1 && id[0] == 'o' && id[1] >= '1' && id[1] <= '9' {
		return true
	}
	if rest, ok := strings.CutPrefix(id, "gpt-"); ok && !strings.Contains(id, "chat") {
		v, ok := parseVersion(rest)
		return ok && v.major >= 5
	}
	return false
}

// openaiNames reports whether an id is that of a model hosted by OpenAI. Its open
// models (gpt-oss) run on other servers, with their rules.
func openaiNames(id string) bool {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	return openaiReasons(id) || strings.HasPrefix(id, "chatgpt-") || strings.HasPrefix(id, "gpt-") && !strings.HasPrefix(id, "gpt-oss")
}

// openaiEfforts lists the efforts that a generation of OpenAI's models takes,
// separated by spaces; empty is all.
func openaiEfforts(id string) string {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	if len(id) > 1 && id[0] == 'o' && id[1] >= '1' && id[1] <= '9' {
		return "low medium high"
	}
	rest, ok := strings.CutPrefix(id, "gpt-")
	if !ok {
		return ""
	}
	switch v, _ := parseVersion(rest); {
	case v == version{5, 0}:
		return "minimal low medium high"
	case v == version{5, 1}:
		return "none low medium high"
	}
	return ""
}

// openaiEffort rounds an effort to what a model of OpenAI takes. Where
// thinking cannot be switched off the least is sent, and the field named.
func (q *request) openaiEffort(id, name string) string {
	v := Deviations{Efforts: openaiEfforts(id)}
	if name == "" {
		return ""
	}
	if e := v.round(name); e != "" {
		if e != name && q.effort != "" {
			q.dropEffort()
		}
		return e
	}
	q.dropField(fieldEffort)
	least, _, _ := strings.Cut(v.Efforts, " ")
	return least
}
