package manage

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
	"weir/pkg/credentials/gcpauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/weburl"
)

const (
	maxSecret = 8 << 10
	maxOther  = 16 << 10
	MaxConns  = 500
)

// secretFields are the fields that set the secrets of a connection.
var secretFields = [...]string{
	store.APIKey, store.AccessToken, store.RefreshToken, store.AccessKeyID, store.SecretAccessKey,
	store.SessionToken, store.ServiceAccount, store.ClientSecret, store.ProxyAuth,
}

// connFields are the fields of a connection that a caller may set.
var connFields = append([]string{
	"provider", "name", "authType", "expiresAt", "priority", "weight", "isActive", "providerSpecificData",
}, secretFields[:]...)

// connInput is what was sent about a connection: the row with it, and the
// secrets in the clear, "" for one to be removed.
type connInput struct {
	row     storage.Connection
	secrets map[string]string
}

// applyConnection changes a copy of row by the fields given. seed is the mild
// reading for documents put into KV by hand: an unknown provider and fields
// that weir does not know are let through.
func (o *Manager) applyConnection(in *Input, row storage.Connection, seed bool) connInput {
	c := connInput{row: row, secrets: map[string]string{}}
	r := &c.row
	if v, ok := in.text("provider", 96); ok {
		switch {
		case row.Provider != "" && v != row.Provider:
			in.fail("provider", "cannot be changed")
		case v == "":
			in.fail("provider", "is required")
		case provider.Lookup(v) == nil && (!seed || !IsAlias(v)):
			in.fail("provider", "%q is unknown%s", v, cmp.Or(didYouMean(providerLike(v)), "; GET /api/catalog/providers lists those that are known"))
		}
		r.Provider = v
	} else if row.Provider == "" {
		in.fail("provider", "is required")
	}
	if v, ok := in.text("name", 200); ok {
		r.Name = v
	}
	if v, ok := in.text("authType", 40); ok {
		switch v {
		case "", "apikey", "oauth", "service_account", "aws":
			r.AuthType = v
		default:
			if !seed {
				in.fail("authType", "must be apikey, oauth, service_account or aws")
			}
		}
	}
	if v, ok := in.int("priority", -1_000_000, 1_000_000); ok {
		r.Priority = int(v)
	}
	if v, ok := in.int("weight", 1, store.MaxWeight); ok {
		r.Weight = int(v)
	}
	if v, ok := in.time("expiresAt"); ok {
		r.ExpiresAt = v
	}
	if seed { // anything but false is active, docs/reference/spec.md, 2.3
		r.Inactive = in.values["isActive"].Type == gjson.False
	} else if v, ok := in.bool("isActive"); ok {
		r.Inactive = !v
	}
	for _, f := range secretFields {
		if v, ok := o.secretOf(in, r.Provider, f); ok {
			c.secrets[f] = v
		}
	}
	if v, ok := in.values["providerSpecificData"]; ok && in.Err == nil {
		if v.Type == gjson.Null {
			if r.Data.Proxy != "" {
				c.secrets[store.ProxyAuth] = ""
			}
			r.Data = store.ProviderData{}
		} else {
			data := sub(v, in.at+"providerSpecificData")
			o.applyData(data, &c, seed)
			in.Err = data.Err
		}
	}
	checkProxy(in, &c)
	checkSigning(in, &c)
	checkPlace(in, &c)
	fillProject(&c)
	if in.Err == nil && r.AuthType == "" {
		r.AuthType = authTypeOf(&c)
	}
	return c
}

// authTypeOf returns the kind of a connection, by the secrets it comes with.
func authTypeOf(c *connInput) string {
	given := func(f string) bool { return c.secrets[f] != "" || c.row.Secrets[f] != "" }
	switch {
	case given(store.ServiceAccount):
		return "service_account"
	case given(store.SecretAccessKey):
		return "aws"
	case given(store.APIKey):
		return "apikey"
	case given(store.RefreshToken), given(store.AccessToken):
		return "oauth"
	}
	return "apikey"
}

