package manage_test

import (
	"strings"
	"testing"

	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
)

// Targets of aliases, custom models and limits of keys must exist.
func TestUnknownTargetsAreRefusedWithSuggestion(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Connect(`{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"https://a.example.com/v1","prefix":"home","enabledModels":["llama-large"]}}`)
	w.OK("POST", "/api/combos", `{"name":"smart","models":["home/llama-large"]}`)
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "/api/models/alias", `{"alias":"a","model":"home/llama-large"}`, ""},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"openai/gpt-5-mini"}`, ""},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"hoem/llama-large"}`, "did you mean home/llama-large?"},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"home/lama-large"}`, "did you mean home/llama-large?"},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"home/lama-large","allowUnknown":true}`, ""},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"nobody/x"}`, "names no provider or prefix"},
		{"POST", "/api/models/custom", `{"id":"x","providerAlias":"home"}`, ""},
		{"POST", "/api/models/custom", `{"id":"x","providerAlias":"opnai"}`, "did you mean openai?"},
		{"POST", "/api/models/custom", `{"id":"x","providerAlias":"nobody"}`, "names no provider or prefix"},
		{"POST", "/api/combos", `{"name":"c1","models":["home/llama-large","smart","a","openai/gpt-99","tavily","web","builtin/fetch"]}`, ""},
		{"POST", "/api/combos", `{"name":"c2","models":["home/llama-large","smrat"]}`, "did you mean smart?"},
		{"POST", "/api/combos", `{"name":"c2","models":["hoem/llama-large"]}`, "did you mean home/llama-large?"},
		{"POST", "/api/combos", `{"name":"c2","models":["home/lama-large"]}`, "did you mean home/llama-large?"},
		{"POST", "/api/combos", `{"name":"c2","models":["nowhere"]}`, "names no combo, alias or model: nowhere (set allowUnknown to true"},
		{"POST", "/api/combos", `{"name":"c2","models":["nowhere","other/x"],"allowUnknown":true}`, ""},
		{"POST", "/api/keys", `{"models":["smart","home/*","home/llama-large","*","a"]}`, ""},
		{"POST", "/api/keys", `{"models":["smrat"]}`, "did you mean smart?"},
		{"POST", "/api/keys", `{"models":["gpt-5-mini"]}`, "did you mean openai/gpt-5-mini?"},
		{"POST", "/api/keys", `{"models":["hme/*"]}`, "names no provider or prefix of this machine: hme; did you mean home/*?"},
		{"POST", "/api/keys", `{"models":["no-such-model"]}`, "names no combo, alias or model"},
		{"POST", "/api/keys", `{"models":["no-such-model"],"allowUnknown":true}`, ""},
		{"POST", "/api/providers", `{"provider":"open-ai","apiKey":"k"}`, "did you mean openai?"},
		{"POST", "/api/providers", `{"provider":"openai","api_key":"k"}`, "did you mean apiKey?"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"k","providerSpecificData":{"base_url":"https://a.example.com"}}`, "did you mean baseUrl?"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"k","providerSpecificData":{"jwt":"abc"}}`, "looks like a credential"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"k","providerSpecificData":{"organization":"sk-abcdefghijklmnopqrstuvwxyz0123456789"}}`, "looks like a credential"},
		{"POST", "/api/providers", `{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"localhost:11434/v1","prefix":"x"}}`, "has no scheme; did you mean https://localhost:11434/v1?"},
	} {
		status, a := w.API(c.method, c.path, c.body)
		if got := a.Get("error.message").Str; (c.want == "") != (status == 200) || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %d %q, want %q", c.path, c.body, status, got, c.want)
		}
	}
	// A member that has gone does not keep its combo from being changed.
	for _, combo := range w.OK("GET", "/api/combos", "").Get("data").Array() {
		if combo.Get("name").Str != "c2" {
			continue
		}
		if got := combo.Get("unknown").Raw; got != `["nowhere","other/x"]` {
			t.Errorf("unknown members: got %s", got)
		}
		path := "/api/combos/" + combo.Get("id").Str
		w.OK("PUT", path, `{"models":["other/x","nowhere","smart"]}`)
		if status, a := w.API("PUT", path, `{"models":["other/x","another/x"]}`); status != 400 {
			t.Errorf("an unknown member is added: %s", a.Raw)
		}
	}
	w.Connect(`{"provider":"openai-compatible-0123abcd","apiKey":"sk-0123456789abcdef","providerSpecificData":{"baseUrl":"https://own.example.com/v1","prefix":"own"}}`)
	if a := w.OK("PUT", "/api/models/alias", `{"alias":"local","model":"own/echo"}`); a.Get("warning").Exists() {
		t.Errorf("of a server whose models are not known: %s", a.Raw)
	}
	if a := w.OK("PUT", "/api/models/alias", `{"alias":"new","model":"openai/gpt-99"}`); !strings.Contains(a.Get("warning").Str, "openai/gpt-99") {
		t.Errorf("an unlisted model is stored without a word: %s", a.Raw)
	}
}

