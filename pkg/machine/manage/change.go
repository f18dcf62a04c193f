package manage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/secret"
)

// signedIn refuses the caller's session if its sign-in is not recent.
func (c *change) signedIn() error {
	if c.env.SignIn == rpc.SignInOld {
		return rpc.ErrSignInAgain()
	}
	return nil
}

// mayExport refuses a key without scope export, and its sessions, to export secrets
// or to create a key that may. A recent sign-in confirms who calls; it adds no right.
func (c *change) mayExport() error {
	if c.belowOwner() {
		return rpc.ErrRole()
	}
	if c.env.KeyID == "" {
		return nil
	}
	var k storage.Key
	if c.Load(storage.KeyPrefix+c.env.KeyID, &k) && slices.Contains(k.Scopes, "export") {
		return nil
	}
	return apierr.New(403, "scope_required",
		"This needs the scope export: use a key that has it, or sign in with the operator token.")
}

// mayGrant refuses scopes for a new key that the caller may not grant.
func (c *change) mayGrant(scopes []string) error {
	if c.belowOwner() && slices.Contains(scopes, "manage") {
		return rpc.ErrRole()
	}
	if slices.Contains(scopes, "export") {
		if err := c.mayExport(); err != nil {
			return err
		}
	}
	if slices.Contains(scopes, "export") || slices.Contains(scopes, "manage") {
		return c.signedIn()
	}
	return nil
}

// change is a management call within its turn.
type change struct {
	*storage.Call
	o      *Manager
	env    rpc.ManageCall
	actor  string
	maker  *rpc.Person // whose the keys, leases and invitations of the call are; nil for no one's
	etag   int64
	status int
	target string
	name   string // of the target, if the machine does not know it
	fields []string
	own    map[string]bool // see isOwn
	quiet  bool            // nothing has changed or was learned: no audit record
}

// Manage serves a management call: the checks that need the records, the
// change, its audit record and the new generation are one turn.
func (o *Manager) Manage(r *storage.Call) (any, error) {
	c := &change{Call: r, o: o, status: 200}
	if json.Unmarshal(r.Body, &c.env) != nil {
		return nil, apierr.Invalid("", "The call is not readable.")
	}
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	c.actor = "operator"
	if c.env.KeyID != "" {
		c.actor = "key:" + o.MaskedKey(c.env.KeyID)
		if err := c.stillAllowed(); err != nil {
			return nil, err
		}
	}
	if c.env.Person != nil {
		c.actor, c.maker = "person:"+c.env.Person.ID, c.env.Person
		if err := c.mayCall(); err != nil {
			return nil, err
		}
	}
	serve := handlers[c.env.Method+" "+c.env.Route]
	if serve == nil {
		return nil, apierr.New(404, "not_found", "No route %s %s in the object of a machine.", c.env.Method, c.env.Route)
	}
	if c.env.Method == "GET" {
		body, err := serve(c)
		if err != nil {
			return nil, err
		}
		return c.answer(body), nil
	}
	if a, err := c.replay(); a != nil || err != nil {
		return a, err
	}
	var names map[string]string
	if c.env.Method == "DELETE" { // while they exist
		names = c.auditNames()
	}
	body, err := serve(c)
	if err == nil {
		err = r.CheckSize()
	}
	if err != nil {
		return nil, err
	}
	a := c.answer(body)
	if c.quiet {
		return a, nil
	}
	c.fields = slices.DeleteFunc(c.fields, func(f string) bool { return f == "allowUnknown" }) // of the call, not of the row
	c.AuditRecord(storage.Record{Actor: c.actor, Action: c.env.Method + " " + c.env.Route, Target: c.target,
		Name: redact.Patterns(cmp.Or(c.name, names[c.target])), Fields: c.fields})
	if err := c.keep(*a); err != nil {
		return nil, err
	}
	return a, nil
}

