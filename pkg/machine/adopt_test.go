package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/golden"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// masked returns a replica without what differs from run to run.
func masked(m *store.Machine) *store.Machine {
	for i := range m.Connections {
		for f := range m.Connections[i].Secrets {
			m.Connections[i].Secrets[f] = "sealed"
		}
	}
	return m
}

const seed = `{
 "connections":[
  {"provider":"openai","apiKey":"sk-0123456789abcdefghij","isActive":true,"unknownField":{"a":1}},
  {"provider":"openai","name":"second","apiKey":"sk-second-0123456789","isActive":null,"priority":2},
  {"id":"mine","provider":"anthropic-compatible-0123abcd","apiKey":"key-of-compatible","isActive":false,
   "providerSpecificData":{"baseUrl":" https://API.example.com/v1/ ","prefix":"acme","enabledModels":["m1","", 3, "m1","m2"],"region":"eu","note":{"x":1}}},
  {"provider":"azure","apiKey":"azure-key-0123456789","providerSpecificData":{"resource":"acme"}}
 ],
 "apiKeys":["sk-abcdefgh12","sk-abcdefgh01234567-abcdefghijklmnopqrstuvwxyz-52572ea0","anything at all"],
 "combos":[{"name":"fast"},{"name":"web","kind":"webSearch","models":["openai/search","fast"]}],
 "customModels":[{"id":" my-model ","providerAlias":"acme"},{"id":"","providerAlias":"acme"},{"id":"see","type":"imageToText","providerAlias":"openai"}],
 "modelAliases":{"mini":"openai/gpt-4o-mini","ignored":"no-slash","number":3},
 "disabledModels":[{"providerAlias":"openai","ids":["gpt-4"]}]
}`

func TestSeedIsAdopted(t *testing.T) {
	w := newWorld(t)
	if a := w.Want(200, "adopt", `{"doc":`+seed+`}`); !a.Get("adopted").Bool() {
		t.Fatal(a.Raw)
	}
	m := w.Replica()
	if got := w.Open(&m.Connections[2], store.APIKey); got != "key-of-compatible" {
		t.Errorf("secret: got %q", got)
	}
	for _, text := range []string{"sk-abcdefgh12", "sk-abcdefgh01234567-abcdefghijklmnopqrstuvwxyz-52572ea0", "anything at all"} {
		k, _ := rpc.ParseSeededKey(text)
		if snapshot.New(m).FindKey(k.Digest, nil) == nil {
			t.Errorf("key %s is not known", text)
		}
	}
	golden.JSON(t, "seeded", masked(m))
	w.Loc.Alarms(w.Ctx)
	if _, err := snapshot.Parse(mid, w.KV.Dump()[kvKey(mid)]); err != nil {
		t.Errorf("not published back: %v", err)
	}
	if got := w.machines(); len(got) != 1 {
		t.Errorf("not registered: %v", got)
	}
}

