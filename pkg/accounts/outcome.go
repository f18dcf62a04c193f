package accounts

import (
	"weir/pkg/catalog"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// outcomeOf returns the outcome of a client's request and, of a refused one, the reason.
// status is that of the answer, e the client's error or what broke the stream, or nil.
func outcomeOf(attempts, status int, e *apierr.Error) (outcome, reason string) {
	switch {
	case e != nil && e.Status == apierr.StatusClientLeft:
		return store.Left, ""
	case e == nil && status < 400:
		return store.Succeeded, ""
	case attempts > 0:
		return store.ProviderFailed, ""
	case e == nil:
		e = &apierr.Error{Status: status}
	}
	if e.Reason != "" {
		return store.Refused, e.Reason
	}
	switch e.Code {
	case CodeBudgetExceeded, CodeUnpriced:
		return store.Refused, store.RefusedByBudget
	case "overloaded", "too_many_sockets":
		return store.Refused, store.RefusedByConcurrency
	case "invalid_api_key", "key_paused":
		return store.Refused, store.RefusedByKey
	case "model_not_found", "model_not_allowed", "no_credentials", "unsupported_endpoint":
		return store.Refused, store.RefusedByModel
	case "rate_limit_exceeded", quotaCode, "account_key_refused", blockedCode: // of the accounts, known before
		return store.ProviderFailed, ""
	}
	if e.Status >= 500 {
		return store.ProviderFailed, ""
	}
	return store.Refused, store.RefusedByRequest
}

// untried sets the model of a request without attempts: the combo or the model that was
// asked for, if the machine has it. Other names would be rows without bound.
func untried(kind *usage.Row, m *snapshot.Machine, asked string) {
	if asked == "" {
		return
	}
	if c := m.Combo(catalog.PlainName(asked)); c != nil {
		kind.Model = c.Name
		return
	}
	if to, err := routing.Resolve(asked, m.ReadOnly(), catalog.LLM, nil); err == nil && len(to) > 0 {
		kind.Model, kind.Provider = to[0].ID(), to[0].Provider.ID
	}
}
