package routing

import (
	"math"
	"math/bits"
	"slices"

	"weir/pkg/wire/httpmsg"
)

// Session is the conversation that a call belongs to. It is read when a strategy asks
// for it first: nothing is stored, and every isolate reads the same.
type Session struct {
	// Request has the header fields and the id of the call.
	Request *httpmsg.Request
	// KeyID is the id of the API key; "" for the operator.
	KeyID string
	// Conversation is the body. It is nil for an endpoint without conversations.
	Conversation Conversation
	// Stream reports that the client asks for a stream.
	Stream bool
	// Given is the number of the session, of a call that is explained; 0 for none.
	Given uint64

	id   uint64
	by   string
	read bool
}

// Conversation is the body of a request that continues a conversation.
type Conversation interface {
	// SessionField returns the field that names the session, and its value, both ""
	// without one.
	SessionField() (name, value string)
	// Opening returns the digest of the system prompt and the first message of the
	// user. It reports whether there is such a message.
	Opening() (Digest, bool)
}

// sessionHeaders are the fields by which tools name their session, in the order in which
// they are asked for. pkg/wire/clientheader says on which routes each one is read, and
// docs/routing.md which tool sends it.
var sessionHeaders = [...]string{
	"x-session-id",
	"x-session-affinity",
	"x-claude-code-session-id",
	"session-id",
	"session_id",
	"conversation_id",
	"x-client-session-id",
	"agent-session-id",
	"x-litellm-session-id",
	"x-openwebui-chat-id",
}

// NamesSession reports whether a field, in lower case, names a session.
func NamesSession(header string) bool { return slices.Contains(sessionHeaders[:], header) }

// Values of Session.By that are not fields.
const (
	ByOpening = "messages" // its first messages
	ByNumber  = "session"  // Session.Given
)

// ID returns the session as a number. A call without a session gets a number of its own.
func (s *Session) ID() uint64 {
	if !s.read {
		s.read = true
		s.id, s.by = s.find()
	}
	return s.id
}

// By returns the field by which the session is recognized, or how else. It is "" for
// a call without a session, and before ID.
func (s *Session) By() string { return s.by }

// Known returns the number of the session if a strategy has asked for it and the call has
// one, else 0.
func (s *Session) Known() uint64 {
	if s == nil || s.by == "" {
		return 0
	}
	return s.id
}

func (s *Session) find() (id uint64, by string) {
	if s.Given != 0 {
		return s.Given, ByNumber
	}
	for _, name := range sessionHeaders {
		if v := s.Request.Header.Get(name); v != "" {
			return DigestOf(v).sum(), name
		}
	}
	if s.Conversation != nil {
		if name, v := s.Conversation.SessionField(); v != "" {
			return DigestOf(v).sum(), name
		}
		if d, ok := s.Conversation.Opening(); ok {
			return d.sum(), ByOpening
		}
	}
	return DigestOf(s.Request.ID).sum(), ""
}

// split returns what the strategy weighted keeps together.
func (s *Session) split(byKey bool) uint64 {
	if byKey && s.KeyID != "" {
		return DigestOf(s.KeyID).sum()
	}
	return s.ID()
}

// Score ranks a name, an account or a member, for a session: the one with the highest
// score has the session. If names come or go, only their sessions move. A name of twice
// the weight has twice the sessions (weighted rendezvous hashing, Schindelhauer and
// Schomaker 2005).
func Score(session uint64, name string, weight int) float64 {
	h := DigestOf(name).Add(session).sum()
	u := (float64(h>>11) + 0.5) / (1 << 53) // within (0, 1)
	return -float64(weight) / math.Log(u)
}

// Digest is a hash of texts that is the same on every platform. It is quick in wasm
// and not made for secrets.
type Digest uint64

// DigestOf returns the digest of a text.
func DigestOf(text string) Digest { return Digest(0x9e3779b97f4a7c15).Text(text) }

// Text adds a text.
func (d Digest) Text(s string) Digest {
	d = d.Add(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		d = d.Add(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	var rest uint64
	for i := range len(s) {
		rest |= uint64(s[i]) << (8 * i)
	}
	return d.Add(rest)
}

// Add adds a number.
func (d Digest) Add(x uint64) Digest {
	hi, lo := bits.Mul64(uint64(d)^x, 0xd6e8feb86659fd93)
	return Digest(hi ^ lo ^ bits.RotateLeft64(x, 29))
}

// sum spreads the digest over all bits.
func (d Digest) sum() uint64 {
	x := uint64(d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
