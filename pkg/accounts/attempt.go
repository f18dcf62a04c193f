package accounts

import (
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/upstream"
)

// Attempt is one upstream request of a call. Build returns it without
// credentials, Send adds those, Read fills in what the answer says.
type Attempt struct {
	// Request is sent. Without any time limit it gets the machine's limit on the
	// wait for the first byte.
	Request upstream.Request
	// Base is the further base of the provider that the request goes to, whose
	// credentials are presented in another way; nil for the provider's own.
	Base *provider.Base
	// Dropped names the fields of the client's request that are left out, because
	// the upstream does not know them. Read may add parts of the answer.
	Dropped []string
	// CacheMarks names the places of marks of cached prefixes that the gateway has
	// added to the request.
	CacheMarks []string
	// Errors is the dialect of the upstream's errors.
	Errors ErrorForm
	// OtherAPI is set if the account's server may lack the endpoint and has
	// another one for the request: see OtherAPI of Retry.
	OtherAPI bool
	// Forms finds another form of a refused request. May be nil.
	Forms Former
	// Fault returns an error of the client that was found while its body went up,
	// or that the client disconnected. It replaces what the upstream made of that,
	// which is no evidence about the account. May be nil.
	Fault func() error
	// State belongs to the endpoint.
	State any

	// Used is what the answer used. Read sets it, for a stream the endpoint does
	// before Done.
	Used Used
	// Estimator estimates the tokens that the answer does not state. Without one they are
	// not known.
	Estimator llm.Estimator

	// Target and Connection are set before the request is sent.
	Target     *routing.Target
	Connection *store.Connection
	// Failure is set after a failed attempt, Retry if its account is asked again.
	Failure *apierr.Error
	Retry   Retry

	headed   bool // an answer has begun
	settable bool // the wait for it is limited by the setting firstByteSeconds
	// unresolved is set if the attempt failed and its provider may have done the work.
	unresolved bool
	reserved   []reservation // of budgets, until used
	// Unbilled counts the attempt if no other call gets its usage, Counted is what budgets
	// have counted for it. They are set for an answer with the price Later.
	Unbilled *usage.Row
	Counted  map[string]int64
	Labels   []usage.Label // of Unbilled
}

// Former finds another form of a request that an upstream has refused.
type Former interface {
	// OtherForm reads an error that would end the call with a 4xx, or a 501, and its
	// body. It reports whether the same account may accept the request in another
	// form, or returns an error to return in place of e.
	OtherForm(e *apierr.Error, body []byte) (retry bool, instead *apierr.Error)
}

// Retry is the reason why an account is asked once more.
type Retry uint8

// The reasons.
const (
	NoRetry Retry = iota
	// Refreshed: the access token was renewed after a 401 or 403.
	Refreshed
	// OtherAPI: the server has no such endpoint; nothing was created.
	OtherAPI
	// OtherForm: the server refuses a field by its name.
	OtherForm
	// Again: the connection broke, or the answer was a 503, before anything was sent to
	// the client, and no other account can serve it.
	Again
)

// Used is what one answer used.
type Used struct {
	Tokens llm.Usage
	Media  *usage.Media // nil for an answer that is billed by tokens alone
	Price  Price
	USD    float64 // for Stated
}

// Price is how the cost of an answer is known.
type Price uint8

// The ways.
const (
	ByTokens Price = iota // by the price of the model, if what it is asked for is known
	Stated                // by the provider, or fixed
	Unknown
	Later // another call about the same work gets the usage, see Result.Bill
)

// StatedCost returns the Used of an answer whose cost the provider states; with
// known false it is unknown.
func StatedCost(usd float64, known bool) Used {
	if !known || usd < 0 {
		return Used{Price: Unknown}
	}
	return Used{Price: Stated, USD: usd}
}
