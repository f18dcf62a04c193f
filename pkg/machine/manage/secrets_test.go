package manage_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/inprocess"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// spellings returns a secret in the encodings in which it may lie somewhere.
func spellings(s string) map[string]string {
	out := map[string]string{
		"raw": s, "url": url.QueryEscape(s), "hex": hex.EncodeToString([]byte(s)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(s))),
		"utf-16": string(utf16(s)), "html": strings.ReplaceAll(s, "-", "&#x2d;"), "json": strings.ReplaceAll(s, "-", `\u002d`),
	}
	for lead := range 3 {
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", lead) + s))
		out[fmt.Sprint("base64 at ", lead)] = strings.TrimRight(b[4:], "=")[:len(b)*2/3-8]
		out[fmt.Sprint("base64url at ", lead)] = strings.NewReplacer("+", "-", "/", "_").Replace(out[fmt.Sprint("base64 at ", lead)])
	}
	return out
}

func utf16(s string) (b []byte) {
	for _, c := range []byte(s) {
		b = append(b, c, 0)
	}
	return b
}

// 100 canaries through every way in: nothing stored, published, answered,
// logged or audited has one of them.
func TestSecretsAreNeverReturnedInPlaintext(t *testing.T) {
	w := newWorld(t)
	var canaries []string
	canary := func() string {
		s := fmt.Sprintf("canary-%03d-Zq9~+Wx7vK2mPf", len(canaries))
		canaries = append(canaries, s)
		return s
	}
	var answers []string
	note := func(status int, a string) { answers = append(answers, a) }
	var docs []string
	for range 10 {
		docs = append(docs, fmt.Sprintf(`{"provider":"openai","apiKey":%q,"accessToken":%q,"refreshToken":%q}`, canary(), canary(), canary()))
	}
	w.Want(200, "adopt", `{"doc":{"connections":[`+strings.Join(docs, ",")+`],"apiKeys":["`+canary()+`","`+canary()+`"]}}`)
	for i := range 20 {
		body := fmt.Sprintf(`{"provider":"bedrock","name":"n%d","apiKey":%q,"secretAccessKey":%q,"providerSpecificData":{"clientSecret":%q,"region":"eu-west-1"}}`, i, canary(), canary(), canary())
		status, a := w.API("POST", "/api/providers", body, func(e *rpc.ManageCall) { e.MutationID = fmt.Sprint("m", i) })
		note(status, a.Raw)
	}
	var last string
	for len(canaries) < 100 {
		status, a := w.API("POST", "/api/keys", `{}`, func(e *rpc.ManageCall) { e.MutationID = fmt.Sprint("k", len(canaries)) })
		if status != 200 {
			t.Fatal(a.Raw)
		}
		last = a.Get("body.apiKey").Str // shown once, so not a leak here
		canaries = append(canaries, last)
	}
	// refusals, too
	for _, body := range []string{
		fmt.Sprintf(`{"provider":"openai","apiKey":%q,"what":1}`, canary()),
		fmt.Sprintf(`{"provider":"openai","apiKey":"%s\n"}`, canary()+"\u2603"),
		fmt.Sprintf(`{"provider":"nobody","apiKey":%q}`, canary()),
		fmt.Sprintf(`{"provider":"openai","providerSpecificData":{"password":%q}}`, canary()),
		fmt.Sprintf(`{"provider":"openai","providerSpecificData":{"baseUrl":"https://user:%s@api.example.com/"}}`, canary()),
	} {
		status, a := w.API("POST", "/api/providers", body)
		if status != 400 {
			t.Errorf("%s: got %d", body, status)
		}
		note(status, a.Raw)
	}
	for _, path := range []string{"/api/providers", "/api/keys", "/api/audit?verify=true", "/api/export", "/api/models/availability"} {
		status, a := w.API("GET", path, "")
		if status != 200 {
			t.Fatalf("%s: %s", path, a.Raw)
		}
		note(status, a.Raw)
	}
	w.OAuth()
	w.Loc.Alarms(w.Ctx)
	var sinks []string
	for k, v := range w.Loc.Storage(mid).Dump() {
		sinks = append(sinks, k+"\n"+string(v))
	}
	for k, v := range w.KV.Dump() {
		sinks = append(sinks, k+"\n"+string(v))
	}
	sinks = append(sinks, w.Logs...)
	sinks = append(sinks, answers...)
	all := []byte(strings.Join(sinks, "\n"))
	for _, c := range canaries {
		for name, s := range spellings(c) {
			if bytes.Contains(all, []byte(s)) {
				t.Errorf("%s is somewhere as %s", c, name)
			}
		}
	}
	if w.KV.Dump()[kvKey(mid)] == nil || len(sinks) < 50 {
		t.Fatal("nothing was looked at")
	}
}

