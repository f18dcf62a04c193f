package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// Scopes of a key. A key without any has ScopeData.
const (
	ScopeData   = "data"
	ScopeManage = "manage"
	// ScopeExport lets a manage key export the machine's secrets.
	ScopeExport = "export"
	// ScopeMetrics lets a key read the metrics of its machine, and nothing else.
	ScopeMetrics = "metrics"
)

// machines is the part of snapshot.Cache used here.
type machines interface {
	Get(ctx context.Context, machineID string) (*snapshot.Machine, error)
	InMemory(machineID string) *snapshot.Machine
	Known(ctx context.Context, machineID string) (*snapshot.Machine, error)
	Confirm(ctx context.Context, machineID string) (*snapshot.Machine, error)
	Revalidate(ctx context.Context, machineID string)
}

// Authenticator identifies the caller. A refusal is a 401 that depends on the form
// of the credential alone: every well-formed key that may not be used gets one
// body, so that no caller learns which machines and keys exist
// (docs/reference/reliability.md, T4, T5). The two exceptions are an old key
// that needs its machine in the path (400) and a key that is paused (403). Data, Key and
// Realtime return the call of a key that is refused too, if its machine is known: it is
// counted.
type Authenticator struct {
	// KeySecret is the worker secret API_KEY_SECRET.
	KeySecret []byte
	// AdminToken is the SHA-256 of the worker secret ADMIN_TOKEN.
	AdminToken [32]byte
	// RequireKey is the setting REQUIRE_API_KEY.
	RequireKey bool
	Machines   machines
	Now        func() time.Time
	// Vault seals client secrets; required by SealClientSecret and Realtime alone.
	Vault *store.Keyring
}

// Digest returns the SHA-256 of a secret that is compared, never stored.
func Digest(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Data admits a call to the data plane: a key with scope data; where no key is
// required also a call without one that names its machine in the path. The
// machine of the key overrides that of the path
// (docs/reference/spec.md, 5.2).
func (a *Authenticator) Data(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	if credential(r.Header) == "" {
		return a.keyless(ctx, r, pathMachine)
	}
	return a.Key(ctx, r, pathMachine)
}

// Key admits a call about the key itself: as Data, but never without a key.
func (a *Authenticator) Key(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	text := credential(r.Header)
	if text == "" {
		return nil, rpc.ErrNoKey()
	}
	c, err := a.byKey(ctx, r, text, pathMachine)
	if err == nil {
		err = lacks(c.Key, ScopeData)
	}
	return c, err
}

// Live reports whether the caller of a socket that has been open for a while may still
// use it: its key was not revoked, replaced, paused or removed. While the machine
// cannot be read nothing changes.
func (a *Authenticator) Live(ctx context.Context, c *Call) bool {
	a.Machines.Revalidate(ctx, c.MachineID)
	m, err := a.Machines.Get(ctx, c.MachineID)
	if errors.Is(err, snapshot.ErrUnknown) {
		return false
	}
	if err != nil || c.Key == nil {
		return true
	}
	k := KeyOf(m, c.Key.ID)
	if c.KeyDigest != ([32]byte{}) { // a rotation may have replaced it
		k = m.FindKey(c.KeyDigest, a.Now)
	}
	return k != nil && a.live(k) && hasScope(k, ScopeData)
}

// RefusalOf returns the code with which calls of a key to the data plane are refused at a
// time, in Unix milliseconds; "" if they are not.
func RefusalOf(k *store.Key, now int64) string {
	switch {
	case ended(k, now):
		return rpc.ErrInvalidKey().Code
	case k.PausedAt != 0:
		return codePaused
	case !hasScope(k, ScopeData):
		return rpc.ErrScope(nil, "").Code
	}
	return ""
}

const codePaused = "key_paused"

// KeyOf returns the key with an id, or nil.
func KeyOf(m *snapshot.Machine, id string) *store.Key {
	for i := range m.Keys {
		if k := &m.Keys[i]; k.ID == id {
			return k
		}
	}
	return nil
}

// List admits a call to the model list: as Data, and where no key is required
// also without any machine.
func (a *Authenticator) List(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	if !a.RequireKey && pathMachine == "" && credential(r.Header) == "" {
		return &Call{Request: r}, nil
	}
	return a.Data(ctx, r, pathMachine)
}

// Manage admits a call to the management of a machine: the operator, who names
// the machine in the path, or a key of that machine with scope manage. Here a
// path that names another machine than the key's is refused: a change must not
// land where it was not aimed at.
func (a *Authenticator) Manage(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	text := credential(r.Header)
	if a.isOperator(text) {
		if !rpc.IsMachineID(pathMachine) {
			return nil, apierr.Invalid("", "Name the machine in the path, as in /{machineId}/api/keys.")
		}
		return &Call{Request: r, Operator: true, MachineID: pathMachine}, nil
	}
	return a.scoped(ctx, r, text, pathMachine, ScopeManage)
}

// Metrics admits a call that reads metrics: the operator, with any machine in the path or
// none, or a key with scope metrics, of its machine.
func (a *Authenticator) Metrics(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	text := credential(r.Header)
	if a.isOperator(text) {
		return &Call{Request: r, Operator: true, MachineID: pathMachine}, nil
	}
	return a.scoped(ctx, r, text, pathMachine, ScopeMetrics)
}

// scoped admits a key with a scope. A path that names another machine is refused.
func (a *Authenticator) scoped(ctx context.Context, r *httpmsg.Request, text, pathMachine, scope string) (*Call,
	error) {
	if text == "" {
		return nil, rpc.ErrNoKey()
	}
	c, err := a.byKey(ctx, r, text, pathMachine)
	if err != nil {
		return nil, managing(err)
	}
	if pathMachine != "" && pathMachine != c.MachineID {
		return nil, rpc.ErrInvalidKey()
	}
	if err := lacks(c.Key, scope); err != nil {
		return nil, err
	}
	return c, nil
}

// Operator admits the operator alone.
func (a *Authenticator) Operator(_ context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	text := credential(r.Header)
	if a.isOperator(text) {
		return &Call{Request: r, Operator: true, MachineID: pathMachine}, nil
	}
	if _, ok := rpc.ParseKey(text); ok {
		return nil, rpc.ErrNeedsToken()
	}
	return nil, managing(refusedForm(r.Header, text))
}

// The refusals of a text that does not have the form of a key, and of a wrong operator token.
// Each is one value, which managing and package session recognize.
var (
	errNotKey   error = rpc.ErrNotKey()
	ErrNotToken error = rpc.ErrNotToken()
)

// managing returns the refusal of a credential by its form as management has it.
func managing(err error) error {
	if errors.Is(err, errNotKey) {
		return ErrNotToken
	}
	return err
}

func (a *Authenticator) isOperator(text string) bool {
	if text == "" {
		return false
	}
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], a.AdminToken[:]) == 1
}

