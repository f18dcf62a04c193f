package machine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
)

// The registry has the people of all machines, their sessions and the invitations. Machines know
// a person by the id alone. Roles are read with each call, so that a removal counts at once.

const (
	personPrefix = "person:" // and the id
	tokenPrefix  = "ptoken:" // and the digest of a personal sign-in token: the id of its person
	invitePrefix = "invite:" // and the digest of the link's secret

	inviteLife        = 7 * storage.Day
	maxInvites        = 200
	maxPeople         = 2000
	maxPersonSessions = 10
	personName        = 200 // bytes
	profileField      = "profile"
	// linkIssuer is the issuer of people without an identity provider: they come by a link, and sign in by a
	// token or by passkeys.
	linkIssuer = "weir"
)

// personRow is a person in the registry. Profile has the name and the e-mail address, sealed.
type personRow struct {
	ID        string        `json:"id"`
	Issuer    string        `json:"issuer"`
	Profile   secret.Sealed `json:"profile"`
	Rules     people.Grants `json:"rules,omitempty"` // by the claims of the last sign-in
	Grants    people.Grants `json:"grants,omitempty"`
	Token     string        `json:"token,omitempty"`    // the digest of the personal sign-in token
	Passkeys  []string      `json:"passkeys,omitempty"` // their digests
	Places    []string      `json:"places,omitempty"`   // digests of the addresses of sign-ins
	FirstSeen int64         `json:"firstSeen"`
	LastSeen  int64         `json:"lastSeen"`
}

type profile struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// roles returns the roles that count now.
func (p *personRow) roles() people.Grants { return people.Merge(p.Rules, p.Grants) }

// knownTo reports whether the person has a role on a machine or was removed from it. Others do not
// exist for its owners.
func (p *personRow) knownTo(machineID string) bool {
	_, granted := p.Grants[machineID]
	return granted || p.roles().Of(machineID).Role.Valid()
}

// renewedBy reports whether an invitation may renew the token of the person: whoever opens it has all
// their roles, so an owner makes none for a person of other machines.
func (p *personRow) renewedBy(in *rpc.InviteCreate) bool {
	if in.By == "operator" {
		return true
	}
	for machine, g := range p.roles() {
		if machine != in.MachineID && g.Role.Valid() {
			return false
		}
	}
	return true
}

// inviteRow is an invitation. It is deleted when it is used.
type inviteRow struct {
	rpc.InviteCreate
	ExpiresAt int64 `json:"expiresAt"`
}

func loadPerson(t *storage.Tx, id string) (p personRow, ok bool) {
	ok = people.IsID(id) && t.Load(personPrefix+id, &p)
	return p, ok
}

// profileOf returns the profile of a person, an empty one if the keyring does not open it.
func (o *Object) profileOf(p *personRow) profile {
	out, _ := o.openProfile(p)
	return out
}

func (o *Object) openProfile(p *personRow) (out profile, err error) {
	plain, err := o.Keyring.Open(rpc.RegistryID, personPrefix+p.ID, profileField, p.Profile)
	if err == nil {
		err = json.Unmarshal([]byte(plain.Reveal()), &out)
	}
	return out, err
}

// putPerson stores a person with a profile. An empty one does not replace what only another key opens.
func (o *Object) putPerson(t *storage.Tx, p *personRow, is profile) error {
	if is == (profile{}) && p.Profile != "" {
		if _, err := o.openProfile(p); err != nil {
			putRegistry(t, personPrefix+p.ID, p)
			return nil
		}
	}
	is.Name, is.Email = apierr.Shorten(is.Name, personName), apierr.Shorten(is.Email, personName)
	sealed, err := o.Keyring.Seal(rpc.RegistryID, personPrefix+p.ID, profileField, secret.New(string(storage.Encode(is))))
	if err != nil {
		return err
	}
	p.Profile = sealed
	putRegistry(t, personPrefix+p.ID, p)
	return nil
}

// putRegistry stores a row of the registry, which is never published.
func putRegistry(t *storage.Tx, key string, row any) {
	t.Meta.ID = rpc.RegistryID
	t.Meta.Generation++
	t.Put(key, row)
}

