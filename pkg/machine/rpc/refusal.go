package rpc

import (
	"strings"

	"weir/pkg/wire/apierr"
)

// The refusals of a caller. A hint depends on the form of the credential alone:
// every well-formed key that is not valid gets the answer of ErrInvalidKey,
// so that answers do not reveal which machines and keys exist
// (docs/reference/spec.md, 5.1; docs/reference/reliability.md, T4, T5).

const invalidKey = "invalid_api_key"

// ErrNoKey refuses a call without a credential.
func ErrNoKey() *apierr.Error {
	return apierr.New(401, invalidKey, `No API key. Send the header "Authorization: Bearer sk-…" or "x-api-key: sk-…", or "x-goog-api-key: sk-…" to the Gemini API. Keys are created on the page Keys of the dashboard. Routes under /api also accept the operator token.`)
}

// ErrNotBearer refuses an Authorization header of another form.
func ErrNotBearer() *apierr.Error {
	return apierr.New(401, invalidKey, `The Authorization header must have the form "Bearer <key>". The key may also be sent alone in the header x-api-key.`)
}

// ErrNotKey refuses a text that does not have the form of a key.
func ErrNotKey() *apierr.Error {
	return apierr.New(401, invalidKey, `This is not a key of this gateway. Its keys begin with sk- and the id of a machine: use one of those instead of a provider's key. The operator token is accepted on /api only.`)
}

// ErrNotToken is ErrNotKey for management, where another operator token is the likely cause.
func ErrNotToken() *apierr.Error {
	return apierr.New(401, invalidKey, `This is neither the operator token nor a key of this gateway. If the token was replaced, send the current one: ADMIN_TOKEN in secrets.json of the server's data directory, or in its environment. Keys begin with sk- and the id of a machine.`)
}

// ErrNeedsToken refuses a key on a route of the operator, whether it is valid or not.
func ErrNeedsToken() *apierr.Error {
	return apierr.New(401, invalidKey, `This route needs the operator token, not a key.`)
}

// ErrClientSecret refuses a client secret of the Realtime API, whatever is wrong with it.
func ErrClientSecret() *apierr.Error {
	return apierr.New(401, invalidKey, `Invalid client secret. It is unknown or expired, its API key was revoked, or its account is gone or refuses it. Create another one with POST /v1/realtime/client_secrets.`)
}

// ErrInvalidKey refuses a well-formed key: an unknown, revoked or expired one.
func ErrInvalidKey() *apierr.Error {
	return apierr.New(401, invalidKey, `Invalid API key. Check on the page Keys of the dashboard that it exists, belongs to the machine in the path, and has not expired.`)
}

// ErrScope refuses a key that is valid: its bearer may know what it lacks.
func ErrScope(has []string, needs string) *apierr.Error {
	return apierr.New(403, "scope_required", "This key has the scope %s; this needs %s. Use a key that has it: the page Keys of the dashboard creates one.",
		strings.Join(has, ", "), needs)
}