// secretOf reads a secret of a provider. null and "" remove it. A Google key file may be the
// object itself.
func (o *Manager) secretOf(in *Input, of, name string) (string, bool) {
	v, ok := in.values[name]
	if !ok {
		return "", false
	}
	if v.Type == gjson.Null {
		return "", true
	}
	if name == store.ServiceAccount {
		text := v.Str
		if v.Type != gjson.String {
			text = v.Raw // only a JSON object is a key file
		}
		if text == "" {
			return "", true
		}
		if _, err := gcpauth.ParseKey(secret.New(text)); err != nil {
			why, _, _ := strings.Cut(err.Error(), ": ")
			in.fail(name, "must be the JSON key file of a service account (%s)", why)
		}
		return text, true
	}
	s := bareSecret(name, v.Str)
	key, own := rpc.ParseKey(s)
	own = own && !key.Old() && key.CheckOK(o.KeySecret)
	d := provider.Lookup(of)
	switch {
	case own && (d == nil || !d.Compatible): // the provider would get it; a compatible server may be this gateway
		in.fail(name, "is a key of this gateway, not of the provider: create one at the provider")
	case v.Type != gjson.String:
		in.fail(name, "must be a string")
	case s == "":
	case len(s) > maxSecret:
		in.fail(name, "is longer than %d bytes", maxSecret)
	case !provider.SafeValue(s):
		in.fail(name, "has characters that cannot be sent in a header")
	}
	return s, true
}

// bareSecret returns a secret without what is copied with it: blanks, quotes, NAME= and Bearer, each in a few
// layers at most, as every layer reads the text again.
func bareSecret(name, s string) string {
	if s = strings.TrimSpace(s); name == store.ProxyAuth { // any text
		return s
	}
	for range 8 {
		before := s
		if n := len(s); n > 2 && s[0] == s[n-1] && strings.IndexByte("\"'`", s[0]) >= 0 {
			s = s[1 : n-1]
		}
		if word, rest, ok := strings.Cut(s, " "); ok {
			switch strings.ToLower(word) {
			case "bearer", "authorization:", "x-api-key:", "export":
				s = rest
			}
		}
		// A key in base64 has = at its end alone, and no _ with it.
		variable, value, _ := strings.Cut(s, "=")
		if variable = strings.TrimSpace(variable); value != "" && value[0] != '=' && strings.Contains(variable, "_") &&
			only(variable, upperWord) {
			s = value
		}
		if s = strings.TrimSpace(s); s == before {
			break
		}
	}
	return s
}