// takeInvite returns the invitation of a sign-in and spends it. It returns nil for a sign-in without one.
func takeInvite(t *storage.Tx, in *rpc.PersonSignIn) (*inviteRow, error) {
	if in.Invite == "" {
		return nil, nil
	}
	row, err := openInvite(t, in.Invite)
	if err == nil && row.Provider && in.Identity == nil {
		err = rpc.ErrInvitation()
	}
	if err != nil {
		return nil, err
	}
	t.Del(invitePrefix + in.Invite)
	return row, nil
}

// openInvite returns the invitation of a digest, which may be accepted.
func openInvite(t *storage.Tx, digest string) (*inviteRow, error) {
	var row inviteRow
	if !rpc.IsDigest(digest) || !t.Load(invitePrefix+digest, &row) || row.ExpiresAt <= t.Now {
		return nil, rpc.ErrInvitation()
	}
	if maker, ok := strings.CutPrefix(row.By, "person:"); ok { // who may have lost the role since
		if p, _ := loadPerson(t, maker); p.roles().Of(row.MachineID).Role != people.Owner {
			return nil, rpc.ErrInvitation()
		}
	}
	if row.Person != "" {
		if p, err := ownPerson(t, row.Person); err != nil || !p.renewedBy(&row.InviteCreate) {
			return nil, rpc.ErrInvitation()
		}
	}
	return &row, nil
}

// personSignIn opens a session for a person who has a role, or gets one by an invitation. An
// invitation is spent in the turn that opens its session.
func (o *Object) personSignIn(r *storage.Call) (any, error) {
	var in rpc.PersonSignIn
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Session.Digest) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	invite, err := takeInvite(r.Tx, &in)
	if err != nil {
		return nil, err
	}
	p, is, err := o.personOf(r.Tx, &in, invite)
	if err != nil {
		return nil, err
	}
	if p.roles().Any() {
		o.personSignedIn(r.Tx, p, is.Name, &in.Session)
	}
	if err := o.admit(r, p, is); err != nil {
		return nil, err
	}
	dropSessions(r.Tx, in.Session.Replaces, func(s *sessionRow) bool { return s.Person == p.ID }, maxPersonSessions)
	row := sessionRow{Person: p.ID, CreatedAt: r.Now, SeenAt: r.Now, Sid: in.Session.Sid, Until: in.Session.Until}
	r.Put(sessionPrefix+in.Session.Digest, row)
	rec := storage.Record{Actor: "person:" + p.ID, Action: "sign-in"}
	if invite != nil {
		rec.Target = invite.By
		if rec.Action = "link.use"; invite.Person == "" {
			rec.Action = "invitation.accept"
			rec.Fields = []string{string(invite.Role) + " of " + machineName(r.Tx, invite.MachineID)}
		}
	}
	registryAudit(r.Tx, rec)
	return o.ofPerson(&row, p, r.Now), nil
}

// admit stores a person who has a role, and refuses anyone else, with a record of the first times.
func (o *Object) admit(r *storage.Call, p *personRow, is profile) error {
	if !p.roles().Any() {
		if err := attempt(r, storage.DigestOf("no role", p.ID), attemptMost); err != nil {
			return err
		}
		registryAudit(r.Tx, storage.Record{Actor: "person:" + p.ID, Action: "sign-in.refused", Fields: []string{"no_access"}})
		if err := r.Commit(); err != nil {
			return err
		}
		return rpc.ErrNoAccess()
	}
	if p.FirstSeen == 0 {
		if len(r.List(personPrefix)) >= maxPeople {
			return apierr.New(409, "too_many", "A gateway has at most %d people. Remove some.", maxPeople)
		}
		p.FirstSeen = r.Now
	}
	p.LastSeen = r.Now
	return o.putPerson(r.Tx, p, is)
}

