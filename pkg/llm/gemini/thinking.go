package gemini

import (
	"strconv"
	"strings"

	"weir/pkg/llm/ir"
)

// thinkingConfig returns the thinkingConfig for a model, or "".
func thinkingConfig(q *ir.Request, model string) string {
	name := q.EffortName()
	if name == "" && q.Think == ir.ThinkUnset {
		return ""
	}
	v, ok := versionOf(model)
	if !ok {
		v = ir.Version{Major: 3, Minor: 0}
	}
	if v.Before(ir.Version{Major: 2, Minor: 5}) {
		q.DropField(ir.FieldEffort)
		return ""
	}
	show := `"includeThoughts":true`
	if name == "none" {
		show = `"includeThoughts":false`
	}
	i := ir.EffortIndex(name)
	if i < 0 {
		if name != "" {
			q.DropField(ir.FieldEffort)
		}
		return "{" + show + "}"
	}
	if !v.Before(ir.Version{Major: 3, Minor: 0}) {
		level := ir.Efforts[i].Level
		// The Pro models begin at LOW.
		if level == "MINIMAL" && strings.Contains(model, "pro") {
			level = "LOW"
		}
		if q.Effort != "" && name != "none" && !strings.EqualFold(level, name) {
			q.DropEffort()
		}
		return "{" + show + `,"thinkingLevel":"` + level + `"}`
	}
	n := ir.Efforts[i].Budget
	if q.Think == ir.ThinkBudget {
		n = q.ThinkBudget
	}
	// Thinking of 2.5 Pro cannot be disabled: its budget is 128 to 32768. The
	// others accept up to 24576.
	if strings.Contains(model, "pro") {
		n = min(max(n, 128), 32768)
	} else {
		n = min(n, 24576)
	}
	return "{" + show + `,"thinkingBudget":` + strconv.FormatInt(n, 10) + "}"
}

// versionOf returns the generation in an id such as gemini-2.5-flash.
func versionOf(id string) (ir.Version, bool) {
	i := strings.Index(id, "gemini-")
	if i < 0 {
		return ir.Version{}, false
	}
	return ir.ParseVersion(id[i:])
}

// signsCalls reports whether a model requires the signatures of its calls.
func signsCalls(model string) bool {
	v, ok := versionOf(model)
	return !ok || !v.Before(ir.Version{Major: 3, Minor: 0})
}
