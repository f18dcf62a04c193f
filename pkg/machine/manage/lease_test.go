package manage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
)

// claim presents a lease to a machine.
func (w *world) claim(machineID, lease, tool string) (int, gjson.Result) {
	w.Helper()
	body, err := json.Marshal(rpc.ClaimLease{Digest: rpc.KeyDigest(lease), Tool: tool})
	if err != nil {
		w.Fatal(err)
	}
	return w.At(machineID, "lease.claim", string(body))
}

// keyNames returns the names of the machine's keys, joined.
func (w *world) keyNames() string {
	w.Helper()
	var names []string
	for _, k := range w.OK("GET", "/api/keys", "").Get("data").Array() {
		names = append(names, k.Get("name").Str)
	}
	return strings.Join(names, ",")
}

func TestLeaseCreatesOneKey(t *testing.T) {
	w := newWorld(t)
	w.Create()
	answer := w.OK("POST", "/api/setup", `{"tool":"codex","model":"openai/gpt-4o-mini","smallModel":"openai/gpt-4o"}`)
	lease := answer.Get("lease").Str
	if id, ok := rpc.LeaseMachine(w.obj.KeySecret, lease); !ok || id != mid {
		t.Fatalf("got %s", answer.Raw)
	}
	if w.keyNames() != "Default key" {
		t.Errorf("a key exists before the claim: %s", w.keyNames())
	}
	status, a := w.claim(mid, lease, "codex")
	if status != 200 || a.Get("model").Str != "openai/gpt-4o-mini" || a.Get("smallModel").Str != "openai/gpt-4o" {
		t.Fatalf("got %d %s", status, a.Raw)
	}
	key, ok := rpc.ParseKey(a.Get("apiKey").Str)
	if !ok || key.MachineID != mid || !key.CheckOK(w.obj.KeySecret) {
		t.Errorf("got %s", a.Raw)
	}
	keys := w.Replica().Keys
	if last := keys[len(keys)-1]; last.Name != "Codex CLI" || len(last.Scopes) != 0 || last.Digest != rpc.KeyDigest(a.Get("apiKey").Str) {
		t.Errorf("got %+v", last)
	}
	if audit := w.OK("GET", "/api/audit", "").Get("data").Raw; !strings.Contains(audit, `"POST /setup/claim"`) || !strings.Contains(audit, `"POST /api/setup"`) || strings.Contains(audit, lease) {
		t.Errorf("audit: %s", audit)
	}
	if status, a := w.claim(mid, lease, "codex"); status != 403 || a.Get("error.code").Str != "invalid_lease" {
		t.Errorf("a second claim: got %d %s", status, a.Raw)
	}
	if got := w.keyNames(); got != "Default key,Codex CLI" {
		t.Errorf("keys: %s", got)
	}
}

func TestLeaseExpires(t *testing.T) {
	for after, want := range map[time.Duration]int{5*time.Minute - time.Millisecond: 200, 5 * time.Minute: 403, time.Hour: 403} {
		w := newWorld(t)
		w.Create()
		lease := w.Lease()
		w.Clock.Add(after)
		if status, a := w.claim(mid, lease, "codex"); status != want {
			t.Errorf("after %v: got %d %s, want %d", after, status, a.Raw, want)
		}
	}
}

func TestLeaseBelongsToItsMachine(t *testing.T) {
	const other = "othermachine0000"
	w := newWorld(t)
	w.Create()
	if status, a := w.At(other, "create", `{"name":"other"}`); status != 201 {
		t.Fatalf("got %d %s", status, a.Raw)
	}
	lease := w.Lease()
	for _, id := range []string{other, "unknownmachine00"} {
		if status, a := w.claim(id, lease, "codex"); status != 403 {
			t.Errorf("%s: got %d %s", id, status, a.Raw)
		}
	}
	foreign := strings.Replace(lease, mid, other, 1)
	if _, ok := rpc.LeaseMachine(w.obj.KeySecret, foreign); ok {
		t.Error("a lease that names another machine is taken for one of this gateway")
	}
	if status, a := w.claim(mid, lease, "codex"); status != 200 {
		t.Errorf("in its machine: got %d %s", status, a.Raw)
	}
}

// A refusal that the user can resolve does not use the lease.
func TestLeaseIsNotUsedByRefusals(t *testing.T) {
	w := newWorld(t)
	w.Create()
	lease := w.Lease()
	if status, a := w.claim(mid, lease, "opencode"); status != 400 || a.Get("error.param").Str != "tool" {
		t.Errorf("another tool: got %d %s", status, a.Raw)
	}
	var last string
	for range manage.MaxKeys - 1 {
		last = w.OK("POST", "/api/keys", `{}`).Get("id").Str
	}
	if status, a := w.claim(mid, lease, "codex"); status != 409 {
		t.Errorf("too many keys: got %d %s", status, a.Raw)
	}
	w.OK("DELETE", "/api/keys/"+last, "")
	if status, a := w.claim(mid, lease, "codex"); status != 200 {
		t.Errorf("afterwards: got %d %s", status, a.Raw)
	}
}