// Names are counted in characters, and shown as they are stored.
func TestInvisibleCharactersInNamesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for name, want := range map[string]string{
		strings.Repeat("я", 200): "",
		strings.Repeat("😀", 200): "",
		strings.Repeat("a", 201): "is longer than 200 characters",
		"👩‍💻 team":               "", // joined by U+200D
		"שלום עולם":              "",
		"שלום \u202eevil":        "U+202E at position 6",
		"a\u2066b":               "U+2066 at position 2",
		"zero\u200bwidth":        "U+200B at position 5",
		"mark\ufeff":             "U+FEFF at position 5",
		"line\u2028end":          "U+2028",
		"control\\u0007":         "U+0007",
	} {
		for _, c := range [][2]string{{"/api/providers", `{"provider":"openai","apiKey":"k","name":"` + name + `"}`}, {"/api/keys", `{"name":"` + name + `"}`}, {"/api/models/custom", `{"id":"x","providerAlias":"openai","name":"` + name + `"}`}} {
			status, a := w.API("POST", c[0], c[1])
			if got := a.Get("error.message").Str; (want == "") != (status == 200) || !strings.Contains(got, want) {
				t.Errorf("%s %q: got %d %q, want %q", c[0], name, status, got, want)
			}
		}
	}
	for body, want := range map[string]string{
		`{"name":"my combo","models":["openai/x"]}`: "character 3 is U+0020",
		`{"name":"naïve","models":["openai/x"]}`:    "character 3 is “ï”",
	} {
		if _, a := w.API("POST", "/api/combos", body); !strings.Contains(a.Get("error.message").Str, want) {
			t.Errorf("%s: got %q, want %q", body, a.Get("error.message").Str, want)
		}
	}
}

// A storage failure has its own error, not that of a missing machine.
func TestStorageFailureHasItsOwnError(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Loc.Storage(mid).Fault = func(string) bool { return true }
	if _, a := w.API("POST", "/api/keys", `{}`); a.Get("error.code").Str != "storage_failed" || !strings.Contains(a.Get("error.message").Str, "storage") {
		t.Errorf("a write: %s", a.Raw)
	}
	w.Loc.Storage(mid).Fault = nil
	w.Loc.Storage(mid).Unreadable = func() bool { return true }
	status, raw := w.obj.Handle(w.Ctx, w.Loc.Storage(mid), mid, "snapshot", []byte(`{}`))
	if e := rpc.ReadFailure(status, raw); e.Status != 503 || e.Code != "storage_failed" {
		t.Errorf("a read: %d %s", status, raw)
	}
}

// A key may name 500 models of a machine with 500 connections: their rows are
// decoded once, not for each model.
func TestKeyModelsAreCheckedWithoutDecodingRowsAgain(t *testing.T) {
	k := &manage.Known{Models: map[string][]string{}, Prefixes: []string{"lab"}, Conns: make([]storage.Connection, 500)}
	k.Conns[499].Provider, k.Conns[499].Data.EnabledModels = "lab", []string{"big"}
	in := &manage.Input{}
	if n := testing.AllocsPerRun(10, func() { k.CheckAllowed(in, "lab/big") }); n != 0 || in.Err != nil {
		t.Errorf("got %v allocations, error %v; want none", n, in.Err)
	}
}
