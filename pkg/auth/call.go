// Package auth finds out who calls: the caller's API key, and the machine it
// belongs to. See docs/reference/spec.md, 5.1.
package auth

import (
	"weir/pkg/accounts"
	"weir/pkg/machine/rpc"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
)

// Call is a request with its caller.
type Call struct {
	*httpmsg.Request
	// Params are the values of the pattern's {parameters}, percent-decoded, in
	// order, without machineId.
	Params []string
	// Machine is the caller's machine; nil where a route needs none, and for
	// the operator.
	Machine *snapshot.Machine
	// Key is the key used; nil for the operator, and where no key is required.
	Key *store.Key
	// KeyDigest is the SHA-256 of the key as it was presented; zero for a session and a
	// client secret.
	KeyDigest [32]byte
	// Operator reports that the operator's token was used.
	Operator bool
	// Person is the person of a session, with the role on the machine; nil for any other caller.
	Person *rpc.Person
	// MachineID is the machine of the path or of the key. For the operator it
	// may name a machine that does not exist.
	MachineID string
	// ClientSecret is what the client secret of the call stands for; nil for any other
	// credential.
	ClientSecret *ClientSecret
	// OldSignIn reports that the call comes from a session of the dashboard whose sign-in
	// is more than five minutes ago.
	OldSignIn bool
	// MaxBody is the route's limit for the body, in bytes.
	MaxBody int64
	// Memory is what the call takes of the memory for large bodies and answers.
	Memory memory.Lease
	// Capture collects the bodies of the call; nil unless they are stored.
	Capture *capture.Bodies
	// SessionID is the number of the session of a call that is explained; 0 if the call
	// itself names its session.
	SessionID uint64
	// Trace records what became of the request.
	Trace accounts.Trace

	session routing.Session
}

// Session returns the conversation that the call belongs to.
func (c *Call) Session() *routing.Session {
	if c.session.Request == nil {
		c.session = routing.Session{Request: c.Request, Given: c.SessionID}
		if c.Key != nil {
			c.session.KeyID = c.Key.ID
		}
	}
	return &c.session
}

// Converse sets the body of the call's conversation, and whether its answer is a stream.
func (c *Call) Converse(body routing.Conversation, stream bool) *routing.Session {
	c.session.Request = nil
	s := c.Session()
	s.Conversation, s.Stream = body, stream
	return s
}

// Forget drops what refers to the body, once the answer is complete.
func (c *Call) Forget() { c.session.Conversation = nil }

// ReadBody reads the request's body whole, within the route's limit.
func (c *Call) ReadBody() ([]byte, error) { return c.ReadUpTo(c.MaxBody) }

// ReadUpTo reads the request's body whole, within a limit of its endpoint.
func (c *Call) ReadUpTo(maxBytes int64) ([]byte, error) {
	body, err := stream.ReadAll(c.Body, maxBytes)
	if c.Capture != nil && err == nil {
		c.Capture.Request(c.Header.Get("content-type"), body)
	}
	if err == nil && c.Machine != nil && len(c.Machine.Settings.TagsFrom) > 0 {
		c.Trace.FieldTags = store.TagsOfBody(body, c.Machine.Settings.TagsFrom)
	}
	return body, err
}