func TestLeaseEndsWithTheKeyThatCreatedIt(t *testing.T) {
	w := newWorld(t)
	w.Create()
	manager := w.OK("POST", "/api/keys", `{"scopes":["manage"]}`).Get("id").Str
	as := func(e *rpc.ManageCall) { e.KeyID = manager }
	first, second := w.Lease(as), w.Lease(as)
	if status, a := w.claim(mid, first, "codex"); status != 200 {
		t.Errorf("got %d %s", status, a.Raw)
	}
	w.OK("DELETE", "/api/keys/"+manager, "")
	if status, a := w.claim(mid, second, "codex"); status != 403 {
		t.Errorf("after its revocation: got %d %s", status, a.Raw)
	}
}

func TestLeasesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	var first string
	for i := range 100 {
		if lease := w.Lease(); i == 0 {
			first = lease
		}
	}
	if status, a := w.API("POST", "/api/setup", `{"tool":"codex","model":"openai/gpt-4o"}`); status != 409 {
		t.Errorf("got %d %s", status, a.Raw)
	}
	if status, a := w.claim(mid, first, "codex"); status != 200 {
		t.Errorf("got %d %s", status, a.Raw)
	}
	w.Lease()
	w.Clock.Add(5 * time.Minute)
	w.Lease() // removes the expired ones
	if rows := w.Loc.Storage(mid).Listed("lease:"); len(rows) != 1 {
		t.Errorf("%d leases are stored", len(rows))
	}
}

func TestSetupFillsInModels(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.OK("POST", "/api/combos", `{"name":"fast","models":["openai/gpt-4o-mini"]}`)
	tests := []struct{ settings, body, want string }{
		{`{}`, `{"tool":"codex"}`, "400 model"},
		{`{}`, `{"tool":"codex","model":"openai/gpt-4o"}`, "openai/gpt-4o openai/gpt-4o"},
		{`{"defaultModel":"openai/gpt-4o"}`, `{"tool":"codex"}`, "openai/gpt-4o openai/gpt-4o"},
		{`{"smallModel":"fast"}`, `{"tool":"codex"}`, "openai/gpt-4o fast"},
		{`{}`, `{"tool":"codex","model":"fast"}`, "fast fast"},
		{`{}`, `{"tool":"codex","smallModel":"openai/gpt-4o-mini"}`, "openai/gpt-4o openai/gpt-4o-mini"},
		{`{}`, `{"tool":"codex","model":"openai/gpt-4p"}`, "400 model"},
		{`{}`, `{"tool":"codex","model":"openai/gpt-4p","allowUnknown":true}`, "openai/gpt-4p fast"},
		{`{}`, `{"tool":"codex","model":"nothing"}`, "400 model"},
		{`{}`, `{"tool":"codex","model":"openai/a b","allowUnknown":true}`, "400 model"},
		{`{}`, `{"tool":"codex","model":"openai/$(id)","allowUnknown":true}`, "400 model"},
		{`{}`, `{"tool":"codex","smallModel":"a'b","allowUnknown":true}`, "400 smallModel"},
		{`{}`, `{"tool":"curl","model":"fast"}`, "400 tool"},
		{`{}`, `{"model":"fast"}`, "400 tool"},
		{`{}`, `{"tool":"codex","other":1}`, "400 other"},
		{`{"defaultModel":null,"smallModel":""}`, `{"tool":"codex"}`, "400 model"},
	}
	for _, tt := range tests {
		w.OK("PATCH", "/api/settings", tt.settings)
		status, a := w.API("POST", "/api/setup", tt.body)
		got := fmt.Sprint(status) + " " + a.Get("error.param").Str
		if status == 200 {
			got = a.Get("body.model").Str + " " + a.Get("body.smallModel").Str
		}
		if got != tt.want {
			t.Errorf("%s: got %s (%s), want %s", tt.body, got, a.Raw, tt.want)
		}
	}
	for _, bad := range []string{`{"defaultModel":"nothing"}`, `{"smallModel":"a b"}`, `{"defaultModel":5}`, `{"smallModel":"openia/x"}`} {
		if status, a := w.API("PATCH", "/api/settings", bad); status != 400 {
			t.Errorf("%s: got %d %s", bad, status, a.Raw)
		}
	}
}

// A rotation without an overlap ends what the replaced text has opened.
func TestLeaseEndsWithTheTextOfTheKey(t *testing.T) {
	for overlap, want := range map[string]int{`{"overlapSeconds":0}`: 403, `{"overlapSeconds":60}`: 200} {
		w := newWorld(t)
		w.Create()
		key := w.newKey(`{"name":"m","scopes":["manage"]}`)
		_, a := w.API("POST", "/api/setup", `{"tool":"codex","model":"openai/gpt-4o"}`, w.by(key.Get("apiKey").Str))
		lease := a.Get("body.lease").Str
		if status, a := w.rotate(key.Get("id").Str, overlap); status != 200 {
			t.Fatalf("got %d %s", status, a.Raw)
		}
		if status, a := w.claim(mid, lease, "codex"); status != want {
			t.Errorf("%s: got %d %s, want %d", overlap, status, a.Raw, want)
		}
	}
}