func (a *Authenticator) keyless(ctx context.Context, r *httpmsg.Request, pathMachine string) (*Call, error) {
	if a.RequireKey || !rpc.IsMachineID(pathMachine) {
		return nil, rpc.ErrNoKey()
	}
	m, err := a.Machines.Known(ctx, pathMachine)
	if errors.Is(err, snapshot.ErrUnknown) {
		return nil, rpc.ErrNoKey()
	}
	if err != nil {
		return nil, err
	}
	return &Call{Request: r, Machine: m, MachineID: pathMachine}, nil
}

// byKey finds the key that text is. A refusal of a key that exists has its call too.
func (a *Authenticator) byKey(ctx context.Context, r *httpmsg.Request, text, pathMachine string) (*Call, error) {
	parse := rpc.ParseKey
	if rpc.IsMachineID(pathMachine) {
		parse = rpc.ParseSeededKey
	}
	k, ok := parse(text)
	if !ok {
		return nil, refusedForm(r.Header, text)
	}
	id := k.MachineID
	switch {
	case !k.Old():
		// A key that was admitted before costs one digest.
		if m := a.Machines.InMemory(id); m != nil {
			if found := m.CheckedKey(k.Digest, a.Now); found != nil && a.live(found) {
				return &Call{Request: r, Machine: m, Key: found, KeyDigest: k.Digest, MachineID: m.ID}, nil
			}
		}
		if !k.CheckOK(a.KeySecret) {
			return nil, rpc.ErrInvalidKey()
		}
	case pathMachine == "":
		return nil, apierr.New(400, "machine_required", "This gateway finds no such API key: send one that it has issued, not a provider's own. "+
			"A key of this form without its machine in it needs that in the path: /{machineId}%s.", shown(r.Path))
	case !rpc.IsMachineID(pathMachine):
		return nil, rpc.ErrInvalidKey()
	default:
		id = pathMachine
	}
	get := a.Machines.Get
	if k.Old() { // it can be forged, with the machine's name
		get = a.Machines.Known
	}
	m, err := get(ctx, id)
	if err != nil {
		return nil, unknown(err, r.Header, text)
	}
	found := m.FindKey(k.Digest, a.Now)
	if found == nil {
		// It may have been made, or seeded, a moment ago. The check of a key
		// says that it is worth asking; keys without one, which anybody can
		// make up, only do what is due anyway.
		if k.Old() {
			a.Machines.Revalidate(ctx, id)
			m, err = a.Machines.Get(ctx, id)
		} else {
			m, err = a.Machines.Confirm(ctx, id)
		}
		if err != nil {
			return nil, unknown(err, r.Header, text)
		}
		found = m.FindKey(k.Digest, a.Now)
	}
	if found == nil {
		return nil, refusedForm(r.Header, text)
	}
	c := &Call{Request: r, Machine: m, Key: found, KeyDigest: k.Digest, MachineID: id}
	if a.ended(found) {
		return c, refusedForm(r.Header, text)
	}
	if found.PausedAt != 0 {
		return c, apierr.New(403, codePaused, "This API key is paused. Resume it on the page Keys of the dashboard, or use another key.")
	}
	if !k.Old() {
		m.KeyChecked(k.Digest)
	}
	return c, nil
}