func TestSeedIsRefusedWholeNamingTheField(t *testing.T) {
	tests := []struct{ name, doc, field string }{
		{"not an object", `[]`, ""},
		{"twice", `{"apiKeys":[],"apiKeys":[]}`, "apiKeys"},
		{"connections is no array", `{"connections":{}}`, "connections"},
		{"connection is no object", `{"connections":["x"]}`, "connections[0]"},
		{"no provider", `{"connections":[{"apiKey":"0123456789"}]}`, "connections[0].provider"},
		{"key of another type", `{"connections":[{"provider":"openai","apiKey":5}]}`, "connections[0].apiKey"},
		{"key with a line end", `{"connections":[{"provider":"openai","apiKey":"0123456789\r\nX: y"}]}`, "connections[0].apiKey"},
		{"key that is not ASCII", `{"connections":[{"provider":"openai","apiKey":"0123456789☃"}]}`, "connections[0].apiKey"},
		{"good one, then a bad one", `{"connections":[{"provider":"openai","apiKey":"0123456789"},{"provider":"openai","apiKey":"\u0001123456789"}]}`, "connections[1].apiKey"},
		{"private base address", `{"connections":[{"provider":"openai-compatible-0123abcd","apiKey":"0123456789","providerSpecificData":{"baseUrl":"https://127.0.0.1/v1"}}]}`, "connections[0].providerSpecificData.baseUrl"},
		{"plain http", `{"connections":[{"provider":"openai-compatible-0123abcd","apiKey":"0123456789","providerSpecificData":{"baseUrl":"http://api.example.com/v1"}}]}`, "connections[0].providerSpecificData.baseUrl"},
		{"no address", `{"connections":[{"provider":"openai-compatible-0123abcd","apiKey":"0123456789","providerSpecificData":{"baseUrl":"nonsense"}}]}`, "connections[0].providerSpecificData.baseUrl"},
		{"prefix with a slash", `{"connections":[{"provider":"openai","apiKey":"0123456789","providerSpecificData":{"prefix":"a/b"}}]}`, "connections[0].providerSpecificData.prefix"},
		{"secret in the wrong place", `{"connections":[{"provider":"openai","providerSpecificData":{"api_key":"0123456789"}}]}`, "connections[0].providerSpecificData.api_key"},
		{"token endpoint", `{"connections":[{"provider":"openai","providerSpecificData":{"tokenUrl":"https://evil.example.com"}}]}`, "connections[0].providerSpecificData.tokenUrl"},
		{"region with a line end", `{"connections":[{"provider":"openai","providerSpecificData":{"region":"eu\r\nX: y"}}]}`, "connections[0].providerSpecificData.region"},
		{"same id twice", `{"connections":[{"id":"a","provider":"openai"},{"id":"a","provider":"openai"}]}`, "connections[1].id"},
		{"id that is no id", `{"connections":[{"id":"a/../b","provider":"openai"}]}`, "connections[0].id"},
		{"priority", `{"connections":[{"provider":"openai","priority":1.5}]}`, "connections[0].priority"},
		{"half of a signing key", `{"connections":[{"provider":"bedrock","accessKeyId":"AKIA0123456789","providerSpecificData":{"region":"eu-west-1"}}]}`, "connections[0].secretAccessKey"},
		{"key file", `{"connections":[{"provider":"vertex","serviceAccount":"{}"}]}`, "connections[0].serviceAccount"},
		{"gateway key", `{"apiKeys":["sk-abcdefgh12",""]}`, "apiKeys[1]"},
		{"gateway key of 7 characters", `{"apiKeys":["sk-abcdefgh12","sk-shor"]}`, "apiKeys[1]"},
		{"gateway key that is not ASCII", `{"apiKeys":["sk-abcdéfgh"]}`, "apiKeys[0]"},
		{"gateway key with a wrong check", `{"apiKeys":["sk-abcdefgh01234567-abcdefghijklmnopqrstuvwxyz-0123abcd"]}`, "apiKeys[0]"},
		{"gateway key of another machine", `{"apiKeys":["sk-other00001234567-abcdefghijklmnopqrstuvwxyz-0123abcd"]}`, "apiKeys[0]"},
		{"gateway key is a number", `{"apiKeys":[5]}`, "apiKeys[0]"},
		{"gateway key is an object", `{"apiKeys":[{}]}`, "apiKeys[0]"},
		{"combo name", `{"combos":[{"name":"a/b"}]}`, "combos[0].name"},
		{"combo without a name", `{"combos":[{}]}`, "combos[0].name"},
		{"combo kind", `{"combos":[{"name":"a","kind":"what"}]}`, "combos[0].kind"},
		{"combo loop", `{"combos":[{"name":"a","models":["b"]},{"name":"b","models":["a"]}]}`, "combos"},
		{"combo twice", `{"combos":[{"name":"a"},{"name":"a"}]}`, "combos"},
		{"custom model", `{"customModels":[{"id":"a/../b","providerAlias":"x"}]}`, "customModels[0].id"},
		{"aliases are no object", `{"modelAliases":["a"]}`, "modelAliases"},
		{"alias value", `{"modelAliases":{"a":"b/../c"}}`, "modelAliases.a"},
		{"disabled", `{"disabledModels":[{"providerAlias":"","ids":["a"]}]}`, "disabledModels[0].providerAlias"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			a := w.Want(422, "adopt", `{"doc":`+tt.doc+`}`)
			if got := a.Get("error.param").Str; got != tt.field {
				t.Errorf("got %q (%s), want %q", got, a.Raw, tt.field)
			}
			if len(w.Logs) != 1 || !strings.Contains(w.Logs[0], tt.field) {
				t.Errorf("log: %q", w.Logs)
			}
			if n := len(w.Loc.Storage(mid).Dump()); n != 0 {
				t.Errorf("%d rows were stored", n)
			}
			w.Want(404, "snapshot", `{}`)
			for _, secret := range []string{"0123456789", "X: y"} {
				if strings.Contains(a.Raw+strings.Join(w.Logs, ""), secret) {
					t.Error("the refusal repeats a value")
				}
			}
		})
	}
}

