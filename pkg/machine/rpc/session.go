package rpc

import "weir/pkg/store"

// Sessions of the dashboard. The operator's are stored in the registry, those of
// a manage key in its machine. Stored is the digest of the random id, never the
// id; docs/reference/reliability.md, T31, T32.
//
//	session.open   SessionOpen    200 Session
//	session.check  SessionCheck   200 Session; 401
//	session.end    SessionEnd     200 {}
//	session.failed SignInFailed   200 {}; 429        (registry)

// SessionOpen asks for a session.
type SessionOpen struct {
	Digest string `json:"digest"`          // SHA-256 of the id, hex
	KeyID  string `json:"keyId,omitempty"` // "" for the operator
	// KeyDigest is that of the key as it was presented: the session ends with this text.
	KeyDigest string `json:"keyDigest,omitempty"`
	// Bound is a digest of the operator's token: the session ends when the token
	// changes.
	Bound string `json:"bound,omitempty"`
	// From is a digest of the client's address, Address that itself; "" if it is not known.
	From    string `json:"from,omitempty"`
	Address string `json:"address,omitempty"`
	// Sid is the digest of the session at the identity provider, and Until when this one ends at the
	// latest, in Unix milliseconds; "" and 0 without.
	Sid   string `json:"sid,omitempty"`
	Until int64  `json:"until,omitempty"`
	// Replaces is the digest of a session that ends with this sign-in.
	Replaces string `json:"replaces,omitempty"`
}

// SessionCheck asks for the session of an id.
type SessionCheck struct {
	Digest string `json:"digest"`
	Bound  string `json:"bound"`
}

// SessionEnd ends a session, or every session of its owner.
type SessionEnd struct {
	Digest string `json:"digest"`
	All    bool   `json:"all"`
}

// SignInFailed reports a failed sign-in. From is a digest of the address, 32
// digits and lower-case letters. With a Reason it is recorded, with the network, unless the address has had
// too many.
type SignInFailed struct {
	From    string `json:"from"`
	Reason  string `json:"reason,omitempty"`
	Network string `json:"network,omitempty"` // of store.NetworkOf
}

// Session is a valid session. Times are Unix milliseconds.
type Session struct {
	Key       *store.Key `json:"key,omitempty"` // of its machine, without the digest; nil for the operator
	AuthAt    int64      `json:"authAt"`        // when the credential was presented last
	IdleAt    int64      `json:"idleAt"`        // ExpiresAt, for clients of before
	ExpiresAt int64      `json:"expiresAt"`
	// Person is the person of the session; nil for the operator and a key.
	Person *Person `json:"person,omitempty"`
}