// personSeen returns the session of a person whom a proxy shows with each call. It stores changed
// roles at once, and once a minute that the person was seen.
func (o *Object) personSeen(r *storage.Call) (any, error) {
	var in rpc.PersonSeen
	if json.Unmarshal(r.Body, &in) != nil || in.Identity == nil {
		return nil, apierr.Invalid("identity", "identity is not valid.")
	}
	before, _ := loadPerson(r.Tx, in.Identity.ID())
	p, is, err := o.personOf(r.Tx, &rpc.PersonSignIn{Identity: in.Identity, Roles: in.Roles}, nil)
	if err != nil {
		return nil, err
	}
	same := len(before.Rules)+len(p.Rules) == 0 || bytes.Equal(storage.Encode(before.Rules), storage.Encode(p.Rules))
	if !same || !p.roles().Any() || r.Now >= before.LastSeen+sessionTouch {
		if err := o.admit(r, p, is); err != nil {
			return nil, err
		}
		if r.Now >= before.LastSeen+sessionLife {
			registryAudit(r.Tx, storage.Record{Actor: "person:" + p.ID, Action: "sign-in"})
		}
	}
	row := sessionRow{Person: p.ID, CreatedAt: in.At, SeenAt: r.Now, Until: in.Until}
	return o.ofPerson(&row, p, r.Now), nil
}

// forgetMachine drops the roles and the invitations of a machine that is deleted. People without
// any role left are forgotten.
func forgetMachine(t *storage.Tx, id string) {
	storage.RemoveIf(t, invitePrefix, func(_ string, i inviteRow) bool { return i.MachineID == id })
	for _, p := range storage.RowsOf[personRow](t, personPrefix) {
		_, ruled := p.Rules[id]
		_, granted := p.Grants[id]
		if !ruled && !granted {
			continue
		}
		delete(p.Rules, id)
		if delete(p.Grants, id); len(p.Rules)+len(p.Grants) > 0 {
			t.Put(personPrefix+p.ID, p)
			continue
		}
		t.Del(personPrefix + p.ID)
		dropCredentials(t, &p)
		endSessions(t, ofPerson(p.ID))
	}
}

// personOf returns the person who signs in, by an invitation or nil, with what the sign-in changes, which is not
// stored yet.
func (o *Object) personOf(t *storage.Tx, in *rpc.PersonSignIn, invite *inviteRow) (p *personRow, is profile,
	err error) {
	var row personRow
	switch {
	case in.Identity != nil:
		id := in.Identity.ID()
		if row, _ = loadPerson(t, id); row.Issuer != in.Identity.Issuer { // a new person, or one of a forged import
			dropCredentials(t, &row)
			endSessions(t, ofPerson(id))
			row.ID, row.Issuer = id, in.Identity.Issuer
		}
		row.Rules = in.Roles
		if is.Name = in.Identity.Name; in.Identity.EmailVerified {
			is.Email = in.Identity.Email
		}
	case in.Token != "":
		var id string
		if !rpc.IsDigest(in.Token) || !t.Load(tokenPrefix+in.Token, &id) {
			return nil, is, errNoSession()
		}
		var ok bool
		if row, ok = loadPerson(t, id); !ok || row.Token != in.Token {
			return nil, is, errNoSession()
		}
		is = o.profileOf(&row)
	case in.Passkey != nil:
		if row, is, err = o.usePasskey(t, in.Passkey); err != nil {
			return nil, is, err
		}
	case invite != nil && (rpc.IsDigest(in.NewToken) || in.NewPasskey != nil):
		if row, is, err = o.personOfLink(t, invite, in); err != nil {
			return nil, is, err
		}
	default:
		return nil, is, rpc.ErrInvitation()
	}
	if invite != nil && invite.Role.Valid() {
		if row.Grants == nil {
			row.Grants = people.Grants{}
		}
		row.Grants[invite.MachineID] = people.Grant{Role: invite.Role, Template: invite.Template}
	}
	return &row, is, nil
}

// personOfLink returns the person of an invitation alone: a new one, or the one whose personal token and
// passkeys it replaces.
func (o *Object) personOfLink(t *storage.Tx, invite *inviteRow, in *rpc.PersonSignIn) (row personRow, is profile,
	err error) {
	if invite.Person != "" {
		row, _ = loadPerson(t, invite.Person)
		is = o.profileOf(&row)
		dropCredentials(t, &row)
	} else {
		row, is.Name = personRow{ID: ownID(cmp.Or(in.NewToken, in.Subject)), Issuer: linkIssuer}, strings.TrimSpace(in.Name)
		if is.Name == "" {
			return row, is, apierr.Invalid("name", "name is required: what others see of you.")
		}
	}
	if in.NewPasskey != nil {
		_, err = addPasskey(t, &row, *in.NewPasskey)
		return row, is, err
	}
	row.Token = in.NewToken
	putRegistry(t, tokenPrefix+in.NewToken, row.ID)
	return row, is, nil
}

