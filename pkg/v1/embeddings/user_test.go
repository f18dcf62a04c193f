package embeddings

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// A user's id over the provider's limit becomes a hash, the same for the same
// id, and nothing else of the request changes.
func TestLongUserIDs(t *testing.T) {
	send := func(id, user string) string {
		d := provider.Lookup(id)
		m := &store.Machine{Connections: []store.Connection{connection(d, base(d))}}
		p := &pool{t: t, answer: func(*routing.Target, *upstream.Request) (int, []byte) {
			return 200, []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`)
		}}
		model := id
		if d.Alias != "" {
			model = d.Alias
		}
		q, _ := json.Marshal(user)
		body := `{"user":` + string(q) + `,"model":"` + model + `/m","extra":{"kept":1.50},"input":["a"],"encoding_format":"float"}`
		if _, err := (&Handler{Accounts: p}).Create(context.Background(), call(t, m, body)); err != nil {
			t.Fatal(id, err)
		}
		b, _ := stream.ReadAll(p.sent[0].Body, 1<<20)
		if got := gjson.GetBytes(b, "extra").Raw; got != `{"kept":1.50}` || gjson.GetBytes(b, "input").Raw != `["a"]` || gjson.GetBytes(b, "encoding_format").Str != "float" || gjson.GetBytes(b, "model").Str != "m" {
			t.Errorf("%s: sent %s", id, b)
		}
		return gjson.GetBytes(b, "user").Str
	}
	for _, tt := range []struct {
		provider, user string
		short          bool
	}{
		{"openai", strings.Repeat("ü", 128), false}, {"openai", strings.Repeat("ü", 129), true}, {"openai", strings.Repeat("u", 64), false},
		{"azure", strings.Repeat("u", 64), false}, {"azure", strings.Repeat("u", 65), true}, {"nvidia", strings.Repeat("u", 129), true},
		{"openai-compatible-0123abcd", strings.Repeat("u", 500), false},
	} {
		got := send(tt.provider, tt.user)
		if tt.short != (got != tt.user) || tt.short && (!strings.HasPrefix(got, "user_") || len(got) > 64 || got != send(tt.provider, tt.user)) {
			t.Errorf("%s: %d characters became %q", tt.provider, len(tt.user), got)
		}
	}
}
