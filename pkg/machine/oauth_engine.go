package machine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// oauthRows are the engine's rows within the turn.
type oauthRows struct{ *tx }

func (r oauthRows) Get(key string) ([]byte, bool) { return r.get(key) }
func (r oauthRows) Put(key string, value []byte)  { r.set(key, value) }
func (r oauthRows) Delete(key string)             { r.del(key) }

// oauthVault seals a row's secrets for this machine and row alone.
type oauthVault struct {
	keyring
	machineID string
}

func (v oauthVault) Seal(row, field string, plain secret.Secret) (secret.Sealed, error) {
	return v.keyring.Seal(v.machineID, row, field, plain)
}

func (v oauthVault) Open(row, field string, sealed secret.Sealed) (secret.Secret, error) {
	return v.keyring.Open(v.machineID, row, field, sealed)
}

// turning ends the turn before a call goes out, so that what was written is
// durable, and begins another when the answer is there.
type turning struct {
	r   *request
	o   *Object
	do  upstream.Doer
	err error // instead
}

type turned struct {
	turning
	upstream.Pending
}

func (t turning) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	if t.err == nil {
		t.err = t.r.commit()
	}
	if t.err != nil {
		return turned{turning: t}
	}
	return turned{t, t.do.Start(ctx, req)}
}

func (t turned) Wait() (*upstream.Response, error) {
	if t.err != nil {
		return nil, t.err
	}
	resp, err := t.Pending.Wait()
	t.r.reload(t.o.Now())
	return resp, err
}

// engine runs the flows of a machine within a call.
func (o *Object) engine(r *request) *oauth.Engine {
	return &oauth.Engine{
		Providers: o.OAuth, Rows: oauthRows{r.tx}, Vault: oauthVault{o.Keyring, r.id},
		Doer: func(p *oauth.Provider, note string) upstream.Doer {
			do, err := o.flowDoer(r, p, note)
			return turning{r, o, do, err}
		},
		Rand: o.Rand, Now: o.Now, MachineID: r.id,
	}
}

// flowDoer makes the calls of a flow through the proxy of the connection that
// it is for, where that has one.
func (o *Object) flowDoer(r *request, p *oauth.Provider, note string) (upstream.Doer, error) {
	c := &change{request: r, o: o}
	var n oauthNote
	var got *connInput
	err := json.Unmarshal([]byte(note), &n)
	if err == nil && n.ConnectionID != "" {
		got, err = c.renewed(p, n.ConnectionID)
	} else if err == nil {
		got, err = c.drafted(p, readObject(orEmpty(n.Fields), ""))
	}
	if err != nil {
		return nil, err
	}
	client, err := o.proxied(r, &got.row, p)
	if err != nil {
		return nil, err
	}
	return o.doer(client), nil
}

// settle keeps what a flow has come to, and makes the answer of its failure.
func (c *change) settle(err error) error {
	if err := c.commit(); err != nil {
		return err
	}
	var f *oauth.Failure
	if !errors.As(err, &f) {
		return err
	}
	var e *apierr.Error
	if errors.As(f.Err, &e) { // the call was not made
		return e
	}
	switch n := notSent(err); {
	case n != nil:
		e = apierr.New(503, "provider_unavailable", "the provider was not asked: %s", n.Error())
		e.RetryAfter = time.Second
	case f.Kind == oauth.Lost:
		e = apierr.New(502, "upstream_outcome_unknown", "the provider's answer was lost: begin again")
	case f.Kind == oauth.Transient:
		e = apierr.New(503, "provider_unavailable", "the provider gave no usable answer: begin again in a while")
		e.RetryAfter = max(f.RetryAfter, time.Second)
	case f.Kind == oauth.Reauth:
		e = apierr.New(400, "invalid_grant", "the provider no longer accepts the code: begin again")
	case f.Kind == oauth.Denied:
		e = apierr.New(400, "access_denied", "access was denied")
	case f.Kind == oauth.Expired:
		e = apierr.New(400, "expired_token", "the code has expired: begin again")
	default:
		e = apierr.New(502, "provider_refused", "the provider refused the gateway's client%s: the operator's configuration is to blame", strings.TrimSuffix(" ("+f.Code+")", " ()"))
	}
	e.Err = errors.New(shownFailure(f))
	return e
}
