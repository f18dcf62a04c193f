package manage

import (
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/store"
)

// checkSigning checks the secrets that requests are signed with:
//
//	accessKeyId, secretAccessKey and, of temporary credentials, sessionToken
//
// They come together; an apiKey beside secretAccessKey is taken for the access
// key id where that is missing. With a provider that signs, an apiKey alone is
// a bearer token.
func checkSigning(in *Input, c *connInput) {
	d := provider.Lookup(c.row.Provider)
	if in.Err != nil || d == nil || d.Auth.Scheme != provider.SigV4 {
		return
	}
	has := func(field string) bool {
		if v, given := c.secrets[field]; given {
			return v != ""
		}
		return c.row.Secrets[field] != ""
	}
	id := store.AccessKeyID
	switch {
	case has(store.SecretAccessKey) && !has(id) && !has(store.APIKey):
		in.fail(id, "is required with secretAccessKey")
	case !has(store.SecretAccessKey) && has(id):
		in.fail(store.SecretAccessKey, "is required with accessKeyId")
	case !has(store.SecretAccessKey) && has(store.SessionToken):
		in.fail(store.SecretAccessKey, "is required with sessionToken")
	case has(store.SecretAccessKey) && !has(id):
		id = store.APIKey
	}
	if v := c.secrets[id]; v != "" && has(store.SecretAccessKey) && !provider.IsKeyID(v) {
		in.fail(id, "is not an access key id: it has letters, digits and -._~ only")
	}
}

// checkPlace refuses a region, location or resource that cannot stand in a
// host's name, where the provider's addresses are made of it
// (docs/reference/reliability.md, T15).
func checkPlace(in *Input, c *connInput) {
	d := provider.Lookup(c.row.Provider)
	for _, name := range [...]string{"region", "location", "resource"} {
		if v := c.row.Data.Vars[name]; v != "" && d != nil && slices.Contains(d.Vars, name) && !provider.IsLabel(v) {
			in.fail("providerSpecificData."+name, "is not a valid name of a %s", name)
		}
	}
}

// fillProject takes the project of a key file for a connection that names none.
func fillProject(c *connInput) {
	d, data := provider.Lookup(c.row.Provider), &c.row.Data
	file := c.secrets[store.ServiceAccount]
	if file == "" || d == nil || d.Auth.Scheme != provider.GoogleSA || data.Vars["project"] != "" {
		return
	}
	if p := gjson.Get(file, "project_id").Str; p != "" && len(p) <= 64 && provider.CheckModel(p) == nil &&
		provider.SafeValue(p) {
		vars := maps.Clone(data.Vars)
		if vars == nil {
			vars = map[string]string{}
		}
		vars["project"] = p
		data.Vars = vars
	}
}