// live reports whether a key may be used now.
func (a *Authenticator) live(k *store.Key) bool { return k.PausedAt == 0 && !a.ended(k) }

// ended reports whether a key can never be used again.
func (a *Authenticator) ended(k *store.Key) bool { return ended(k, a.Now().UnixMilli()) }

func ended(k *store.Key, now int64) bool {
	return k.RevokedAt != 0 || k.ExpiresAt != 0 && k.ExpiresAt <= now
}

func hasScope(k *store.Key, scope string) bool { return slices.Contains(scopesOf(k), scope) }

func scopesOf(k *store.Key) []string {
	if len(k.Scopes) == 0 {
		return dataOnly
	}
	return k.Scopes
}

var dataOnly = []string{ScopeData}

// lacks returns the refusal of a valid key without a scope, or nil.
func lacks(k *store.Key, scope string) error {
	if hasScope(k, scope) {
		return nil
	}
	return rpc.ErrScope(scopesOf(k), scope)
}

// AllowsModel reports whether a key may use a model, by its public id or combo
// name. An entry that ends in * matches all that begins like it. No key and no
// list allow everything. A model is the same with catalog.ClaudePrefix in front.
func AllowsModel(k *store.Key, publicID string) bool {
	if k == nil || len(k.Models) == 0 {
		return true
	}
	publicID = catalog.PlainName(publicID)
	for _, m := range k.Models {
		if head, ok := strings.CutSuffix(m, "*"); ok && strings.HasPrefix(publicID, head) || m == publicID {
			return true
		}
	}
	return false
}

// malformed is what credential returns for an Authorization header that is not
// "Bearer <key>". It is not the form of a key.
const malformed = "-"

// credential returns the key or token of a call, "" without one: that of
// Authorization: Bearer, else that of x-api-key, else that of x-goog-api-key, which
// has the key of a Gemini client's query too.
func credential(h httpmsg.Header) string {
	if v := h.Get("authorization"); v != "" {
		if len(v) > rpc.MaxKey {
			return malformed
		}
		scheme, text, _ := strings.Cut(v, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return malformed
		}
		if text = strings.Trim(text, " "); text != "" {
			return text
		}
	}
	for _, name := range [...]string{"x-api-key", "x-goog-api-key"} {
		v := h.Get(name)
		if len(v) > rpc.MaxKey {
			return malformed
		}
		if v = strings.Trim(v, " "); v != "" {
			return v
		}
	}
	return ""
}

// shown returns a path that is fit for a message.
func shown(path string) string {
	if len(path) > 100 {
		return "/v1/…"
	}
	return path
}

// unknown returns the refusal of a credential whose machine could not be read.
func unknown(err error, h httpmsg.Header, text string) error {
	if errors.Is(err, snapshot.ErrUnknown) {
		return refusedForm(h, text)
	}
	return err
}

// refusedForm returns the refusal of a credential by its form alone.
func refusedForm(h httpmsg.Header, text string) error {
	switch {
	case text == "":
		return rpc.ErrNoKey()
	case text == malformed && h.Get("authorization") != "":
		return rpc.ErrNotBearer()
	}
	if _, ok := rpc.ParseKey(text); !ok {
		return errNotKey
	}
	return rpc.ErrInvalidKey()
}
