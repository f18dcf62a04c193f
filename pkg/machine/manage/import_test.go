package manage_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
)

// An import makes no more than may be made one by one, and leaves no trace
// when it would.
func TestImportsAreBounded(t *testing.T) {
	some := func(n int, one string) string {
		var list []string
		for i := range n {
			list = append(list, strings.ReplaceAll(one, "%", fmt.Sprint(i)))
		}
		return strings.Join(list, ",")
	}
	tests := map[string]string{
		"connections": `{"connections":[` + some(manage.MaxConns, `{"provider":"openai","name":"c%","apiKey":"sk-0123456789-%"}`) + `]}`,
		"keys":        `{"apiKeys":[` + some(manage.MaxKeys, `"sk-0123456789%"`) + `]}`,
		"combos":      `{"combos":[` + some(manage.MaxCombos, `{"name":"c%","models":["openai/x"]}`) + `]}`,
		"custom":      `{"customModels":[` + some(manage.MaxCustoms, `{"id":"c%","providerAlias":"openai"}`) + `]}`,
		"aliases":     `{"modelAliases":{` + some(manage.MaxAliases, `"a%":"openai/x"`) + `}}`,
		"disabled":    `{"disabledModels":[` + some(manage.MaxDisabled, `{"providerAlias":"a%","ids":["x"]}`) + `]}`,
		"budgets":     `{"budgets":[` + some(manage.MaxBudgets, `{"name":"b%","unit":"requests","limit":5,"window":"day"}`) + `]}`,
		"hidden":      `{"disabledModels":[{"providerAlias":"openai","ids":[` + some(manage.MaxHidden, `"m%"`) + `]}]}`,
	}
	for name, doc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Create()
			w.Connect(`{"provider":"openai","apiKey":"sk-by-hand-0123456789"}`)
			w.OK("POST", "/api/combos", `{"name":"by-hand","models":["openai/x"]}`)
			w.OK("PUT", "/api/models/alias", `{"alias":"by-hand","model":"openai/x"}`)
			w.OK("POST", "/api/models/custom", `{"id":"by-hand","providerAlias":"openai"}`)
			w.OK("POST", "/api/models/disabled", `{"providerAlias":"by-hand","ids":["x"]}`)
			w.OK("POST", "/api/models/disabled", `{"providerAlias":"openai","ids":["by-hand"]}`)
			w.OK("POST", "/api/budgets", `{"name":"by-hand","unit":"requests","limit":5,"window":"day"}`)
			before := w.Loc.Storage(mid).Dump()
			status, a := w.API("POST", "/api/import", `{"document":`+doc+`,"keys":true}`)
			if status != 409 || a.Get("error.code").Str != "too_many" {
				t.Fatalf("got %d %s", status, a.Raw[:min(len(a.Raw), 200)])
			}
			if after := w.Loc.Storage(mid).Dump(); len(after) != len(before) || string(after["meta"]) != string(before["meta"]) {
				t.Errorf("%d rows, then %d", len(before), len(after))
			}
		})
	}
}

// sealedDoc returns the body of an import of an encrypted document with its keys.
func sealedDoc(t *testing.T, pass, doc string) string {
	t.Helper()
	out := manage.SealedDoc{Format: manage.SealedFormat, Version: 1, KDF: manage.KDFName, Iterations: 1000, Salt: "AAAAAAAAAAAAAAAAAAAAAA", Nonce: "AAAAAAAAAAAAAAAA"}
	aead, err := manage.Sealer(pass, make([]byte, manage.SaltBytes), out.Iterations)
	if err != nil {
		t.Fatal(err)
	}
	out.Ciphertext = base64.RawURLEncoding.EncodeToString(aead.Seal(nil, make([]byte, 12), []byte(doc), out.Associated()))
	raw, _ := json.Marshal(out)
	return fmt.Sprintf(`{"document":%s,"passphrase":%q,"keys":true}`, raw, pass)
}

