package models

import (
	"time"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
)

// form is the shape in which a caller reads a list.
type form uint8

const (
	openAI    form = iota
	anthropic      // in pages
	gemini         // in pages
	codex
	detailed // for management
)

// formOf returns the form that a caller of /v1/models reads: Anthropic's for one that sends
// anthropic-version or a parameter that only Anthropic's list has. Claude Code
// may discover models with limit=1000 alone (docs/reference/clients.md, 1.4). Codex
// sends client_version (2.3 there).
func formOf(c *auth.Call) form {
	if c.Header.Get("anthropic-version") != "" {
		return anthropic
	}
	if c.Query != "" {
		for _, name := range [...]string{"limit", "after_id", "before_id"} {
			if endpoint.Query(c.Query, name) != "" {
				return anthropic
			}
		}
		if endpoint.Query(c.Query, "client_version") != "" {
			return codex
		}
	}
	return openAI
}

// toolWait is how long a coding tool's list waits for the upstreams. The tools
// wait 3 s for the answer, with the connection and the rest of the call.
const toolWait = 2400 * time.Millisecond

// wait returns how long a list of the form waits for the upstreams' lists.
func (f form) wait() time.Duration {
	if f == anthropic || f == codex {
		return toolWait
	}
	return total
}
