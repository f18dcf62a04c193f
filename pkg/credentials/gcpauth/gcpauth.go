// Package gcpauth exchanges a Google service account's key for access tokens, by a
// signed assertion (RFC 7523).
//
// Source: developers.google.com/identity/protocols/oauth2/service-account,
// "HTTP/REST". The platform signs: crypto/rsa with crypto/x509 would lengthen the start
// of the program.
package gcpauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// Signer signs data with RSASSA-PKCS1-v1_5 and SHA-256. pkcs8 is the private key in
// DER. It returns an error if that is not an RSA key.
type Signer func(ctx context.Context, pkcs8, data []byte) ([]byte, error)

// Key has the used fields of a service account's key file. URLs in the file are
// ignored: the provider's row has the token endpoint (docs/reference/reliability.md,
// T61).
type Key struct {
	Email     string // of the service account
	KeyID     string
	ProjectID string
	pkcs8     []byte
}

// ErrKey reports that a key file cannot be used. It is wrapped with the field
// that is missing or malformed, and never quotes one.
var ErrKey = errors.New("the service account's key file cannot be used")

const (
	maxFile = 32 << 10
	grant   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// life is how long an assertion is valid; Google accepts at most an hour.
	life = time.Hour
	// skew is how far the clocks may differ (docs/reference/reliability.md,
	// T62).
	skew = 60 * time.Second
)

// ParseKey reads a key file:
//
//	{"type":"service_account","client_email":"…","private_key_id":"…","private_key":"-----BEGIN PRIVATE KEY-----…","project_id":"…"}
func ParseKey(file secret.Secret) (*Key, error) {
	raw := file.Reveal()
	if len(raw) > maxFile {
		return nil, fmt.Errorf("over %d bytes: %w", maxFile, ErrKey)
	}
	var f struct {
		Type    string `json:"type"`
		Email   string `json:"client_email"`
		KeyID   string `json:"private_key_id"`
		Project string `json:"project_id"`
		Private string `json:"private_key"`
	}
	if json.Unmarshal([]byte(raw), &f) != nil {
		return nil, fmt.Errorf("not its JSON: %w", ErrKey)
	}
	block, _ := pem.Decode([]byte(f.Private))
	switch {
	case f.Type != "service_account":
		return nil, fmt.Errorf("type: %w", ErrKey)
	case !strings.Contains(f.Email, "@") || len(f.Email) > 320:
		return nil, fmt.Errorf("client_email: %w", ErrKey)
	case len(f.KeyID) > 256:
		return nil, fmt.Errorf("private_key_id: %w", ErrKey)
	case block == nil || block.Type != "PRIVATE KEY" || len(block.Bytes) == 0:
		return nil, fmt.Errorf("private_key is no PKCS #8 key in PEM: %w", ErrKey)
	}
	return &Key{Email: f.Email, KeyID: f.KeyID, ProjectID: f.Project, pkcs8: block.Bytes}, nil
}

// Format prints no part of the private key.
func (k *Key) Format(w fmt.State, _ rune) { fmt.Fprintf(w, "key of %s", k.Email) }

// Assertion returns the signed assertion to exchange at tokenURL. It is valid for an
// hour. scope is a list separated by blanks.
func Assertion(ctx context.Context, sign Signer, k *Key, scope, tokenURL string, now time.Time) (string, error) {
	issued := now.Add(-skew).Unix()
	head := []byte(`{"alg":"RS256","typ":"JWT"`)
	if k.KeyID != "" {
		head = jsonscan.Quote(append(head, `,"kid":`...), k.KeyID)
	}
	head = append(head, '}')
	claims := jsonscan.Quote([]byte(`{"iss":`), k.Email)
	claims = jsonscan.Quote(append(claims, `,"scope":`...), scope)
	claims = jsonscan.Quote(append(claims, `,"aud":`...), tokenURL)
	claims = fmt.Appendf(claims, `,"iat":%d,"exp":%d}`, issued, issued+int64(life/time.Second))

	out := base64.RawURLEncoding.AppendEncode(nil, head)
	out = base64.RawURLEncoding.AppendEncode(append(out, '.'), claims)
	sig, err := sign(ctx, k.pkcs8, out)
	if err != nil {
		return "", fmt.Errorf("sign for %s: %w", k.Email, err)
	}
	return string(base64.RawURLEncoding.AppendEncode(append(out, '.'), sig)), nil
}

// Token requests an access token for a service account. It has no refresh token; the
// caller stores it until it expires. A failure of the token endpoint is an
// *oauth.Failure, of kind Reauth if the key is revoked or unknown.
func Token(ctx context.Context, do upstream.Doer, s Signer, k *Key, scope, tokenURL string,
	now time.Time) (oauth.Token, error) {
	assertion, err := Assertion(ctx, s, k, scope, tokenURL, now)
	if err != nil {
		return oauth.Token{}, err
	}
	// An assertion is base64url and dots: nothing to escape.
	body := "grant_type=" + strings.ReplaceAll(grant, ":", "%3A") + "&assertion=" + assertion
	req := oauth.Form(tokenURL, []byte(body))
	req.HeaderTimeout, req.Timeout = oauth.RefreshTimeout, oauth.RefreshTimeout
	status, header, answer, err := oauth.Answer(ctx, do, req)
	if err != nil {
		return oauth.Token{}, err
	}
	t, err := oauth.ReadToken(status, header, answer, now)
	t.Refresh = secret.Secret{}
	return t, err
}
