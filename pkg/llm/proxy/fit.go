package proxy

import (
	"strings"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/llm"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
)

// leaveOutTooLong marks the targets into whose context a request is known not to
// fit, if the combo goes on with another member. The last one is always asked, as is
// an account that the call names: the provider knows best, and refuses such a request
// without a charge.
//
// A token has at least one byte of text, so small bodies are not read. The estimate
// must exceed the context by a quarter, more than its error for texts (llm.Estimate).
func leaveOutTooLong(c *auth.Call, a *Request, targets []routing.Target) {
	if len(targets) < 2 || strings.Contains(c.Header.Get(betaField), longContextBeta) || c.Header.Get("x-connection-id") != "" {
		return
	}
	tokens := int64(-1)
	for i := range targets {
		size := contextOf(c.Machine, &targets[i])
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

// contextOf returns the context of a target's model in tokens, as the machine's
// custom models or the catalogue state it, or 0.
func contextOf(m *snapshot.Machine, to *routing.Target) int64 {
	for i := range m.CustomModels {
		c := &m.CustomModels[i]
		if c.ContextLength > 0 && strings.TrimSpace(c.ID) == to.Model {
			switch strings.TrimSpace(c.ProviderAlias) {
			case to.Alias, to.Provider.Alias, to.Provider.ID:
				return int64(c.ContextLength)
			}
		}
	}
	for _, model := range m.Catalog.Lookup(to.Provider.Alias, to.Model) {
		if model.Kind == catalog.LLM {
			return int64(model.Context)
		}
	}
	return 0
}
