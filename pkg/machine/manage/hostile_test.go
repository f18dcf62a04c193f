package manage_test

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// absurd are values that someone may put where another is meant.
func absurd() []string {
	long := strings.Repeat("a", 9_000)
	return []string{
		`null`, `true`, `false`, `0`, `-0`, `-1`, `1.5`, `1e400`, `-1e400`, `9007199254740993`, `9223372036854775808`, `1` + strings.Repeat("0", 400), `0.` + strings.Repeat("0", 400) + `1`,
		`""`, `" "`, `"\u0000"`, `"\u001f"`, `"\u007f"`, `"\u2028"`, `"\ufeff"`, `"\ud800"`, `"\udc00\ud800"`, `"\ufffd"`, `"\u202eabc"`, `"ﬁ／ａ"`, `"💥"`, `"\r\nx: 1"`,
		`"__proto__"`, `"constructor"`, `"toString"`, `"hasOwnProperty"`, `"../../meta"`, `"conn:x"`, `"%2e%2e%2f"`, `"a/../b"`, `"a//b"`, `"a/b?c=d"`, `"a/b#c"`, `"\\\\evil\\share"`, `"' OR 1=1--"`,
		`"https://user:pass@example.com"`, `"http://169.254.169.254/"`, `"https://[::1]/"`, `"https://0x7f.1/"`, `"javascript:alert(1)"`, `"file:///etc/passwd"`, `"//evil.example.com"`, `"2026-02-30T00:00:00Z"`, `"9999-12-31T23:59:59Z"`,
		`"` + long + `"`, `[]`, `{}`, `[[]]`, `[null]`, `[1,"a",{}]`, `[""]`, `{"a":{"__proto__":{"b":1}}}`, `{"__proto__":null,"constructor":[]}`, `{"":""}`, `{"` + strings.Repeat("k", 200) + `":1}`,
		strings.Repeat("[", 127) + strings.Repeat("]", 127), strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000), strings.Repeat(`{"a":`, 126) + "1" + strings.Repeat("}", 126),
		`["` + strings.Repeat(`a","`, 2001) + `a"]`, `{"openai":["a"],"openai":["b"]}`,
	}
}

