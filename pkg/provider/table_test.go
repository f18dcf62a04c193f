package provider

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/store"
)

// fact is a row of testdata/providers.json.
type fact struct {
	ID, Alias, Name, Family, BaseURL string
	Auth                             factAuth
	ServiceKinds                     []catalog.Kind
	Endpoints                        map[string]string
	Methods                          map[string]string
	ModelsEndpoint                   struct{ Shape, List, ID, IDPrefix, Paging string }
	AltBases                         []struct {
		Family, BaseURL string
		Auth            factAuth
		Endpoints       map[string]string
	}
	Variables         []string
	SearchConfig      bool
	FetchConfig       bool
	Aggregator, Local bool
}

type factAuth struct {
	Type, Header, Format, TokenURL, Scope, Service string
	RequiredHeaders                                map[string]string
	OptionalHeaders                                []string
	Optional                                       bool
	Alternatives                                   []factAuth
}

func facts(t *testing.T) []fact {
	raw, err := os.ReadFile("testdata/providers.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []fact
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

var families = map[string]Family{
	"openai": OpenAI, "anthropic": Anthropic, "gemini": Gemini, "vertex": Vertex,
	"bedrock": Bedrock, "azure": Azure, "cohere": Cohere, "other": Other,
}

func (f factAuth) want(t *testing.T) Auth {
	a := Auth{TokenURL: f.TokenURL, Scope: f.Scope, Service: f.Service, Optional: f.Optional}
	switch f.Type {
	case "bearer", "oauth2":
	case "none":
		a.Scheme = None
	case "sigv4":
		a.Scheme = SigV4
	case "gcp-sa":
		a.Scheme = GoogleSA
	case "x-api-key":
		a.Scheme, a.Header = KeyName, strings.ToLower(f.Header)
		if f.Format != "" && f.Format != "{key}" {
			a.Format = strings.Replace(f.Format, "{key}", "%s", 1)
		}
	default:
		t.Fatalf("unknown auth type %q", f.Type)
	}
	for _, alt := range f.Alternatives {
		if alt.Type != "query" { // a key never goes into an address
			a.Alt = append(a.Alt, alt.want(t))
		}
	}
	return a
}

// getNames are the endpoints that are read with GET unless methods says
// otherwise; so is every name that ends in Models.
var getNames = strings.Fields("models voices voicesLegacy sharedVoices status videoStatus videoStatusLegacy " +
	"transcriptionStatus result videoContent credits key organization files inferenceProfiles nativeTags")

func sameEndpoints(t *testing.T, id string, got []Endpoint, want, methods map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d endpoints, want %d", id, len(got), len(want))
	}
	for _, e := range got {
		if want[e.Name] != e.URL {
			t.Errorf("%s %s: got %s, want %s", id, e.Name, e.URL, want[e.Name])
		}
		method := methods[e.Name]
		if method == "" && (slices.Contains(getNames, e.Name) || strings.HasSuffix(e.Name, "Models")) {
			method = "GET"
		}
		if method == "" {
			method = "POST"
		}
		if methodOf(&e) != method {
			t.Errorf("%s %s: method %s, want %s", id, e.Name, methodOf(&e), method)
		}
	}
}

func TestTableAgreesWithTheFacts(t *testing.T) {
	want := facts(t)
	rows := All()
	if len(rows) != len(want) || len(rows) != 49 {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, d := range rows {
		f := want[i]
		if d.ID != f.ID || d.Alias != f.Alias || d.Name != f.Name || d.BaseURL != f.BaseURL || d.Family != families[f.Family] {
			t.Errorf("row %d: got %s %s %q %s %d, want %s %s %q %s %s", i, d.ID, d.Alias, d.Name, d.BaseURL, d.Family,
				f.ID, f.Alias, f.Name, f.BaseURL, f.Family)
		}
		if a := f.Auth.want(t); !reflect.DeepEqual(d.Auth, a) {
			t.Errorf("%s: auth %+v, want %+v", d.ID, d.Auth, a)
		}
		header := map[string]string{}
		for _, h := range d.Header {
			header[h[0]] = h[1]
		}
		for k, v := range f.Auth.RequiredHeaders {
			if header[strings.ToLower(k)] != v {
				t.Errorf("%s: header %s is %q, want %q", d.ID, k, header[strings.ToLower(k)], v)
			}
		}
		if len(header) != len(f.Auth.RequiredHeaders) || len(d.OptHeader) != len(f.Auth.OptionalHeaders) {
			t.Errorf("%s: headers %v and %v, want %v and %v", d.ID, d.Header, d.OptHeader, f.Auth.RequiredHeaders, f.Auth.OptionalHeaders)
		}
		for k, h := range d.OptHeader {
			if h[0] != strings.ToLower(f.Auth.OptionalHeaders[k]) {
				t.Errorf("%s: optional header %s, want %s", d.ID, h[0], f.Auth.OptionalHeaders[k])
			}
		}
		if !slices.Equal(d.Kinds, f.ServiceKinds) {
			t.Errorf("%s: kinds %v, want %v", d.ID, d.Kinds, f.ServiceKinds)
		}
		sameEndpoints(t, d.ID, d.Endpoints, f.Endpoints, f.Methods)
		if len(d.Alt) != len(f.AltBases) {
			t.Fatalf("%s: %d further bases, want %d", d.ID, len(d.Alt), len(f.AltBases))
		}
		for k, b := range d.Alt {
			w := f.AltBases[k]
			if b.Family != families[w.Family] || b.URL != w.BaseURL || !reflect.DeepEqual(b.Auth, w.Auth.want(t)) {
				t.Errorf("%s: further base %+v, want %+v", d.ID, b, w)
			}
			sameEndpoints(t, d.ID+" alt", b.Endpoints, w.Endpoints, nil)
		}
		if !slices.Equal(d.Vars, f.Variables) || d.Search != f.SearchConfig || d.Fetch != f.FetchConfig ||
			d.Aggregator != f.Aggregator || d.Local != f.Local {
			t.Errorf("%s: vars %v search %v fetch %v aggregator %v local %v, want %+v", d.ID, d.Vars, d.Search, d.Fetch, d.Aggregator, d.Local, f)
		}
		m := f.ModelsEndpoint
		list := List{Array: m.List, ID: m.ID, IDPrefix: m.IDPrefix, None: m.Shape == "none"}
		switch d.ID {
		case "deepgram": // two arrays
			list.Array = "stt tts"
		case "replicate": // two fields
			list.ID = "owner/name"
		}
		got := d.Models
		paged := got.Size != "" || got.Token != "" || got.Next != ""
		got.Size, got.Token, got.Next = "", "", ""
		if got != list {
			t.Errorf("%s: list %+v, want %+v", d.ID, got, list)
		}
		if needs := m.Paging != "" && !strings.HasPrefix(m.Paging, "none") && !strings.Contains(m.Paging, "optional"); paged != needs {
			t.Errorf("%s: paged %v, the facts say %q", d.ID, paged, m.Paging)
		}
	}
}

var braces = regexp.MustCompile(`\{[^}]*\}`)

func TestEveryRowIsComplete(t *testing.T) {
	// Filled by the connection, by the model, or by the endpoint that calls.
	known := map[string]bool{
		"{model}": true, "{deployment}": true, "{owner}": true, "{name}": true, // the model
		"{api_version}": true,                                                                // a connection may give it
		"{id}":          true, "{request_id}": true, "{voice_id}": true, "{operation}": true, // the endpoint
	}
	alias, id := map[string]bool{}, map[string]bool{}
	for _, d := range All() {
		if id[d.ID] || alias[d.Alias] || d.ID == "" || d.Name == "" || !CheckAlias(d.Alias) || !CheckAlias(d.ID) {
			t.Errorf("%s: id and alias %s must be usable and unique", d.ID, d.Alias)
		}
		id[d.ID], alias[d.Alias] = true, true
		if other := ByAlias(d.ID); other != nil && other != d {
			t.Errorf("%s: its id is the alias of %s", d.ID, other.ID)
		}
		if len(d.Kinds) == 0 || len(d.Endpoints) == 0 {
			t.Errorf("%s: no kinds or no endpoints", d.ID)
		}
		conn := &store.Connection{Data: store.ProviderData{Vars: map[string]string{"api_version": "2025-01-01"}}}
		for _, v := range d.Vars {
			conn.Data.Vars[v] = "abc1"
		}
		check := func(url string) {
			for _, b := range braces.FindAllString(url, -1) {
				if !known[b] && !slices.Contains(d.Vars, strings.Trim(b, "{}")) {
					t.Errorf("%s: nothing fills %s in %s", d.ID, b, url)
				}
			}
		}
		parts := []Part{{Name: "id", Value: "j1"}, {Name: "request_id", Value: "r1"}, {Name: "voice_id", Value: "v1"}, {Name: "operation", Value: "models/x/operations/y"}}
		for _, e := range d.Endpoints {
			check(e.URL)
			_, url, err := d.Endpoint(conn, e.Name, "org/model-1", parts...)
			if err != nil {
				t.Errorf("%s %s: %v", d.ID, e.Name, err)
				continue
			}
			if strings.ContainsAny(url, "{}") {
				t.Errorf("%s %s: unfilled address %s", d.ID, e.Name, url)
			}
			bare, _, _ := strings.Cut(url, "?")
			if err := CheckBaseURL(bare, d.Local); err != nil {
				t.Errorf("%s %s: %s: %v", d.ID, e.Name, url, err)
			}
		}
		for i := range d.Alt {
			for _, e := range d.Alt[i].Endpoints {
				check(e.URL)
				if _, _, err := d.EndpointOf(&d.Alt[i], conn, e.Name, "m"); err != nil {
					t.Errorf("%s alt %s: %v", d.ID, e.Name, err)
				}
			}
		}
		if base, err := d.OwnBase(conn); err != nil || CheckBaseURL(base, d.Local) != nil {
			t.Errorf("%s: base %s: %v", d.ID, base, err)
		}
		for _, k := range []struct {
			kind catalog.Kind
			name string
		}{{catalog.Embedding, "embeddings"}, {catalog.Rerank, "rerank"}, {catalog.WebSearch, "search"}, {catalog.WebFetch, "fetch"}, {catalog.Image, "images"}} {
			if d.Has(k.kind) && !d.Serves(k.name) {
				t.Errorf("%s: serves %s without the endpoint %s", d.ID, k.kind, k.name)
			}
		}
		if d.Search != (d.Results > 0) || d.News && !d.Search {
			t.Errorf("%s: search %v with %d results, news %v", d.ID, d.Search, d.Results, d.News)
		}
		if d.Search != d.Has(catalog.WebSearch) || d.Fetch != d.Has(catalog.WebFetch) {
			t.Errorf("%s: search %v, fetch %v against kinds %v", d.ID, d.Search, d.Fetch, d.Kinds)
		}
		if d.Embed != "" && !d.Serves("embeddings") {
			t.Errorf("%s: an embeddings shape without the endpoint", d.ID)
		}
		for _, h := range append(slices.Clone(d.Header), d.OptHeader...) {
			if !SafeName(h[0]) {
				t.Errorf("%s: header name %q", d.ID, h[0])
			}
		}
	}
}

func TestLookup(t *testing.T) {
	for _, d := range All() {
		if Lookup(d.ID) != d || ByAlias(d.Alias) != d {
			t.Errorf("%s is not found by its id or alias", d.ID)
		}
	}
	tests := []struct {
		id     string
		family Family
		found  bool
	}{
		{"openai-compatible-0123abcd", OpenAI, true},
		{"openai-compatible_0123ABCDef99", OpenAI, true},
		{"anthropic-compatible-deadbeef", Anthropic, true},
		{"anthropic-compatible_deadbeef", Anthropic, true},
		{"openai-compatible-0123abc", OpenAI, false},
		{"openai-compatible-0123abcg", OpenAI, false},
		{"openai-compatible0123abcd9", OpenAI, false},
		{"openai-compatible", OpenAI, false},
		{"", OpenAI, false},
		{"OpenAI", OpenAI, false},
		{"openai-compatible-" + strings.Repeat("a", 90), OpenAI, false},
	}
	for _, tt := range tests {
		d := Lookup(tt.id)
		if (d != nil) != tt.found || d != nil && (d.Family != tt.family || d.ID != tt.id || !d.Compatible) {
			t.Errorf("%q: got %+v, want found %v of family %d", tt.id, d, tt.found, tt.family)
		}
	}
	if openAILike.ID != "" || anthropicLike.ID != "" {
		t.Error("a made descriptor changed the template")
	}
}
