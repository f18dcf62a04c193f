package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// ClientSecret is what a client secret of the Realtime API stands for: a model of one
// connection, with the provider's own secret.
type ClientSecret struct {
	KeyID        string        `json:"k"` // of the key that created it; "" for none
	KeyDigest    []byte        `json:"d"` // SHA-256 of that key as it was presented
	ConnectionID string        `json:"c"`
	Asked        string        `json:"a"` // the model, as the client named it
	Model        string        `json:"m"` // its public id
	ExpiresAt    int64         `json:"e"` // Unix seconds
	Value        secret.Secret `json:"-"`
}

// sealedSecret is a ClientSecret as it is sealed.
type sealedSecret struct {
	ClientSecret
	Text string `json:"v"`
}

const (
	// clientSecretPrefix begins OpenAI's client secrets too; its browser client
	// accepts no other credential.
	clientSecretPrefix = "ek_"
	maxClientSecret    = 8 << 10 // bytes

	// A client secret is sealed for these in place of a connection and its field.
	clientSecretOwner = "/v1/realtime"
	clientSecretField = "client_secret"
)

// SealClientSecret returns the text that Realtime accepts for s. It opens for this
// machine only, and nothing is stored.
//
//	ek_<machineId>_<sealed>
func (a *Authenticator) SealClientSecret(machineID string, s *ClientSecret) (string, error) {
	plain, err := json.Marshal(sealedSecret{*s, s.Value.Reveal()})
	if err != nil {
		return "", fmt.Errorf("seal a client secret: %w", err)
	}
	sealed, err := a.Vault.Seal(machineID, clientSecretOwner, clientSecretField, secret.New(string(plain)))
	if err != nil {
		return "", err
	}
	text := clientSecretPrefix + machineID + "_" + string(sealed)
	if len(text) > maxClientSecret {
		return "", errors.New("seal a client secret: it is too long")
	}
	return text, nil
}

// openClientSecret opens what SealClientSecret made, unless it has expired.
func (a *Authenticator) openClientSecret(text string) (machineID string, s *ClientSecret, ok bool) {
	machineID, sealed, _ := strings.Cut(strings.TrimPrefix(text, clientSecretPrefix), "_")
	if len(text) > maxClientSecret || !rpc.IsMachineID(machineID) {
		return "", nil, false
	}
	plain, err := a.Vault.Open(machineID, clientSecretOwner, clientSecretField, secret.Sealed(sealed))
	if err != nil {
		return "", nil, false
	}
	var read sealedSecret
	if json.Unmarshal([]byte(plain.Reveal()), &read) != nil || read.ExpiresAt <= a.Now().Unix() {
		return "", nil, false
	}
	read.Value = secret.New(read.Text)
	return machineID, &read.ClientSecret, true
}

// Realtime admits a call of the Realtime API: as Data, or with a client secret as
// bearer token. A client secret is valid until it expires, as long as the key that
// created it may be used, and counts as that key. One that was not sealed here, or has
// expired, is refused without a look at any machine.
func (a *Authenticator) Realtime(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("authorization"), " ")
	text = strings.Trim(text, " ")
	if !strings.EqualFold(scheme, "bearer") || !strings.HasPrefix(text, clientSecretPrefix) {
		return a.Data(ctx, r, pathMachine)
	}
	id, s, ok := a.openClientSecret(text)
	if !ok {
		return nil, rpc.ErrClientSecret()
	}
	m, err := a.Machines.Get(ctx, id)
	if err != nil {
		return nil, unusable(err)
	}
	c := &Call{Request: r, Machine: m, MachineID: id, ClientSecret: s}
	copy(c.KeyDigest[:], s.KeyDigest)
	if s.KeyID == "" {
		if a.RequireKey {
			return nil, rpc.ErrClientSecret()
		}
		return c, nil
	}
	if c.Key = a.creator(m, c); c.Key == nil { // it may be newer than the snapshot
		if c.Machine, err = a.Machines.Confirm(ctx, id); err != nil {
			return nil, unusable(err)
		}
		c.Key = a.creator(c.Machine, c)
	}
	if c.Key == nil {
		return nil, rpc.ErrClientSecret()
	}
	if !a.live(c.Key) || !hasScope(c.Key, ScopeData) {
		return c, rpc.ErrClientSecret()
	}
	return c, nil
}

// creator returns the key that created the client secret of a call, or nil: also if a
// rotation has replaced what was presented then.
func (a *Authenticator) creator(m *snapshot.Machine, c *Call) *store.Key {
	if c.KeyDigest == ([32]byte{}) { // a client secret from an earlier version
		return KeyOf(m, c.ClientSecret.KeyID)
	}
	return m.FindKey(c.KeyDigest, a.Now)
}

// unusable returns the refusal of a client secret whose machine cannot be read.
func unusable(err error) error {
	if errors.Is(err, snapshot.ErrUnknown) {
		return rpc.ErrClientSecret()
	}
	return err
}