// Whatever a mutation is given, it is taken or refused with a reason, nothing
// breaks, and what was there before is served as before.
func TestAbsurdInputsBreakNothing(t *testing.T) {
	w := newWorld(t)
	w.Create()
	conn := w.Connect(`{"provider":"openai-compatible-0123abcd","name":"kept","apiKey":"sk-0123456789abcdefghij","providerSpecificData":{"baseUrl":"https://a.example.com/v1","prefix":"kept"}}`)
	combo := w.OK("POST", "/api/combos", `{"name":"kept","models":["kept/m"]}`).Get("id").Str
	key := w.OK("POST", "/api/keys", `{"name":"kept"}`).Get("id").Str
	document := `{"connections":[{"provider":"openai","apiKey":"sk-0123456789","providerSpecificData":{"prefix":"q"}}],"apiKeys":["sk-0123456789"],"combos":[{"name":"x","models":["q/m"]}],"customModels":[{"id":"m","providerAlias":"q"}],"modelAliases":{"y":"q/m"},"disabledModels":[{"providerAlias":"q","ids":["z"]}],"settings":{"strategy":"priority"}}`
	routes := []struct{ method, path, body string }{
		{"POST", "/api/providers", `{"provider":"openai","name":"n","authType":"apikey","apiKey":"sk-0123456789","accessToken":"0123456789","refreshToken":"0123456789","expiresAt":1,"priority":1,"isActive":true,"providerSpecificData":{"baseUrl":"https://a.example.com","prefix":"p","enabledModels":["m"],"organization":"o","proxyUrl":"http://proxy.example.com:3128","clientSecret":"0123456789","x":1}}`},
		{"POST", "/api/providers", `{"provider":"bedrock","accessKeyId":"AKIA0123456789","secretAccessKey":"0123456789","sessionToken":"0123456789","serviceAccount":{},"providerSpecificData":{"region":"us-east-1"}}`},
		{"PUT", "/api/providers/" + conn, `{"name":"n","expiresAt":1,"priority":1,"proxyAuth":"user:0123456789","providerSpecificData":{"enabledModels":["m"],"x":{"y":1}}}`},
		{"POST", "/api/combos", `{"name":"c","kind":"llm","strategy":"fallback","models":["kept/m"]}`},
		{"PUT", "/api/combos/" + combo, `{"kind":"llm","strategy":"fallback","models":["kept/m"]}`},
		{"POST", "/api/keys", `{"name":"n","scopes":["data"],"expiresAt":4102444800000,"models":["a/*"],"rpm":1,"dailyMax":1}`},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"kept/m"}`},
		{"POST", "/api/models/custom", `{"id":"m","type":"llm","providerAlias":"kept","name":"n","contextLength":1,"maxTokens":1}`},
		{"POST", "/api/models/disabled", `{"providerAlias":"kept","ids":["gone"]}`},
		{"PATCH", "/api/settings", `{"strategy":"priority","firstByteSeconds":30,"idleSeconds":120,"embeddingInputType":"document","promptCaching":"on","claudeOpusModel":"openai/gpt-5","claudeSonnetModel":"openai/gpt-5","claudeHaikuModel":"openai/gpt-5","claudeFableModel":"openai/gpt-5","defaultModel":"kept/m","smallModel":"kept/m"}`},
		{"POST", "/api/setup", `{"tool":"codex","model":"kept/m","smallModel":"kept/m","allowUnknown":true}`},
		{"POST", "/api/import", `{"document":` + document + `,"passphrase":"correct horse battery"}`},
		{"POST", "/api/export", `{"passphrase":"correct horse battery"}`},
	}
	calls, taken := 0, 0
	try := func(method, path, body string) {
		t.Helper()
		calls++
		status, a := w.API(method, path, body)
		switch shown := body[:min(len(body), 300)]; {
		case status >= 500 || status < 200 || status >= 300 && status < 400:
			t.Fatalf("%s %s %s: got %d %s", method, path, shown, status, a.Raw)
		case status >= 400 && (a.Get("error.message").Str == "" || len(a.Get("error.message").Str) > 400):
			t.Fatalf("%s %s %s: refused with %d %s", method, path, shown, status, a.Raw)
		case status < 300:
			taken++
			if id := a.Get("body.id").Str; method == "POST" && path == "/api/providers" {
				w.OK("DELETE", path+"/"+id, "")
			}
		}
	}
	for _, r := range routes {
		for _, bad := range absurd() {
			try(r.method, r.path, bad)
			for _, body := range replaced(r.body, bad) {
				try(r.method, r.path, body)
			}
		}
		for _, body := range []string{`{"a":1}{"b":2}`, "\ufeff" + r.body, r.body + "\x00", strings.Replace(r.body, "{", `{"__proto__":1,`, 1), "{\"na\xffme\":1}", r.body[:len(r.body)-1]} {
			try(r.method, r.path, body)
		}
	}
	for _, bad := range absurd() {
		if bad != "true" { // that one is meant
			try("POST", "/api/import", `{"document":`+document+`,"replace":`+bad+`}`)
		}
	}
	if calls < 2000 || taken < 50 {
		t.Fatalf("%d calls, %d taken", calls, taken)
	}
	// Nothing of it reached where it does not belong.
	for k := range w.Loc.Storage(mid).Dump() {
		name, id, _ := strings.Cut(k, ":")
		switch name {
		case "conn", "key", "combo", "disabled", "custom", "mutation", "intent", "error", "count":
			if !rpc.IsRowID(id) && !manage.IsAlias(id) {
				t.Errorf("a row of the key %q", k)
			}
		case "alias":
			if !manage.IsAliasName(id) {
				t.Errorf("a row of the key %q", k)
			}
		}
	}
	for _, path := range []string{"/api/providers", "/api/keys", "/api/combos", "/api/models/alias", "/api/models/custom", "/api/models/disabled", "/api/settings", "/api/audit?verify=true", "/api/export", "/api/models/availability"} {
		if a := w.OK("GET", path, ""); !json.Valid([]byte(a.Raw)) || a.Get("chain.ok").Exists() && !a.Get("chain.ok").Bool() {
			t.Errorf("%s: %.300s", path, a.Raw)
		}
	}
	m := w.Replica()
	c := inprocess.Connection(m, conn)
	if c == nil || w.Open(c, store.APIKey) != "sk-0123456789abcdefghij" || c.Data.BaseURL != "https://a.example.com/v1" {
		t.Errorf("the connection is not what it was: %+v", c)
	}
	if w.OK("GET", "/api/keys/"+key, "").Get("name").Str != "kept" {
		t.Error("the key is not what it was")
	}
	w.Loc.Alarms(w.Ctx)
	if got := w.KV.Dump()[kvKey(mid)]; !gjson.ValidBytes(got) || gjson.GetBytes(got, "generation").Int() != m.Generation {
		t.Error("the replica in KV is not the newest")
	}
}

// replaced returns the document with each of its values, at any depth, replaced
// by bad, and with each object's fields given twice.
func replaced(doc, bad string) (out []string) {
	v := gjson.Parse(doc)
	var parts []string
	each := func(f func(name string, v gjson.Result)) {
		v.ForEach(func(k, v gjson.Result) bool { f(k.Raw, v); return true })
	}
	switch {
	case v.IsObject():
		each(func(name string, v gjson.Result) { parts = append(parts, name+":"+v.Raw) })
		i := 0
		each(func(name string, v gjson.Result) {
			with := func(value string) string {
				p := append([]string{}, parts...)
				p[i] = name + ":" + value
				return "{" + strings.Join(p, ",") + "}"
			}
			out = append(out, with(bad), with(v.Raw+","+name+":"+bad))
			for _, sub := range replaced(v.Raw, bad) {
				out = append(out, with(sub))
			}
			i++
		})
	case v.IsArray():
		each(func(_ string, v gjson.Result) {
			out = append(out, "["+bad+"]", "["+v.Raw+","+bad+"]")
			for _, sub := range replaced(v.Raw, bad) {
				out = append(out, "["+sub+"]")
			}
		})
	}
	return out
}

// A name in a query, a path or a precondition is only ever a name.
func TestAbsurdNamesFindNothing(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	names := []string{"__proto__", "constructor", "..", "../meta", "meta", "conn:" + id, strings.ToUpper(id) + "x", id + "\x00", id + " ", "%00", strings.Repeat("a", 5000), "a\nb", "☃", "\xff", ""}
	before := fmt.Sprint(keysOf(w))
	for _, name := range names {
		for _, r := range []struct{ method, path string }{{"GET", "/api/providers/"}, {"PUT", "/api/providers/"}, {"DELETE", "/api/providers/"}, {"GET", "/api/combos/"}, {"PUT", "/api/combos/"}, {"DELETE", "/api/combos/"}, {"GET", "/api/keys/"}, {"DELETE", "/api/keys/"}} {
			if status, a := w.API(r.method, r.path, `{}`, func(e *rpc.ManageCall) { e.Route, e.Params = r.path+"{id}", []string{name} }); status != 404 {
				t.Errorf("%s %s%q: got %d %s", r.method, r.path, name, status, a.Raw)
			}
		}
		for _, q := range []string{"/api/models/alias", "/api/models/custom", "/api/models/disabled"} {
			status, a := w.API("DELETE", q, "", func(e *rpc.ManageCall) {
				e.Query = map[string]string{"alias": name, "providerAlias": name, "id": name, "type": name, "__proto__": name}
			})
			if status != 404 && !(name == "" && status == 400) {
				t.Errorf("DELETE %s %q: got %d %s", q, name, status, a.Raw)
			}
		}
		for _, q := range []string{"/api/audit", "/api/usage", "/api/requests", "/api/providers", "/api/models/disabled"} {
			status, a := w.API("GET", q, "", func(e *rpc.ManageCall) {
				e.Query = map[string]string{"limit": name, "before": name, "period": name, "group": name, "provider": name, "providerAlias": name, "verify": name}
			})
			if status >= 500 || status < 200 {
				t.Errorf("GET %s %q: got %d %s", q, name, status, a.Raw)
			}
		}
		if status, a := w.API("PUT", "/api/providers/"+id, `{"name":"never"}`, func(e *rpc.ManageCall) { e.IfMatch = `"` + name + `"` }); status != 412 {
			t.Errorf("If-Match %q: got %d %s", name, status, a.Raw)
		}
	}
	for _, n := range []string{"-1", "0", "1e3", "0x10", "99999999999999999999", "１", "501"} {
		if status, a := w.API("GET", "/api/audit", "", func(e *rpc.ManageCall) { e.Query = map[string]string{"limit": n} }); status != 400 {
			t.Errorf("limit=%s: got %d %s", n, status, a.Raw)
		}
	}
	if after := fmt.Sprint(keysOf(w)); after != before {
		t.Errorf("rows: %s, then %s", before, after)
	}
}

// keysOf returns the keys of the rows that hold what was configured.
func keysOf(w *world) (keys []string) {
	for k := range w.Loc.Storage(mid).Dump() {
		if !strings.HasPrefix(k, storage.AuditPrefix) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}
