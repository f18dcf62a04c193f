package manage_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"weir/internal/golden"
	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// A call of each route, good and bad: status, and the field or code that a
// refusal names.
func TestManagementCalls(t *testing.T) {
	calls := []struct{ method, path, body, want string }{
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"sk-0123456789abcdefghij","name":"one","priority":3}`, "201"},
		{"POST", "/api/providers", ``, "400 body"},
		{"POST", "/api/providers", `[]`, "400 body"},
		{"POST", "/api/providers", `{}`, "400 provider"},
		{"POST", "/api/providers", `{"provider":"nobody"}`, "400 provider"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"x"}`, "201"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"0123456789\r\nX: 1"}`, "400 apiKey"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"0123456789\u0000"}`, "400 apiKey"},
		{"POST", "/api/providers", `{"provider":"openai","apiKey":"0123456789","apiKey":"9876543210"}`, "400 apiKey"},
		{"POST", "/api/providers", `{"provider":"openai","priority":"1"}`, "400 priority"},
		{"POST", "/api/providers", `{"provider":"openai","isActive":"no"}`, "400 isActive"},
		{"POST", "/api/providers", `{"provider":"openai","authType":"magic"}`, "400 authType"},
		{"POST", "/api/providers", `{"provider":"openai","name":"a\u2028b"}`, "400 name"},
		{"POST", "/api/providers", `{"provider":"openai-compatible-0123abcd","apiKey":"0123456789"}`, "400 providerSpecificData.baseUrl"},
		{"POST", "/api/providers", `{"provider":"anthropic","providerSpecificData":{"baseUrl":"https://169.254.169.254/"}}`, "400 providerSpecificData.baseUrl"},
		{"POST", "/api/providers", `{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"https://user:pass@api.example.com/v1"}}`, "400 providerSpecificData.baseUrl"},
		{"POST", "/api/providers", `{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"https://api.example.com/v1?x=1"}}`, "400 providerSpecificData.baseUrl"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"prefix":"a b"}}`, "400 providerSpecificData.prefix"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"prefix":"claude-weir"}}`, "400 providerSpecificData.prefix"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"enabledModels":"gpt"}}`, "400 providerSpecificData.enabledModels"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"streamUsage":"yes"}}`, "400 providerSpecificData.streamUsage"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"enabledModels":["a/../b"]}}`, "400 providerSpecificData.enabledModels"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"accessToken":"0123456789"}}`, "400 providerSpecificData.accessToken"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"extra":{"list":[{"apiKey":"0123456789"}]}}}`, "400 providerSpecificData.extra"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"credentials":{"a":"0123456789"}}}`, "400 providerSpecificData.credentials"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"ap\u0069Key":"0123456789"}}`, "400 providerSpecificData.apiKey"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"home":"https:\/\/user:pass\u0040a.example.com"}}`, "400 providerSpecificData.home"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"home":["see https://user@a.example.com"]}}`, "400 providerSpecificData.home"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"home":{"ftp://user@a":1}}}`, "400 providerSpecificData.home"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"maxTokens":4096,"tokens":{"max":1},"home":"https:\/\/a.example.com\/@user","__proto__":{"a":1}}}`, "400 providerSpecificData.maxTokens"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"organization":"sk-abcdefghijklmnopqrstuvwxyz0123456789"}}`, "400 providerSpecificData.organization"},
		{"POST", "/api/providers", `{"provider":"openai","providerSpecificData":{"region":"é"}}`, "400 providerSpecificData.region"},
		{"POST", "/api/providers", `{"provider":"openai","expiresAt":"tomorrow"}`, "400 expiresAt"},
		{"POST", "/api/providers", `{"provider":"bedrock","accessKeyId":"AKIA0123456789","secretAccessKey":"0123456789/+","sessionToken":"0123456789==","providerSpecificData":{"region":"us-east-1"}}`, "201"},
		{"POST", "/api/providers", `{"provider":"bedrock","apiKey":"AKIA0123456789","secretAccessKey":"0123456789/+"}`, "201"},
		{"POST", "/api/providers", `{"provider":"bedrock","apiKey":"a-bedrock-api-key/+="}`, "201"},
		{"POST", "/api/providers", `{"provider":"bedrock","secretAccessKey":"0123456789"}`, "400 accessKeyId"},
		{"POST", "/api/providers", `{"provider":"bedrock","accessKeyId":"AKIA0123456789"}`, "400 secretAccessKey"},
		{"POST", "/api/providers", `{"provider":"bedrock","sessionToken":"0123456789"}`, "400 secretAccessKey"},
		{"POST", "/api/providers", `{"provider":"bedrock","accessKeyId":"AKIA/0123456789","secretAccessKey":"0123456789"}`, "400 accessKeyId"},
		{"POST", "/api/providers", `{"provider":"bedrock","apiKey":"AKIA/0123456789","secretAccessKey":"0123456789"}`, "400 apiKey"},
		{"POST", "/api/providers", `{"provider":"bedrock","apiKey":"0123456789","providerSpecificData":{"region":"us-east-1.example.com"}}`, "400 providerSpecificData.region"},
		{"GET", "/api/providers/nobody", ``, "404 connection_not_found"},
		{"PUT", "/api/providers/nobody", `{}`, "404 connection_not_found"},
		{"DELETE", "/api/providers/../x", ``, "404 connection_not_found"},
		{"POST", "/api/combos", `{"name":"fast","models":["openai/gpt-4o-mini"]}`, "201"},
		{"POST", "/api/combos", `{"name":"fast","models":["openai/x"]}`, "409 name"},
		{"POST", "/api/combos", `{"name":"strict","models":["openai/x"],"on":{"limit":"stop","any_4xx":"next"}}`, "201"},
		{"POST", "/api/combos", `{"name":"lax","models":["openai/x"],"on":null}`, "201"},
		{"POST", "/api/combos", `{"name":"bad","models":["openai/x"],"on":{"limit":"retry"}}`, "400 on.limit"},
		{"POST", "/api/combos", `{"name":"bad","models":["openai/x"],"on":{"limits":"stop"}}`, "400 on.limits"},
		{"POST", "/api/combos", `{"name":"bad","models":["openai/x"],"on":"next"}`, "400 on"},
		{"POST", "/api/combos", `{"name":"loop","models":["claude-weir/loop"]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"a b","models":["openai/x"]}`, "400 name"},
		{"POST", "/api/combos", `{"models":["openai/x"]}`, "400 name"},
		{"POST", "/api/combos", `{"name":"self","models":["self"]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"none","models":[]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"bad","models":["openai/../x"]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"bad","models":["openai/x?key=1"]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"bad","models":["openai/%2e%2e/x"]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"many","models":[` + strings.TrimSuffix(strings.Repeat(`"openai/x",`, 17), ",") + `]}`, "400 models"},
		{"POST", "/api/combos", `{"name":"k","kind":"magic","models":["openai/x"]}`, "400 kind"},
		{"POST", "/api/combos", `{"name":"s","strategy":"random","models":["openai/x"]}`, "400 strategy"},
		{"POST", "/api/keys", ``, "201"},
		{"POST", "/api/keys", `{"name":"k","scopes":["data","manage"],"rpm":5,"dailyMax":10,"models":["openai/*"],"expiresAt":"2099-01-01T00:00:00Z"}`, "201"},
		{"POST", "/api/keys", `{"models":["claude-weir/openai/gpt-4o","claude-weir/openai/*"]}`, "201"},
		{"POST", "/api/keys", `{"scopes":["root"]}`, "400 scopes"},
		{"POST", "/api/keys", `{"rpm":-1}`, "400 rpm"},
		{"POST", "/api/keys", `{"rpm":1.5}`, "400 rpm"},
		{"POST", "/api/keys", `{"expiresAt":1000}`, "400 expiresAt"},
		{"DELETE", "/api/keys/nobody", ``, "404 key_not_found"},
		{"PUT", "/api/models/alias", `{"alias":"mini","model":"openai/gpt-4o-mini"}`, "200"},
		{"PUT", "/api/models/alias", `{"alias":"mini","model":"gpt-4o-mini"}`, "400 model"},
		{"PUT", "/api/models/alias", `{"alias":"a/b","model":"openai/gpt-4o-mini"}`, "400 alias"},
		{"PUT", "/api/models/alias", `{"alias":"a","model":"openai//x"}`, "400 model"},
		{"DELETE", "/api/models/alias", ``, "400 alias"},
		{"DELETE", "/api/models/alias?alias=nobody", ``, "404 alias_not_found"},
		{"DELETE", "/api/models/alias?alias=mini", ``, "204"},
		{"POST", "/api/models/custom", `{"id":"org/model:tag@v1","providerAlias":"openai","type":"llm"}`, "201"},
		{"POST", "/api/models/custom", `{"id":"x","providerAlias":"openai","type":"magic"}`, "400 type"},
		{"POST", "/api/models/custom", `{"id":"","providerAlias":"openai"}`, "400 id"},
		{"POST", "/api/models/custom", `{"id":"x"}`, "400 providerAlias"},
		{"DELETE", "/api/models/custom?providerAlias=openai&id=nobody", ``, "404 model_not_found"},
		{"DELETE", "/api/models/custom?providerAlias=openai&id=org/model:tag@v1", ``, "204"},
		{"POST", "/api/models/disabled", `{"providerAlias":"openai","ids":["gpt-4","o1"]}`, "200"},
		{"POST", "/api/models/disabled", `{"providerAlias":"openai","ids":[]}`, "400 ids"},
		{"POST", "/api/models/disabled", `{"providerAlias":"","ids":["a"]}`, "400 providerAlias"},
		{"DELETE", "/api/models/disabled?providerAlias=openai&id=nobody", ``, "404 model_not_found"},
		{"DELETE", "/api/models/disabled?providerAlias=openai&id=gpt-4", ``, "204"},
		{"DELETE", "/api/models/disabled?providerAlias=openai", ``, "204"},
		{"PATCH", "/api/settings", `{"strategy":"round-robin","firstByteSeconds":60}`, "200"},
		{"PATCH", "/api/settings", `{"strategy":"magic"}`, "400 strategy"},
		{"PATCH", "/api/settings", `{"` + strings.Repeat("x", 100) + `":1}`, "400 " + strings.Repeat("x", 100)},
		{"PATCH", "/api/settings", `{"` + strings.Repeat("x", 101) + `":1}`, "400 …"},
		{"PATCH", "/api/settings", `{"traceUpstream":["VLLM.example.com:8000","[fd00::1]:80","a.example"]}`, "200"},
		{"PATCH", "/api/settings", `{"traceUpstream":["https://a.example"]}`, "400 traceUpstream"},
		{"PATCH", "/api/settings", `{"traceUpstream":["a.example/v1"]}`, "400 traceUpstream"},
		{"PATCH", "/api/settings", `{"traceUpstream":["*"]}`, "400 traceUpstream"},
		{"PATCH", "/api/settings", `{"maxParallel":200}`, "200"},
		{"PATCH", "/api/settings", `{"maxParallel":0}`, "200"},
		{"PATCH", "/api/settings", `{"maxParallel":-1}`, "400 maxParallel"},
		{"PATCH", "/api/settings", `{"maxParallel":1000001}`, "400 maxParallel"},
		{"PATCH", "/api/settings", `{"maxParallel":null}`, "200"},
		{"PATCH", "/api/settings", `{"modelPrices":{"openai/gpt-5":" 1/8  >200000=2/16 "}}`, "200"},
		{"PATCH", "/api/settings", `{"modelPrices":{"openai/gpt-4.1":"image=0.04","openai/gpt-5":null}}`, "200"},
		{"PATCH", "/api/settings", `{"modelPrices":{"openai/gpt-5":"cheap"}}`, "400 modelPrices.openai/gpt-5"},
		{"PATCH", "/api/settings", `{"modelPrices":{"openai/gpt-5":1}}`, "400 modelPrices.openai/gpt-5"},
		{"PATCH", "/api/settings", `{"modelPrices":{"gpt-5":"1/2"}}`, "400 modelPrices"},
		{"PATCH", "/api/settings", `{"modelPrices":{"nobody/gpt-5":"1/2"}}`, "400 modelPrices"},
		{"PATCH", "/api/settings", `{"modelPrices":["1/2"]}`, "400 modelPrices"},
		{"PATCH", "/api/settings", `{"idleSeconds":0}`, "400 idleSeconds"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":"openai/gpt-4o-mini","claudeOpusModel":"claude-weir/openai/gpt-5"}`, "200"},
		{"PATCH", "/api/settings", `{"claudeSonnetModel":"claude-opus-5"}`, "200"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":"nobody/x"}`, "400 claudeHaikuModel"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":"nobody"}`, "400 claudeHaikuModel"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":"openai/../x"}`, "400 claudeHaikuModel"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":"openai/gpt-4o-min"}`, "400 claudeHaikuModel"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":"openai/gpt-4o-min","allowUnknown":true}`, "200"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":5}`, "400 claudeHaikuModel"},
		{"PATCH", "/api/settings", `{"claudeHaikuModel":null,"claudeOpusModel":""}`, "200"},
		{"GET", "/api/settings", ``, "200"},
		{"GET", "/api/audit?limit=0", ``, "400 limit"},
		{"GET", "/api/usage?groupBy=magic", ``, "400 groupBy"},
		{"POST", "/api/export", `{"passphrase":"short"}`, "400 passphrase"},
		{"POST", "/api/import", `{}`, "400 document"},
		{"POST", "/api/import", `{"document":{"connections":[{"provider":"openai","apiKey":5}]}}`, "400 document.connections[0].apiKey"},
		{"POST", "/api/import", `{"document":{"format":"weir-export-encrypted"},"passphrase":"a long passphrase"}`, "400 document"},
		{"PUT", "/api/machines", `{}`, "404 not_found"},
		{"GET", "/api/nothing", ``, "404 not_found"},
	}
	w := newWorld(t)
	w.Create()
	for _, c := range calls {
		before := w.Replica().Generation
		status, a := w.API(c.method, c.path, c.body)
		got := fmt.Sprint(status)
		switch {
		case status == 200:
			got = a.Get("status").Raw
		case a.Get("error.param").Str != "":
			got += " " + a.Get("error.param").Str
		case a.Get("error.code").Str != "":
			got += " " + a.Get("error.code").Str
		case status == 400:
			got += " body"
		}
		if got != c.want {
			t.Errorf("%s %s %s: got %s (%s), want %s", c.method, c.path, c.body, got, a.Raw, c.want)
		}
		if after := w.Replica().Generation; status != 200 && after != before {
			t.Errorf("%s %s %s: refused, but the generation moved", c.method, c.path, c.body)
		}
	}
}

