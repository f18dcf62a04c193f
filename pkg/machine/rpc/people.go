package rpc

import (
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
)

// People are stored in the registry.
//
//	person.signIn PersonSignIn   200 Session; 401 no such invitation or token; 403 no access
//	person.seen   PersonSeen     200 Session, which is not stored; 403 no access
//	person.end    PersonEnd      200 {}; 404
//	person.list   PeopleQuery    200 PeopleList
//	person.names  PeopleNames    200 {"p_…":"name"}
//	person.set    PersonSet      200 {}; 404
//	person.export PeopleQuery    200 PeopleGrants
//	person.import PeopleGrants   200 {}
//	invite.create InviteCreate   200 Invitation
//	invite.show   {"digest"}     200 InvitationOffer; 401 no such invitation
//	invite.delete {"machineId","id"} 200 Invitation

// PersonSignIn asks for a session of a person: of an Identity with the roles of the rules of its
// provider, of a personal Token or a Passkey, or of an invitation alone, whose person has the Name and signs
// in by NewToken or NewPasskey from then on.
type PersonSignIn struct {
	Identity *people.Identity `json:"identity,omitempty"`
	Roles    people.Grants    `json:"roles,omitempty"`
	Token    string           `json:"token,omitempty"`    // its digest
	Invite   string           `json:"invite,omitempty"`   // the digest of an invitation; "" for none
	Name     string           `json:"name,omitempty"`     // of a person without an identity
	NewToken string           `json:"newToken,omitempty"` // the digest of the token of such a person
	Session  SessionOpen      `json:"session"`
	Passkey  *PasskeyUse      `json:"passkey,omitempty"`
	// NewPasskey is of the person of PasskeyBegin with the Subject.
	NewPasskey *Passkey `json:"newPasskey,omitempty"`
	Subject    string   `json:"subject,omitempty"`
}

// Person is the person of a session or of a call.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Roles are those of now, in a session; Role and Template those on the machine of a call.
	Roles    people.Grants    `json:"roles,omitempty"`
	Role     people.Role      `json:"role,omitempty"`
	Template *people.Template `json:"template,omitempty"`
	// SeenAt is when the roles were read. A removal since then refuses the call.
	SeenAt int64 `json:"seenAt,omitempty"`
}

// PersonSeen asks for the roles of a person whom a proxy has shown, with the roles of its rules.
type PersonSeen struct {
	Identity  *people.Identity `json:"identity"`
	Roles     people.Grants    `json:"roles,omitempty"`
	At, Until int64            // of the proxy's token, Unix milliseconds
}

// PersonEnd ends the sessions of a person, of all people with All, or those of a session at an
// identity provider with Sid. With MachineID the person must have a role on that machine.
type PersonEnd struct {
	ID        string `json:"id,omitempty"`
	All       bool   `json:"all,omitempty"`
	Sid       string `json:"sid,omitempty"`
	MachineID string `json:"machineId,omitempty"`
	By        string `json:"by"` // the actor
}

// PeopleQuery asks for the people of a machine.
type PeopleQuery struct {
	MachineID string `json:"machineId"`
}

// PeopleNames asks for the names of people: of those whom the machine knows, "" for all.
type PeopleNames struct {
	MachineID string   `json:"machineId,omitempty"`
	IDs       []string `json:"ids"`
}

// PersonView is a person as owners see them. Template is that of their own keys.
type PersonView struct {
	ID        string           `json:"id"`
	Name      string           `json:"name,omitempty"`
	Email     string           `json:"email,omitempty"`
	Issuer    string           `json:"issuer,omitempty"` // "" for a person of an invitation alone
	Role      people.Role      `json:"role"`
	Template  *people.Template `json:"template,omitempty"`
	ByRule    bool             `json:"byRule,omitempty"` // of the provider, at the last sign-in
	FirstSeen int64            `json:"firstSeen"`
	LastSeen  int64            `json:"lastSeen"`
	Sessions  int              `json:"sessions"`
}

// InviteCreate asks for an invitation. Person is the id of a person who is to get another
// sign-in link, instead of a role.
type InviteCreate struct {
	Digest    string           `json:"digest"`
	MachineID string           `json:"machineId"`
	Role      people.Role      `json:"role,omitempty"`
	Template  *people.Template `json:"template,omitempty"`
	Note      string           `json:"note,omitempty"` // whom it is for
	By        string           `json:"by"`             // the actor
	Person    string           `json:"person,omitempty"`
	// Provider refuses a sign-in by the link alone.
	Provider bool `json:"provider,omitempty"`
}

// Invitation is one as owners see it. ID is the beginning of the digest.
type Invitation struct {
	ID        string           `json:"id"`
	Role      people.Role      `json:"role,omitempty"`
	Template  *people.Template `json:"template,omitempty"`
	Note      string           `json:"note,omitempty"`
	By        string           `json:"by,omitempty"`
	Person    string           `json:"person,omitempty"`
	Provider  bool             `json:"provider,omitempty"`
	ExpiresAt int64            `json:"expiresAt"`
}

// InvitationOffer is an invitation as the holder of its secret sees it. The Role is "" of a link for someone who is
// to sign in again.
type InvitationOffer struct {
	Machine   string      `json:"machine"`      // its name, or the id
	By        string      `json:"by,omitempty"` // who made it: the name of a person, or a text for the operator
	Role      people.Role `json:"role,omitempty"`
	Provider  bool        `json:"provider,omitempty"`
	ExpiresAt int64       `json:"expiresAt"`
	// BudgetUSD and BudgetWindow are those of the template.
	BudgetUSD    float64 `json:"budgetUsd,omitempty"`
	BudgetWindow string  `json:"budgetWindow,omitempty"`
}

// PeopleList is the answer to a PeopleQuery.
type PeopleList struct {
	People      []PersonView `json:"people"`
	Invitations []Invitation `json:"invitations"`
}

// PersonSet sets the role of a person on a machine. None removes the person.
type PersonSet struct {
	ID        string       `json:"id"`
	MachineID string       `json:"machineId"`
	Grant     people.Grant `json:"grant"`
	By        string       `json:"by"` // the actor
}

// PersonGrant is the grant of a person on a machine as exports have it. The role None is that of a person who
// was removed. Without a rule and a grant there is no access.
type PersonGrant struct {
	ID       string           `json:"id"`
	Issuer   string           `json:"issuer"`
	Name     string           `json:"name,omitempty"`
	Email    string           `json:"email,omitempty"`
	Role     people.Role      `json:"role"`
	Template *people.Template `json:"template,omitempty"`
}

// PeopleGrants are the grants on a machine.
type PeopleGrants struct {
	MachineID string        `json:"machineId"`
	People    []PersonGrant `json:"people"`
	By        string        `json:"by,omitempty"` // the actor of an import
}

// ErrNoAccess returns the refusal of a person without a role.
func ErrNoAccess() error {
	return apierr.New(403, "no_access",
		"You have no access to this gateway yet. Ask an owner of a machine for an invitation.")
}

// ErrRole returns the refusal of a person whose role does not include what was asked for.
func ErrRole() error {
	return apierr.New(403, "role_required", "Your role on this machine does not include this. Ask one of its owners.")
}

// ErrOperator returns the refusal of a person where no role is enough.
func ErrOperator() error {
	return apierr.New(403, "role_required", "Only the operator may do this. Sign in with the operator token.")
}

// ErrInvitation returns the refusal of an invitation that does not exist, was used, or is over.
func ErrInvitation() error {
	return apierr.New(401, "invitation_invalid",
		"This invitation was used, has expired, or does not exist. Ask for another one.")
}