// ofPerson returns the session of a person, with the roles of now.
func (o *Object) ofPerson(s *sessionRow, p *personRow, now int64) rpc.Session {
	out := s.shown(nil)
	out.Person = &rpc.Person{ID: p.ID, Name: o.profileOf(p).Name, Roles: p.roles(), SeenAt: now}
	return out
}

// personEnd ends sessions of people.
func (o *Object) personEnd(r *storage.Call) (any, error) {
	var in rpc.PersonEnd
	if json.Unmarshal(r.Body, &in) != nil || !in.All && !people.IsID(in.ID) && !people.IsID(in.Sid) {
		return nil, apierr.Invalid("id", "id is not that of a person.")
	}
	if p, ok := loadPerson(r.Tx, in.ID); in.MachineID != "" && (!ok || !p.roles().Of(in.MachineID).Role.Valid()) {
		return nil, apierr.New(404, "person_not_found", "No person of this machine has this id.")
	}
	whose := in.ID
	n := endSessions(r.Tx, func(s *sessionRow) bool {
		is := s.Person != "" && (in.All || (in.ID == "" || s.Person == in.ID) && (in.Sid == "" || s.Sid == in.Sid))
		if is {
			whose = s.Person
		}
		return is
	})
	if in.All {
		whose = "everyone"
	}
	auditEnded(r.Tx, o.actor(in.By), whose, n)
	return struct{}{}, nil
}

// endSessions ends sessions, and returns how many of them were open.
func endSessions(t *storage.Tx, of func(s *sessionRow) bool) (ended int) {
	storage.RemoveIf(t, sessionPrefix, func(_ string, s sessionRow) bool {
		is := of(&s)
		if is && !s.over(t.Now) {
			ended++
		}
		return is
	})
	return ended
}

// actor is how the audit names who has called: a key without its id (docs/reference/reliability.md, T34).
func (o *Object) actor(by string) string {
	if id, is := strings.CutPrefix(by, "key:"); is {
		return "key:" + o.MaskedKey(id)
	}
	return by
}

// auditEnded records whose sessions an actor has ended, and how many.
func auditEnded(t *storage.Tx, by, whose string, n int) {
	registryAudit(t, storage.Record{Actor: by, Action: "sessions.end", Target: whose, Fields: []string{sessionCount(n)}})
}

func sessionCount(n int) string {
	if n == 1 {
		return "1 session"
	}
	return fmt.Sprint(n, " sessions")
}

// ofPerson matches the sessions of a person.
func ofPerson(id string) func(*sessionRow) bool {
	return func(s *sessionRow) bool { return s.Person == id }
}

// personNames returns the names of people by their ids, without those that it does not know.
func (o *Object) personNames(r *storage.Call) (any, error) {
	var in rpc.PeopleNames
	if json.Unmarshal(r.Body, &in) != nil || len(in.IDs) > maxPeople {
		return nil, apierr.Invalid("ids", "ids must be a list of ids.")
	}
	names := map[string]string{}
	for _, id := range in.IDs {
		if p, ok := loadPerson(r.Tx, id); ok && (in.MachineID == "" || p.knownTo(in.MachineID)) {
			names[id] = o.profileOf(&p).Name
		}
	}
	return names, nil
}