// The contents of an encrypted export are not trusted.
func TestKeysOfAnExportAreChecked(t *testing.T) {
	const pass = "correct horse battery"
	w := newWorld(t)
	first := w.Create()
	digest := rpc.KeyDigest(first)
	sealed := func(keys string) string {
		w.Clock.Add(time.Minute) // few keys are made of passphrases in one
		return sealedDoc(t, pass, fmt.Sprintf(`{"format":%q,"version":1,"connections":[],"keys":%s}`, manage.ExportFormat, keys))
	}
	hex := strings.Repeat("ab", 32)
	for _, keys := range []string{
		`[1]`, `{}`, `"x"`, `[{"id":"a"}]`, `[{"id":"../x","digest":"` + hex + `"}]`, `[{"id":"a","digest":"` + hex + `","scopes":["operator"]}]`,
		`[{"id":"a","digest":"` + hex + `","name":"a\u0000b"}]`, `[{"id":"a","digest":"` + hex + `","rpm":-1}]`, `[{"id":"a","digest":"` + hex + `","rpm":1e99}]`,
		`[{"id":"a","digest":"` + hex + `","models":[""]}]`, `[{"id":"a","digest":"` + hex + `","last4":"abcdefgh"}]`, `[{"id":"a","digest":"` + hex + `","expiresAt":-1}]`,
	} {
		if status, a := w.API("POST", "/api/import", sealed(keys)); status != 400 || a.Get("error.param").Str != "document.keys" {
			t.Errorf("%s: got %d %s", keys, status, a.Raw)
		}
	}
	w.OK("POST", "/api/import", sealed(`[{"id":"a","digest":"`+hex+`","scopes":["data"],"models":["openai/*"],"limitedUntil":9999999999999},{"id":"again","digest":"`+digest+`","scopes":["manage"]}]`))
	m := w.Replica()
	if len(m.Keys) != 2 || m.Keys[1].ID != "a" {
		t.Errorf("got %+v", m.Keys)
	}
	// The key that was there is one key still: when it is deleted, it is gone.
	w.OK("DELETE", "/api/keys/"+m.Keys[0].ID, "")
	for _, k := range w.Replica().Keys {
		if k.Digest == digest {
			t.Errorf("a revoked key lives on as %s", k.ID)
		}
	}
}

// Keys of an export work where the machine and API_KEY_SECRET are the same. Elsewhere those are
// left out that name their machine.
func TestKeysMoveWithTheirDigests(t *testing.T) {
	const pass, old = "correct horse battery", "sk-anoldkey0123"
	w := newWorld(t)
	w.Create()
	key := w.OK("POST", "/api/keys", `{"name":"laptop","rpm":60,"models":["openai/*"]}`).Get("apiKey").Str
	w.OK("POST", "/api/import", `{"document":{"apiKeys":["`+old+`"]},"keys":true}`)
	sealed := w.OK("POST", "/api/export", `{"passphrase":"`+pass+`"}`).Raw
	body := func(keys string) string {
		return fmt.Sprintf(`{"document":%s,"passphrase":%q,"keys":%s}`, sealed, pass, keys)
	}
	digests := func(w *world) (list []string) {
		for _, k := range w.Replica().Keys {
			list = append(list, k.Digest)
		}
		return list
	}
	for _, tt := range []struct {
		name, secret string
		made, left   int
	}{
		{"the same secret", strings.Repeat("s", 32), 3, 0},
		{"another secret", strings.Repeat("t", 32), 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := newWorld(t)
			other.obj.Rand = rand.NewChaCha8([32]byte{2}) // its own ids
			other.obj.KeySecret = []byte(tt.secret)
			other.Create()
			got := other.OK("POST", "/api/import", body("true"))
			if got.Get("keys").Int() != int64(tt.made) || got.Get("keysUnusable").Int() != int64(tt.left) {
				t.Errorf("got %s", got.Raw)
			}
			all := digests(other)
			if !slices.Contains(all, rpc.KeyDigest(old)) || slices.Contains(all, rpc.KeyDigest(key)) != (tt.left == 0) {
				t.Errorf("keys %v", all)
			}
			for _, k := range other.Replica().Keys {
				if k.Digest == rpc.KeyDigest(key) && (k.Name != "laptop" || k.RPM != 60 || !slices.Equal(k.Models, []string{"openai/*"})) {
					t.Errorf("got %+v", k)
				}
			}
		})
	}
	foreign := sealedDoc(t, pass, `{"format":"weir-export","version":1,"machineId":"anothermachine01","connections":[],"keys":[`+
		`{"id":"`+strings.Repeat("a", 26)+`","digest":"`+strings.Repeat("ab", 32)+`"}]}`)
	if got := w.OK("POST", "/api/import", foreign); got.Get("keys").Int() != 0 || got.Get("keysUnusable").Int() != 1 {
		t.Errorf("of another machine: %s", got.Raw)
	}
	if got := w.OK("POST", "/api/import", body("false")); got.Get("keysSkipped").Int() != 3 || got.Get("keysUnusable").Exists() {
		t.Errorf("without keys: %s", got.Raw)
	}
}

