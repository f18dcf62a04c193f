package machine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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
		"connections": `{"connections":[` + some(maxConns, `{"provider":"openai","name":"c%","apiKey":"sk-0123456789-%"}`) + `]}`,
		"keys":        `{"apiKeys":[` + some(maxKeys, `"sk-0123456789%"`) + `]}`,
		"combos":      `{"combos":[` + some(maxCombos, `{"name":"c%","models":["openai/x"]}`) + `]}`,
		"custom":      `{"customModels":[` + some(maxCustoms, `{"id":"c%","providerAlias":"openai"}`) + `]}`,
		"aliases":     `{"modelAliases":{` + some(maxAliases, `"a%":"openai/x"`) + `}}`,
		"disabled":    `{"disabledModels":[` + some(maxDisabled, `{"providerAlias":"a%","ids":["x"]}`) + `]}`,
		"hidden":      `{"disabledModels":[{"providerAlias":"openai","ids":[` + some(maxHidden, `"m%"`) + `]}]}`,
	}
	for name, doc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			w.connect(`{"provider":"openai","apiKey":"sk-by-hand-0123456789"}`)
			w.ok("POST", "/api/combos", `{"name":"by-hand","models":["openai/x"]}`)
			w.ok("PUT", "/api/models/alias", `{"alias":"by-hand","model":"openai/x"}`)
			w.ok("POST", "/api/models/custom", `{"id":"by-hand","providerAlias":"openai"}`)
			w.ok("POST", "/api/models/disabled", `{"providerAlias":"by-hand","ids":["x"]}`)
			w.ok("POST", "/api/models/disabled", `{"providerAlias":"openai","ids":["by-hand"]}`)
			before := w.loc.Storage(mid).Dump()
			status, a := w.api("POST", "/api/import", `{"document":`+doc+`}`)
			if status != 409 || a.Get("error.code").Str != "too_many" {
				t.Fatalf("got %d %s", status, a.Raw[:min(len(a.Raw), 200)])
			}
			if after := w.loc.Storage(mid).Dump(); len(after) != len(before) || string(after["meta"]) != string(before["meta"]) {
				t.Errorf("%d rows, then %d", len(before), len(after))
			}
		})
	}
}

// What comes in an encrypted export is whatever its maker put there.
func TestKeysOfAnExportAreChecked(t *testing.T) {
	const pass = "correct horse battery"
	w := newWorld(t)
	first := w.create()
	digest := keyDigest(first)
	sealed := func(keys string) string {
		d := fmt.Sprintf(`{"format":%q,"version":1,"connections":[],"keys":%s}`, exportFormat, keys)
		out := sealedDoc{Format: sealedFormat, Version: 1, KDF: kdfName, Iterations: 1000, Salt: "AAAAAAAAAAAAAAAAAAAAAA", Nonce: "AAAAAAAAAAAAAAAA"}
		aead, err := exportKey(pass, make([]byte, saltBytes), out.Iterations)
		if err != nil {
			t.Fatal(err)
		}
		out.Ciphertext = base64.RawURLEncoding.EncodeToString(aead.Seal(nil, make([]byte, 12), []byte(d), out.associated()))
		raw, _ := json.Marshal(out)
		return fmt.Sprintf(`{"document":%s,"passphrase":%q}`, raw, pass)
	}
	hex := strings.Repeat("ab", 32)
	for _, keys := range []string{
		`[1]`, `{}`, `"x"`, `[{"id":"a"}]`, `[{"id":"../x","digest":"` + hex + `"}]`, `[{"id":"a","digest":"` + hex + `","scopes":["operator"]}]`,
		`[{"id":"a","digest":"` + hex + `","name":"a\u0000b"}]`, `[{"id":"a","digest":"` + hex + `","rpm":-1}]`, `[{"id":"a","digest":"` + hex + `","rpm":1e99}]`,
		`[{"id":"a","digest":"` + hex + `","models":[""]}]`, `[{"id":"a","digest":"` + hex + `","last4":"abcdefgh"}]`, `[{"id":"a","digest":"` + hex + `","expiresAt":-1}]`,
	} {
		if status, a := w.api("POST", "/api/import", sealed(keys)); status != 400 || a.Get("error.param").Str != "document.keys" {
			t.Errorf("%s: got %d %s", keys, status, a.Raw)
		}
	}
	w.ok("POST", "/api/import", sealed(`[{"id":"a","digest":"`+hex+`","scopes":["data"],"models":["openai/*"],"limitedUntil":9999999999999},{"id":"again","digest":"`+digest+`","scopes":["manage"]}]`))
	m := w.replica()
	if len(m.Keys) != 2 || m.Keys[1].ID != "a" || m.Keys[1].LimitedUntil != 0 {
		t.Errorf("got %+v", m.Keys)
	}
	// The key that was there is one key still: when it is deleted, it is gone.
	w.ok("DELETE", "/api/keys/"+m.Keys[0].ID, "")
	for _, k := range w.replica().Keys {
		if k.Digest == digest {
			t.Errorf("a revoked key lives on as %s", k.ID)
		}
	}
}
