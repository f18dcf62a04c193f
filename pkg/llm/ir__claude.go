package llm

import (
	"strconv"
	"strings"
)

// claude is what a generation of Anthropic's models takes
// (docs/reference/api-shapes.md, 9).
type claude struct {
	family string // part of the id; empty is every family
	from   version
	// Forms of thinking: budget A, adaptive B, disabled C, betweenTools D.
	budget, adaptive, disabled, betweenTools bool
	disabledToHigh                           bool // C only at effort high or lower
	effort, xhigh                            bool
	sampling, forced, onByDefault            bool
	oneSampling                              bool // temperature or top_p, not both
	schema                                   bool // output_config.format
	maxOutput                                int64
}

// unlimited returns the max_tokens for a request without one: the maximum output
// of the model, so that no answer is cut off. Every current Claude supports
// 32,000; for other vendors' models the maximum is unknown.
func (c *claude) unlimited() int64 {
	switch {
	case c.maxOutput > 0:
		return c.maxOutput
	case c == &anyClaude:
		return 32000
	}
	return 4096
}

// claudes is ordered: the last row that fits an id decides. Each release of
// the vendor adds rows; an unknown newer model is taken as the newest row of
// its family or, of an unknown family, of all.
var claudes = [...]claude{
	{from: version{0, 0}, disabled: true, sampling: true, forced: true, maxOutput: 4096},
	{from: version{3, 5}, disabled: true, sampling: true, forced: true, maxOutput: 8192},
	{from: version{3, 7}, budget: true, disabled: true, sampling: true, forced: true, maxOutput: 64000},
	{from: version{4, 0}, budget: true, disabled: true, sampling: true, forced: true, maxOutput: 64000},
	{family: "opus", from: version{4, 0}, budget: true, disabled: true, sampling: true, forced: true, maxOutput: 32000},
	{family: "opus", from: version{4, 1}, budget: true, disabled: true, sampling: true, forced: true, schema: true, maxOutput: 32000},
	{from: version{4, 5}, budget: true, disabled: true, sampling: true, oneSampling: true, forced: true, schema: true, maxOutput: 64000},
	{family: "opus", from: version{4, 5}, budget: true, disabled: true, effort: true, sampling: true, oneSampling: true, forced: true, schema: true, maxOutput: 64000},
	{from: version{4, 6}, budget: true, adaptive: true, disabled: true, effort: true, sampling: true, oneSampling: true, forced: true, schema: true, maxOutput: 128000},
	{from: version{4, 7}, adaptive: true, disabled: true, effort: true, xhigh: true, forced: true, schema: true, maxOutput: 128000},
	{from: version{5, 0}, adaptive: true, disabled: true, effort: true, xhigh: true, forced: true, schema: true, maxOutput: 128000},
	{family: "opus", from: version{5, 0}, adaptive: true, disabled: true, disabledToHigh: true, effort: true, xhigh: true, forced: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "fable", from: version{5, 0}, adaptive: true, effort: true, xhigh: true, forced: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "fable", from: version{5, 1}, adaptive: true, effort: true, xhigh: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "opus", from: version{5, 5}, adaptive: true, effort: true, xhigh: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "sonnet", from: version{5, 5}, adaptive: true, betweenTools: true, effort: true, xhigh: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "haiku", from: version{5, 5}, adaptive: true, disabled: true, disabledToHigh: true, effort: true, xhigh: true, forced: true, onByDefault: true, schema: true, maxOutput: 128000},
}

// otherClaude is a model of another vendor behind a Messages endpoint: they
// know the oldest form of everything.
var otherClaude = claude{budget: true, disabled: true, sampling: true, forced: true}

// anyClaude is a Claude without a version in its name, as on compatible servers.
// It gets what most generations support. A temperature is passed on, since a
// server that does not support it returns an error.
var anyClaude = claude{
	adaptive: true, disabled: true, effort: true, sampling: true, oneSampling: true, forced: true, schema: true,
}

// claudeOf finds the generation of a model id.
func claudeOf(id string) *claude {
	i := strings.Index(id, "claude")
	if i < 0 {
		return &otherClaude
	}
	id = id[i:]
	v, ok := parseVersion(id)
	if !ok {
		return &anyClaude
	}
	best := &claudes[0]
	for i := range claudes {
		c := &claudes[i]
		if !v.before(c.from) && strings.Contains(id, c.family) {
			best = c
		}
	}
	return best
}

// thought is the thinking part of a Messages request.
type thought struct {
	json   string // raw value of thinking; empty leaves it out
	effort string // output_config.effort
	max    int64  // max_tokens
	budget bool   // form A is on
}

// claudeThinking decides the form for a model. lost tells that the running
// turn has called tools and its thinking is gone.
func (q *request) claudeThinking(c *claude, maxTokens, limit int64, lost bool) (t thought) {
	t.max = maxTokens
	name := q.effortName()
	if name == "" && q.think == thinkUnset {
		return t
	}
	if name == "none" {
		switch {
		case c.disabled:
			t.json = `{"type":"disabled"}`
		case c.betweenTools:
			t.json = `{"type":"between_tools"}`
		case c.effort:
			t.effort = "low"
			q.dropField(fieldEffort)
		default:
			q.dropField(fieldEffort)
		}
		return t
	}
	i := effortIndex(name)
	if i < 0 && name != "" {
		q.dropField(fieldEffort)
		return t
	}
	if c.adaptive {
		t.json = `{"type":"adaptive"}`
		if i >= 0 && c.effort {
			if t.effort = efforts[i].claude; t.effort == "xhigh" && !c.xhigh {
				t.effort = "high"
			}
			if t.effort != name && q.effort != "" {
				q.dropEffort()
			}
		}
		return t
	}
	if !c.budget {
		q.dropField(fieldEffort)
		return t
	}
	if lost {
		t.json = `{"type":"disabled"}`
		q.dropField(fieldEffort)
		return t
	}
	n := q.budget
	if q.think != thinkBudget {
		n = 8192
		if i >= 0 {
			n = efforts[i].budget
		}
	}
	n = max(n, 1024)
	if name == "max" && t.max > n {
		n = t.max - 1
	}
	if t.max <= n {
		t.max += n
		if limit > 0 && t.max > limit {
			t.max = limit
		}
		if n >= t.max {
			n = t.max - 1
		}
	}
	if n < 1024 {
		q.dropField(fieldEffort)
		return t
	}
	t.json = `{"type":"enabled","budget_tokens":` + strconv.FormatInt(n, 10) + `}`
	t.budget = true
	return t
}
