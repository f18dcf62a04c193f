package api_test

import (
	"context"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

type oneMachine struct{ m *snapshot.Machine }

func (o oneMachine) Get(context.Context, string) (*snapshot.Machine, error) { return o.m, nil }
func (o oneMachine) Known(context.Context, string) (*snapshot.Machine, error) {
	return o.m, nil
}
func (o oneMachine) Invalidate(string) {}

// A manage key that may use few models still manages all of them.
func TestModelListsShowTheWholeMachine(t *testing.T) {
	w := newWorld(t)
	m := snapshot.New(&store.Machine{Version: 1, ID: "abcdefgh01234567", Generation: 1,
		Connections:  []store.Connection{{ID: "c1", Provider: "openai-compatible-0123abcd", Data: store.ProviderData{Prefix: "up", BaseURL: "https://up.example/v1", EnabledModels: []string{"one", "two"}}}},
		CustomModels: []store.CustomModel{{ID: "three", ProviderAlias: "up"}}})
	h := &api.ModelLists{Models: w.lists, Cache: oneMachine{m}}
	c := &auth.Call{Request: &httpmsg.Request{Method: "GET", Query: "id=up/two"}, Params: []string{"llm"}, MachineID: m.ID,
		Key: &store.Key{ID: "k", Models: []string{"up/one"}, Scopes: []string{"manage"}}}
	resp, err := h.Kind(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := stream.ReadAll(resp.Body, 1<<20)
	if got := gjson.GetBytes(b, "data.#.id").Raw; got != `["up/one","up/two","up/three"]` {
		t.Errorf("got %s", got)
	}
	resp, err = h.Info(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	b, _ = stream.ReadAll(resp.Body, 1<<20)
	if got := gjson.GetBytes(b, "id").Str; got != "up/two" {
		t.Errorf("got %s", b)
	}
	if c.Machine != nil || c.Key == nil {
		t.Error("the call itself was changed")
	}
}
