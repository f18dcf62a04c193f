package provider

import (
	"errors"
	"fmt"
	"strings"

	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// Credential is what an account may present, in the clear. Absent ones are
// zero.
type Credential struct {
	APIKey          secret.Secret
	AccessToken     secret.Secret
	AccessKeyID     secret.Secret // AWS; where it is zero the API key is that
	SecretAccessKey secret.Secret // AWS
	SessionToken    secret.Secret // AWS
	ServiceAccount  secret.Secret // Google, the whole JSON key file
}

// The ways an address or its headers cannot be made. They come wrapped with
// what was missing, and never name a credential.
var (
	ErrNoEndpoint   = errors.New("the provider has no such endpoint")
	ErrIncomplete   = errors.New("the connection is incomplete")
	ErrNoCredential = errors.New("the connection has no usable credential")
	ErrHeader       = errors.New("a stored value cannot be sent as a header")
	// ErrMustSign tells that the credential is for signing the request, which
	// happens once its body is known.
	ErrMustSign = errors.New("the request must be signed")
)

// Part fills a name in braces of an address: {id}, {voice_id}, ….
// Any reports that the value comes from the provider and may have any characters;
// they are percent-encoded.
type Part struct {
	Name, Value string
	Any         bool
}

// Endpoint gives method and address of one of the provider's endpoints for a
// connection. model fills {model} and {deployment}, the connection's variables
// fill the rest, and parts whatever is left.
//
// The address always stays on the origin of the table or of the connection's
// base address: what is filled in is checked to be a host label before the
// path, and percent-encoded inside it. A name that a connection does not fill
// gives ErrIncomplete, an unknown endpoint ErrNoEndpoint.
func (d *Descriptor) Endpoint(conn *store.Connection, name, model string, parts ...Part) (method, url string, err error) {
	e := find(d.Endpoints, name)
	if e == nil {
		return "", "", fmt.Errorf("%s: %w", name, ErrNoEndpoint)
	}
	switch url = e.URL; d.Family {
	case Azure:
		url, err = d.azureTemplate(url, conn)
	case Vertex:
		url, err = d.vertexTemplate(url, conn)
	default:
		url, err = d.moved(url, conn)
	}
	if err == nil {
		url, err = d.expand(url, conn, model, parts)
	}
	if err != nil {
		return "", "", err
	}
	return methodOf(e), url, nil
}

// EndpointOf is Endpoint for a further base of the provider. Those keep their
// own address, whatever base address a connection gives.
func (d *Descriptor) EndpointOf(b *Base, conn *store.Connection, name, model string, parts ...Part) (method, url string, err error) {
	e := find(b.Endpoints, name)
	if e == nil {
		return "", "", fmt.Errorf("%s: %w", name, ErrNoEndpoint)
	}
	url, err = d.expand(e.URL, conn, model, parts)
	if err != nil {
		return "", "", err
	}
	return methodOf(e), url, nil
}

// BaseOf gives the provider's further base of a family, or nil.
func (d *Descriptor) BaseOf(f Family) *Base {
	for i := range d.Alt {
		if d.Alt[i].Family == f {
			return &d.Alt[i]
		}
	}
	return nil
}

func methodOf(e *Endpoint) string {
	if e.Method != "" {
		return e.Method
	}
	return "POST"
}

// moved moves a template to the connection's base address where that is
// allowed. Amazon's hosts besides that of its models are moved too, unless the
// base is one of Amazon's own, which serves nothing else.
func (d *Descriptor) moved(tmpl string, conn *store.Connection) (string, error) {
	if d.Compatible || !d.Rebase || conn == nil || conn.Data.BaseURL == "" {
		return tmpl, nil
	}
	own, err := ownBase(d, conn)
	if err != nil {
		return "", err
	}
	o := Origin(d.BaseURL)
	switch rest, ok := strings.CutPrefix(tmpl, d.BaseURL); {
	case ok:
		return own + rest, nil
	case strings.HasPrefix(tmpl, o):
		return Origin(own) + tmpl[len(o):], nil
	case d.Family == Bedrock && !strings.HasSuffix(Origin(own), ".amazonaws.com"):
		return own + tmpl[len(Origin(tmpl)):], nil
	}
	return tmpl, nil
}

// OwnBase gives the base address that calls of the connection go to, filled
// in: its own where the provider lets it have one, else the table's. It is
// what CheckBaseURL must accept when a connection is saved.
func (d *Descriptor) OwnBase(conn *store.Connection) (string, error) {
	if d.Compatible {
		return ownBase(d, conn)
	}
	if d.Rebase && conn != nil && conn.Data.BaseURL != "" {
		return ownBase(d, conn)
	}
	if d.Family == Vertex {
		return vertexHostOf(conn) // the project is no matter of where
	}
	return d.expand(d.BaseURL, conn, "", nil)
}

// ownBase gives the connection's base address without slashes at its end, and
// for the messages family without /messages (docs/reference/spec.md, 4.2.4).
func ownBase(d *Descriptor, conn *store.Connection) (string, error) {
	if conn == nil {
		return "", fmt.Errorf("baseUrl: %w", ErrIncomplete)
	}
	b := strings.TrimRight(strings.TrimSpace(conn.Data.BaseURL), "/")
	if d.Family == Anthropic {
		b = strings.TrimSuffix(b, "/messages")
	}
	if b == "" {
		return "", fmt.Errorf("baseUrl: %w", ErrIncomplete)
	}
	if !plainAddress(b) {
		return "", fmt.Errorf("baseUrl is not a plain address: %w", ErrIncomplete)
	}
	return b, nil
}

// plainAddress tells whether s is scheme, host and path and nothing else, so
// that what is appended to it can only lengthen the path. It is not the base
// address policy: that has been applied when the address was stored.
func plainAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return false
		}
	}
	host, path, _ := strings.Cut(rest, "/")
	if host == "" {
		return false
	}
	for i := 0; i < len(host); i++ {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']') {
			return false
		}
	}
	for i := 0; i < len(path); i++ {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '{' || c == '}' {
			return false
		}
	}
	return path == "" || cleanPath(path) && cleanPath(unescape(path))
}

