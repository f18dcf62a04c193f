package api

import (
	"context"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/credentials/oauth"
	"weir/pkg/provider"
	"weir/pkg/wire/stream"
)

func TestCatalogListsFieldsOfConnections(t *testing.T) {
	resp, err := (&OAuth{Unusable: map[string]string{"mistral": "OAUTH_PROVIDERS: row 2: bad proxy"}}).Catalog(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := stream.ReadAll(resp.Body, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	list := gjson.GetBytes(b, "data")
	if got, want := len(list.Array()), len(provider.All()); got != want {
		t.Fatalf("got %d rows, want %d", got, want)
	}
	auths := map[string]bool{}
	list.ForEach(func(_, row gjson.Result) bool {
		id := row.Get("id").Str
		d := provider.Lookup(id)
		if d == nil || row.Get("name").Str == "" || row.Get("alias").Str != d.Alias || len(row.Get("kinds").Array()) == 0 {
			t.Errorf("the row %s does not describe its provider", row.Raw)
			return true
		}
		must, may := len(d.Vars), len(d.OptHeader)+len(d.OptVars)
		if id == "vertex" {
			must, may = 0, may+must
		}
		if got := len(row.Get("vars").Array()); got != must || len(row.Get("optionalVars").Array()) != may {
			t.Errorf("%s: got %d variables, want %v, and %s", id, got, d.Vars, row.Get("optionalVars").Raw)
		}
		if row.Get("baseUrlAllowed").Bool() != d.Rebase {
			t.Errorf("%s: baseUrlAllowed is not %v", id, d.Rebase)
		}
		if why := row.Get("connectError").Str; (id == "mistral") != (why == "OAUTH_PROVIDERS: row 2: bad proxy") {
			t.Errorf("%s: connectError %q", id, why)
		}
		auths[row.Get("auth").Str] = true
		return true
	})
	for _, want := range []string{"bearer", "key", "aws", "google"} {
		if !auths[want] {
			t.Errorf("no provider has the scheme %s", want)
		}
	}
}

// An account of a provider that the operator has a client for can be signed in to.
func TestCatalogListsHowAccountsSignIn(t *testing.T) {
	const acme, free = "openai-compatible-0a0a0001", "openai-compatible-0a0a0003"
	h := &OAuth{Clients: []oauth.Provider{
		{ID: acme, Name: "Acme <b>&", AuthorizeURL: "https://id.example.com/a", DeviceURL: "https://id.example.com/d", BaseURL: "https://api.example.com/v1"},
		{ID: free, AuthorizeURL: "https://id.example.com/a"},
		{ID: "mistral", DeviceURL: "https://id.example.com/d"},
	}}
	resp, err := h.Catalog(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := stream.ReadAll(resp.Body, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if off := gjson.GetBytes(b, `data.#(localOff==true)#.id`).Raw; off != `["ollama","searxng"]` {
		t.Errorf("local providers that are not called: %s", off)
	}
	for id, want := range map[string]string{
		"openai": `[]`, "mistral": `["device"]`, acme: `["authorize","device"]`, free: `["authorize"]`,
	} {
		row := gjson.GetBytes(b, `data.#(id=="`+id+`")`)
		if row.Get("connect").Raw != want {
			t.Errorf("%s: connect %s, want %s", id, row.Get("connect").Raw, want)
		}
		if id == acme && (row.Get("name").Str != "Acme <b>&" || row.Get("baseUrl").Str != "https://api.example.com/v1" || row.Get("baseUrlAllowed").Bool()) ||
			id == free && (row.Get("name").Str != free || !row.Get("baseUrlAllowed").Bool()) {
			t.Errorf("%s: %s", id, row.Raw)
		}
	}
}