// personList returns the people with a role on a machine, and its invitations.
func (o *Object) personList(r *storage.Call) (any, error) {
	var in rpc.PeopleQuery
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsMachineID(in.MachineID) {
		return nil, apierr.Invalid("machineId", "machineId is not valid.")
	}
	live := map[string]int{}
	for _, s := range storage.RowsOf[sessionRow](r.Tx, sessionPrefix) {
		if !s.over(r.Now) {
			live[s.Person]++
		}
	}
	out := rpc.PeopleList{People: []rpc.PersonView{}, Invitations: []rpc.Invitation{}}
	for _, p := range storage.RowsOf[personRow](r.Tx, personPrefix) {
		g := p.roles().Of(in.MachineID)
		if !g.Role.Valid() {
			continue
		}
		is := o.profileOf(&p)
		v := rpc.PersonView{ID: p.ID, Name: is.Name, Email: is.Email, Role: g.Role, Template: g.Template,
			ByRule: p.Rules.Of(in.MachineID).Role.Valid(), FirstSeen: p.FirstSeen, LastSeen: p.LastSeen, Sessions: live[p.ID]}
		if p.Issuer != linkIssuer {
			v.Issuer = p.Issuer
		}
		out.People = append(out.People, v)
	}
	r.Pages(invitePrefix, storage.SmallPage, func(row storage.Row) bool {
		var i inviteRow
		if json.Unmarshal(row.Value, &i) == nil && i.MachineID == in.MachineID && i.ExpiresAt > r.Now {
			out.Invitations = append(out.Invitations, i.view())
		}
		return true
	})
	return out, nil
}

// inviteID is the length of the beginning of a digest that is an invitation's id.
const inviteID = 16

func (i *inviteRow) view() rpc.Invitation {
	return rpc.Invitation{ID: i.Digest[:inviteID], Role: i.Role, Template: i.Template, Note: i.Note, By: i.By,
		Person: i.Person, Provider: i.Provider, ExpiresAt: i.ExpiresAt}
}

// personSet sets a person's role on a machine. The sessions of someone without any role end.
func (o *Object) personSet(r *storage.Call) (any, error) {
	var in rpc.PersonSet
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsMachineID(in.MachineID) ||
		!in.Grant.Role.Valid() && in.Grant.Role != people.None {
		return nil, apierr.Invalid("role", "role must be member, viewer, editor, owner or none.")
	}
	p, ok := loadPerson(r.Tx, in.ID)
	if !ok || !p.roles().Of(in.MachineID).Role.Valid() && (in.Grant.Role != people.None || !p.knownTo(in.MachineID)) {
		return nil, apierr.New(404, "person_not_found", "No person of this machine has this id. Invite them instead.")
	}
	if p.Grants == nil {
		p.Grants = people.Grants{}
	}
	if p.Grants[in.MachineID] = in.Grant; in.Grant.Role == people.None {
		delete(p.Rules, in.MachineID)
	}
	storeGranted(r.Tx, &p, in.MachineID, o.actor(in.By))
	return struct{}{}, nil
}

// storeGranted stores a person whose grant on a machine an actor has changed. Links for someone who is removed are
// withdrawn, and the sessions and passkeys of someone without any role end.
func storeGranted(t *storage.Tx, p *personRow, machineID, by string) {
	if !p.roles().Any() {
		if n := endSessions(t, ofPerson(p.ID)); n > 0 {
			auditEnded(t, by, p.ID, n)
		}
		dropPasskeys(t, p)
	}
	putRegistry(t, personPrefix+p.ID, p)
	if p.Grants[machineID].Role == people.None {
		storage.RemoveIf(t, invitePrefix, func(_ string, i inviteRow) bool {
			return i.Person == p.ID && i.MachineID == machineID
		})
	}
}

// personExport returns the grants on a machine, for an export of it.
func (o *Object) personExport(r *storage.Call) (any, error) {
	var in rpc.PeopleQuery
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsMachineID(in.MachineID) {
		return nil, apierr.Invalid("machineId", "machineId is not valid.")
	}
	out := rpc.PeopleGrants{MachineID: in.MachineID, People: []rpc.PersonGrant{}}
	for _, p := range storage.RowsOf[personRow](r.Tx, personPrefix) {
		if g, ok := p.Grants[in.MachineID]; ok {
			is := o.profileOf(&p)
			out.People = append(out.People, rpc.PersonGrant{ID: p.ID, Issuer: p.Issuer, Name: is.Name, Email: is.Email,
				Role: g.Role, Template: g.Template})
		}
	}
	return out, nil
}

// personImport grants roles on a machine that an export of the operator has. Of people who are known here the
// grant alone changes. Personal tokens do not move: a person without an identity provider gets another link.
func (o *Object) personImport(r *storage.Call) (any, error) {
	var in rpc.PeopleGrants
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsMachineID(in.MachineID) {
		return nil, apierr.Invalid("machineId", "machineId is not valid.")
	}
	stored := len(r.List(personPrefix))
	for _, g := range in.People {
		if !people.IsID(g.ID) || g.Issuer == "" || !g.Role.Valid() && g.Role != people.None {
			return nil, apierr.Invalid("people", "people has an entry without a person and a role.")
		}
		p, known := loadPerson(r.Tx, g.ID)
		if !known {
			if stored++; stored > maxPeople {
				return nil, apierr.New(409, "too_many", "A gateway has at most %d people. Remove some.", maxPeople)
			}
			p = personRow{ID: g.ID, Issuer: g.Issuer}
			if err := o.putPerson(r.Tx, &p, profile{g.Name, g.Email}); err != nil {
				return nil, err
			}
		}
		if p.Grants == nil {
			p.Grants = people.Grants{}
		}
		p.Grants[in.MachineID] = people.Grant{Role: g.Role, Template: g.Template}
		storeGranted(r.Tx, &p, in.MachineID, o.actor(in.By))
	}
	return struct{}{}, nil
}

// inviteCreate stores an invitation and drops what is over.
func (o *Object) inviteCreate(r *storage.Call) (any, error) {
	var in rpc.InviteCreate
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) || !rpc.IsMachineID(in.MachineID) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	if in.Person != "" {
		p, ok := loadPerson(r.Tx, in.Person)
		if !ok || p.Issuer != linkIssuer || !p.roles().Of(in.MachineID).Role.Valid() {
			return nil, apierr.New(404, "person_not_found", "No person of this machine who signs in by a link has this id.")
		}
		if !p.renewedBy(&in) {
			return nil, apierr.New(403, "role_required",
				"This person has roles on other machines too. The operator can make the link.")
		}
		in.Role, in.Template = "", nil
	} else if !in.Role.Valid() {
		return nil, apierr.Invalid("role", "role must be member, viewer, editor or owner.")
	}
	storage.RemoveIf(r.Tx, invitePrefix, func(_ string, i inviteRow) bool { return i.ExpiresAt <= r.Now })
	if len(r.List(invitePrefix)) >= maxInvites {
		return nil, apierr.New(409, "too_many", "A gateway has at most %d open invitations. Withdraw some.", maxInvites)
	}
	row := inviteRow{in, r.Now + inviteLife}
	putRegistry(r.Tx, invitePrefix+in.Digest, row)
	return row.view(), nil
}

// machineName returns the name of a machine, or its id.
func machineName(t *storage.Tx, id string) string {
	var m machineRow
	t.Load(machinePrefix+id, &m)
	return cmp.Or(m.Name, id)
}

// inviteShow returns what an invitation is for, and leaves it as it is.
func (o *Object) inviteShow(r *storage.Call) (any, error) {
	var in struct{ Digest string }
	json.Unmarshal(r.Body, &in)
	row, err := openInvite(r.Tx, in.Digest)
	if err != nil {
		return nil, err
	}
	out := rpc.InvitationOffer{Machine: machineName(r.Tx, row.MachineID), Role: row.Role, Provider: row.Provider,
		ExpiresAt: row.ExpiresAt}
	if maker, ok := strings.CutPrefix(row.By, "person:"); ok {
		p, _ := loadPerson(r.Tx, maker)
		out.By = o.profileOf(&p).Name
	} else if row.By == "operator" {
		out.By = "The operator of this gateway"
	}
	if t := row.Template; t != nil && t.BudgetUSD > 0 {
		out.BudgetUSD, out.BudgetWindow = t.BudgetUSD, cmp.Or(t.BudgetWindow, "month")
	}
	return out, nil
}

// inviteDelete withdraws an invitation of a machine and returns it.
func (o *Object) inviteDelete(r *storage.Call) (any, error) {
	var in struct{ MachineID, ID string }
	missing := apierr.New(404, "invitation_not_found", "No open invitation has this id.")
	if json.Unmarshal(r.Body, &in) != nil || len(in.ID) != inviteID {
		return nil, missing
	}
	var found *inviteRow
	storage.RemoveIf(r.Tx, invitePrefix, func(_ string, i inviteRow) bool {
		is := i.MachineID == in.MachineID && strings.HasPrefix(i.Digest, in.ID)
		if is {
			found = &i
		}
		return is
	})
	if found == nil {
		return nil, missing
	}
	return found.view(), nil
}
