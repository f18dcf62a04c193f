package ir

import "strings"

// OpenAIReasons reports whether a model of OpenAI reasons: it refuses sampling
// values, stop sequences and penalties.
func OpenAIReasons(id string) bool {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	if len(id) > 1 && id[0] == 'o' && id[1] >= '1' && id[1] <= '9' {
		return true
	}
	if rest, ok := strings.CutPrefix(id, "gpt-"); ok && !strings.Contains(id, "chat") {
		v, ok := ParseVersion(rest)
		return ok && v.Major >= 5
	}
	return false
}

// openaiNames reports whether an id is that of a model hosted by OpenAI. Its open
// models (gpt-oss) run on other servers, with their rules.
func openaiNames(id string) bool {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	return OpenAIReasons(id) || strings.HasPrefix(id, "chatgpt-") || strings.HasPrefix(id, "gpt-") &&
		!strings.HasPrefix(id, "gpt-oss")
}

// openaiEfforts returns the efforts that a generation of OpenAI's models
// accepts, separated by spaces; empty is all.
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
	switch v, _ := ParseVersion(rest); {
	case v == Version{5, 0}:
		return "minimal low medium high"
	case v == Version{5, 1}:
		return "none low medium high"
	}
	return ""
}

// OpenAIEffort rounds an effort to one that a model of OpenAI accepts. If
// thinking cannot be disabled, the lowest is sent and the field is dropped.
func (q *Request) OpenAIEffort(id, name string) string {
	v := Deviations{Efforts: openaiEfforts(id)}
	if name == "" {
		return ""
	}
	if e := v.RoundEffort(name); e != "" {
		if e != name && q.Effort != "" {
			q.DropEffort()
		}
		return e
	}
	q.DropField(FieldEffort)
	least, _, _ := strings.Cut(v.Efforts, " ")
	return least
}
