package tokens_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

const (
	now    = int64(1_800_000_000_000)
	minute = storage.Minute
	hour   = 60 * minute
	// provider is one whose token endpoint the operator has configured.
	provider = "openai-compatible-00000001"
)

func service() *tokens.Service {
	return &tokens.Service{
		Now:   func() time.Time { return time.UnixMilli(now) },
		OAuth: []oauth.Provider{{ID: provider, TokenURL: "https://login.example.com/token", ClientID: "weir-client"}},
	}
}

// expiring returns a connection whose access token expires at a time.
func expiring(id string, at int64) storage.Connection {
	return storage.Connection{Connection: store.Connection{
		ID: id, Provider: provider, ExpiresAt: at, TokenGeneration: 1,
		Secrets: map[string]secret.Sealed{store.AccessToken: "sealed-access", store.RefreshToken: "sealed-refresh"},
	}}
}

// holding returns the storage of a machine with connections.
func holding(t *testing.T, o *tokens.Service, list ...storage.Connection) *objects.Storage {
	t.Helper()
	st := objects.NewStorage()
	tx := o.Begin(st, sealed.MachineID)
	tx.Create("demo")
	for i := range list {
		tx.PutConnection(&list[i])
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	st.Flush()
	return st
}

// due runs the refreshes that are due and returns the connections that were
// asked for.
func due(o *tokens.Service, tx *storage.Tx) (ids []string) {
	script, _ := o.Objects.(*objects.Script)
	o.RefreshDue(storage.NewCall(context.Background(), tx, nil))
	if script == nil {
		return nil
	}
	for _, call := range script.Calls {
		id, _, _ := strings.Cut(strings.TrimPrefix(call, `refresh {"connectionId":"`), `"`)
		ids = append(ids, id)
	}
	return ids
}

func TestOnlyDueTokensAreRefreshed(t *testing.T) {
	o := service()
	script := objects.Constant(200, `{}`)
	o.Objects = script
	o.Log = func(line string) { t.Error(line) }
	st := holding(t, o, expiring("later", now+6*minute), expiring("now", now+5*minute), expiring("never", 0), expiring("also-now", now+5*minute))
	if got := due(o, o.Begin(st, sealed.MachineID)); !slices.Equal(got, []string{"now", "also-now"}) {
		t.Errorf("refreshed %v", got)
	}
	if script.Calls[0] != `refresh {"connectionId":"now","tokenGeneration":1}` || script.Called[0] != sealed.MachineID {
		t.Errorf("called %s: %s", script.Called[0], script.Calls[0])
	}
}

// Each row that an object reads is billed.
func TestAlarmWithoutADueRefreshReadsNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(o *tokens.Service, tx *storage.Tx)
	}{
		{"never", func(_ *tokens.Service, tx *storage.Tx) { tx.Meta.RefreshAt = 0 }},
		{"later", func(_ *tokens.Service, tx *storage.Tx) { tx.Meta.RefreshAt = now + 1 }},
		{"deleted", func(_ *tokens.Service, tx *storage.Tx) { tx.Meta.Deleted = true }},
		{"no objects to call", func(o *tokens.Service, tx *storage.Tx) { o.Objects = nil }},
	} {
		o := service()
		o.Objects = objects.Constant(200, `{}`)
		st := holding(t, o, expiring("c", now))
		tx := o.Begin(st, sealed.MachineID)
		tt.change(o, tx)
		before := st.Read
		if got := due(o, tx); len(got) != 0 || st.Read != before {
			t.Errorf("%s: refreshed %v, %d rows read", tt.name, got, st.Read-before)
		}
	}
}

func TestFailedRefreshAheadIsLoggedAndTheNextRuns(t *testing.T) {
	o := service()
	o.Objects = &objects.Script{}
	var logs []string
	o.Log = func(line string) { logs = append(logs, line) }
	got := due(o, o.Begin(holding(t, o, expiring("a", now), expiring("b", now)), sealed.MachineID))
	if len(got) != 2 || len(logs) != 2 || !strings.Contains(logs[0], "refresh of account a ahead of its expiry did not run") {
		t.Errorf("refreshed %v, logged %q", got, logs)
	}
}

// Changes that the storage has refused must not be part of the next turn.
func TestNextRefreshIsStoredOrForgotten(t *testing.T) {
	for _, fails := range []bool{false, true} {
		o := service()
		o.Objects = objects.Constant(200, `{}`)
		st := holding(t, o, expiring("c", now+hour))
		tx := o.Begin(st, sealed.MachineID)
		tx.Meta.RefreshAt = 1 // of a token that is gone
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		st.Flush()
		st.Fault = func(string) bool { return fails }
		due(o, tx)
		st.Fault = nil
		stored := o.Begin(st, sealed.MachineID).Meta.RefreshAt != 1
		if len(tx.Order) != 0 || stored == fails {
			t.Errorf("storage fails %v: stored %v, the next turn begins with %v", fails, stored, tx.Order)
		}
	}
}