// An export of weir, or what is written like a seed; nothing else, since with
// replace all would be deleted.
func TestOnlyBackupsAreImported(t *testing.T) {
	w := newWorld(t)
	w.Create()
	conn := w.Connect(`{"provider":"openai","name":"mine","apiKey":"sk-by-hand-0123456789"}`)
	for doc, message := range map[string]string{
		`{}`: "not a weir backup", `{"a":1}`: "not a weir backup", `{"name":"weir","version":"1.0.0","dependencies":{}}`: "not a weir backup",
		`{"connections":[],"dependencies":{}}`:                        "not a weir backup",
		`{"format":"other","version":1,"connections":[]}`:             "not a weir backup",
		`{"format":"weir-export","connections":[]}`:                   "not a weir backup",
		`{"format":"weir-export","version":2,"connections":[]}`:       "newer version",
		`{"format":"weir-export-encrypted","version":2,"kdf":"next"}`: "newer version",
	} {
		for _, more := range []string{"", `,"replace":true`, `,"preview":true`} {
			status, a := w.API("POST", "/api/import", `{"document":`+doc+more+`,"passphrase":"a long passphrase"}`)
			if status != 400 || a.Get("error.code").Str != "not_a_backup" || !strings.Contains(a.Get("error.message").Str, message) {
				t.Errorf("%s%s: got %d %s", doc, more, status, a.Raw)
			}
		}
	}
	if m := w.Replica(); len(m.Connections) != 1 || m.Connections[0].ID != conn {
		t.Fatal("the connection is gone")
	}
	// Collections that the document lacks stay, also with replace.
	w.OK("POST", "/api/import", `{"document":{"combos":[{"name":"fast","models":["openai/x"]}]},"replace":true}`)
	if m := w.Replica(); len(m.Connections) != 1 || len(m.Combos) != 1 {
		t.Errorf("%d connections and %d combos", len(m.Connections), len(m.Combos))
	}
	w.OK("POST", "/api/import", `{"document":{"format":"weir-export","version":1,"connections":[]},"replace":true}`)
	if m := w.Replica(); len(m.Connections) != 0 || len(m.Combos) != 1 {
		t.Errorf("%d connections and %d combos after a replacement of the connections", len(m.Connections), len(m.Combos))
	}
}

func TestImportPreviewChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.Create()
	keep := w.Connect(`{"provider":"openai","name":"keep","apiKey":"sk-keep-0123456789"}`)
	w.Connect(`{"provider":"openai","name":"go","apiKey":"sk-go-0123456789"}`)
	w.OK("POST", "/api/combos", `{"name":"old","models":["openai/x"]}`)
	w.OK("PUT", "/api/models/alias", `{"alias":"same","model":"openai/x"}`)
	before := w.Loc.Storage(mid).Dump()
	doc := `{"connections":[{"id":"` + keep + `","provider":"openai","name":"keep","apiKey":"sk-another-0123456789"},{"provider":"anthropic","name":"new","apiKey":"sk-new-0123456789"}],` +
		`"combos":[],"modelAliases":{"same":"openai/x"},"apiKeys":["sk-abcdefgh12"],"settings":{"strategy":"round-robin"}}`
	status, a := w.API("POST", "/api/import", `{"document":`+doc+`,"replace":true,"preview":true}`)
	want := `{"connections":{"added":["new (anthropic)"],"changed":["keep (openai)"],"deleted":["go (openai)"]},"combos":{"added":[],"changed":[],"deleted":["old"]},"keys":{"added":[],"changed":[],"deleted":[]}`
	got := a.Get("body.changes")
	if status != 200 || !a.Get("body.preview").Bool() || a.Get("body.keysSkipped").Int() != 1 ||
		`{"connections":`+got.Get("connections").Raw+`,"combos":`+got.Get("combos").Raw+`,"keys":`+got.Get("keys").Raw != want ||
		got.Get("settings.changed.0").Str != "settings" || len(got.Get("modelAliases.changed").Array())+len(got.Get("modelAliases.added").Array()) != 0 {
		t.Errorf("got %d %s", status, a.Raw)
	}
	for _, secret := range []string{"sk-another", "sk-new", "abcdefgh12"} {
		if strings.Contains(a.Raw, secret) {
			t.Errorf("the preview shows %s: %s", secret, a.Raw)
		}
	}
	if after := w.Loc.Storage(mid).Dump(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the preview changed rows")
	}
	tag := func(tag string) func(*rpc.ManageCall) { return func(e *rpc.ManageCall) { e.IfMatch = tag } }
	w.OK("POST", "/api/combos", `{"name":"meanwhile","models":["openai/x"]}`)
	if status, a := w.API("POST", "/api/import", `{"document":`+doc+`,"replace":true}`, tag(a.Get("etag").Str)); status != 412 {
		t.Fatalf("with a stale ETag: got %d %s", status, a.Raw)
	}
	_, a = w.API("POST", "/api/import", `{"document":`+doc+`,"replace":true,"preview":true}`)
	w.OK("POST", "/api/import", `{"document":`+doc+`,"replace":true,"keys":true}`, tag(a.Get("etag").Str))
	if m := w.Replica(); len(m.Connections) != 2 || len(m.Combos) != 0 || len(m.Keys) != 2 {
		t.Errorf("%d connections, %d combos, %d keys", len(m.Connections), len(m.Combos), len(m.Keys))
	}
}

// An account that works was replaced by one that nothing can call, without a word.
func TestImportNamesUnknownProviders(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	const doc = `{"connections":[{"id":"mine","provider":"nonsense","apiKey":"0123456789"},{"provider":"opnai","apiKey":"0123456789"},{"provider":"opnai","name":"b","apiKey":"0123456789"}]}`
	for _, preview := range []string{"true", "false"} {
		status, a := w.API("POST", "/api/import", `{"document":`+doc+`,"replace":true,"preview":`+preview+`}`)
		if status != 400 || !strings.Contains(a.Get("error.message").Str, `document.connections[0].provider "nonsense" is unknown`) {
			t.Errorf("replace, preview %s: %d %s", preview, status, a.Raw)
		}
		if list := w.OK("GET", "/api/providers", "").Get("data.#.provider").Raw; list != `["openai"]` {
			t.Errorf("replace, preview %s: accounts %s", preview, list)
		}
	}
	for _, preview := range []string{"true", "false"} {
		if a := w.OK("POST", "/api/import", `{"document":`+doc+`,"preview":`+preview+`}`); a.Get("unknownProviders").Raw != `["nonsense","opnai"]` {
			t.Errorf("preview %s: %s", preview, a.Raw)
		}
	}
	// An account that is stored is not to become one of an unknown provider either.
	id := w.OK("GET", "/api/providers", "").Get("data.#(provider==openai).id").Str
	changed := `{"connections":[{"id":"` + id + `","provider":"opnai"}]}`
	if status, a := w.API("POST", "/api/import", `{"document":`+changed+`,"replace":true}`); status != 400 {
		t.Errorf("a changed provider: %d %s", status, a.Raw)
	}
	// A backup of the machine itself is not refused for what is stored already.
	if a := w.OK("POST", "/api/import", `{"document":`+doc+`,"replace":true}`); a.Get("unknownProviders").Exists() {
		t.Error(a.Raw)
	}
}