// KV may show a seed for long after it was adopted.
func TestSeedSeenBeforeIsNotAdoptedAgain(t *testing.T) {
	w := newWorld(t)
	w.Want(200, "adopt", `{"doc":`+seed+`}`)
	id := w.Replica().Connections[0].ID
	w.OK("DELETE", "/api/providers/"+id, "")
	gen := w.Replica().Generation
	if a := w.Want(200, "adopt", `{"doc":`+seed+`}`); a.Get("adopted").Bool() || a.Get("generation").Int() != gen {
		t.Errorf("an old seed came back: %s", a.Raw)
	}
	w.Want(204, "delete", "")
	w.Want(200, "adopt", `{"doc":`+seed+`}`)
	w.Want(404, "snapshot", `{}`)
}

func TestNewSeedReplacesOnlySeededRows(t *testing.T) {
	w := newWorld(t)
	w.obj.Reseed = true
	w.Want(200, "adopt", `{"doc":`+seed+`}`)
	mine := w.Connect(`{"provider":"openai","name":"by hand","apiKey":"sk-0123456789abcdef"}`)
	key := w.OK("POST", "/api/keys", `{"name":"by hand"}`).Get("id").Str
	first := w.Replica().Connections[0].ID
	w.Want(200, "adopt", `{"doc":{"connections":[{"provider":"openai","apiKey":"sk-another-0123456789"}],"apiKeys":["sk-newkey1234"]}}`)
	m := w.Replica()
	if len(m.Connections) != 2 || len(m.Keys) != 2 || len(m.Combos)+len(m.CustomModels)+len(m.ModelAliases)+len(m.Disabled) != 0 {
		t.Fatalf("got %d connections, %d keys, %d combos", len(m.Connections), len(m.Keys), len(m.Combos))
	}
	s := snapshot.New(m)
	if s.Connection(mine) == nil || s.Connection(first) == nil {
		t.Error("the connection made by hand is gone, or the seeded one has another id")
	}
	if got := w.Open(s.Connection(first), store.APIKey); got != "sk-another-0123456789" {
		t.Errorf("got %q", got)
	}
	if m.Keys[0].ID != key && m.Keys[1].ID != key {
		t.Error("the key made by hand is gone")
	}
	a := w.Want(422, "adopt", fmt.Sprintf(`{"doc":{"connections":[{"id":%q,"provider":"openai"}]}}`, mine))
	if a.Get("error.param").Str != "connections" {
		t.Errorf("took over a connection made by hand: %s", a.Raw)
	}
}

// A seed put while the object was about to publish is not overwritten unseen.
func TestSeedInKVIsAdoptedBeforePublishing(t *testing.T) {
	w := newWorld(t)
	w.obj.Reseed = true
	w.Create()
	w.Loc.Alarms(w.Ctx)
	w.KV.Put(w.Ctx, kvKey(mid), []byte(`{"apiKeys":["sk-fromhand12"]}`))
	w.OK("POST", "/api/keys", `{}`)
	w.Clock.Add(2 * time.Second)
	w.Loc.Alarms(w.Ctx)
	k, _ := rpc.ParseKey("sk-fromhand12")
	m, err := snapshot.Parse(mid, w.KV.Dump()[kvKey(mid)])
	if err != nil || m.FindKey(k.Digest, nil) == nil || len(m.Keys) != 3 {
		t.Errorf("the seed is lost: %v", err)
	}
}

