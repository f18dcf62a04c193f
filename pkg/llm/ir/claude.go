package ir

import (
	"strconv"
	"strings"
)

// ClaudeModel is what a generation of Anthropic's models supports
// (docs/reference/api-shapes.md, 9).
type ClaudeModel struct {
	family string // part of the id; empty is every family
	from   Version
	// Forms of thinking: budget A, adaptive B, disabled C, betweenTools D.
	budget, adaptive, disabled, betweenTools bool
	disabledToHigh                           bool // C only at effort high or lower
	effort, xhigh                            bool
	Sampling, Forced, onByDefault            bool
	OneSampling                              bool // temperature or top_p, not both
	Schema                                   bool // output_config.format
	MaxOutput                                int64
}

// DefaultMaxTokens returns the max_tokens for a request without one: the maximum output
// of the model, so that no answer is cut off. Every current Claude supports
// 32,000; for other vendors' models the maximum is unknown.
func (c *ClaudeModel) DefaultMaxTokens() int64 {
	switch {
	case c.MaxOutput > 0:
		return c.MaxOutput
	case c == &anyClaude:
		return 32000
	}
	return 4096
}

// claudes is ordered: the last row that matches an id applies. Each release of
// the vendor adds rows. An unknown newer model gets the newest row of its
// family, or the newest of all if the family is unknown.
var claudes = [...]ClaudeModel{
	{from: Version{0, 0}, disabled: true, Sampling: true, Forced: true, MaxOutput: 4096},
	{from: Version{3, 5}, disabled: true, Sampling: true, Forced: true, MaxOutput: 8192},
	{from: Version{3, 7}, budget: true, disabled: true, Sampling: true, Forced: true, MaxOutput: 64000},
	{from: Version{4, 0}, budget: true, disabled: true, Sampling: true, Forced: true, MaxOutput: 64000},
	{family: "opus", from: Version{4, 0}, budget: true, disabled: true, Sampling: true, Forced: true, MaxOutput: 32000},
	{family: "opus", from: Version{4, 1}, budget: true, disabled: true, Sampling: true, Forced: true, Schema: true,
		MaxOutput: 32000},
	{from: Version{4, 5}, budget: true, disabled: true, Sampling: true, OneSampling: true, Forced: true, Schema: true,
		MaxOutput: 64000},
	{family: "opus", from: Version{4, 5}, budget: true, disabled: true, effort: true, Sampling: true, OneSampling: true,
		Forced: true, Schema: true, MaxOutput: 64000},
	{from: Version{4, 6}, budget: true, adaptive: true, disabled: true, effort: true, Sampling: true, OneSampling: true,
		Forced: true, Schema: true, MaxOutput: 128000},
	{from: Version{4, 7}, adaptive: true, disabled: true, effort: true, xhigh: true, Forced: true, Schema: true,
		MaxOutput: 128000},
	{from: Version{5, 0}, adaptive: true, disabled: true, effort: true, xhigh: true, Forced: true, Schema: true,
		MaxOutput: 128000},
	{family: "opus", from: Version{5, 0}, adaptive: true, disabled: true, disabledToHigh: true, effort: true, xhigh: true,
		Forced: true, onByDefault: true, Schema: true, MaxOutput: 128000},
	{family: "fable", from: Version{5, 0}, adaptive: true, effort: true, xhigh: true, Forced: true, onByDefault: true,
		Schema: true, MaxOutput: 128000},
	{family: "fable", from: Version{5, 1}, adaptive: true, effort: true, xhigh: true, onByDefault: true, Schema: true,
		MaxOutput: 128000},
	{family: "opus", from: Version{5, 5}, adaptive: true, effort: true, xhigh: true, onByDefault: true, Schema: true,
		MaxOutput: 128000},
	{family: "sonnet", from: Version{5, 5}, adaptive: true, betweenTools: true, effort: true, xhigh: true,
		onByDefault: true, Schema: true, MaxOutput: 128000},
	{family: "haiku", from: Version{5, 5}, adaptive: true, disabled: true, disabledToHigh: true, effort: true, xhigh: true,
		Forced: true, onByDefault: true, Schema: true, MaxOutput: 128000},
}

// OtherClaude is a model of another vendor behind a Messages endpoint. These
// support the oldest form of each field.
var OtherClaude = ClaudeModel{budget: true, disabled: true, Sampling: true, Forced: true}

// anyClaude is a Claude without a version in its name, as on compatible
// servers, with what most generations support. A temperature is sent, since a
// server that does not support it returns an error.
var anyClaude = ClaudeModel{
	adaptive: true, disabled: true, effort: true, Sampling: true, OneSampling: true, Forced: true, Schema: true,
}

// ClaudeNamed returns the generation of a model id.
func ClaudeNamed(id string) *ClaudeModel {
	i := strings.Index(id, "claude")
	if i < 0 {
		return &OtherClaude
	}
	id = id[i:]
	v, ok := ParseVersion(id)
	if !ok {
		return &anyClaude
	}
	best := &claudes[0]
	for i := range claudes {
		c := &claudes[i]
		if !v.Before(c.from) && strings.Contains(id, c.family) {
			best = c
		}
	}
	return best
}

// Thinking is the thinking part of a Messages request.
type Thinking struct {
	JSON      string // raw value of thinking; empty leaves it out
	Effort    string // output_config.effort
	MaxTokens int64  // max_tokens
	Budget    bool   // form A is on
}

// ClaudeThinking returns the form of thinking for a model. lost reports that
// the current turn has called tools and its thinking is missing.
func (q *Request) ClaudeThinking(c *ClaudeModel, maxTokens, limit int64, lost bool) (t Thinking) {
	t.MaxTokens = maxTokens
	name := q.EffortName()
	if name == "" && q.Think == ThinkUnset {
		return t
	}
	if name == "none" {
		switch {
		case c.disabled:
			t.JSON = `{"type":"disabled"}`
		case c.betweenTools:
			t.JSON = `{"type":"between_tools"}`
		case c.effort:
			t.Effort = "low"
			q.DropField(FieldEffort)
		default:
			q.DropField(FieldEffort)
		}
		return t
	}
	i := EffortIndex(name)
	if i < 0 && name != "" {
		q.DropField(FieldEffort)
		return t
	}
	if c.adaptive {
		t.JSON = `{"type":"adaptive"}`
		if i >= 0 && c.effort {
			if t.Effort = Efforts[i].claude; t.Effort == "xhigh" && !c.xhigh {
				t.Effort = "high"
			}
			if t.Effort != name && q.Effort != "" {
				q.DropEffort()
			}
		}
		return t
	}
	if !c.budget {
		q.DropField(FieldEffort)
		return t
	}
	if lost {
		t.JSON = `{"type":"disabled"}`
		q.DropField(FieldEffort)
		return t
	}
	n := q.ThinkBudget
	if q.Think != ThinkBudget {
		n = 8192
		if i >= 0 {
			n = Efforts[i].Budget
		}
	}
	n = max(n, 1024)
	if name == "max" && t.MaxTokens > n {
		n = t.MaxTokens - 1
	}
	if t.MaxTokens <= n {
		t.MaxTokens += n
		if limit > 0 && t.MaxTokens > limit {
			t.MaxTokens = limit
		}
		if n >= t.MaxTokens {
			n = t.MaxTokens - 1
		}
	}
	if n < 1024 {
		q.DropField(FieldEffort)
		return t
	}
	t.JSON = `{"type":"enabled","budget_tokens":` + strconv.FormatInt(n, 10) + `}`
	t.Budget = true
	return t
}
