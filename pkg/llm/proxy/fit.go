package proxy

import (
	"strings"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/routing"
)

// leaveOutTooLong marks the targets into whose context a request is known not to
// fit, if the combo goes on with another member. The last one is always asked, as is
// an account that the call names: the provider knows best, and refuses such a request
// without a charge.
//
// A token has at least one byte of text, so small bodies are not read. The estimate
// must exceed the context by a quarter, more than its error for texts (llm.Estimate).
func leaveOutTooLong(c *auth.Call, a *Request, targets []routing.Target) {
	if len(targets) < 2 || strings.Contains(c.Header.Get(betaField), longContextBeta) ||
		c.Header.Get("x-connection-id") != "" {
		return
	}
	tokens := int64(-1)
	for i := range targets {
		size, _ := targets[i].Limits(c.Machine)
		if size == 0 || int64(len(a.Body)) <= size || routing.After(targets, i, routing.ContextLength) < 0 {
			continue
		}
		if tokens < 0 {
			tokens = llm.Estimate(a.Body)
		}
		targets[i].TooLong = tokens > size+size/4
	}
}

// longContextBeta begins the name of the beta feature by which a Claude model has a
// larger context than the catalogue states.
const longContextBeta = "context-1m"
