package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/secret"
)

// Provider is an identity provider of the operator's configuration, with the operator's
// own client. There are no built-in providers: a client id belongs to the product that
// it was issued for.
type Provider struct {
	ID           string // the connection's provider id
	Name         string // for people
	AuthorizeURL string // empty: no authorization code flow
	TokenURL     string
	DeviceURL    string // empty: no device flow
	// Issuer, if set, must be the iss of every callback (RFC 9207). Otherwise an iss
	// must be the origin of AuthorizeURL.
	Issuer       string
	Scopes       []string
	ClientID     string
	ClientSecret secret.Secret // none for a public client
	// BasicAuth sends client id and secret as HTTP basic authentication, not
	// in the form (RFC 6749 2.3.1).
	BasicAuth bool
	// DevicePKCE sends a challenge with the device flow too.
	DevicePKCE bool
	// AuthorizeParams are further parameters of AuthorizeURL:
	// [["access_type","offline"]].
	AuthorizeParams [][2]string
	// Proxy is the address of an HTTP CONNECT proxy for the token endpoint,
	// "host:port"; empty for none. ProxyAuth is its "user:password".
	Proxy     string
	ProxyAuth secret.Secret
	// BaseURL and Prefix are those of the connections that a grant creates, so that
	// the operator can define a complete compatible provider.
	BaseURL, Prefix string
	// RefreshEvery is the least time between two refreshes of one connection, for a
	// provider whose tokens expire faster than the default. Zero is the default.
	RefreshEvery time.Duration
}

// Flows returns the names of the flows by which a user may connect an account.
func (p *Provider) Flows() []string {
	out := []string{}
	if p.AuthorizeURL != "" {
		out = append(out, "authorize")
	}
	if p.DeviceURL != "" {
		out = append(out, "device")
	}
	return out
}

// row is a Provider in the configuration.
type row struct {
	ID              string      `json:"id"`
	Name            string      `json:"name"`
	AuthorizeURL    string      `json:"authorizeUrl"`
	TokenURL        string      `json:"tokenUrl"`
	DeviceURL       string      `json:"deviceUrl"`
	Issuer          string      `json:"issuer"`
	Scopes          []string    `json:"scopes"`
	ClientID        string      `json:"clientId"`
	ClientSecret    string      `json:"clientSecret"`
	BasicAuth       bool        `json:"basicAuth"`
	DevicePKCE      bool        `json:"devicePkce"`
	AuthorizeParams [][2]string `json:"authorizeParams"`
	Proxy           string      `json:"proxy"`
	ProxyAuth       string      `json:"proxyAuth"`
	BaseURL         string      `json:"baseUrl"`
	Prefix          string      `json:"prefix"`
	RefreshEveryMs  int64       `json:"refreshEveryMs"`
}

// maxConfig limits the configuration, in bytes.
const maxConfig = 256 << 10

// The bounds of refreshEveryMs.
const (
	minEvery = 100
	maxEvery = 3_600_000
)

// Row is a row of the operator's configuration.
type Row struct {
	Provider
	// Wrong names what is wrong with a row that cannot be used, of which there is no
	// more than the ID, if that is one: "proxy".
	Wrong string
}

// ParseProviders reads the operator's configuration: a JSON array of objects
// with the fields of Provider in camel case, and refreshEveryMs from 100 to 3600000.
// A row without authorizeUrl and deviceUrl only refreshes; one with a mistake or an
// unknown field is Wrong. Blank text is an empty list. URLs are https without userinfo or
// fragment, and only the authorize URL may have a query; allowHTTP, for tests, allows
// http too. Neither an error nor Wrong has a value of the configuration.
func ParseProviders(config string, allowHTTP bool) ([]Row, error) {
	config = strings.TrimSpace(config)
	if config == "" {
		return nil, nil
	}
	if len(config) > maxConfig {
		return nil, fmt.Errorf("over %d bytes", maxConfig)
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(config), &raw) != nil { // its error quotes the document
		return nil, errors.New("not a JSON array of objects")
	}
	out := make([]Row, len(raw))
	for i, text := range raw {
		r, wrong := readRow(text)
		if wrong == "" {
			wrong = r.check(allowHTTP)
		}
		if wrong != "" {
			out[i].Wrong = wrong
			if isID(r.ID) {
				out[i].ID = r.ID
			}
			continue
		}
		out[i].Provider = Provider{
			ID: r.ID, Name: r.Name, AuthorizeURL: r.AuthorizeURL, TokenURL: r.TokenURL, DeviceURL: r.DeviceURL,
			Issuer: r.Issuer, Scopes: r.Scopes, ClientID: r.ClientID, ClientSecret: secret.New(r.ClientSecret),
			BasicAuth: r.BasicAuth, DevicePKCE: r.DevicePKCE, AuthorizeParams: r.AuthorizeParams,
			Proxy: r.Proxy, ProxyAuth: secret.New(r.ProxyAuth),
			BaseURL: strings.TrimRight(r.BaseURL, "/"), Prefix: r.Prefix,
			RefreshEvery: time.Duration(r.RefreshEveryMs) * time.Millisecond,
		}
	}
	return out, nil
}

