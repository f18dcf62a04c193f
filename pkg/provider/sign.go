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

// Sign signs a request for which Authorize returned ErrMustSign, for the service of the
// scheme and the connection's region. It is the last step, and repeated for each
// attempt: the signature covers body, URL and content-type. b is the further base that
// the request goes to, or nil.
//
// The error is ErrNoCredential for invalid keys and ErrIncomplete without a usable
// region.
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

// IsKeyID reports whether s is a valid access key id.
func IsKeyID(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' ||
			c == '_' || c == '~') {
			return false
		}
	}
	return s != ""
}