// Fields of the server cannot be set (docs/reference/reliability.md,
// T10).
func TestServerFieldsAreUnknown(t *testing.T) {
	w := newWorld(t)
	w.Create()
	conn := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	combo := w.OK("POST", "/api/combos", `{"name":"c","models":["openai/x"]}`).Get("id").Str
	targets := []struct{ method, path, base string }{
		{"POST", "/api/providers", `"provider":"openai"`}, {"PUT", "/api/providers/" + conn, `"name":"x"`},
		{"POST", "/api/combos", `"name":"d","models":["openai/x"]`}, {"PUT", "/api/combos/" + combo, `"models":["openai/x"]`},
		{"POST", "/api/keys", `"name":"x"`}, {"PUT", "/api/models/alias", `"alias":"a","model":"openai/x"`},
		{"POST", "/api/models/custom", `"id":"x","providerAlias":"openai"`}, {"POST", "/api/models/disabled", `"providerAlias":"openai","ids":["x"]`},
		{"PATCH", "/api/settings", `"strategy":"priority"`}, {"POST", "/api/setup", `"tool":"codex","model":"openai/gpt-4o"`}, {"POST", "/api/export", `"passphrase":"a long passphrase"`}, {"POST", "/api/import", `"document":{}`},
	}
	for _, tt := range targets {
		for _, f := range []string{"id", "generation", "createdAt", "updatedAt", "status", "lastError", "cooldownUntil", "hasKey", "last4", "secrets",
			"digest", "role", "machineId", "tokenGeneration", "revokedAt", "limitedUntil", "seeded", "origin", "APIKEY", "tokenUrl", "__proto__"} {
			if strings.Contains(tt.base, `"`+f+`"`) {
				continue
			}
			before := w.Replica().Generation
			status, a := w.API(tt.method, tt.path, fmt.Sprintf(`{%s,%q:"x"}`, tt.base, f))
			if status != 400 || a.Get("error.param").Str != f || w.Replica().Generation != before {
				t.Errorf("%s %s with %s: got %d %s", tt.method, tt.path, f, status, a.Raw)
			}
		}
	}
}

func TestStaleWritesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.Create()
	with := func(tag string) func(*rpc.ManageCall) { return func(e *rpc.ManageCall) { e.IfMatch = tag } }
	conn := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	_, a := w.API("GET", "/api/providers/"+conn, "")
	tag := a.Get("etag").Str
	w.OK("POST", "/api/keys", `{}`) // another record's change
	w.OK("PUT", "/api/providers/"+conn, `{"name":"b"}`, with(tag))
	for _, tt := range []struct{ method, body string }{{"PUT", `{"name":"c"}`}, {"DELETE", ``}} {
		if status, a := w.API(tt.method, "/api/providers/"+conn, tt.body, with(tag)); status != 412 {
			t.Errorf("%s: got %d %s", tt.method, status, a.Raw)
		}
	}
	for _, path := range []string{"/api/combos", "/api/models/alias", "/api/models/custom", "/api/models/disabled", "/api/settings"} {
		_, a := w.API("GET", path, "")
		tag := a.Get("etag").Str
		body := map[string][2]string{
			"/api/combos":          {"POST", `{"name":"n%d","models":["openai/x"]}`},
			"/api/models/alias":    {"PUT", `{"alias":"n%d","model":"openai/x"}`},
			"/api/models/custom":   {"POST", `{"id":"n%d","providerAlias":"openai"}`},
			"/api/models/disabled": {"POST", `{"providerAlias":"openai","ids":["n%d"]}`},
			"/api/settings":        {"PATCH", `{"idleSeconds":10%d}`},
		}[path]
		if tag == "" {
			t.Fatalf("%s has no ETag", path)
		}
		w.OK(body[0], path, fmt.Sprintf(body[1], 1), with(tag))
		if status, a := w.API(body[0], path, fmt.Sprintf(body[1], 2), with(tag)); status != 412 {
			t.Errorf("%s: got %d %s", path, status, a.Raw)
		}
		w.OK(body[0], path, fmt.Sprintf(body[1], 3), with("*"))
	}
}

