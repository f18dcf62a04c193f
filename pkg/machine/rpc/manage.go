package rpc

import (
	"encoding/json"

	"weir/pkg/wire/apierr"
)

// ManageCall is a management call as it reaches the object with the operation
// "manage". The answer is a ManageAnswer, or a Failure.
type ManageCall struct {
	Method  string            `json:"method"`
	Route   string            `json:"route"` // the pattern, "/api/providers/{id}"
	Params  []string          `json:"params,omitempty"`
	Query   map[string]string `json:"query,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	IfMatch string            `json:"ifMatch,omitempty"`
	KeyID   string            `json:"keyId,omitempty"` // of the caller; "" for the operator
	// KeyDigest is that of the caller's key as it was presented; "" for a session.
	KeyDigest string `json:"keyDigest,omitempty"`
	// Person is the person who calls; nil for the operator and a key.
	Person *Person `json:"person,omitempty"`
	// SignIn is SignInOld for a session of the dashboard with an old sign-in, else "".
	SignIn     string `json:"signIn,omitempty"`
	MutationID string `json:"mutationId,omitempty"`
	// Check asks whether the change of a role is valid, and changes nothing.
	Check bool `json:"check,omitempty"`
	// Scan is where a scan of the list of requests goes on, from the object's answer to
	// the call before; 0 begins. It is never the caller's.
	Scan int64 `json:"scan,omitempty"`
	// Session and RedirectURI belong to an authorization that begins. The gateway
	// sets them; they are never the caller's text.
	Session     string `json:"session,omitempty"`
	RedirectURI string `json:"redirectUri,omitempty"`
	// IdentityProviders are those of the gateway, for a comparison of their secrets by the operator.
	IdentityProviders []IdentityProvider `json:"identityProviders,omitempty"`
	// People are the grants on the machine, for an encrypted export, or the person whose role changes
	// or whose invitation is withdrawn: with the note as Name, and an ID if it is a link of a known person.
	People []PersonGrant `json:"people,omitempty"`
}

// SignInOld marks a call of a session whose sign-in is more than five minutes ago.
const SignInOld = "old"

// ErrSignInAgain returns the refusal of a call that needs a recent sign-in.
func ErrSignInAgain() error {
	return apierr.New(403, "reauth_required", "Sign in again to do this: the last sign-in is more than five minutes ago.")
}

// ErrNoConnection returns the error for the id of no connection.
func ErrNoConnection() error {
	return apierr.New(404, "connection_not_found",
		"No account has this id. GET /api/providers lists the accounts.")
}

// ManageAnswer is the answer to a management call: its status, the generation of
// the answer's records as the ETag, and the body. 204 has no body.
type ManageAnswer struct {
	Status int             `json:"status"`
	ETag   string          `json:"etag,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}
