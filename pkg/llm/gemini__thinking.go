package llm

import (
	"strconv"
	"strings"
)

// geminiThinking gives the thinkingConfig for a model, or "".
func geminiThinking(q *request, model string) string {
	name := q.effortName()
	if name == "" && q.think == thinkUnset {
		return ""
	}
	v, ok := geminiVersion(model)
	if !ok {
		v = version{3, 0}
	}
	if v.before(version{2, 5}) {
		q.dropField(fieldEffort)
		return ""
	}
	show := `"includeThoughts":true`
	if name == "none" {
		show = `"includeThoughts":false`
	}
	i := effortIndex(name)
	if i < 0 {
		if name != "" {
			q.dropField(fieldEffort)
		}
		return "{" + show + "}"
	}
	if !v.before(version{3, 0}) {
		level := efforts[i].level
		// The Pro models begin at LOW.
		if level == "MINIMAL" && strings.Contains(model, "pro") {
			level = "LOW"
		}
		if q.effort != "" && name != "none" && !strings.EqualFold(level, name) {
			q.dropEffort()
		}
		return "{" + show + `,"thinkingLevel":"` + level + `"}`
	}
	n := efforts[i].budget
	if q.think == thinkBudget {
		n = q.budget
	}
	// 2.5 Pro cannot be switched off: 128 is its least, 32768 its most; the
	// others go up to 24576.
	if strings.Contains(model, "pro") {
		n = min(max(n, 128), 32768)
	} else {
		n = min(n, 24576)
	}
	return "{" + show + `,"thinkingBudget":` + strconv.FormatInt(n, 10) + "}"
}

// geminiVersion finds the generation in an id such as gemini-2.5-flash.
func geminiVersion(id string) (version, bool) {
	i := strings.Index(id, "gemini-")
	if i < 0 {
		return version{}, false
	}
	return parseVersion(id[i:])
}