// A credential goes only where it was given for (docs/reference/reliability.md,
// T14).
func TestChangedOriginEmptiesTheCredential(t *testing.T) {
	tests := []struct {
		name, create, update string
		kept                 bool
	}{
		{"other host", `{"provider":"openai-compatible-0123abcd","apiKey":"0123456789","providerSpecificData":{"baseUrl":"https://a.example.com/v1"}}`,
			`{"providerSpecificData":{"baseUrl":"https://b.example.com/v1"}}`, false},
		{"other path", `{"provider":"openai-compatible-0123abcd","apiKey":"0123456789","providerSpecificData":{"baseUrl":"https://a.example.com/v1"}}`,
			`{"providerSpecificData":{"baseUrl":"https://A.example.com/v2"}}`, true},
		{"other prefix", `{"provider":"openai-compatible-0123abcd","apiKey":"0123456789","providerSpecificData":{"baseUrl":"https://a.example.com/v1"}}`,
			`{"providerSpecificData":{"prefix":"b"}}`, true},
		{"other resource", `{"provider":"azure","apiKey":"0123456789","providerSpecificData":{"resource":"mine"}}`,
			`{"providerSpecificData":{"resource":"theirs"}}`, false},
		{"only the name", `{"provider":"azure","apiKey":"0123456789","providerSpecificData":{"resource":"mine"}}`, `{"name":"x"}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.Create()
			id := w.Connect(tt.create)
			v := w.OK("PUT", "/api/providers/"+id, tt.update)
			if v.Get("hasKey").Bool() != tt.kept || (v.Get("status").Str == storage.NeedsCredential) == tt.kept {
				t.Errorf("got %s", v.Raw)
			}
			if why := v.Get("lastError").Str; strings.Contains(why, "Enter the key again") == tt.kept {
				t.Errorf("kept %v, and the error is %q", tt.kept, why)
			}
			if c := w.Replica().Connections[0]; (len(c.Secrets) > 0) != tt.kept {
				t.Errorf("replica: %d secrets", len(c.Secrets))
			}
			if !tt.kept {
				if v = w.OK("PUT", "/api/providers/"+id, `{"apiKey":"another-0123456789"}`); v.Get("status").Str != "active" || v.Get("lastError").Exists() {
					t.Errorf("with a new credential: %s", v.Raw)
				}
			}
		})
	}
	w := newWorld(t)
	w.Create()
	id := w.Connect(tests[0].create)
	if v := w.OK("PUT", "/api/providers/"+id, `{"apiKey":"new-0123456789","providerSpecificData":{"baseUrl":"https://b.example.com/v1"}}`); !v.Get("hasKey").Bool() || v.Get("status").Str != "active" {
		t.Errorf("a new credential in the same call: %s", v.Raw)
	}
	c := w.Replica().Connections[0]
	if got := w.Open(&c, store.APIKey); got != "new-0123456789" {
		t.Errorf("got %q", got)
	}
}

// A new pair of signing keys replaces the old one, and its session token goes with null. No
// secret is shown, and half of a pair is refused.
func TestSigningKeysAreReplaced(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"bedrock","accessKeyId":"ASIAIOSFODNN7EXAMPLE","secretAccessKey":"temporary/secret+of==0123","sessionToken":"the-session-token==","providerSpecificData":{"region":"us-east-1"}}`)
	v := w.OK("GET", "/api/providers/"+id, "")
	if v.Get("authType").Str != "aws" || !v.Get("hasKey").Bool() || v.Get("last4").Str != "MPLE" || v.Get("secrets").Raw != `["accessKeyId","secretAccessKey","sessionToken"]` {
		t.Errorf("got %s", v.Raw)
	}
	for _, s := range []string{"ASIAIOSFODNN7EXAMPLE", "temporary/secret", "the-session-token"} {
		if strings.Contains(v.Raw, s) {
			t.Errorf("%s is shown in %s", s, v.Raw)
		}
	}
	for _, body := range []string{`{"secretAccessKey":null}`, `{"accessKeyId":null}`, `{"accessKeyId":"a/b/c/d/e/f/g"}`} {
		if status, a := w.API("PUT", "/api/providers/"+id, body); status != 400 {
			t.Errorf("%s: %d %s", body, status, a.Raw)
		}
	}
	w.OK("PUT", "/api/providers/"+id, `{"accessKeyId":"AKIAIOSFODNN7EXAMPLE","secretAccessKey":"another/secret+0123","sessionToken":null}`)
	c := w.Replica().Connections[0]
	if w.Open(&c, store.AccessKeyID) != "AKIAIOSFODNN7EXAMPLE" || w.Open(&c, store.SecretAccessKey) != "another/secret+0123" || len(c.Secrets) != 2 {
		t.Errorf("%d secrets", len(c.Secrets))
	}
}

// The command line and weir.yaml know accounts and keys by their names.
func TestRowsWithoutNamesGetFreeOnes(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for _, tt := range []struct{ body, want string }{
		{`{"provider":"openai"}`, "OpenAI"},
		{`{"provider":"openai","name":""}`, "OpenAI 2"},
		{`{"provider":"groq","name":"openai 3"}`, "openai 3"},
		{`{"provider":"openai"}`, "OpenAI 4"},
		{`{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"https://a.example.com/v1","prefix":"own"}}`, "own"},
		{`{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"https://a.example.com/v1"}}`, "OpenAI-compatible"},
	} {
		if got := w.OK("POST", "/api/providers", tt.body).Get("name").Str; got != tt.want {
			t.Errorf("%s: got the name %q, want %q", tt.body, got, tt.want)
		}
	}
	id := w.Connect(`{"provider":"groq","name":"mine"}`)
	for _, body := range []string{`{"name":""}`, `{"name":""}`} { // its own name is free
		if got := w.OK("PUT", "/api/providers/"+id, body).Get("name").Str; got != "Groq" {
			t.Errorf("PUT %s: got the name %q", body, got)
		}
	}
	for range 2 { // an import with the ids of stored rows renames none
		w.OK("POST", "/api/import", `{"document":{"connections":[{"id":"a","provider":"mistral"},{"id":"b","provider":"mistral"},
			{"id":"c","provider":"mistral","name":"Mistral AI"},{"id":"d","provider":"unheard-of"}]}}`)
		for id, want := range map[string]string{"a": "Mistral AI 2", "b": "Mistral AI 3", "c": "Mistral AI", "d": "unheard-of"} {
			if got := w.OK("GET", "/api/providers/"+id, "").Get("name").Str; got != want {
				t.Errorf("imported %s: got the name %q, want %q", id, got, want)
			}
		}
	}
	for _, want := range []string{"Codex CLI", "Codex CLI 2"} {
		if status, a := w.claim(mid, w.Lease(), "codex"); status != 200 {
			t.Fatal(status, a.Raw)
		}
		if !strings.Contains(w.OK("GET", "/api/keys", "").Raw, `"name":"`+want+`"`) {
			t.Errorf("no key is named %q", want)
		}
	}
}

// Calls of a prefix reach one provider alone: an account of another one was never called.
func TestPrefixOfAnotherProviderIsTaken(t *testing.T) {
	w := newWorld(t)
	w.Create()
	const url = `"baseUrl":"https://a.example.com/v1"`
	compatible := func(digits, prefix, more string) string {
		return `{"provider":"openai-compatible-` + digits + `","name":"` + prefix + `","providerSpecificData":{` + url + `,"prefix":"` + prefix + `"}` + more + `}`
	}
	w.Connect(compatible("0123abcd", "lab", ""))
	w.Connect(`{"provider":"groq","name":"Groq","apiKey":"gsk-0123456789"}`)
	w.Connect(compatible("0123abcd", "lab", `,"priority":2`)) // one more account of the provider
	w.Connect(compatible("aaaa0000", "openai", ""))
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789","providerSpecificData":{"prefix":"own"}}`)
	spare := w.Connect(compatible("bbbb0000", "lab", `,"isActive":false`))
	other := w.Connect(compatible("cccc0000", "other", ""))
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "", compatible("dddd0000", "lab", ""), `Models named lab/… are those of the account "lab". Give this account another prefix, or change, pause or delete that one first. To swap`},
		{"POST", "", compatible("dddd0000", "groq", ""), `Models named groq/… are those of the account "Groq".`},
		{"POST", "", `{"provider":"openai","apiKey":"sk-0123456789"}`, `Models named openai/… are those of the account "openai".`},
		{"PUT", "/" + other, `{"providerSpecificData":{"prefix":"lab"}}`, `Models named lab/… are those of the account "lab".`},
		{"PUT", "/" + spare, `{"isActive":true}`, `Models named lab/… are those of the account "lab".`},
	} {
		status, a := w.API(tt.method, "/api/providers"+tt.path, tt.body)
		if e := a.Get("error"); status != 409 || e.Get("code").Str != "name_taken" || e.Get("param").Str != "providerSpecificData.prefix" ||
			!strings.HasPrefix(e.Get("message").Str, tt.want) {
			t.Errorf("%s %s: got %d %s", tt.method, tt.body, status, a.Raw)
		}
	}
	w.OK("PUT", "/api/providers/"+other, `{"weight":2}`)
	w.OK("PUT", "/api/providers/"+spare, `{"isActive":true,"providerSpecificData":{"prefix":"spare"}}`)
}

