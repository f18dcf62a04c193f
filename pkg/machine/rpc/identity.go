package rpc

import (
	"encoding/json"

	"weir/pkg/people"
	"weir/pkg/wire/secret"
)

// Identity providers are stored in the registry.
//
//	idp.list      {}               200 {"data":[IdentityProvider]}
//	idp.put       IdentityProvider 200 {}; 409 for too many
//	idp.delete    {"id"}           200 {}; 404
//	signIn.spend  SpentState       200 {"fresh"}
//	signIn.failed FailedSignIn     200 {}
//	role.refused  RoleRefused      200 {}
//	signIn.list   SignInQuery      200 {"data":[record],"names":{"p_…":"name"},"next"}

// IdentityProvider is an issuer that people sign in with.
type IdentityProvider struct {
	ID           string        `json:"id"`
	Kind         string        `json:"kind,omitempty"` // of package oidc; "" for one that people sign in at
	Name         string        `json:"name"`
	Issuer       string        `json:"issuer"`
	ClientID     string        `json:"clientId"`
	ClientSecret secret.Sealed `json:"clientSecret,omitempty"` // for SealedAs and ClientSecretField
	Scopes       []string      `json:"scopes,omitempty"`
	Rules        []people.Rule `json:"rules"`
	CreatedAt    int64         `json:"createdAt"`
}

// ClientSecretField is the field that the secret of a client is sealed for.
const ClientSecretField = "clientSecret"

// SealedAs returns the name that the secrets of an identity provider are sealed for.
func (p *IdentityProvider) SealedAs() string { return "idp:" + p.ID }

// SpentState reports that a state was used, which is valid until a time in Unix seconds.
type SpentState struct {
	Digest string `json:"digest"`
	Until  int64  `json:"until"`
}

// SignInQuery asks for the newest records of the registry, before a number or 0.
type SignInQuery struct {
	Before int64 `json:"before,omitempty"`
}

// SignInRecords are records of the registry, the newest first. Names are those of the people in
// actors and targets; Next is the value of Before for the next page, 0 without one.
type SignInRecords struct {
	Data  []json.RawMessage `json:"data"`
	Names map[string]string `json:"names"`
	Next  int64             `json:"next,omitempty"`
}

// RoleRefused reports a call of a person whose role does not include it, for the audit.
type RoleRefused struct {
	Person    string `json:"person"`
	MachineID string `json:"machineId,omitempty"`
	Route     string `json:"route"` // with the method
}

// FailedSignIn reports a sign-in that was refused, for the audit.
type FailedSignIn struct {
	Provider string `json:"provider,omitempty"`
	Reason   string `json:"reason"` // a word
}