// Origin returns the scheme and host of a URL.
func Origin(url string) string {
	i := strings.Index(url, "://")
	if i < 0 {
		return url
	}
	if j := strings.IndexAny(url[i+3:], "/?#"); j >= 0 {
		return url[:i+3+j]
	}
	return url
}

// expand replaces the names in braces.
func (d *Descriptor) expand(tmpl string, conn *store.Connection, model string, parts []Part) (string, error) {
	i := strings.IndexByte(tmpl, '{')
	if i < 0 {
		return tmpl, nil
	}
	out := make([]byte, 0, len(tmpl)+len(model)+64)
	if d.Compatible {
		if rest, ok := strings.CutPrefix(tmpl, "{baseUrl}"); ok {
			b, err := ownBase(d, conn)
			if err != nil {
				return "", err
			}
			out, tmpl = append(out, b...), rest
			i = strings.IndexByte(tmpl, '{')
		}
	} else if rest, ok := strings.CutPrefix(tmpl, vertexHost); ok {
		host, err := vertexHostOf(conn)
		if err != nil {
			return "", err
		}
		out, tmpl = append(out, host...), rest
		i = strings.IndexByte(tmpl, '{')
	}
	for i >= 0 {
		end := strings.IndexByte(tmpl[i:], '}')
		if end < 0 {
			return "", fmt.Errorf("address of %s: %w", d.ID, ErrNoEndpoint)
		}
		out = append(out, tmpl[:i]...)
		name := tmpl[i+1 : i+end]
		value, keepSlash := d.part(name, conn, model, parts)
		if value == "" {
			return "", fmt.Errorf("%s is missing: %w", name, ErrIncomplete)
		}
		if inHost(out) {
			if !IsLabel(value) {
				return "", fmt.Errorf("%s is not usable in a host name: %w", name, ErrIncomplete)
			}
			out = append(out, strings.ToLower(value)...)
		} else {
			if CheckModel(value) != nil && !anyPart(name, value, parts) {
				return "", fmt.Errorf("%s is not usable in an address: %w", name, ErrIncomplete)
			}
			out = escape(out, value, keepSlash)
		}
		tmpl = tmpl[i+end+1:]
		i = strings.IndexByte(tmpl, '{')
	}
	return string(append(out, tmpl...)), nil
}

// maxAny is the longest value of a part with Any, in bytes.
const maxAny = 1024