func TestPutReplacesOnlyGivenFields(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai-compatible-0123abcd","name":"n","priority":4,"apiKey":"sk-0123456789abcdefghij","providerSpecificData":{"baseUrl":"https://a.example.com/v1","prefix":"p","enabledModels":["a"],"region":"eu"}}`)
	w.Clock.Add(1e9)
	v := w.OK("PUT", "/api/providers/"+id, `{"isActive":false,"providerSpecificData":{"enabledModels":["b","b"],"never":null}}`)
	golden.JSON(t, "put_keeps_the_rest", json.RawMessage(strings.ReplaceAll(v.Raw, id, "the-id")))
}

func TestCyclicCombosAreRefused(t *testing.T) {
	w := newWorld(t)
	w.Create()
	a := w.OK("POST", "/api/combos", `{"name":"a","models":["openai/x"]}`).Get("id").Str
	for i, name := range []string{"b", "c", "d"} {
		w.OK("POST", "/api/combos", fmt.Sprintf(`{"name":%q,"models":[%q]}`, name, string("abc"[i])))
	}
	if status, r := w.API("POST", "/api/combos", `{"name":"e","models":["d"]}`); status != 400 || r.Get("error.param").Str != "models" {
		t.Errorf("five deep: got %d %s", status, r.Raw)
	}
	if status, r := w.API("PUT", "/api/combos/"+a, `{"models":["openai/x","c"]}`); status != 400 || r.Get("error.param").Str != "models" {
		t.Errorf("a loop: got %d %s", status, r.Raw)
	}
	// Renaming closes no loop either.
	w.OK("POST", "/api/combos", `{"name":"free","models":["later"],"allowUnknown":true}`)
	if status, r := w.API("PUT", "/api/combos/"+a, `{"name":"later","models":["free"]}`); status != 400 {
		t.Errorf("renamed into a loop: got %d %s", status, r.Raw)
	}
}

func TestAuditRecordsEveryMutation(t *testing.T) {
	w := newWorld(t)
	w.Create()
	key := w.OK("POST", "/api/keys", `{"scopes":["manage"]}`).Get("id").Str
	for i := range 100 {
		w.OK("PUT", "/api/models/alias", fmt.Sprintf(`{"alias":"a%d","model":"openai/secret-value","allowUnknown":true}`, i), func(e *rpc.ManageCall) { e.KeyID = key })
	}
	a := w.OK("GET", "/api/audit?limit=500&verify=true", "")
	rows := a.Get("data").Array()
	if len(rows) != 102 || !a.Get("chain.ok").Bool() {
		t.Fatalf("%d records, chain %s", len(rows), a.Get("chain").Raw)
	}
	if first := rows[0]; first.Get("target").Str != "a99" || !strings.HasPrefix(first.Get("actor").Str, "key:") || first.Get("fields").Raw != `["alias","model"]` {
		t.Errorf("got %s", first.Raw)
	}
	if strings.Contains(a.Raw, key) || strings.Contains(a.Raw, "secret-value") {
		t.Error("a value or a key id is in the audit")
	}
	page := w.OK("GET", "/api/audit?limit=10&before=50", "")
	if p := page.Get("data").Array(); len(p) != 10 || p[0].Get("seq").Int() != 49 || !page.Get("has_more").Bool() {
		t.Errorf("page: %s", page.Raw)
	}
	st := w.Loc.Storage(mid)
	for name, spoil := range map[string]func(){
		"changed": func() {
			st.Rows[storage.AuditKey(40)] = []byte(strings.Replace(string(st.Rows[storage.AuditKey(40)]), "operator", "somebody", 1))
			st.Rows[storage.AuditKey(40)] = []byte(strings.Replace(string(st.Rows[storage.AuditKey(40)]), `a37`, `a38`, 1))
		},
		"removed": func() { delete(st.Rows, storage.AuditKey(39)) },
		"swapped": func() {
			st.Rows[storage.AuditKey(40)], st.Rows[storage.AuditKey(41)] = st.Rows[storage.AuditKey(41)], st.Rows[storage.AuditKey(40)]
		},
	} {
		saved := st.Dump()
		spoil()
		if at := w.OK("GET", "/api/audit?verify=true", "").Get("chain"); at.Get("ok").Bool() || at.Get("brokenAt").Int() != 40 {
			t.Errorf("%s: %s", name, at.Raw)
		}
		st.Rows = saved
	}
}

// No audit, no mutation.
func TestMutationWithoutAuditIsRefused(t *testing.T) {
	w := newWorld(t)
	w.Create()
	st := w.Loc.Storage(mid)
	st.Fault = func(key string) bool { return strings.HasPrefix(key, storage.AuditPrefix) }
	status, _ := w.API("POST", "/api/keys", `{}`)
	st.Fault = nil
	if status != 503 || len(w.Replica().Keys) != 1 {
		t.Errorf("got %d, %d keys", status, len(w.Replica().Keys))
	}
}

func TestRevokedKeyCannotManage(t *testing.T) {
	w := newWorld(t)
	w.Create()
	by := func(id string) func(*rpc.ManageCall) { return func(e *rpc.ManageCall) { e.KeyID = id } }
	key := w.OK("POST", "/api/keys", `{"scopes":["manage"],"expiresAt":"2099-01-01T00:00:00Z"}`).Get("id").Str
	data := w.OK("POST", "/api/keys", `{}`).Get("id").Str
	w.OK("GET", "/api/keys", "", by(key))
	w.OK("DELETE", "/api/keys/"+key, "")
	for _, id := range []string{key, data, "nobody", "../x"} {
		if status, _ := w.API("GET", "/api/keys", "", by(id)); status != 401 {
			t.Errorf("%s: got %d", id, status)
		}
	}
}

func TestExportAndImport(t *testing.T) {
	w := newWorld(t)
	w.Create()
	conn := w.Connect(`{"provider":"openai-compatible-0123abcd","name":"n","apiKey":"sk-0123456789abcdefghij","providerSpecificData":{"baseUrl":"https://a.example.com/v1","prefix":"p","region":"eu"}}`)
	w.OK("POST", "/api/combos", `{"name":"fast","models":["p/m"]}`)
	w.OK("PUT", "/api/models/alias", `{"alias":"mini","model":"p/m"}`)
	w.OK("POST", "/api/models/custom", `{"id":"m","providerAlias":"p"}`)
	w.OK("POST", "/api/models/disabled", `{"providerAlias":"p","ids":["old"]}`)
	w.OK("PATCH", "/api/settings", `{"strategy":"round-robin"}`)
	plain := w.OK("GET", "/api/export", "")
	sealed := w.OK("POST", "/api/export", `{"passphrase":"correct horse battery"}`)
	if records := w.OK("GET", "/api/audit?kind=export", "").Get("data.#.action").Raw; records != `["POST /api/export","GET /api/export"]` {
		t.Errorf("the audit log has %s", records)
	}
	for _, doc := range []string{plain.Raw, sealed.Raw} {
		for name, s := range spellings("sk-0123456789abcdefghij") {
			if strings.Contains(doc, s) {
				t.Errorf("the key is in the export as %s", name)
			}
		}
	}
	if it := sealed.Get("iterations").Int(); it > 100_000 || it < 50_000 {
		t.Errorf("%d iterations", it)
	}
	before := w.Replica()

	other := newWorld(t)
	other.obj.Rand = rand.NewChaCha8([32]byte{2}) // its own ids
	other.Create()
	gone := other.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	for _, pass := range []string{"wrong horse battery", "short"} {
		if status, a := other.API("POST", "/api/import", fmt.Sprintf(`{"document":%s,"passphrase":%q}`, sealed.Raw, pass)); status != 400 {
			t.Errorf("%s: got %d %s", pass, status, a.Raw)
		}
	}
	weak, _ := url.PathUnescape(strings.Replace(sealed.Raw, `"iterations":100000`, `"iterations":99999`, 1))
	if status, _ := other.API("POST", "/api/import", fmt.Sprintf(`{"document":%s,"passphrase":"correct horse battery"}`, weak)); status != 400 {
		t.Error("a changed head is accepted")
	}
	other.OK("POST", "/api/import", fmt.Sprintf(`{"document":%s,"passphrase":"correct horse battery","replace":true,"keys":true}`, sealed.Raw))
	after := other.Replica()
	c := inprocess.Connection(after, conn)
	if c == nil || inprocess.Connection(after, gone) != nil {
		t.Fatalf("replace: got %d connections", len(after.Connections))
	}
	if got := other.Open(c, store.APIKey); got != "sk-0123456789abcdefghij" {
		t.Errorf("secret: got %q", got)
	}
	got, want := storage.EncodeJSON([]any{after.Combos[0].Name, after.ModelAliases, after.CustomModels, after.Disabled, after.Settings, c.Data}),
		storage.EncodeJSON([]any{before.Combos[0].Name, before.ModelAliases, before.CustomModels, before.Disabled, before.Settings, before.Connections[0].Data})
	if string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(after.Keys) != 2 {
		t.Errorf("%d keys, want its own and the one of the export", len(after.Keys))
	}

	// Without secrets: a new connection asks for one, a known one keeps its
	// own.
	third := newWorld(t)
	third.Create()
	third.OK("POST", "/api/import", fmt.Sprintf(`{"document":%s}`, plain.Raw))
	if v := third.OK("GET", "/api/providers/"+conn, ""); v.Get("status").Str != storage.NeedsCredential {
		t.Errorf("got %s", v.Raw)
	}
	w.OK("POST", "/api/import", fmt.Sprintf(`{"document":%s}`, plain.Raw))
	if v := w.OK("GET", "/api/providers/"+conn, ""); !v.Get("hasKey").Bool() {
		t.Errorf("the stored credential is gone: %s", v.Raw)
	}
	moved := strings.ReplaceAll(plain.Raw, "a.example.com", "b.example.com")
	w.OK("POST", "/api/import", fmt.Sprintf(`{"document":%s}`, moved))
	if v := w.OK("GET", "/api/providers/"+conn, ""); v.Get("hasKey").Bool() {
		t.Errorf("the credential went along to another host: %s", v.Raw)
	}
}

func TestTestsOfConnectionsAreLimited(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	for range manage.ProbeMost {
		w.Want(200, "probe", fmt.Sprintf(`{"connectionId":%q}`, id))
	}
	if a := w.Want(429, "probe", fmt.Sprintf(`{"connectionId":%q}`, id)); a.Get("error.retryAfterMs").Int() <= 0 {
		t.Errorf("got %s", a.Raw)
	}
	w.Clock.Add(61e9)
	w.Want(200, "probe", fmt.Sprintf(`{"connectionId":%q}`, id))
	w.Want(404, "probe", `{"connectionId":"nobody"}`)
}

// An unknown field goes before the bound of connections.
func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789"}`)
	row, _ := w.tx().Get(storage.ConnectionPrefix + id)
	for i := range manage.MaxConns - 2 {
		w.Write(mid, fmt.Sprint(storage.ConnectionPrefix, "copy-", i), string(row))
	}
	for _, tt := range []struct{ body, want string }{
		{`{"provider":"openai","apiKey":"sk-0123456789"}`, "200 "},
		{`{"provider":"openai","apiKey":"sk-0123456789"}`, "409 too_many"},
		{`{"unknown":1}`, "400 "},
	} {
		status, a := w.API("POST", "/api/providers", tt.body)
		if got := fmt.Sprint(status, " ", a.Get("error.code").Str); got != tt.want {
			t.Errorf("%s: got %s (%s), want %s", tt.body, got, a.Raw, tt.want)
		}
	}
}