func upperWord(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' }

// applyData changes providerSpecificData by the fields given; null removes one.
func (o *Manager) applyData(in *Input, c *connInput, seed bool) {
	d := &c.row.Data
	if v, ok := in.text("baseUrl", 2048); ok {
		if v != "" {
			v = o.baseURL(in, v)
		}
		d.BaseURL = v
	}
	if v, ok := in.text("prefix", 64); ok {
		if v != "" && !IsAlias(v) {
			in.fail("prefix", "must be 1 to 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit%s", badName(v))
		}
		if v+"/" == catalog.ClaudePrefix {
			in.fail("prefix", "is reserved for the names that Claude Code shows")
		}
		d.Prefix = v
	}
	if seed {
		if v := in.values["enabledModels"]; v.IsArray() { // docs/reference/spec.md, 4.1: the non-empty strings
			d.EnabledModels = nil
			seen := map[string]bool{}
			for _, m := range v.Array() {
				if s := strings.TrimSpace(m.Str); m.Type == gjson.String && s != "" && !seen[s] && len(s) <= 320 &&
					storage.IsPrintable(s) {
					seen[s] = true
					d.EnabledModels = append(d.EnabledModels, s)
				}
			}
		} else if v.Exists() && v.Type != gjson.Null {
			in.fail("enabledModels", "must be an array of strings")
		}
	} else if v, ok := in.texts("enabledModels", 2000, 320); ok {
		for i, m := range v {
			if provider.CheckModel(m) != nil {
				in.fail("enabledModels", "has an unusable model id at %d", i)
			}
		}
		d.EnabledModels = v
	}
	switch v := in.values["streamUsage"]; v.Type {
	case gjson.True, gjson.False:
		takes := v.Bool()
		d.StreamUsage = &takes
	case gjson.Null:
		if v.Exists() {
			d.StreamUsage = nil
		}
	default:
		in.fail("streamUsage", "must be a boolean")
	}
	vars := map[string]string{}
	maps.Copy(vars, d.Vars)
	other := map[string]json.RawMessage{}
	maps.Copy(other, d.Other)
	for _, name := range in.names {
		v := in.values[name]
		switch {
		case name == "baseUrl" || name == "prefix" || name == "enabledModels" || name == "streamUsage" || name == "proxyUrl":
		case name == store.ClientSecret || name == store.ProxyAuth:
			s, _ := o.secretOf(in, c.row.Provider, name)
			c.secrets[name] = s
		case len(name) > 64 || name == "" || !storage.IsPrintable(name):
			in.fail("…", "has a field with an unusable name")
		case v.Type == gjson.Null:
			delete(vars, name)
			delete(other, name)
		case namedSecret(name, v) || hasSecret(v):
			in.fail(name, "looks like a credential; those have fields of their own")
		case hasUserinfo(v):
			in.fail(name, "has an address with user and password, which would be stored unencrypted")
		case v.Type == gjson.String && variable(c.row.Provider, name):
			if len(v.Str) > 1024 || !provider.SafeValue(v.Str) {
				in.fail(name, "has characters that cannot be sent in a header")
			}
			vars[name] = v.Str
		default:
			if _, had := other[name]; !had && !seed {
				in.fail(name, "%s", unknownField(name, dataFields(c.row.Provider)))
			}
			other[name] = json.RawMessage(v.Raw)
		}
	}
	size := 0
	for _, v := range other {
		size += len(v)
	}
	if size > maxOther {
		in.fail("…", "is larger than %d bytes", maxOther)
	}
	o.applyProxy(in, c)
	d.Vars, d.Other = nil, nil
	if len(vars) > 0 {
		d.Vars = vars
	}
	if len(other) > 0 {
		d.Other = other
	}
}

// baseURL returns the canonical form of a base address that the policy accepts.
func (o *Manager) baseURL(in *Input, raw string) string {
	if !strings.Contains(raw, "://") {
		scheme := "https://"
		if o.AllowPrivate && (strings.HasPrefix(raw, "localhost") || strings.HasPrefix(raw, "127.")) {
			scheme = "http://"
		}
		in.fail("baseUrl", "has no scheme; did you mean %s?", scheme+raw)
		return ""
	}
	canonical, ok := weburl.Canonical(raw)
	if !ok {
		in.fail("baseUrl", "is not a valid http or https URL")
		return ""
	}
	if why := provider.Refusal(canonical, o.AllowPrivate, o.OwnHosts...); why != "" {
		in.fail("baseUrl", "%s", why)
	}
	return strings.TrimRight(canonical, "/")
}

// variable reports whether a field of providerSpecificData is one that the
// provider's addresses, headers or tokens are made of. The client of an OAuth
// grant counts with every provider.
func variable(providerID, name string) bool {
	switch name {
	case "clientId", "region", "project", "location", "resource", "organization", "account_id", "tenant", "apiVersion":
		return true
	}
	d := provider.Lookup(providerID)
	if d == nil {
		return false
	}
	for _, list := range [...][]string{d.Vars, d.OptVars} {
		if slices.Contains(list, name) {
			return true
		}
	}
	return slices.ContainsFunc(d.OptHeader, func(h [2]string) bool { return h[1] == name })
}

// dataFields returns the fields of providerSpecificData that a provider knows.
func dataFields(providerID string) []string {
	list := []string{"baseUrl", "prefix", "enabledModels", "streamUsage", "proxyUrl", "clientId", "region", "project",
		"location", "resource", "organization", "account_id", "tenant", "apiVersion", store.ClientSecret, store.ProxyAuth}
	if d := provider.Lookup(providerID); d != nil {
		list = append(append(list, d.Vars...), d.OptVars...)
		for _, h := range d.OptHeader {
			list = append(list, h[1])
		}
	}
	return list
}

// LooksSecret reports whether a field is named like a credential. Such a field
// must not be stored in plaintext. The URL of a token endpoint is not a
// tenant's setting either (docs/reference/reliability.md, T61).
func LooksSecret(name string) bool {
	s := strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
	switch s {
	case "jwt", "pwd", "pass", "auth", "key", "bearer":
		return true
	}
	return slices.ContainsFunc([]string{"secret", "password", "passphrase", "token", "apikey", "accesskey", "privatekey",
		"credential", "authorization", "cookie"}, func(part string) bool { return strings.Contains(s, part) })
}

// namedSecret reports whether a field is named like a credential and has a
// value that can be one: maxTokens is not a credential.
func namedSecret(name string, v gjson.Result) bool {
	return LooksSecret(name) && (v.Str != "" || v.Type == gjson.JSON)
}

// hasSecret reports whether there is such a field anywhere within a value.
func hasSecret(v gjson.Result) (found bool) {
	if v.Type == gjson.String && redact.Patterns(v.Str) != v.Str {
		return true
	}
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(name, v gjson.Result) bool {
			found = namedSecret(name.Str, v) || hasSecret(v)
			return !found
		})
	}
	return found
}

