package rpc

import (
	"encoding/json"

	"weir/pkg/wire/apierr"
)

// Passkeys are stored in the registry, by the digest of their credential id. They belong to people
// without an identity provider.
//
//	passkey.begin  PasskeyBegin  200 PasskeyFor; 401 no such invitation; 409
//	passkey.find   {"digest"}    200 Passkey; 403 passkey_unknown
//	passkey.list   {"person"}    200 {"data":[PasskeyView]}
//	passkey.add    Passkey       200 PasskeyView; 403 passkey_taken; 409
//	passkey.rename PasskeyChange 200 PasskeyView; 404
//	passkey.delete PasskeyChange 200 {}; 404; 409 for the only way to sign in

// Passkey is a stored passkey.
type Passkey struct {
	Digest     string          `json:"digest"`     // of the credential id: its own id here
	Credential string          `json:"credential"` // the credential id, in base64url
	Person     string          `json:"person"`
	Name       string          `json:"name"`
	Key        json.RawMessage `json:"key"` // a JWK
	Alg        string          `json:"alg"`
	Counter    uint32          `json:"counter"` // of signatures; 0 of an authenticator that counts none
	CreatedAt  int64           `json:"createdAt"`
	UsedAt     int64           `json:"usedAt,omitempty"`
}

// PasskeyBegin asks for whom a passkey is to be made: Person, or the person of an invitation by its digest,
// who is new, with the Subject, unless the invitation is a link of a person.
type PasskeyBegin struct {
	Person  string `json:"person,omitempty"`
	Invite  string `json:"invite,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// PasskeyFor is the person of a new passkey, and the credential ids of the passkeys that they have.
type PasskeyFor struct {
	Person  string   `json:"person"`
	Name    string   `json:"name,omitempty"`
	Exclude []string `json:"exclude"`
}

// PasskeyUse is a sign-in by a passkey whose signature is verified.
type PasskeyUse struct {
	Digest  string `json:"digest"`
	Counter uint32 `json:"counter"`
}

// PasskeyChange renames or deletes a passkey of a person.
type PasskeyChange struct {
	Person string `json:"person"`
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
}

// PasskeyView is a passkey as its person sees it. Times are Unix milliseconds.
type PasskeyView struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	CreatedAt int64  `json:"createdAt"`
	UsedAt    int64  `json:"usedAt,omitempty"`
}

// PasskeyRefused is how the codes of refusals begin that are reasons for the audit.
const PasskeyRefused = "passkey_"

// ErrPasskey returns the refusal of a passkey for a reason.
func ErrPasskey(reason string) error {
	return apierr.New(403, PasskeyRefused+reason, "The passkey was refused.")
}
