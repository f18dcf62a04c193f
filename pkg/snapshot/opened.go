package snapshot

import (
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// maxOpened bounds the opened credentials of a snapshot. Those of further connections
// are opened for each call.
const maxOpened = 256

// opened has the credentials of a snapshot in the clear. They are overwritten once the
// snapshot is not in use any more.
type opened struct {
	byConnection map[*store.Connection]*Opened
	all          []*Opened // with those whose token has been replaced
	holds        int       // requests that may use them
	discarded    bool      // the snapshot has been replaced or evicted
}

// Opened is the credential of a connection in the clear.
type Opened struct {
	Credential provider.Credential
	// Access is the access token that Credential has, as it is sealed.
	Access secret.Sealed
	fields [2]presented // of the provider's own base, and of a further one
}

// presented has the header fields of a credential.
type presented struct {
	auth   *provider.Auth
	fields httpmsg.Header
}

// KeepOpened lets the snapshot keep opened credentials, until Discard.
func (m *Machine) KeepOpened() {
	if m.opened == nil {
		m.opened = &opened{}
	}
}

// Hold keeps the opened credentials from being overwritten until Release. A request
// holds the snapshot that it works with.
func (m *Machine) Hold() {
	if m.opened != nil {
		m.opened.holds++
	}
}

// Release ends a Hold.
func (m *Machine) Release() {
	if o := m.opened; o != nil {
		o.holds--
		o.wipeIfUnused()
	}
}

// Discard reports that no further request will get the snapshot.
func (m *Machine) Discard() {
	if o := m.opened; o != nil {
		o.discarded = true
		o.wipeIfUnused()
	}
}

// Opened returns the opened credential of a connection with this access token, or
// nil.
func (m *Machine) Opened(conn *store.Connection, access secret.Sealed) *Opened {
	if m.opened == nil {
		return nil
	}
	if o := m.opened.byConnection[conn]; o != nil && o.Access == access {
		return o
	}
	return nil
}

// Open keeps a credential that was opened. Nothing else may have its secrets, which are
// overwritten with the snapshot, unless there are too many to keep.
func (m *Machine) Open(conn *store.Connection, access secret.Sealed, cred provider.Credential) *Opened {
	o := &Opened{Credential: cred, Access: access}
	k := m.opened
	if k == nil || k.discarded || k.holds <= 0 || len(k.all) >= maxOpened {
		return o
	}
	if k.byConnection == nil {
		k.byConnection = map[*store.Connection]*Opened{}
	}
	k.byConnection[conn] = o
	k.all = append(k.all, o)
	return o
}

// Authorize is provider.AuthorizeOf with the credential, whose header fields are built
// once.
func (o *Opened) Authorize(h *httpmsg.Header, d *provider.Descriptor, b *provider.Base, conn *store.Connection) error {
	a := &d.Auth
	if b != nil {
		a = &b.Auth
	}
	if err := provider.Constant(h, d, conn); err != nil {
		return err
	}
	for i := range o.fields {
		p := &o.fields[i]
		if p.auth == nil {
			var fields httpmsg.Header
			if err := provider.Present(&fields, a, o.Credential); err != nil {
				return err
			}
			p.auth, p.fields = a, fields
		}
		if p.auth == a {
			*h = append(*h, p.fields...)
			return nil
		}
	}
	return provider.Present(h, a, o.Credential)
}

func (o *opened) wipeIfUnused() {
	if !o.discarded || o.holds > 0 {
		return
	}
	for _, c := range o.all {
		c.wipe()
	}
	o.byConnection, o.all = nil, nil
}

func (o *Opened) wipe() {
	for _, p := range o.fields {
		for _, f := range p.fields {
			secret.New(f.Value).Wipe()
		}
	}
	c := &o.Credential
	for _, s := range [...]secret.Secret{c.APIKey, c.AccessToken, c.AccessKeyID, c.SecretAccessKey, c.SessionToken, c.ServiceAccount} {
		s.Wipe()
	}
}