// Write access to KV must not yield a key to an existing machine.
func TestExistingMachineRefusesSeedUnlessAllowed(t *testing.T) {
	for _, made := range []string{"created", "seeded"} {
		t.Run(made, func(t *testing.T) {
			w := newWorld(t)
			if made == "created" {
				w.Create()
			} else {
				w.Want(200, "adopt", `{"doc":`+seed+`}`)
			}
			w.Loc.Alarms(w.Ctx)
			before := w.Replica()
			planted := `{"apiKeys":["sk-planted00000000001"]}`
			w.KV.Put(w.Ctx, kvKey(mid), []byte(planted))
			if a := w.Want(422, "adopt", `{"doc":`+planted+`}`); a.Get("error.code").Str != "seed_refused" {
				t.Errorf("got %s", a.Raw)
			}
			w.Clock.Add(2 * time.Second)
			w.Loc.Alarms(w.Ctx)
			if after := w.Replica(); after.Generation != before.Generation || len(after.Keys) != len(before.Keys) {
				t.Errorf("generation %d with %d keys became %d with %d", before.Generation, len(before.Keys), after.Generation, len(after.Keys))
			}
			m, err := snapshot.Parse(mid, w.KV.Dump()[kvKey(mid)])
			if err != nil || m.Generation != before.Generation {
				t.Errorf("the document was not overwritten with the replica: %v", err)
			}
		})
	}
}

func TestRefusedSeedDoesNotStayInKV(t *testing.T) {
	w := newWorld(t)
	doc := `{"connections":[{"provider":"openai","apiKey":"sk-canary-0123456789"},{"provider":"openai","apiKey":"bad\u0001key"}]}`
	w.KV.Put(w.Ctx, kvKey(mid), []byte(doc+"\n"))
	w.Want(422, "adopt", `{"doc":`+doc+`}`)
	if left, ok := w.KV.Dump()[kvKey(mid)]; ok {
		t.Errorf("KV still holds %s", left)
	}
	better := `{"apiKeys":["sk-fromhand12"]}`
	w.KV.Put(w.Ctx, kvKey(mid), []byte(better))
	w.Want(422, "adopt", `{"doc":`+doc+`}`)
	if string(w.KV.Dump()[kvKey(mid)]) != better {
		t.Error("a document put meanwhile was removed")
	}
}

func TestOnlyTheLast64SeedsAreRemembered(t *testing.T) {
	w := newWorld(t)
	w.obj.Reseed = true
	for i := range 70 {
		w.Want(200, "adopt", fmt.Sprintf(`{"doc":{"apiKeys":["sk-seedkey%03d"]}}`, i))
	}
	var seen []string
	json.Unmarshal(w.Loc.Storage(mid).Dump()[storage.SeenRow], &seen)
	if len(seen) != manage.MaxSeen || len(w.Replica().Keys) != 1 {
		t.Errorf("%d remembered, %d keys", len(seen), len(w.Replica().Keys))
	}
}

// Whatever lies in KV: it is refused with nothing stored, or adopted into a
// replica that the data plane reads.
func FuzzSeed(f *testing.F) {
	f.Add(seed)
	f.Add(`{"connections":[{"provider":"openai","providerSpecificData":{"enabledModels":[null,{}]}}],"disabledModels":{"a":["b"]}}`)
	f.Add(`{"combos":[{"name":"a","models":["b"]},{"name":"b","models":["a"]}],"modelAliases":{"a":"b/c"}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		if !json.Valid([]byte(doc)) {
			return
		}
		w := newWorld(t)
		status, a := w.Call("adopt", `{"doc":`+doc+`}`)
		rows := len(w.Loc.Storage(mid).Dump())
		switch status {
		case 200:
			raw, _ := json.Marshal(w.Replica())
			if _, err := snapshot.Parse(mid, raw); err != nil {
				t.Fatal(err)
			}
		case 422:
			if rows != 0 || len(w.Logs) != 1 {
				t.Fatalf("refused, but %d rows and logs %q", rows, w.Logs)
			}
		default:
			t.Fatalf("got %d %s", status, a.Raw)
		}
	})
}
