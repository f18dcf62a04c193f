package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// keyring is the part of store.Keyring used here.
type keyring interface {
	Seal(machineID, connectionID, field string, plain secret.Secret) (secret.Sealed, error)
	Open(machineID, connectionID, field string, sealed secret.Sealed) (secret.Secret, error)
}

// Object is the logic of the Machine objects; one value serves all of an
// instance. What it remembers itself is only what is under way: the rest is in
// the storage of each object.
type Object struct {
	Keyring keyring
	KV      store.KV
	Objects rpc.Stub // the registry, and the object itself for refreshes by alarm
	Do      upstream.Doer
	Pause   upstream.Pauser // may be nil: a failed write of new tokens is then not waited for
	Now     func() time.Time
	Rand    io.Reader
	Log     func(line string)
	// CanonicalURL is the platform's URL parser: the canonical string, or false.
	CanonicalURL func(raw string) (string, bool)
	// AllowPrivate and OwnHosts are those of provider.CheckBaseURL.
	AllowPrivate bool
	OwnHosts     []string
	// Reseed lets a document in KV change an existing machine.
	Reseed bool
	// KeySecret is the worker secret API_KEY_SECRET.
	KeySecret []byte
	// OAuth are the operator's clients at identity providers. Token endpoints
	// are theirs, or the provider table's.
	OAuth []oauth.Provider
	// SignRS256 signs with a PKCS#8 key, for Google service accounts. Nil
	// leaves those without a refresh.
	SignRS256 func(ctx context.Context, pkcs8, data []byte) ([]byte, error)
	// DeriveKey returns a key of 32 bytes by PBKDF2 with SHA-256 without blocking
	// other requests. Nil derives it in Go.
	DeriveKey func(ctx context.Context, passphrase, salt []byte, iterations int) ([]byte, error)
	// Dialer opens the connections to proxies; nil where there are no sockets.
	// Proxy is the operator's, for connections without one of their own.
	Dialer proxydial.Dialer
	Proxy  Proxy
	// RefreshEvery is the least time between two refreshes of one connection
	// where OAuth does not name one; zero means 60 s.
	RefreshEvery time.Duration

	flights map[string]bool    // refreshes under way, by machine and connection
	unsaved map[string]*issued // tokens that could not be stored yet
	seat    string             // see seatID
}

// request is one call of an object.
type request struct {
	ctx  context.Context
	body []byte
	// settled tells that the answer does not depend on what is not yet written.
	settled bool
	*tx
}

// ops are the operations of a machine's object; see ops.go for their shapes.
var ops = [...]struct {
	name   string
	handle func(o *Object, r *request) (any, error)
}{
	{"snapshot", (*Object).snapshot},
	{"report", (*Object).report},
	{"refresh", (*Object).refresh},
	{"job.put", (*Object).jobPut},
	{"job.get", (*Object).jobGet},
	{"idem.begin", (*Object).idemBegin},
	{"idem.end", (*Object).idemEnd},
	{"manage", (*Object).manage},
	{"adopt", (*Object).adopt},
	{"create", (*Object).create},
	{"delete", (*Object).remove},
	{"probe", (*Object).probe},
	{"tested", (*Object).tested},
	{"exists", (*Object).existing},
	{"tick", (*Object).tick},
	{"session.open", (*Object).sessionOpen},
	{"session.check", (*Object).sessionCheck},
	{"session.end", (*Object).sessionEnd},
	{"oauth.callback", (*Object).oauthCallback},
}

// registryOps are those of the registry.
var registryOps = [...]struct {
	name   string
	handle func(o *Object, r *request) (any, error)
}{
	{"put", (*Object).registryPut},
	{"list", (*Object).registryList},
	{"tick", (*Object).registryTick},
	{"session.open", (*Object).sessionOpen},
	{"session.check", (*Object).sessionCheck},
	{"session.end", (*Object).sessionEnd},
	{"session.failed", (*Object).sessionFailed},
}

// Handle serves one call. The answer is JSON; a failure is
// {"error":{"message","type","code","param","retryAfterMs"}} with its status.
// A storage that fails gives 503 and leaves what was there before.
func (o *Object) Handle(ctx context.Context, st Storage, machineID, op string, body []byte) (status int, answer []byte) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); !ok || !errors.Is(e, ErrStorage) {
				panic(p)
			}
			status, answer = o.failed(machineID, op, storageFailed(ErrStorage))
		}
	}()
	r := &request{ctx: ctx, body: body, tx: o.begin(st, machineID)}
	v, err := o.dispatch(r, op)
	if err == nil && !r.settled {
		err = r.commit()
	}
	if err != nil {
		return o.failed(machineID, op, err)
	}
	switch a := v.(type) {
	case reply:
		return a.status, encode(a.body)
	default:
		return 200, encode(v)
	}
}

func (o *Object) dispatch(r *request, op string) (any, error) {
	if r.id == rpc.RegistryID {
		for i := range registryOps {
			if registryOps[i].name == op {
				return registryOps[i].handle(o, r)
			}
		}
	} else if rpc.IsMachineID(r.id) {
		for i := range ops {
			if ops[i].name == op {
				return ops[i].handle(o, r)
			}
		}
	}
	return nil, apierr.New(404, "unknown_operation", "the object has no such operation")
}

// reply is an answer with a status other than 200.
type reply struct {
	status int
	body   any
}

func (o *Object) failed(machineID, op string, err error) (int, []byte) {
	var e *apierr.Error
	if !errors.As(err, &e) {
		e = apierr.New(500, "", "internal error")
		e.Err = err
	}
	if e.Status >= 500 && e.Err != nil {
		o.log(fmt.Sprintf("machine %s: %s: %v", machineID, op, e.Err))
	}
	return e.Status, encode(rpc.FailureOf(e))
}

func (o *Object) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}

func only(s string, ok func(c byte) bool) bool {
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			return false
		}
	}
	return s != ""
}

func lowerDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func errGone() error { return apierr.New(404, "machine_not_found", "there is no such machine") }
