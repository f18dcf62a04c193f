package models

import (
	"context"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
)

// The gateway fetches pages itself: an entry that needs no connection, under
// the same rules as others.
func TestGatewayFetchIsListed(t *testing.T) {
	for _, tt := range []struct {
		name string
		rec  func(m *store.Machine)
		want string
	}{
		{"without_connections", func(*store.Machine) {}, "web/fetch"},
		{"after_all_others", func(m *store.Machine) {
			m.Connections = []store.Connection{{Provider: "exa"}}
			m.Combos = []store.Combo{{Name: "reader", Kind: "webFetch", Models: []string{"exa", "web"}}}
		}, "reader exa/search exa/fetch web/fetch"},
		{"not_when_disabled", func(m *store.Machine) {
			m.Disabled = []store.DisabledModels{{ProviderAlias: "web", IDs: []string{"fetch"}}}
		}, ""},
		{"once_where_a_connection_has_the_name", func(m *store.Machine) {
			m.Connections = []store.Connection{{Provider: "exa", Data: store.ProviderData{Prefix: "web"}}}
		}, "web/search web/fetch"},
		{"not_where_a_connection_has_the_name_and_does_not_fetch", func(m *store.Machine) {
			m.Connections = []store.Connection{{Provider: "brave", Data: store.ProviderData{Prefix: "web"}}}
		}, "web/search"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			tt.rec(w.rec)
			want(t, ids(w.kind("web")), tt.want)
		})
	}
	w := newWorld()
	if got := gjson.Get(w.kind("web"), "data.0"); got.Get("kind").Str != "webFetch" || got.Get("owned_by").Str != "web" {
		t.Errorf("got %s", got.Raw)
	}
	for _, kind := range []string{"llm", "rerank"} {
		if gjson.Get(w.kind(kind), `data.#(id=="web/fetch")`).Exists() {
			t.Errorf("it is listed among %s", kind)
		}
	}
	c := w.call("")
	c.Params = []string{"web", "fetch"}
	want(t, gjson.Get(body(w.Model(context.Background(), c)), "id").Str, "web/fetch")
	for _, query := range []string{"id=web/fetch", "id=web/fetch&kind=webFetch"} {
		got := gjson.Parse(body(w.Info(context.Background(), w.call(query))))
		if got.Get("kind").Str != "webFetch" || got.Get("endpoint").Str != "/v1/web/fetch" || got.Get("owned_by").Str != "web" {
			t.Errorf("%s: %s", query, got.Raw)
		}
	}
	c = w.call("id=web/fetch")
	c.Machine = nil
	want(t, gjson.Get(body(w.Info(context.Background(), c)), "id").Str, "web/fetch")
	c = w.call("id=web/fetch")
	c.Key = &store.Key{ID: "k1", Models: []string{"exa/*"}}
	if _, err := w.Info(context.Background(), c); err == nil {
		t.Error("a key that may not use it is told of it")
	}
}