// hasUserinfo reports whether a text within a value has an address with a user
// in it, however the text is escaped.
func hasUserinfo(v gjson.Result) (found bool) {
	if v.Type == gjson.String {
		return userinfo(v.Str)
	}
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(name, v gjson.Result) bool {
			found = userinfo(name.Str) || hasUserinfo(v)
			return !found
		})
	}
	return found
}

func userinfo(text string) bool {
	for {
		_, rest, ok := strings.Cut(text, "://")
		if !ok {
			return false
		}
		if end := strings.IndexAny(rest, "/?#\"@\\ "); end >= 0 && rest[end] == '@' {
			return true
		}
		text = rest
	}
}

// originOf returns where a connection's credential is sent: scheme and host, ""
// where the address cannot be made yet.
func originOf(c *store.Connection) string {
	d := provider.Lookup(c.Provider)
	if d == nil {
		return c.Data.BaseURL
	}
	base, err := d.OwnBase(c)
	if err != nil {
		return ""
	}
	return provider.Origin(base)
}

// movedText is why an account at another address has no credential any more.
const movedText = "The stored key was for the address before, so it was removed. Enter the key again."

// finishConnection seals what was given and stores the row. A credential that
// was given for another origin is emptied, unless a new one comes along
// (docs/reference/reliability.md, T14).
func (o *Manager) finishConnection(t *storage.Tx, c *connInput) error {
	r := &c.row
	origin := originOf(&r.Connection)
	sealed := map[string]secret.Sealed{}
	last4 := map[string]string{}
	if r.Seq == 0 || r.Origin == origin {
		for f, s := range r.Secrets {
			sealed[f], last4[f] = s, r.Last4[f]
		}
	} else if s := r.Secrets[store.ProxyAuth]; s != "" { // the proxy's, not the provider's
		sealed[store.ProxyAuth] = s
	}
	hadAny := store.HasCredential(r.Secrets)
	renewed := false
	for _, f := range slices.Sorted(maps.Keys(c.secrets)) {
		plain := c.secrets[f]
		delete(sealed, f)
		delete(last4, f)
		if plain == "" {
			continue
		}
		s, err := o.Keyring.Seal(t.ID, r.ID, f, secret.New(plain))
		if err != nil {
			return err
		}
		sealed[f] = s
		renewed = renewed || f != store.ProxyAuth // the tokens are what they were
		if f != store.ServiceAccount && f != store.ProxyAuth {
			last4[f] = rpc.Last4(plain)
		}
	}
	for f, v := range last4 {
		if v == "" {
			delete(last4, f)
		}
	}
	removed, ok := c.secrets[store.APIKey]
	switch {
	case ok && removed == "" && !store.HasCredential(sealed) && !wantsCredential(r.Provider):
		r.Status, r.LastError = "", "" // called without a credential from now on
		t.Del(storage.HealthPrefix + r.ID)
		t.ClearCooldowns(r.ID)
	case !store.HasCredential(sealed) && (hadAny || r.Status == storage.NeedsCredential || wantsCredential(r.Provider)):
		r.Status = storage.NeedsCredential
	case renewed:
		r.Status, r.LastError = "", ""
		r.TokenGeneration++
		t.Del(storage.IntentPrefix + r.ID)
		t.Del(storage.HealthPrefix + r.ID)
		t.ClearCooldowns(r.ID)
		t.ForgetQuota(r.ID)
	}
	if r.Seq != 0 && r.Origin != origin { // another host: its health is unknown
		t.Del(storage.HealthPrefix + r.ID)
		t.SetError(r.ID, "")
		if hadAny && !store.HasCredential(sealed) && r.Status == storage.NeedsCredential {
			r.LastError = movedText
		}
	}
	r.Secrets, r.Last4, r.Origin = sealed, last4, origin
	if len(sealed) == 0 {
		r.Secrets = nil
	}
	r.CreatedAt = cmp.Or(r.CreatedAt, t.Now)
	t.ForgetRefusals(r.ID)
	r.UpdatedAt = t.Now
	t.PutConnection(r)
	return nil
}
