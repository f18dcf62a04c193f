package store

// Outcomes of a client's request. ProviderFailed is a request whose attempts failed, or that
// the gateway itself failed to serve.
const (
	Succeeded      = "succeeded"
	ProviderFailed = "provider_failed"
	NoAccount      = "no_account" // no account could be tried: all are limited, refused or cannot be used now
	Refused        = "refused"    // by the gateway, before any attempt
	Left           = "left"       // the client closed the connection
)

// Reasons of Refused.
const (
	RefusedByKeyLimit    = "key_limit"   // the key has reached a limit of its own
	RefusedByBudget      = "budget"      // a budget has too little left, or refuses unpriced models
	RefusedByConcurrency = "concurrency" // too many requests are under way
	RefusedByKey         = "key"         // the key is paused, has expired or lacks the scope
	RefusedByModel       = "model"       // unknown, disabled, without an account, or not allowed for the key
	RefusedByRequest     = "request"     // the request is not valid
)