// switched names in the record what was done with a switch instead of its field, and nothing if it is as before.
func (c *change) switched(field string, was, paused bool) {
	i := slices.Index(c.fields, field)
	switch {
	case i < 0:
	case was == paused:
		c.fields = slices.Delete(c.fields, i, i+1)
	case paused:
		c.fields[i] = "paused"
	default:
		c.fields[i] = "resumed"
	}
}

// stillAllowed looks the caller's key up again: the isolate that admitted it
// may know the machine as it was a minute ago.
func (c *change) stillAllowed() error {
	k, ok := c.ManageKey(c.env.KeyID)
	if ok && (c.env.KeyDigest == "" || k.Accepts(c.env.KeyDigest, c.Now)) {
		c.maker = makerOf(&k)
		return nil
	}
	return rpc.ErrInvalidKey()
}

func (c *change) answer(body any) *rpc.ManageAnswer {
	a := &rpc.ManageAnswer{Status: c.status}
	if c.etag > 0 {
		a.ETag = `"` + strconv.FormatInt(c.etag, 10) + `"`
	}
	if c.status != 204 {
		a.Body = storage.EncodeJSON(body)
	}
	return a
}

func (c *change) query(name string) string { return c.env.Query[name] }

func (c *change) param() string {
	if len(c.env.Params) == 0 {
		return ""
	}
	return c.env.Params[0]
}

// match refuses a write for another state: If-Match names another generation
// than the stored one.
func (c *change) match(generation int64) error {
	want := strings.TrimSpace(c.env.IfMatch)
	if want == "" || want == "*" {
		return nil
	}
	for _, tag := range strings.Split(want, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == `"`+strconv.FormatInt(generation, 10)+`"` {
			return nil
		}
	}
	return apierr.New(412, "stale", "The record has changed since it was read. Read it again, then repeat the change.")
}

// changed returns the generation of the last change of a collection.
func (c *change) changed(collection string) int64 { return c.Meta.Changed[collection] }

// input reads the body of the call.
func (c *change) input() *Input { return readObject(c.env.Body, "") }

func (c *change) mutationKey() string {
	return storage.MutationPrefix + storage.DigestOf(c.actor, c.env.MutationID)
}

func (c *change) requestDigest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q ", c.env.Method, c.env.Route, c.env.Params, c.env.Query, c.env.IfMatch)
	h.Write(c.env.Body)
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// replay returns the answer of a mutation that was applied before
// (docs/reference/reliability.md, F53).
func (c *change) replay() (*rpc.ManageAnswer, error) {
	if c.env.MutationID == "" {
		return nil, nil
	}
	var row storage.Mutation
	if !c.Load(c.mutationKey(), &row) || row.At < c.Now-storage.Day {
		return nil, nil
	}
	if row.Request != c.requestDigest() {
		return nil, apierr.New(422, "idempotency_key_reused",
			"This Idempotency-Key was used for another request. Send a new key.")
	}
	plain, err := c.o.Keyring.Open(c.ID, storage.MutationPrefix, c.mutationKey(), row.Answer)
	if err != nil { // its key is gone: the change was applied, and is not applied twice
		e := apierr.New(503, "key_unavailable", "The change was applied before, and its answer can no longer be read.")
		e.Err = err
		return nil, e
	}
	var a rpc.ManageAnswer
	if err := json.Unmarshal([]byte(plain.Reveal()), &a); err != nil {
		return nil, err
	}
	return &a, nil
}

// keep stores the answer of a mutation that named itself.
func (c *change) keep(a rpc.ManageAnswer) error {
	if c.env.MutationID == "" {
		return nil
	}
	sealed, err := c.o.Keyring.Seal(c.ID, storage.MutationPrefix, c.mutationKey(), secret.New(string(storage.Encode(a))))
	if err != nil {
		return err
	}
	c.Put(c.mutationKey(), storage.Mutation{At: c.Now, Request: c.requestDigest(), Answer: sealed})
	return nil
}
