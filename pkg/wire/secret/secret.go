// Package secret declares credentials: in the clear, in a type that prints as
// ***, and encrypted.
package secret

import (
	"fmt"
	"io"
	"unsafe"
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

// Wipe overwrites the credential in memory with zeros. Only the owner of a text that is
// no constant may call it, once nothing uses the text any more.
func (s Secret) Wipe() {
	if len(s.v) > 1 { // Go shares the texts of one byte
		clear(unsafe.Slice(unsafe.StringData(s.v), len(s.v)))
	}
}

// Format prints *** for every verb, also those that ignore String.
func (Secret) Format(w fmt.State, _ rune) { io.WriteString(w, "***") }

func (Secret) String() string               { return "***" }
func (Secret) GoString() string             { return "***" }
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }
