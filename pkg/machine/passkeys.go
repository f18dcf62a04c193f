package machine

import (
	"encoding/json"
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
)

const (
	passkeyPrefix = "passkey:" // and the digest of the credential id
	maxPasskeys   = 10         // of a person
	passkeyName   = 100        // bytes
)

func loadPasskey(t *storage.Tx, digest string) (k rpc.Passkey, ok bool) {
	ok = rpc.IsDigest(digest) && t.Load(passkeyPrefix+digest, &k)
	return k, ok
}

func viewOfPasskey(k *rpc.Passkey) rpc.PasskeyView {
	return rpc.PasskeyView{ID: k.Digest, Name: k.Name, CreatedAt: k.CreatedAt, UsedAt: k.UsedAt}
}

func namedPasskey(name string) string {
	if name = apierr.Shorten(strings.TrimSpace(name), passkeyName); name != "" {
		return name
	}
	return "Passkey"
}

// passkeyBegin returns whom a passkey is to be made for.
func (o *Object) passkeyBegin(r *storage.Call) (any, error) {
	var in rpc.PasskeyBegin
	if json.Unmarshal(r.Body, &in) != nil {
		return nil, apierr.Invalid("person", "person is not valid.")
	}
	if in.Invite != "" {
		invite, err := openInvite(r.Tx, in.Invite)
		if err == nil && invite.Provider {
			err = rpc.ErrInvitation()
		}
		if err != nil {
			return nil, err
		}
		if in.Person = invite.Person; in.Person == "" {
			return rpc.PasskeyFor{Person: ownID(in.Subject), Exclude: []string{}}, nil
		}
	}
	p, err := ownPerson(r.Tx, in.Person)
	if err != nil {
		return nil, err
	}
	out := rpc.PasskeyFor{Person: p.ID, Name: o.profileOf(p).Name, Exclude: []string{}}
	if in.Invite == "" { // a link takes the place of all that the person has
		for _, digest := range p.Passkeys {
			k, _ := loadPasskey(r.Tx, digest)
			out.Exclude = append(out.Exclude, k.Credential)
		}
	}
	return out, nil
}

// ownID returns the id of a person without an identity provider.
func ownID(subject string) string {
	who := people.Identity{Issuer: linkIssuer, Subject: subject}
	return who.ID()
}

// ownPerson returns a person with a role, without an identity provider.
func ownPerson(t *storage.Tx, id string) (*personRow, error) {
	switch p, ok := loadPerson(t, id); {
	case ok && p.Issuer == linkIssuer && p.roles().Any():
		return &p, nil
	case ok && p.Issuer == linkIssuer:
		return nil, rpc.ErrNoAccess()
	}
	return nil, apierr.New(409, "identity_provider_used", "You sign in by an identity provider, which has your passkeys.")
}

// passkeyFind returns the passkey of a credential.
func (o *Object) passkeyFind(r *storage.Call) (any, error) {
	var in struct{ Digest string }
	json.Unmarshal(r.Body, &in)
	k, ok := loadPasskey(r.Tx, in.Digest)
	if !ok {
		return nil, rpc.ErrPasskey("unknown")
	}
	return k, nil
}

// passkeyList returns the passkeys of a person, the oldest first.
func (o *Object) passkeyList(r *storage.Call) (any, error) {
	var in struct{ Person string }
	json.Unmarshal(r.Body, &in)
	p, _ := loadPerson(r.Tx, in.Person)
	out := []rpc.PasskeyView{}
	for _, digest := range p.Passkeys {
		if k, ok := loadPasskey(r.Tx, digest); ok {
			out = append(out, viewOfPasskey(&k))
		}
	}
	return map[string]any{"data": out}, nil
}

// addPasskey stores a passkey of a person, whose row the caller stores.
func addPasskey(t *storage.Tx, p *personRow, k rpc.Passkey) (*rpc.Passkey, error) {
	switch _, taken := loadPasskey(t, k.Digest); {
	case !rpc.IsDigest(k.Digest):
		return nil, apierr.Invalid("digest", "digest is not valid.")
	case taken:
		return nil, rpc.ErrPasskey("taken")
	case len(p.Passkeys) >= maxPasskeys:
		return nil, apierr.New(409, "too_many", "A person has at most %d passkeys. Delete one first.", maxPasskeys)
	}
	k.Person, k.Name, k.CreatedAt, k.UsedAt = p.ID, namedPasskey(k.Name), t.Now, 0
	p.Passkeys = append(p.Passkeys, k.Digest)
	putRegistry(t, passkeyPrefix+k.Digest, k)
	return &k, nil
}

// dropPasskeys deletes the passkeys of a person, whose row the caller stores.
func dropPasskeys(t *storage.Tx, p *personRow) {
	for _, digest := range p.Passkeys {
		t.Del(passkeyPrefix + digest)
	}
	p.Passkeys = nil
}

// dropCredentials deletes what a person without an identity provider signs in with, as dropPasskeys.
func dropCredentials(t *storage.Tx, p *personRow) {
	if p.Token != "" {
		t.Del(tokenPrefix + p.Token)
	}
	p.Token = ""
	dropPasskeys(t, p)
}

// passkeyAdd adds a passkey to a person who is signed in.
func (o *Object) passkeyAdd(r *storage.Call) (any, error) {
	var in rpc.Passkey
	if json.Unmarshal(r.Body, &in) != nil {
		return nil, apierr.Invalid("person", "person is not valid.")
	}
	p, err := ownPerson(r.Tx, in.Person)
	if err != nil {
		return nil, err
	}
	k, err := addPasskey(r.Tx, p, in)
	if err != nil {
		return nil, err
	}
	putRegistry(r.Tx, personPrefix+p.ID, p)
	registryAudit(r.Tx, storage.Record{Actor: "person:" + p.ID, Action: "passkey.create", Target: k.Digest[:inviteID]})
	return viewOfPasskey(k), nil
}

// changedPasskey returns the passkey that a person changes, and the person.
func changedPasskey(r *storage.Call) (in rpc.PasskeyChange, k rpc.Passkey, p personRow, err error) {
	json.Unmarshal(r.Body, &in)
	k, ok := loadPasskey(r.Tx, in.ID)
	if p, _ = loadPerson(r.Tx, in.Person); !ok || p.ID == "" || k.Person != p.ID {
		err = apierr.New(404, "passkey_not_found", "You have no passkey with this id.")
	}
	return in, k, p, err
}

// passkeyRename changes the name of a passkey.
func (o *Object) passkeyRename(r *storage.Call) (any, error) {
	in, k, p, err := changedPasskey(r)
	if err != nil {
		return nil, err
	}
	k.Name = namedPasskey(in.Name)
	putRegistry(r.Tx, passkeyPrefix+k.Digest, k)
	registryAudit(r.Tx, storage.Record{Actor: "person:" + p.ID, Action: "passkey.update", Target: k.Digest[:inviteID], Fields: []string{"name"}})
	return viewOfPasskey(&k), nil
}

// passkeyDelete deletes a passkey, unless it is the only way in which its person signs in.
func (o *Object) passkeyDelete(r *storage.Call) (any, error) {
	in, k, p, err := changedPasskey(r)
	if err != nil {
		return nil, err
	}
	if len(p.Passkeys) == 1 && p.Token == "" {
		return nil, apierr.New(409, "last_passkey", "This is the only passkey that you sign in with. Add another one first.")
	}
	p.Passkeys = slices.DeleteFunc(p.Passkeys, func(id string) bool { return id == in.ID })
	r.Del(passkeyPrefix + k.Digest)
	putRegistry(r.Tx, personPrefix+p.ID, p)
	registryAudit(r.Tx, storage.Record{Actor: "person:" + p.ID, Action: "passkey.delete", Target: k.Digest[:inviteID]})
	return struct{}{}, nil
}

// usePasskey returns the person of a sign-in by a passkey. A counter that does not grow is that of a copy
// (WebAuthn, 7.2, step 22); one that stays 0 counts nothing.
func (o *Object) usePasskey(t *storage.Tx, in *rpc.PasskeyUse) (row personRow, is profile, err error) {
	k, ok := loadPasskey(t, in.Digest)
	if !ok {
		return row, is, rpc.ErrPasskey("unknown")
	}
	if (in.Counter > 0 || k.Counter > 0) && in.Counter <= k.Counter {
		return row, is, rpc.ErrPasskey("counter")
	}
	if row, ok = loadPerson(t, k.Person); !ok {
		return row, is, rpc.ErrPasskey("unknown")
	}
	k.Counter, k.UsedAt = in.Counter, t.Now
	putRegistry(t, passkeyPrefix+k.Digest, k)
	return row, o.profileOf(&row), nil
}
