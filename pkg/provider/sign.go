package provider

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/pkg/credentials/sigv4"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

// Sign signs a request where Authorize said ErrMustSign, for the service that
// the scheme names and the connection's region. It comes last: body, address
// and content-type are signed, and so each attempt again. b is the further base
// that the request goes to, or nil.
//
// ErrNoCredential: keys that cannot be. ErrIncomplete: no usable region.
func Sign(req *upstream.Request, d *Descriptor, b *Base, conn *store.Connection, cred Credential, now time.Time) error {
	a := &d.Auth
	if b != nil {
		a = &b.Auth
	}
	id := cred.AccessKeyID
	if id.IsZero() {
		id = cred.APIKey
	}
	err := sigv4.Sign(req, sigv4.Keys{
		AccessKeyID: id.Reveal(), SecretAccessKey: cred.SecretAccessKey.Reveal(), SessionToken: cred.SessionToken.Reveal(),
	}, sigv4.Scope{
		Region:  strings.ToLower(conn.Data.Vars["region"]), // as in the host's name
		Service: a.Service,
	}, now)
	switch {
	case errors.Is(err, sigv4.ErrKeys):
		return fmt.Errorf("%w: %w", ErrNoCredential, err)
	case errors.Is(err, sigv4.ErrScope):
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return err
}

// IsKeyID reports whether s can be the access key id of a signature.
func IsKeyID(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~') {
			return false
		}
	}
	return s != ""
}
