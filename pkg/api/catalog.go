package api

import (
	"cmp"
	"context"
	"encoding/json"
	"unicode"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/wire/httpmsg"
)

// ProviderRow is a provider as the gallery shows it.
type ProviderRow struct {
	ID       string         `json:"id"`
	Alias    string         `json:"alias"`
	Name     string         `json:"name"`
	Initials string         `json:"initials"` // of its mark
	Kinds    []catalog.Kind `json:"kinds"`
	Auth     string         `json:"auth"`           // bearer, key, none, aws, google
	KeyFree  bool           `json:"keyFree"`        // calls may go out without a credential
	Vars     []string       `json:"vars"`           // variables that a connection must give
	OptVars  []string       `json:"optionalVars"`   // that it may give
	Rebase   bool           `json:"baseUrlAllowed"` // another base address may be given
	BaseURL  string         `json:"baseUrl,omitempty"`
	Local    bool           `json:"local"`                 // runs on the operator's own network
	LocalOff bool           `json:"localOff,omitempty"`    // is Local, and the gateway calls no private addresses
	Lists    bool           `json:"listsModels"`           // has a list of models to ask for
	KeyURL   string         `json:"keyUrl,omitempty"`      // where its keys are created
	Prefixes []string       `json:"keyPrefixes,omitempty"` // with which its keys alone begin
	Connect  []string       `json:"connect"`               // how an account is signed in to: authorize, device

	ConnectError string `json:"connectError,omitempty"` // why the operator's OAuth client cannot be used
}

// Catalog serves GET /api/catalog/providers: every built-in provider in the
// order of the table, then those that the operator has defined.
func (h *OAuth) Catalog(context.Context, *auth.Call) (*httpmsg.Response, error) {
	out := struct {
		Object string        `json:"object"`
		Data   []ProviderRow `json:"data"`
	}{"list", []ProviderRow{}}
	for _, d := range provider.All() {
		r := rowOf(d)
		r.ConnectError, r.LocalOff = h.Unusable[d.ID], d.Local && !h.AllowPrivate
		for i := range h.Clients {
			if h.Clients[i].ID == d.ID {
				r.Connect = h.Clients[i].Flows()
			}
		}
		out.Data = append(out.Data, r)
	}
	for i := range h.Clients {
		p := &h.Clients[i]
		if d := provider.Lookup(p.ID); d != nil && d.Compatible {
			r := rowOf(d)
			r.Name, r.BaseURL, r.Rebase, r.Connect = p.Name, p.BaseURL, p.BaseURL == "", p.Flows()
			r.Name = cmp.Or(r.Name, p.ID)
			r.Initials = initialsOf(r.Name)
			out.Data = append(out.Data, r)
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return answer(200, b), nil
}

func rowOf(d *provider.Descriptor) ProviderRow {
	r := ProviderRow{
		ID: d.ID, Alias: d.Alias, Name: d.Name, Initials: cmp.Or(d.Initials, initialsOf(d.Name)),
		KeyURL: d.KeyURL, Prefixes: d.KeyPrefixes, Kinds: d.Kinds,
		Auth:    schemeOf(d.Auth.Scheme),
		KeyFree: d.Auth.Optional || d.Auth.Scheme == provider.None,
		Vars:    []string{}, OptVars: []string{}, Connect: []string{}, Rebase: d.Rebase, BaseURL: d.BaseURL, Local: d.Local,
		Lists: !d.Models.None && d.Serves("models"),
	}
	if len(r.Kinds) == 0 {
		r.Kinds = []catalog.Kind{catalog.LLM}
	}
	if d.Cloud == provider.Vertex { // a key file brings its project, and an API key does without
		r.OptVars = append(r.OptVars, d.Vars...)
	} else {
		r.Vars = append(r.Vars, d.Vars...)
	}
	r.OptVars = append(r.OptVars, d.OptVars...)
	for _, h := range d.OptHeader {
		r.OptVars = append(r.OptVars, h[1])
	}
	return r
}

// initialsOf returns the first two letters or numbers of a name.
func initialsOf(name string) string {
	var two []rune
	for _, r := range name {
		if (unicode.IsLetter(r) || unicode.IsNumber(r)) && len(two) < 2 {
			two = append(two, r)
		}
	}
	return string(two)
}

func schemeOf(s provider.Scheme) string {
	switch s {
	case provider.KeyName:
		return "key"
	case provider.None:
		return "none"
	case provider.SigV4:
		return "aws"
	case provider.GoogleSA:
		return "google"
	}
	return "bearer"
}