func TestAuditNamesImportedKeys(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.OK("POST", "/api/import", `{"document":{"apiKeys":["sk-abcdefgh12","sk-abcdefgh34"]}}`)
	if n := len(w.Replica().Keys); n != 1 {
		t.Errorf("%d keys without \"keys\": true", n)
	}
	w.OK("POST", "/api/import", `{"document":{"apiKeys":["sk-abcdefgh12","sk-abcdefgh34"]},"keys":true}`)
	rec := w.OK("GET", "/api/audit", "").Get("data.0")
	target := rec.Get("target").Str
	if !strings.HasPrefix(target, "2 keys: ") || !strings.Contains(rec.Get("fields").Raw, `"keys"`) {
		t.Errorf("got %s", rec.Raw)
	}
	for _, k := range w.Replica().Keys[1:] {
		if !strings.Contains(target, w.obj.MaskedKey(k.ID)) {
			t.Errorf("%s does not name the key %s", target, w.obj.MaskedKey(k.ID))
		}
	}
}

// A key created in an old session gave access to all secrets.
func TestSensitiveChangesNeedRecentSignIn(t *testing.T) {
	w := newWorld(t)
	w.Create()
	boss := w.ok2("POST", "/api/keys", `{"scopes":["manage"]}`).Get("id").Str
	exporter := w.ok2("POST", "/api/keys", `{"scopes":["manage","export"]}`).Get("id").Str
	who := func(key, signIn string) func(*rpc.ManageCall) {
		return func(e *rpc.ManageCall) { e.KeyID, e.SignIn = key, signIn }
	}
	const export, imports = `{"passphrase":"a long passphrase"}`, `{"document":{"combos":[]}}`
	for _, tt := range []struct {
		name, key, signIn, path, body string
		status                        int
		code                          string
	}{
		{"data key, old session", "", rpc.SignInOld, "/api/keys", `{}`, 201, ""},
		{"manage key, old session", "", rpc.SignInOld, "/api/keys", `{"scopes":["manage"]}`, 403, "reauth_required"},
		{"export key, old session of a key", boss, rpc.SignInOld, "/api/keys", `{"scopes":["manage","export"]}`, 403, "scope_required"},
		{"manage key, fresh session", "", "", "/api/keys", `{"scopes":["manage"]}`, 201, ""},
		{"manage key by a key", boss, "", "/api/keys", `{"scopes":["manage"]}`, 201, ""},
		{"export key by a manage key", boss, "", "/api/keys", `{"scopes":["export"]}`, 403, "scope_required"},
		{"export key by an export key", exporter, "", "/api/keys", `{"scopes":["export"]}`, 201, ""},
		{"import, old session", "", rpc.SignInOld, "/api/import", imports, 403, "reauth_required"},
		{"preview, old session", "", rpc.SignInOld, "/api/import", `{"document":{"combos":[]},"preview":true}`, 200, ""},
		{"import by a key", boss, "", "/api/import", imports, 200, ""},
		{"export by the operator", "", "", "/api/export", export, 200, ""},
		{"export by a manage key", boss, "", "/api/export", export, 403, "scope_required"},
		{"export by an export key", exporter, "", "/api/export", export, 200, ""},
		{"export, old session of an export key", exporter, rpc.SignInOld, "/api/keys", `{"scopes":["export"]}`, 403, "reauth_required"},
	} {
		if status, a := w.API("POST", tt.path, tt.body, who(tt.key, tt.signIn)); statusOf(status, a.Get("status").Int()) != tt.status || a.Get("error.code").Str != tt.code {
			t.Errorf("%s: got %d %s", tt.name, status, a.Raw)
		}
	}
}

