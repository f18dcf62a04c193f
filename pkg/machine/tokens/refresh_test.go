package tokens

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

const (
	minute = int64(time.Minute / time.Millisecond)
	expiry = int64(2_000_000_000_000) // of the tokens below
)

// connection returns one whose token expires and can be refreshed.
func connection(id string, expiresAt int64) storage.Connection {
	return storage.Connection{Connection: store.Connection{
		ID: id, Provider: "test", ExpiresAt: expiresAt,
		Secrets: map[string]secret.Sealed{store.AccessToken: "sealed", store.RefreshToken: "sealed"},
	}}
}

// turn begins a turn of a machine with connections.
func turn(o *Service, now int64, connections ...storage.Connection) *storage.Call {
	if o.Now == nil {
		o.Now = func() time.Time { return time.UnixMilli(now) }
	}
	o.OAuth = []oauth.Provider{{ID: "test", TokenURL: "https://idp.example/token"}}
	tx := o.Begin(objects.NewStorage(), "abcdefgh01234567")
	tx.Create("machine")
	for i := range connections {
		tx.PutConnection(&connections[i])
	}
	return storage.NewCall(context.Background(), tx, nil)
}

func TestTokensAreRefreshedAheadOfTheirExpiry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *storage.Connection)
		intent IntentRow
		want   int64
	}{
		{"five minutes ahead", nil, IntentRow{}, expiry - 5*minute},
		{"inactive", func(c *storage.Connection) { c.Inactive = true }, IntentRow{}, 0},
		{"status", func(c *storage.Connection) { c.Status = storage.NeedsReauth }, IntentRow{}, 0},
		{"no access token", func(c *storage.Connection) { delete(c.Secrets, store.AccessToken) }, IntentRow{}, 0},
		{"no refresh token", func(c *storage.Connection) { delete(c.Secrets, store.RefreshToken) }, IntentRow{}, 0},
		{"no client", func(c *storage.Connection) { c.Provider = "openai" }, IntentRow{}, 0},
		{"no expiry", func(c *storage.Connection) { c.ExpiresAt = 0 }, IntentRow{}, 0},
		{"expiry long ago", func(c *storage.Connection) { c.ExpiresAt = 1 }, IntentRow{}, 1},
		{"not in the first half of its life", nil, IntentRow{Done: true, At: expiry - 8*minute}, expiry - 4*minute},
		{"a long life", nil, IntentRow{Done: true, At: expiry - 60*minute}, expiry - 5*minute},
		{"outcome unknown", nil, IntentRow{Unknown: 1, At: expiry - 60*minute}, expiry},
		{"an unknown outcome before the token", nil, IntentRow{Unknown: 1, Done: true, At: expiry - 8*minute}, expiry - 4*minute},
		{"refused", nil, IntentRow{Refused: 1, At: expiry}, expiry + minute},
		{"refused twice", nil, IntentRow{Refused: 2, At: expiry}, expiry + 2*minute},
		{"not before the time that the endpoint named", nil, IntentRow{Refused: 1, At: expiry, Until: expiry + 7*minute}, expiry + 7*minute},
		{"after a temporary failure", nil, IntentRow{Passing: 1, At: expiry}, expiry + 1000},
		{"after four", nil, IntentRow{Passing: 4, At: expiry}, expiry + minute},
		{"after five", nil, IntentRow{Passing: 5, At: expiry}, expiry + 2*minute},
	} {
		c := connection("c", expiry)
		if tt.change != nil {
			tt.change(&c)
		}
		o := &Service{}
		r := turn(o, 1000, c)
		r.Put(storage.IntentPrefix+c.ID, tt.intent)
		if got := o.refreshAt(r.Tx, &c); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestNextRefreshIsTheEarliest(t *testing.T) {
	early, late, never := connection("early", expiry), connection("late", expiry+minute), connection("never", 0)
	for _, list := range [][]storage.Connection{{early, late, never}, {late, early, never}, {never, late, early}} {
		o := &Service{}
		if got := o.NextRefresh(turn(o, 1000, list...).Tx); got != expiry-5*minute {
			t.Errorf("first %s: %d, want %d", list[0].ID, got, expiry-5*minute)
		}
	}
	o := &Service{}
	if got := o.NextRefresh(turn(o, 1000, never).Tx); got != 0 {
		t.Errorf("%d without a refresh", got)
	}
}

func TestAlarmRefreshesWhatIsDueAndNoMoreThanFive(t *testing.T) {
	due := expiry - 5*minute
	list := []storage.Connection{connection("never", 0), connection("later", expiry+1)}
	for i := range 7 {
		list = append(list, connection(fmt.Sprint("due", i), expiry))
	}
	run := func(change func(o *Service, r *storage.Call)) *objects.Script {
		script := &objects.Script{} // of an object that cannot be reached
		o := &Service{Objects: script}
		r := turn(o, due, list...)
		r.Meta.RefreshAt = due
		change(o, r)
		o.RefreshDue(r)
		return script
	}
	lines := 0
	script := run(func(o *Service, _ *storage.Call) { o.Log = func(string) { lines++ } })
	if len(script.Calls) != 5 || lines != 5 {
		t.Errorf("%d calls, %d lines, want 5 of each: %q", len(script.Calls), lines, script.Calls)
	}
	for _, c := range script.Calls {
		if !strings.Contains(c, `"connectionId":"due`) {
			t.Errorf("%s is not due", c)
		}
	}
	for name, change := range map[string]func(o *Service, r *storage.Call){
		"no refresh":        func(_ *Service, r *storage.Call) { r.Meta.RefreshAt = 0 },
		"a later one":       func(_ *Service, r *storage.Call) { r.Meta.RefreshAt = due + 1 },
		"a deleted machine": func(_ *Service, r *storage.Call) { r.Meta.Deleted = true },
	} {
		if got := run(change).Calls; len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	run(func(o *Service, _ *storage.Call) { o.Objects = nil })
}

func TestLeastTimeBetweenRefreshes(t *testing.T) {
	for _, tt := range []struct {
		own, client time.Duration
		want        int64
	}{
		{0, 0, minute}, {2 * time.Second, 0, 2000}, {0, 3 * time.Second, 3000}, {2 * time.Second, 3 * time.Second, 3000}, {-1, 0, minute},
	} {
		o := &Service{RefreshEvery: tt.own, OAuth: []oauth.Provider{{ID: "test", RefreshEvery: tt.client}}}
		if got := o.refreshEvery("test"); got != tt.want {
			t.Errorf("own %v, client's %v: %d, want %d", tt.own, tt.client, got, tt.want)
		}
	}
}

func TestUnsavedTokensAreStoredUnlessTheCredentialChanged(t *testing.T) {
	own, gone, other, newer := connection("own", expiry), connection("gone", expiry), connection("other", expiry), connection("newer", expiry)
	delete(other.Secrets, store.RefreshToken)
	newer.TokenGeneration = 5
	o := &Service{Unsaved: map[string]*issued{}}
	r := turn(o, 1000, own, other, newer)
	for _, c := range []storage.Connection{own, gone, other, newer} {
		c.TokenGeneration, c.ExpiresAt = 5, expiry+minute
		o.Unsaved[r.ID+":"+c.ID] = &issued{c}
	}
	for i := range 20 { // of other machines, which this turn cannot store
		o.Unsaved[fmt.Sprint("machine", i, ":own")] = &issued{own}
	}
	o.SaveTokens(r)
	if len(o.Unsaved) != 20 {
		t.Errorf("%d are unsaved, want the 20 of other machines", len(o.Unsaved))
	}
	for _, tt := range []struct {
		id   string
		want int64
	}{{"own", expiry + minute}, {"other", expiry}, {"newer", expiry}, {"gone", 0}} {
		var c storage.Connection
		if r.Load(storage.ConnectionPrefix+tt.id, &c); c.ExpiresAt != tt.want {
			t.Errorf("%s expires at %d, want %d", tt.id, c.ExpiresAt, tt.want)
		}
	}
}

// A connection that cannot be read is not gone.
func TestUnsavedTokensOutliveAFailedRead(t *testing.T) {
	st, c := objects.NewStorage(), connection("own", expiry)
	o := &Service{Now: func() time.Time { return time.UnixMilli(1000) }}
	tx := o.Begin(st, "abcdefgh01234567")
	tx.Create("machine")
	tx.PutConnection(&c)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	c.TokenGeneration, c.ExpiresAt = 5, expiry+minute
	o.Unsaved = map[string]*issued{tx.ID + ":own": {c}}
	r := storage.NewCall(context.Background(), o.Begin(st, tx.ID), nil)
	st.Unreadable = func() bool { return true }
	if o.SaveTokens(r); r.Err() == nil || len(o.Unsaved) != 1 {
		t.Errorf("%v, %d are unsaved", r.Err(), len(o.Unsaved))
	}
	st.Unreadable = nil
	r = storage.NewCall(context.Background(), o.Begin(st, tx.ID), nil)
	o.SaveTokens(r)
	if r.Load(storage.ConnectionPrefix+"own", &c); len(o.Unsaved) != 0 || c.ExpiresAt != expiry+minute {
		t.Errorf("%d are unsaved, the token expires at %d", len(o.Unsaved), c.ExpiresAt)
	}
}

func TestTokensOfRemovedConnectionsAreDropped(t *testing.T) {
	a, b, c, d := connection("a", expiry), connection("b", expiry), connection("c", expiry), connection("d", expiry)
	r := turn(&Service{}, 1000, b, c, d)
	c.TokenGeneration++ // another credential than the stored one
	got := unchanged(r.Tx, []storage.Connection{a, b, c, d})
	if len(got) != 2 || got[0].ID != "b" || got[1].ID != "d" {
		t.Errorf("%d remain: %v", len(got), got)
	}
}

func TestOwnerLearnsWhyTheSignInEnded(t *testing.T) {
	for _, tt := range []struct {
		code, field string
		lost        bool
		want        string
	}{
		{"", store.RefreshToken, false, "no longer accepts the sign-in (no code). Connect"},
		{"invalid_grant", store.RefreshToken, false, "no longer accepts the sign-in (invalid_grant). Connect"},
		{"invalid_grant", store.RefreshToken, true, "revoked the sign-in (invalid_grant): an earlier answer"},
		{"invalid_grant", store.ServiceAccount, true, "no longer accepts the key file (invalid_grant). Replace"},
	} {
		if got := revoked(tt.code, tt.field, tt.lost); !strings.Contains(got, tt.want) {
			t.Errorf("%q lacks %q", got, tt.want)
		}
	}
}
