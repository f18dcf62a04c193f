package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// stored is what a build of some time ago left of a machine: the rows of its
// object, and the replica in KV.
type stored struct {
	Key, Managed, Named string // keys of the gateway
	Connection, Tokens  string // ids
	Access, Refresh     string
	At                  int64
	Rows                map[string]json.RawMessage
	Replica             json.RawMessage
	MachineID           string
}

// storedBy reads testdata/stored/<format>.json. A file stays as it was written:
// a change of a row's form adds another one.
func storedBy(t *testing.T, file string) (s stored) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// over returns a world on the rows of an earlier build, each changed by change.
func over(t *testing.T, s stored, change func(key string, row []byte) []byte) *world {
	w := newWorld(t)
	st := w.Loc.Storage(mid)
	for k, v := range s.Rows {
		var b bytes.Buffer
		if err := json.Compact(&b, v); err != nil {
			t.Fatal(err)
		}
		st.Write([]storage.Row{{Key: k, Value: change(k, b.Bytes())}}, storage.KeepAlarm)
	}
	st.Flush()
	w.KV.Put(w.Ctx, kvKey(mid), s.Replica)
	w.IDP.N, w.IDP.Access, w.IDP.Refresh = 10, s.Access, s.Refresh
	return w
}

// serves checks that a machine is what it was: to the data plane, to its
// managers, and for what it does by itself.
func (w *world) serves(s stored) {
	w.Helper()
	m := w.Replica()
	if len(m.Connections) != 3 || len(m.Keys) != 3 || len(m.Combos) != 1 || len(m.CustomModels) != 1 || len(m.Disabled) != 1 || m.ModelAliases["mini"] != "up/m" || m.Settings.IdleSeconds != 90 {
		w.Fatalf("the machine is not whole: %s", storage.EncodeJSON(m))
	}
	c := inprocess.Connection(m, s.Connection)
	if c == nil || w.Open(c, store.APIKey) != "sk-0123456789abcdefghij" || c.Priority != 2 || c.Data.Prefix != "up" || string(c.Data.Other["home"]) != `{"x":[1]}` {
		w.Fatalf("the connection: %s", storage.EncodeJSON(c))
	}
	snap := snapshot.New(m)
	for _, key := range []string{s.Key, s.Managed, s.Named} {
		if snap.FindKey(sha256.Sum256([]byte(key)), nil) == nil {
			w.Errorf("a key is not accepted any more")
		}
	}
	if st := snap.State(s.Connection, "m"); st.Until <= s.At || st.Failures != 2 {
		w.Errorf("the cooldown: %+v", st)
	}
	if k := w.OK("GET", "/api/keys", "").Get(`data.#(name=="limited")`); k.Get("rpm").Int() != 7 || k.Get("limitedUntil").Exists() {
		w.Errorf("the limits of a key: %s", k.Raw)
	}
	if a := w.OK("GET", "/api/audit?verify=true", ""); !a.Get("chain.ok").Bool() || len(a.Get("data").Array()) < 10 {
		w.Errorf("the audit: %.300s", a.Raw)
	}
	if u := w.OK("GET", "/api/usage?period=30d&group=model", ""); !strings.Contains(u.Raw, `30`) || !strings.Contains(u.Raw, "0.25") {
		w.Errorf("usage: %s", u.Raw)
	}
	if j := w.Want(200, "job.get", `{"id":"job-1"}`); j.Get("connectionId").Str != s.Connection {
		w.Errorf("job: %s", j.Raw)
	}
	if v := w.OK("GET", "/api/providers/"+s.Connection, ""); v.Get("lastError").Str != "429: slow down" || v.Get("last4").Str != "ghij" {
		w.Errorf("shown as %s", v.Raw)
	}
	again := w.OK("POST", "/api/keys", `{"name":"named"}`, func(e *rpc.ManageCall) { e.MutationID = "mutation-1" })
	if again.Get("apiKey").Str != s.Named {
		w.Errorf("a mutation is applied twice: %s", again.Raw)
	}
	w.Clock.Add(2 * 60e9)
	got := w.Want(200, "refresh", `{"connectionId":"`+s.Tokens+`","tokenGeneration":2}`)
	if got.Get("connection.tokenGeneration").Int() != 3 || w.IDP.Revocations != 0 {
		w.Errorf("refresh: %s", got.Raw)
	}
	w.OK("PUT", "/api/providers/"+s.Connection, `{"name":"second"}`)
	w.Loc.Alarms(w.Ctx)
	if _, err := snapshot.Parse(mid, w.KV.Dump()[kvKey(mid)]); err != nil {
		w.Errorf("what is published: %v", err)
	}
}

// The rows of every earlier build are served, as they are and as a newer build
// may have left them before it was taken back: with fields and rows that this
// one does not know. See docs/reference/reliability.md, F61, F62.
func TestRowsOfOtherBuildsAreServed(t *testing.T) {
	files, err := filepath.Glob("testdata/stored/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no rows", err)
	}
	for _, file := range files {
		s := storedBy(t, file)
		same := func(_ string, row []byte) []byte { return row }
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := snapshot.Parse(mid, s.Replica); err != nil {
				t.Errorf("its replica: %v", err)
			}
			over(t, s, same).serves(s)
		})
		t.Run(filepath.Base(file)+", by a newer build", func(t *testing.T) {
			w := over(t, s, func(key string, row []byte) []byte {
				if !gjson.ParseBytes(row).IsObject() || strings.HasPrefix(key, storage.AuditPrefix) { // a record's hash is over its bytes
					return row
				}
				for _, field := range []string{"zFuture", "a.b", "__proto__"} {
					var err error
					if row, err = sjson.SetBytes(row, strings.ReplaceAll(field, ".", `\.`), map[string]any{"x": []int{1}}); err != nil {
						t.Fatal(err)
					}
				}
				return row
			})
			st := w.Loc.Storage(mid)
			future := []storage.Row{
				{Key: "future:1", Value: []byte(`{"v":9}`)}, {Key: "zz", Value: []byte(`"text"`)}, {Key: storage.ConnectionPrefix + "unreadable", Value: []byte(`{"id":[1]}`)},
			}
			st.Write(future, storage.KeepAlarm)
			st.Flush()
			w.serves(s)
			for _, r := range future {
				if got := st.Dump()[r.Key]; string(got) != string(r.Value) {
					t.Errorf("the row %s was changed to %q", r.Key, got)
				}
			}
		})
		t.Run(filepath.Base(file)+", with a secret sealed in a newer way", func(t *testing.T) {
			w := over(t, s, func(key string, row []byte) []byte {
				if key == storage.ConnectionPrefix+s.Tokens {
					return bytes.ReplaceAll(row, []byte(`"v1.`), []byte(`"v2.`))
				}
				return row
			})
			w.Clock.Add(2 * 60e9)
			if a := w.Want(503, "refresh", `{"connectionId":"`+s.Tokens+`","tokenGeneration":2}`); !isFailure(a, "key_unavailable") {
				t.Errorf("got %s", a.Raw)
			}
			if c := inprocess.Connection(w.Replica(), s.Connection); c == nil || w.Open(c, store.APIKey) == "" {
				t.Error("another connection does not open")
			}
			w.Clock.Add(2 * 3600e9) // the hour's work leaves what it cannot open
			w.Loc.Alarms(w.Ctx)
			if n := strings.Count(string(w.Loc.Storage(mid).Dump()[storage.ConnectionPrefix+s.Tokens]), `"v2.`); n != 2 {
				t.Errorf("%d of 2 secrets are left as they were", n)
			}
		})
	}
}