// readRow decodes a row, as far as it can be, and names what is wrong with it, or "".
func readRow(text []byte) (r row, wrong string) {
	if len(text) == 0 || text[0] != '{' {
		return r, "row: not an object"
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&r)
	if err == nil {
		return r, ""
	}
	r.ID = gjson.GetBytes(text, "id").Str
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return r, name + ": unknown field"
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return r, kind.Field + ": wrong type"
	}
	return r, "row" // the text of most errors quotes the document
}

// check names the first bad field, or "".
func (r *row) check(allowHTTP bool) string {
	switch {
	case !isID(r.ID):
		return "id"
	case len(r.Name) > 200:
		return "name"
	case r.AuthorizeURL != "" && !isAddress(r.AuthorizeURL, allowHTTP, true):
		return "authorizeUrl"
	case r.DeviceURL != "" && !isAddress(r.DeviceURL, allowHTTP, false):
		return "deviceUrl"
	case !isAddress(r.TokenURL, allowHTTP, false):
		return "tokenUrl"
	case r.Issuer != "" && !isAddress(r.Issuer, allowHTTP, false):
		return "issuer"
	case !isVisible(r.ClientID) || len(r.ClientID) > 1024:
		return "clientId"
	case r.ClientSecret != "" && (!isVisible(r.ClientSecret) || len(r.ClientSecret) < 8 || len(r.ClientSecret) > 4096):
		return "clientSecret"
	case r.BasicAuth && r.ClientSecret == "":
		return "basicAuth without clientSecret"
	case r.Proxy != "" && !isHostPort(r.Proxy):
		return "proxy"
	case r.ProxyAuth != "" && (r.Proxy == "" || !strings.Contains(r.ProxyAuth, ":") || !isVisible(r.ProxyAuth)):
		return "proxyAuth"
	case r.BaseURL != "" && !isAddress(r.BaseURL, allowHTTP, false):
		return "baseUrl"
	case r.Prefix != "" && !isID(r.Prefix):
		return "prefix"
	case r.RefreshEveryMs != 0 && (r.RefreshEveryMs < minEvery || r.RefreshEveryMs > maxEvery):
		return "refreshEveryMs"
	}
	for _, s := range r.Scopes {
		if !isVisible(s) || strings.ContainsAny(s, `"\`) {
			return "scopes"
		}
	}
	for _, p := range r.AuthorizeParams {
		if p[0] == "" || reserved(p[0]) {
			return "authorizeParams"
		}
	}
	if _, query, ok := strings.Cut(r.AuthorizeURL, "?"); ok {
		list, ok := params(query)
		if !ok {
			return "authorizeUrl"
		}
		for name := range list {
			if reserved(name) {
				return "authorizeUrl"
			}
		}
	}
	return ""
}

// reserved are the parameters that the flow itself sends.
func reserved(name string) bool {
	switch name {
	case "response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method",
		"response_mode", "code", "iss":
		return true
	}
	return false
}

// isID reports whether s is a provider id: [a-z0-9][a-z0-9._-]{0,63}.
func isID(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '.' || c == '_' || c == '-')) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// isVisible reports whether s has visible ASCII only and is not empty.
func isVisible(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}

// isAddress reports whether s is an absolute https address in plain spelling.
func isAddress(s string, allowHTTP, query bool) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok || !allowHTTP {
			return false
		}
	}
	if !isVisible(s) || len(s) > 2048 || strings.ContainsAny(s, "#\\\"<>^`{|}") || !query && strings.Contains(s, "?") {
		return false
	}
	host := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host = rest[:i]
	}
	name, port, ok := strings.Cut(host, ":")
	return isHost(name) && (!ok || isPort(port))
}

// IsOrigin reports whether s is scheme and host alone, in plain spelling.
func IsOrigin(s string, allowHTTP bool) bool {
	return isAddress(s, allowHTTP || isLoopback(s), false) && originOf(s) == s
}

// isHost reports whether s is a DNS name or dotted numbers, in lower case.
func isHost(s string) bool {
	if len(s) > 253 {
		return false
	}
	for _, label := range strings.Split(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
				return false
			}
		}
	}
	return true
}

func isPort(s string) bool {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || len(s) > 5 {
			return false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n > 0 && n < 1<<16
}

func isHostPort(s string) bool {
	host, port, ok := strings.Cut(s, ":")
	return ok && isHost(host) && isPort(port)
}

// originOf returns scheme and host of an address that isAddress accepts.
func originOf(s string) string {
	i := strings.Index(s, "://") + 3
	if j := strings.IndexAny(s[i:], "/?"); j >= 0 {
		return s[:i+j]
	}
	return s
}