// anyPart reports whether a value belongs to a part with Any. Only a dot segment
// is refused: percent-encoding does not change its meaning.
func anyPart(name, value string, parts []Part) bool {
	for _, p := range parts {
		if p.Name == name {
			return p.Any && len(value) <= maxAny && value != "." && value != ".."
		}
	}
	return false
}

// part gives the value of a name in braces, and whether its slashes stay.
func (d *Descriptor) part(name string, conn *store.Connection, model string, parts []Part) (string, bool) {
	for _, p := range parts {
		if p.Name == name {
			return p.Value, name == "operation" // Google's operation names are paths
		}
	}
	switch name {
	case "model":
		return model, d.ModelPath
	case "deployment":
		return model, false
	case "owner", "name":
		owner, rest, ok := strings.Cut(model, "/")
		switch {
		case !ok:
			return "", false
		case name == "owner":
			return owner, false
		}
		return rest, false
	}
	if conn == nil {
		return "", false
	}
	if name == "location" && d.Family == Vertex {
		return location(conn), false
	}
	return conn.Data.Vars[name], false
}

// inHost tells whether the next byte of an address belongs to its host.
func inHost(soFar []byte) bool {
	slashes := 0
	for _, c := range soFar {
		if c == '/' {
			slashes++
		}
	}
	return slashes == 2
}

// IsLabel tells whether s is one label of a host name, as a region must be.
func IsLabel(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// Authorize appends the headers that every call of the provider carries, and
// the credential. An access token is used when there is no API key
// (docs/reference/spec.md, 4.3.3), always as a bearer token.
//
// ErrNoCredential: nothing to present. ErrMustSign: the credential is for
// signing; the other headers have been appended. ErrHeader: a stored value has
// bytes that a header must not have.
func Authorize(h *httpmsg.Header, d *Descriptor, conn *store.Connection, cred Credential) error {
	return authorize(h, d, &d.Auth, conn, cred)
}

// AuthorizeOf is Authorize for a further base of the provider, or, where that is
// nil, for its own.
func AuthorizeOf(h *httpmsg.Header, d *Descriptor, b *Base, conn *store.Connection, cred Credential) error {
	if b == nil {
		return Authorize(h, d, conn, cred)
	}
	return authorize(h, d, &b.Auth, conn, cred)
}

func authorize(h *httpmsg.Header, d *Descriptor, a *Auth, conn *store.Connection, cred Credential) error {
	for _, f := range d.Header {
		if h.Get(f[0]) == "" { // a call may speak another version
			h.Add(f[0], f[1])
		}
	}
	for _, f := range d.OptHeader {
		if v := conn.Data.Vars[f[1]]; v != "" {
			if !SafeValue(v) {
				return fmt.Errorf("%s: %w", f[1], ErrHeader)
			}
			h.Add(f[0], v)
		}
	}
	key, token := cred.APIKey.Reveal(), cred.AccessToken.Reveal()
	if !SafeValue(key) || !SafeValue(token) {
		return fmt.Errorf("credential: %w", ErrHeader)
	}
	switch a.Scheme {
	case SigV4:
		if !cred.SecretAccessKey.IsZero() {
			return ErrMustSign
		}
		if bearer(h, key) || bearer(h, token) {
			return nil
		}
	case KeyName:
		if key != "" {
			named(h, a, key)
			return nil
		}
		if bearer(h, token) || a.Optional {
			return nil
		}
	case GoogleSA:
		if bearer(h, token) {
			return nil
		}
		for i := range a.Alt {
			if a.Alt[i].Scheme == KeyName && key != "" {
				named(h, &a.Alt[i], key)
				return nil
			}
		}
	default:
		if bearer(h, key) || bearer(h, token) || a.Optional || a.Scheme == None {
			return nil
		}
	}
	return ErrNoCredential
}

func bearer(h *httpmsg.Header, token string) bool {
	if token == "" {
		return false
	}
	h.Add("authorization", "Bearer "+token)
	return true
}

func named(h *httpmsg.Header, a *Auth, key string) {
	value := key
	if a.Format != "" {
		before, after, _ := strings.Cut(a.Format, "%s")
		value = before + key + after
	}
	h.Add(a.Header, value)
	if a.AlsoBearer {
		h.Add("authorization", "Bearer "+key)
	}
}