func TestKeyDerivationIsLimited(t *testing.T) {
	w := newWorld(t)
	w.Create()
	made, refused := 0, 0
	for range 20 {
		switch status, a := w.API("POST", "/api/export", `{"passphrase":"a long passphrase"}`); {
		case status == 429 && a.Get("error.retryAfterMs").Int() > 0:
			refused++
		case statusOf(status, a.Get("status").Int()) == 200 && a.Get("body.ciphertext").Str != "":
			made++
		}
	}
	if made != manage.DeriveMost || refused != 20-manage.DeriveMost {
		t.Errorf("%d made, %d refused", made, refused)
	}
	w.Clock.Add(time.Minute)
	w.OK("POST", "/api/export", `{"passphrase":"a long passphrase"}`)
}

// Every isolate reads the whole replica.
func TestReplicaIsBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	var models []string
	for i := range 2000 {
		models = append(models, fmt.Sprintf("%0250d", i))
	}
	body, _ := json.Marshal(map[string]any{"provider": "openai", "apiKey": "sk-0123456789abcdef", "providerSpecificData": map[string]any{"enabledModels": models}})
	last, ids := 0, []string{}
	for range 8 {
		status, a := w.API("POST", "/api/providers", string(body))
		if last = status; status != 200 {
			if status != 413 || a.Get("error.code").Str != "machine_too_large" {
				t.Fatalf("got %d %s", status, a.Raw)
			}
			break
		}
		ids = append(ids, a.Get("body.id").Str)
	}
	size := len(storage.Encode(w.Replica()))
	if last != 413 || len(ids) < 2 || size > storage.MaxReplica {
		t.Fatalf("status %d after %d connections, %d bytes", last, len(ids), size)
	}
	if status, a := w.API("POST", "/api/import", `{"document":{"connections":[`+string(body)+`]}}`); status != 413 {
		t.Errorf("an import: got %d %s", status, a.Raw)
	}
	w.OK("POST", "/api/keys", `{"name":"small things fit"}`)
	if status, _ := w.API("DELETE", "/api/providers/"+ids[0], ""); status != 200 {
		t.Errorf("the machine cannot be made smaller: %d", status)
	}
	if status, a := w.API("POST", "/api/providers", string(body)); status != 200 {
		t.Errorf("no room after one was removed: %d %s", status, a.Raw[:min(300, len(a.Raw))])
	}
}

func statusOf(outer int, inner int64) int {
	if outer == 200 && inner != 0 {
		return int(inner)
	}
	return outer
}

// ok2 is ok for a call that is answered with another 2xx.
func (w *world) ok2(method, path, body string) gjson.Result {
	w.Helper()
	_, a := w.API(method, path, body)
	return a.Get("body")
}

// A backup from before the strategy affinity was the default has no strategy: the machine
// that it restores keeps the order of its accounts.
func TestOldBackupKeepsThePriorities(t *testing.T) {
	w := newWorld(t)
	w.Create()
	if got := w.OK("GET", "/api/settings", "").Get("strategy").Str; got != "affinity" {
		t.Errorf("a new machine has the strategy %s", got)
	}
	backup := w.OK("GET", "/api/export", "").Raw
	for _, tt := range []struct{ settings, want string }{
		{`"strategy":"affinity"`, "affinity"}, {`"firstByteSeconds":60`, "priority"},
	} {
		doc := strings.Replace(backup, `"strategy":"affinity"`, tt.settings, 1)
		w.OK("POST", "/api/import", `{"document":`+doc+`}`)
		if got := w.OK("GET", "/api/settings", "").Get("strategy").Str; got != tt.want {
			t.Errorf("after a backup with %s: strategy %s, want %s", tt.settings, got, tt.want)
		}
	}
	if got := w.OK("PATCH", "/api/settings", `{"strategy":null}`).Get("strategy").Str; got != "affinity" {
		t.Errorf("null restores %s", got)
	}
}

