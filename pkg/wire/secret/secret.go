// Package secret declares credentials: in the clear, in a type that prints as
// ***, and encrypted.
package secret

import (
	"fmt"
	"io"
)

// Secret is a credential in the clear. It prints as ***, in every format and
// in JSON; only provider and redact reveal it.
type Secret struct{ v string }

// New wraps a credential.
func New(v string) Secret { return Secret{v} }

// Reveal returns the credential. Only provider calls it, to send it, and redact,
// to find it.
func (s Secret) Reveal() string { return s.v }

// IsZero reports whether there is no credential.
func (s Secret) IsZero() bool { return s.v == "" }

// Format prints *** for every verb, also those that ignore String.
func (Secret) Format(w fmt.State, _ rune) { io.WriteString(w, "***") }

func (Secret) String() string               { return "***" }
func (Secret) GoString() string             { return "***" }
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }
