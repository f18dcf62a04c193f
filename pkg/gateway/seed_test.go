package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/front"
	"weir/pkg/wire/httpmsg"
)

// A seed whose keys have no form of weir could never be used, and no log line said so.
func TestSeedIsAdoptedOrItsFieldIsLogged(t *testing.T) {
	const id = "seededmachine001"
	for _, tt := range []struct{ name, path, credential, doc, log string }{
		{"key of another form", "/v1/models", "my-own-gateway-key", `{"apiKeys":["my-own-gateway-key"]}`, ""},
		{"short key", "/v1/models", "sk-short1", `{"apiKeys":["sk-short1"]}`, ""},
		{"key with dots", "/v1/models", "sk-with.dots", `{"apiKeys":["sk-with.dots"]}`, ""},
		{"operator", "/api/keys", front.AdminToken, `{"apiKeys":["my-own-gateway-key"]}`, ""},
		{"operator, no keys", "/api/keys", front.AdminToken, `{"connections":[]}`, ""},
		{"key that is too short", "/v1/models", "my-own-gateway-key", `{"apiKeys":["short"]}`, "apiKeys[0] must have 8"},
		{"number", "/v1/models", "my-own-gateway-key", `{"apiKeys":[5]}`, "apiKeys[0] must be a string"},
		{"number, operator", "/api/keys", front.AdminToken, `{"apiKeys":[5]}`, "apiKeys[0] must be a string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := front.New(nil)
			get := func() int {
				return g.App.Serve(context.Background(), &httpmsg.Request{
					Method: "GET", Path: "/" + id + tt.path, Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + tt.credential}},
				}).Status
			}
			missing := 401
			if tt.path == "/api/keys" {
				missing = 404
			}
			if got := get(); got != missing {
				t.Errorf("before the seed: status %d, want %d", got, missing)
			}
			g.KV.Put(context.Background(), "machine:"+id, []byte(tt.doc))
			g.Clock.Add(6 * time.Second) // that there is no machine is remembered for 5 s
			want := 200
			if tt.log != "" {
				want = missing
			}
			if got := get(); got != want {
				t.Errorf("status %d, want %d", got, want)
			}
			if got := strings.Join(g.Log, "\n"); (tt.log == "") != (got == "") || !strings.Contains(got, tt.log) {
				t.Errorf("logged %q, want %q", got, tt.log)
			}
		})
	}
}