// After a rotation nothing is left that only the old key opens.
func TestSecretsAreResealedAfterARotation(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	w.OAuth()
	old, fresh := sealed.Secret, strings.Repeat("n", 40)
	w.obj.Keyring = sealed.Keys(t, fresh, old)
	earlier := func() string { return w.OK("GET", "/api/health", "").Get("credentials").Raw }
	if got := earlier(); got != `{"unreadable":0,"earlier":2}` {
		t.Errorf("before: %s", got)
	}
	w.Clock.Add(61 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	if got := earlier(); got != `{"unreadable":0,"earlier":0}` {
		t.Errorf("sealed again: %s", got)
	}
	w.obj.Keyring = sealed.Keys(t, fresh)
	m := w.Replica()
	if got := w.Open(&m.Connections[0], store.APIKey); got != "sk-0123456789abcdef" {
		t.Errorf("got %q", got)
	}
	if got := w.Open(&m.Connections[1], store.RefreshToken); got != w.IDP.Refresh {
		t.Errorf("got %q", got)
	}
	gen := m.Generation
	w.Clock.Add(61 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	if w.Replica().Generation != gen {
		t.Error("resealed without need")
	}
	// A key that is gone makes the secret unusable, and nothing worse.
	w.obj.Keyring = sealed.Keys(t, strings.Repeat("x", 40))
	w.Clock.Add(61 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	if _, a := w.Call("refresh", inprocess.RefreshBody(m.Connections[1].ID, m.Connections[1].TokenGeneration)); !isFailure(a, "key_unavailable") {
		t.Errorf("got %s", a.Raw)
	}
	for _, path := range []string{"/api/providers", "/api/models/availability"} {
		for _, row := range w.OK("GET", path, "").Get("data").Array() {
			if row.Get("health").Str+row.Get("reason").Str != "key_unavailable" || !strings.Contains(row.Get("lastError").Str, "CREDENTIALS_KEY") {
				t.Errorf("%s: %s", path, row.Raw)
			}
		}
	}
	if h := w.OK("GET", "/api/health", ""); h.Get("ok").Bool() || h.Get("credentials").Raw != `{"unreadable":2}` {
		t.Errorf("health: %s", h.Raw)
	}
	w.OK("PUT", "/api/providers/"+m.Connections[0].ID, `{"apiKey":"sk-new-0123456789abcdef"}`)
	if health := w.OK("GET", "/api/providers/"+m.Connections[0].ID, "").Get("health").Str; health != "untested" {
		t.Errorf("with a new key: %s", health)
	}
}

// A value that would be masked in a log was stored and shown in plaintext.
func TestCredentialsAmongSettingsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for _, data := range []string{
		`{"jwt":"abc"}`, `{"pwd":"abc"}`, `{"key":"abc"}`, `{"auth":"Bearer 0123456789abc"}`, `{"note":"sk-0123456789abcdef0123"}`, `{"note":{"deep":["x","ghp_0123456789abcdef0123"]}}`,
		`{"region":"AKIAIOSFODNN7EXAMPLE"}`, `{"note":"-----BEGIN PRIVATE KEY-----"}`, `{"note":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"}`,
	} {
		for _, doc := range []string{
			`{"provider":"openai","apiKey":"sk-by-hand-0123456789","providerSpecificData":` + data + `}`,
			`{"document":{"connections":[{"provider":"openai","apiKey":"sk-by-hand-0123456789","providerSpecificData":` + data + `}]}}`,
		} {
			path := "/api/providers"
			if strings.HasPrefix(doc, `{"document"`) {
				path = "/api/import"
			}
			status, a := w.API("POST", path, doc)
			if status != 400 || !strings.Contains(a.Get("error.message").Str, "looks like a credential") {
				t.Errorf("%s with %s: got %d %s", path, data, status, a.Raw)
			}
		}
	}
	for i := range provider.All() {
		d := provider.All()[i]
		for _, list := range [][]string{d.Vars, d.OptVars} {
			for _, name := range list {
				if manage.LooksSecret(name) {
					t.Errorf("%s: the setting %s is taken for a credential", d.ID, name)
				}
			}
		}
	}
}

func TestSecretIsStoredWithoutWhatWasCopiedWithIt(t *testing.T) {
	w := newWorld(t)
	w.Create()
	const key = "sk-proj-0123456789-abcdefghij="
	for _, typed := range []string{key, " " + key + "\r\n", "OPENAI_API_KEY=" + key, `export OPENAI_API_KEY="` + key + `"`, "'" + key + "'",
		"Bearer " + key, "Authorization: bearer  " + key, "`OPENAI_API_KEY = " + key + "`"} {
		body, _ := json.Marshal(map[string]string{"provider": "openai", "apiKey": typed})
		id := w.OK("POST", "/api/providers", string(body)).Get("id").Str
		if !w.OK("POST", "/api/compare", `{"accounts":{"`+id+`":{"apiKey":"`+key+`"}}}`).Get("accounts." + id + ".apiKey").Bool() {
			t.Errorf("%q is not stored as %q", typed, key)
		}
		body, _ = json.Marshal(map[string]any{"accounts": map[string]any{id: map[string]string{"apiKey": typed}}})
		if !w.OK("POST", "/api/compare", string(body)).Get("accounts." + id + ".apiKey").Bool() {
			t.Errorf("%q is not compared as %q", typed, key)
		}
	}
	quotes := strings.Repeat("'", 100_000)
	if status, v := w.API("POST", "/api/providers", `{"provider":"openai","apiKey":"`+quotes+`"}`); status != 400 {
		t.Errorf("the quotes are read one by one: %d %s", status, v.Raw)
	}
	for whole, part := range map[string]string{"QUJDREVGR0g=": "", "QUJDREVGR0==": "=", "AB_C=": "", "key=value": "value", "Basic 0123456789": "0123456789"} {
		id := w.OK("POST", "/api/providers", `{"provider":"openai","apiKey":"`+whole+`"}`).Get("id").Str
		answer := w.OK("POST", "/api/compare", `{"accounts":{"`+id+`":{"apiKey":"`+part+`","accessToken":""}}}`)
		if answer.Get("accounts."+id+".apiKey").Bool() || !w.OK("GET", "/api/providers/"+id, "").Get("hasKey").Bool() {
			t.Errorf("%q of %q is stored", part, whole)
		}
	}
}

// The provider would get it.
func TestKeyOfThisGatewayIsNoSecretOfAnAccount(t *testing.T) {
	w := newWorld(t)
	w.Create()
	key := w.OK("POST", "/api/keys", `{"name":"laptop"}`).Get("apiKey").Str
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
	for _, call := range [][2]string{
		{"POST /api/providers", `{"provider":"openai","apiKey":"KEY"}`},
		{"POST /api/providers", `{"provider":"openai","apiKey":"WEIR_API=KEY"}`},
		{"PUT /api/providers/" + id, `{"apiKey":"KEY"}`},
		{"POST /api/import", `{"document":{"connections":[{"id":"a","provider":"openai","apiKey":"KEY"}]}}`},
	} {
		method, path, _ := strings.Cut(call[0], " ")
		status, v := w.API(method, path, strings.ReplaceAll(call[1], "KEY", key))
		if status != 400 || !strings.Contains(v.Raw, "is a key of this gateway, not of the provider") || strings.Contains(v.Raw, key) {
			t.Errorf("%s %s: %d %s", call[0], call[1], status, v.Raw)
		}
	}
	w.OK("POST", "/api/providers", `{"provider":"openai-compatible-0123abcd","apiKey":"`+key+`","providerSpecificData":{"baseUrl":"https://weir.example.com/v1"}}`)
	w.OK("POST", "/api/providers", `{"provider":"openai","apiKey":"`+key[:len(key)-8]+`00000000"}`) // of another gateway
}