// Regression: budgets were in no export. They keep what was spent, and the addresses of
// alerts are in encrypted exports only.
func TestBudgetsAreExportedAndImported(t *testing.T) {
	const pass = "correct horse battery"
	w := newWorld(t)
	w.Create()
	key := w.newKey(`{"name":"one"}`).Get("id").Str
	all := w.OK("POST", "/api/budgets", `{"name":"all","unit":"usd","limit":1.5,"window":"month","unpriced":"refuse","webhookUrl":"https://example.com/hook"}`).Get("id").Str
	w.OK("POST", "/api/budgets", `{"name":"of one","keyId":"`+key+`","models":["openai/*"],"tag":"project=a","unit":"requests","limit":9,"window":"day","allowUnknown":true}`)
	plain := w.OK("GET", "/api/export", "")
	if got := plain.Get("budgets.#").Int(); got != 2 || strings.Contains(plain.Raw, "webhookUrl") {
		t.Fatalf("got %s", plain.Get("budgets").Raw)
	}
	sealed := w.OK("POST", "/api/export", `{"passphrase":"`+pass+`"}`)

	// Into the same machine: nothing changes, the address and the generation of others stay.
	in := `{"document":` + plain.Raw + `,"replace":true`
	if p := w.OK("POST", "/api/import", in+`,"preview":true}`); p.Get("changes.budgets").Raw != `{"added":[],"changed":[],"deleted":[]}` || p.Get("budgets").Int() != 2 {
		t.Errorf("preview: %s", p.Raw)
	}
	w.OK("POST", "/api/import", in+`}`)
	if b := w.OK("GET", "/api/budgets", "").Get("data.0"); b.Get("webhookUrl").Str != "https://example.com/hook" || b.Get("limit").Num != 1.5 || b.Get("unpriced").Str != "refuse" {
		t.Errorf("got %s", b.Raw)
	}
	doc, _ := sjson.SetRaw(plain.Raw, "budgets", `[{"id":"`+all+`","name":"all","unit":"usd","limit":2,"window":"month"},{"name":"new","unit":"tokens","limit":5,"window":"day"},{"name":"gone","keyId":"k0","unit":"tokens","limit":5,"window":"day"}]`)
	p := w.OK("POST", "/api/import", `{"document":`+doc+`,"replace":true,"preview":true}`)
	if got := p.Get("changes.budgets").Raw; got != `{"added":["new"],"changed":["all"],"deleted":["of one"]}` || p.Get("budgets").Int() != 2 || p.Get("budgetsSkipped").Int() != 1 {
		t.Errorf("preview: %s", p.Raw)
	}
	if got := w.OK("GET", "/api/budgets", "").Get("data.#.name").Raw; got != `["all","of one"]` {
		t.Errorf("the preview has changed the budgets: %s", got)
	}
	w.OK("POST", "/api/import", `{"document":`+doc+`,"replace":true}`)
	if got := w.OK("GET", "/api/budgets", "").Get("data.#.name").Raw; got != `["all","new"]` {
		t.Errorf("got %s", got)
	}
	w.Clock.Add(time.Minute)
	w.OK("POST", "/api/import", `{"document":`+sealed.Raw+`,"passphrase":"`+pass+`","replace":true}`)
	if b := w.OK("GET", "/api/budgets", ""); b.Get("data.#.name").Raw != `["all","of one"]` || b.Get("data.0.webhookUrl").Str != "https://example.com/hook" || b.Get("data.1.models.0").Str != "openai/*" {
		t.Errorf("got %s", b.Raw)
	}
	for _, bad := range []string{`{}`, `[{}]`, `[{"name":"a","unit":"euro","limit":1,"window":"day"}]`, `[{"id":"../a","name":"a","unit":"usd","limit":1,"window":"day"}]`,
		`[{"name":"a","unit":"usd","limit":-1,"window":"day"}]`, `[{"name":"a","unit":"usd","limit":1,"window":"day"},{"name":"a","unit":"usd","limit":1,"window":"day"}]`} {
		if status, a := w.API("POST", "/api/import", `{"document":{"budgets":`+bad+`}}`); status != 400 || !strings.HasPrefix(a.Get("error.param").Str, "document.budgets") {
			t.Errorf("%s: %d %s", bad, status, a.Raw)
		}
	}
}
