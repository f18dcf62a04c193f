// Package passkey verifies passkeys: credentials of WebAuthn Level 2 that sign with ES256 or RS256.
// No attestation is asked for, so a new passkey proves nothing but that a browser of this gateway's
// page has sent it; the invitation or the session it comes with says whose it is.
package passkey

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"strings"

	"weir/pkg/auth/oidc"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// Reasons for which a passkey is refused.
const (
	errForm       oidc.Refusal = "passkey_malformed"
	errType       oidc.Refusal = "passkey_type" // of a registration where a sign-in is asked for, or the reverse
	errOrigin     oidc.Refusal = "passkey_origin"
	errHost       oidc.Refusal = "passkey_host" // the RP id is another one
	errUnverified oidc.Refusal = "passkey_unverified"
	errKey        oidc.Refusal = "passkey_key"
	errSignature  oidc.Refusal = "passkey_signature"
	errChallenge  oidc.Refusal = "passkey_challenge"
	errOld        oidc.Refusal = "passkey_expired"
	// ErrUsed reports a challenge that was used before.
	ErrUsed oidc.Refusal = "passkey_used"
	// ErrPerson reports a user handle of another person than the passkey's.
	ErrPerson oidc.Refusal = "passkey_person"
)

// Bounds, in bytes.
const (
	maxBytes      = 4 << 10 // of a member
	maxCredential = 1023    // WebAuthn, 4: Credential ID
)

// Bytes are binary data, in JSON as base64url without padding.
type Bytes []byte

// UnmarshalText accepts the one spelling of base64url.
func (b *Bytes) UnmarshalText(text []byte) error {
	if base64.RawURLEncoding.DecodedLen(len(text)) > maxBytes || bytes.ContainsAny(text, "\r\n") {
		return errForm
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(text))
	if err != nil {
		return errForm
	}
	*b = raw
	return nil
}

// Registration is what a browser returns of a new passkey: getPublicKey and so on of its response.
type Registration struct {
	ClientData Bytes `json:"clientDataJSON"`
	AuthData   Bytes `json:"authenticatorData"`
	PublicKey  Bytes `json:"publicKey"` // SubjectPublicKeyInfo
	Algorithm  int   `json:"algorithm"` // of COSE
}

// Assertion is what a browser returns of a sign-in.
type Assertion struct {
	ID         Bytes `json:"id"`
	ClientData Bytes `json:"clientDataJSON"`
	AuthData   Bytes `json:"authenticatorData"`
	Signature  Bytes `json:"signature"`
	UserHandle Bytes `json:"userHandle"`
}

// Site is where passkeys are used: the RP id and the one origin.
type Site struct{ ID, Origin string }

// SiteOf returns the site of an origin, in plain spelling. A passkey belongs to a name, and to a page
// that is loaded over TLS or from this computer.
func SiteOf(origin string) (Site, error) {
	scheme, host, _ := strings.Cut(origin, "://")
	name, _, _ := strings.Cut(host, ":")
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	if _, err := netip.ParseAddr(name); err == nil || name == "" || name[0] == '[' ||
		scheme != "https" && !(scheme == "http" && local) {
		return Site{}, apierr.New(400, "passkey_address",
			"Passkeys work at https://NAME and at http://localhost, not at %s. Open the gateway by its name, or set PUBLIC_URL.",
			apierr.Shorten(origin, 100))
	}
	return Site{name, origin}, nil
}

// Flags of authenticator data: WebAuthn, 6.1.
const (
	userPresent    = 1 << 0
	userVerified   = 1 << 2
	backupEligible = 1 << 3
	backupState    = 1 << 4
	attestedData   = 1 << 6
	extensionData  = 1 << 7
)

// authData is authenticator data: WebAuthn, 6.1.
type authData struct {
	flags   byte
	counter uint32
	rest    []byte
}

const authDataLen = sha256.Size + 1 + 4

// read checks what a registration and a sign-in have in common, and returns the challenge too.
func (s Site) read(kind string, clientData, raw []byte) (challenge string, d authData, err error) {
	doc, err := jsonscan.Read(clientData, "type", "challenge", "origin", "crossOrigin", "topOrigin")
	if err != nil {
		return "", d, errForm
	}
	text := func(name string) string { v, _, _ := doc.String(name); return v }
	cross, _, crossErr := doc.Bool("crossOrigin")
	switch {
	case text("type") != kind:
		return "", d, errType
	case text("origin") != s.Origin || cross || crossErr != nil || doc.Has("topOrigin"):
		return "", d, errOrigin
	case len(raw) < authDataLen:
		return "", d, errForm
	}
	d = authData{raw[sha256.Size], binary.BigEndian.Uint32(raw[sha256.Size+1:]), raw[authDataLen:]}
	host := sha256.Sum256([]byte(s.ID))
	switch {
	case !bytes.Equal(raw[:sha256.Size], host[:]):
		return "", d, errHost
	case d.flags&userPresent == 0 || d.flags&userVerified == 0:
		return "", d, errUnverified
	case d.flags&backupState != 0 && d.flags&backupEligible == 0:
		return "", d, errForm
	}
	return text("challenge"), d, nil
}

// Check returns the new passkey and its challenge, which is not checked.
func (r *Registration) Check(s Site) (p rpc.Passkey, challenge string, err error) {
	challenge, d, err := s.read("webauthn.create", r.ClientData, r.AuthData)
	if err != nil {
		return p, "", err
	}
	const head = 16 + 2 // AAGUID, and the length of the id
	if d.flags&attestedData == 0 || len(d.rest) < head {
		return p, "", errForm
	}
	n := int(binary.BigEndian.Uint16(d.rest[head-2:]))
	if n == 0 || n > maxCredential || len(d.rest) <= head+n { // the public key follows
		return p, "", errForm
	}
	id := d.rest[head : head+n]
	p = rpc.Passkey{Digest: rpc.KeyDigest(string(id)), Credential: base64.RawURLEncoding.EncodeToString(id),
		Counter: d.counter}
	p.Key, p.Alg, err = publicKey(r.PublicKey, r.Algorithm)
	return p, challenge, err
}

// Check returns the challenge and the counter of a sign-in, neither of which is checked, nor the signature.
func (a *Assertion) Check(s Site) (challenge string, counter uint32, err error) {
	challenge, d, err := s.read("webauthn.get", a.ClientData, a.AuthData)
	switch {
	case err != nil:
		return "", 0, err
	case d.flags&attestedData != 0 || (d.flags&extensionData != 0) != (len(d.rest) > 0) || len(a.ID) == 0 ||
		len(a.ID) > maxCredential:
		return "", 0, errForm
	}
	return challenge, d.counter, nil
}

// Verify checks the signature of a sign-in.
func (a *Assertion) Verify(ctx context.Context, verify oidc.Verify, key []byte, alg string) error {
	hash := sha256.Sum256(a.ClientData)
	sig := []byte(a.Signature)
	if alg == "ES256" {
		var ok bool
		if sig, ok = plainSignature(sig); !ok {
			return errSignature
		}
	}
	ok, err := verify(ctx, key, alg, append(bytes.Clone(a.AuthData), hash[:]...), sig)
	if err == nil && !ok {
		err = errSignature
	}
	return err
}
