package tokens

import (
	"context"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// oauthRows are the engine's rows within the turn.
type oauthRows struct{ *storage.Tx }

func (r oauthRows) Put(key string, value []byte) { r.Set(key, value) }
func (r oauthRows) Delete(key string)            { r.Del(key) }

// oauthVault seals a row's secrets for this machine and row alone.
type oauthVault struct {
	keyring   *store.Keyring
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
	r   *storage.Call
	now func() time.Time
	do  upstream.Doer
	err error // instead
}

type turned struct {
	turning
	upstream.Pending
}

func (t turning) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	if t.err == nil {
		t.err = t.r.Commit()
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
	t.r.Reload(t.now())
	return resp, err
}

// Engine returns the engine of sign-ins over the machine's rows. doerOf returns
// the transport for a provider's calls; note is that of the grant.
func (o *Service) Engine(r *storage.Call,
	doerOf func(p *oauth.Provider, note string) (upstream.Doer, error)) *oauth.Engine {
	return &oauth.Engine{
		Providers: o.OAuth, Rows: oauthRows{r.Tx}, Vault: oauthVault{o.Keyring, r.ID},
		Doer: func(p *oauth.Provider, note string) upstream.Doer {
			do, err := doerOf(p, note)
			return turning{r, o.Now, do, err}
		},
		Rand: o.Rand, Now: o.Now, MachineID: r.ID,
	}
}
