package snapshot

import (
	"sync"

	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// maxOpened bounds the opened credentials of a snapshot. Those of further connections
// are opened for each call.
const maxOpened = 256

// Opened is the credential of a connection in the clear.
type Opened struct {
	Credential provider.Credential
	// Access is the access token that Credential has, as it is sealed.
	Access secret.Sealed

	mu     sync.Mutex
	fields [2]presented // of the provider's own base, and of a further one
}

// presented has the header fields of a credential.
type presented struct {
	auth   *provider.Auth
	fields httpmsg.Header
}

// Opened returns the opened credential of a connection with this access token, or
// nil.
func (m *Machine) Opened(conn *store.Connection, access secret.Sealed) *Opened {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if o := m.opened[conn]; o != nil && o.Access == access {
		return o
	}
	return nil
}

// Open keeps a credential that was opened, in place of the one with an earlier access
// token, unless there are too many.
func (m *Machine) Open(conn *store.Connection, access secret.Sealed, cred provider.Credential) *Opened {
	o := &Opened{Credential: cred, Access: access}
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if m.opened[conn] == nil && len(m.opened) >= maxOpened {
		return o
	}
	if m.opened == nil {
		m.opened = map[*store.Connection]*Opened{}
	}
	m.opened[conn] = o
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
	o.mu.Lock()
	defer o.mu.Unlock()
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
