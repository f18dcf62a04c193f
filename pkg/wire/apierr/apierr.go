// Package apierr defines the error that a client may see.
package apierr

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"weir/pkg/wire/httpmsg"
)

// Error is an error that is safe to show to a client.
//
// The gateway writes it in the dialect of the endpoint: for OpenAI's it is
// {"error":{"message","type","param","code"}}. Err is the cause: it is logged
// after redaction and never sent.
type Error struct {
	Status     int            // HTTP status, 400–599
	Type       string         // "invalid_request_error", "rate_limit_error", …
	Code       string         // "model_not_found", …; may be empty
	Reason     string         // why the gateway refuses, if the code does not say it: store.RefusedBy…; never sent
	Param      string         // the offending field; may be empty
	Message    string         // no credential, no upstream address
	Said       bool           // the message is the upstream's own text
	Details    string         // raw JSON of error.details, which the Messages dialect shows; may be empty
	RetryAfter time.Duration  // sent in whole seconds, rounded up, and in milliseconds; zero sends none
	NoRetry    bool           // sends x-should-retry: false
	Header     httpmsg.Header // further fields of the answer
	// Own reports that type, code, parameter and message are the upstream's own
	// and are written unchanged in every dialect.
	Own bool
	// Body is the upstream's own JSON body, without credentials, which becomes
	// the answer's body. If empty, a body is written in the dialect.
	Body []byte
	// VendorCode is the upstream's own code, which Code has unless it was replaced
	// by one of the gateway; may be empty. See SetVendorCode.
	VendorCode string
	// Provider is the id of the provider whose answer, or missing answer, the error
	// reports, "" for an error of the gateway alone. Clients see it beside the code.
	Provider string
	// DocURL is the page that explains the code; may be empty.
	DocURL string
	Err    error
}

// MaxRetryWait is the longest wait after which a client's own retry makes sense.
const MaxRetryWait = time.Minute

// RetryIn sets the wait before the next request. After a longer one than
// MaxRetryWait the client must not retry by itself.
func (e *Error) RetryIn(wait time.Duration) {
	e.RetryAfter = wait
	if wait > MaxRetryWait {
		e.NoRetry = true
	}
}

// Error returns the message and the cause, for logs.
func (e *Error) Error() string {
	if e.Err != nil {
		return strings.TrimSuffix(e.Message, ".") + ": " + e.Err.Error()
	}
	return e.Message
}

// Told returns the message as a text of the gateway, of at most max bytes: what the
// upstream said is a quote.
func (e *Error) Told(max int) string {
	if !e.Said {
		return Shorten(e.Message, max)
	}
	const before, after = "Provider said: “", "”"
	said := strings.TrimSuffix(inner.Replace(e.Message), ".")
	return before + strings.TrimSpace(Shorten(said, max-len(before+after))) + after
}

// inner are the quotation marks in a quote, which do not end it.
var inner = strings.NewReplacer("“", "‘", "”", "’")

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Sentence returns a text that ends like a sentence: with a period, unless it has an
// end of its own.
func Sentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") {
		return text
	}
	return text + "."
}

// Invalid returns a 400 about the field param of the request.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Status: 400, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// StatusClientLeft and CodeClientLeft are those of a call whose client closed the
// connection.
const (
	StatusClientLeft = 499
	CodeClientLeft   = "client_closed"
)

// ClientLeft returns the failure of a call whose client closed the connection
// before the answer ended. It is only logged and listed.
func ClientLeft(cause error) *Error {
	return &Error{Status: StatusClientLeft, Type: "invalid_request_error", Code: CodeClientLeft,
		Message: "The client closed the connection.", Err: cause}
}

// Stopping returns the error of a call that the native server ends, or refuses, because
// it stops.
func Stopping() *Error {
	e := New(503, "stopping", "The gateway is stopping. Try again in a moment.")
	e.RetryAfter = time.Second
	return e
}

// New returns an error with a status and the type that OpenAI uses for it.
func New(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Type: TypeOf(status), Code: code, Message: fmt.Sprintf(format, args...)}
}

// TypeOf returns OpenAI's error type for a status (docs/reference/api-shapes.md, 16).
func TypeOf(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "insufficient_quota"
	case 403:
		return "permission_error"
	case 429:
		return "rate_limit_error"
	}
	if status >= 500 {
		return "server_error"
	}
	return "invalid_request_error"
}

// MessagesType returns the error type of the Messages API for a status
// (docs/reference/api-shapes.md, 8.6 and 16).
func MessagesType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 409:
		return "conflict_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, 529:
		return "overloaded_error"
	case 408, 504:
		return "timeout_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// Shorten returns at most max bytes of s, cut between characters.
func Shorten(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// maxName is the most bytes of a client's name that a message repeats.
const maxName = 100

// ShortName returns a client's name fit for a message.
func ShortName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return Shorten(name, maxName) + "…"
}
