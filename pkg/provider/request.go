package provider

import (
	"errors"
	"fmt"
	"strings"

	"weir/pkg/llm"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// Credential has the decrypted credentials of a connection. Absent ones are zero.
type Credential struct {
	APIKey          secret.Secret
	AccessToken     secret.Secret
	AccessKeyID     secret.Secret // AWS; if it is zero, the API key is used
	SecretAccessKey secret.Secret // AWS
	SessionToken    secret.Secret // AWS
	ServiceAccount  secret.Secret // Google, the whole JSON key file
}

// The reasons why a URL or its headers cannot be built. They are wrapped with the missing
// item, and never contain a credential.
var (
	ErrNoEndpoint   = errors.New("the provider has no such endpoint")
	ErrIncomplete   = errors.New("the account is incomplete")
	ErrNoCredential = errors.New("the account has no usable credential")
	ErrHeader       = errors.New("a stored value cannot be sent as a header")
	// ErrMustSign reports that the credential signs the request, once its body is
	// known.
	ErrMustSign = errors.New("the request must be signed")
)

// Part is the value of a name in braces of a URL: {id}, {voice_id}, ….
// Any reports that the value comes from the provider and may have any characters;
// they are percent-encoded.
type Part struct {
	Name, Value string
	Any         bool
}

// Endpoint returns the method and URL of one of the provider's endpoints for a
// connection. model fills {model} and {deployment}, the connection's variables fill
// the other names of the provider's row, and parts the rest.
//
// The URL stays on the origin of the row or of the connection's base URL: a value
// before the path must be a host label, and a value inside the path is
// percent-encoded. The error is ErrIncomplete for a name without a value and
// ErrNoEndpoint for an unknown endpoint.
func (d *Descriptor) Endpoint(conn *store.Connection, name, model string,
	parts ...Part) (method, url string, err error) {
	e := find(d.Endpoints, name)
	if e == nil {
		return "", "", fmt.Errorf("%s: %w", name, ErrNoEndpoint)
	}
	switch d.Cloud {
	case Azure:
		url, err = d.azureTemplate(e.on(d.BaseURL), conn)
	case Vertex:
		if d.Express(conn) && !InExpress(model) {
			return "", "", fmt.Errorf("%s with an API key: %w", name, ErrNoEndpoint)
		}
		url, err = d.vertexTemplate(e.on(d.BaseURL), conn)
	default:
		url, err = d.template(e, conn)
	}
	if err == nil {
		url, err = d.expand(url, conn, model, parts)
	}
	if err != nil {
		return "", "", err
	}
	return methodOf(e), url, nil
}

// EndpointOf is Endpoint for a further base of the provider. Those keep their own
// URL if the connection has another base URL.
func (d *Descriptor) EndpointOf(b *Base, conn *store.Connection, name, model string,
	parts ...Part) (method, url string, err error) {
	e := find(b.Endpoints, name)
	if e == nil {
		return "", "", fmt.Errorf("%s: %w", name, ErrNoEndpoint)
	}
	url, err = d.expand(e.on(b.URL), conn, model, parts)
	if err != nil {
		return "", "", err
	}
	return methodOf(e), url, nil
}

// on returns the endpoint's URL below a base URL, with its names in braces.
func (e *Endpoint) on(base string) string {
	switch {
	case !strings.HasPrefix(e.Path, "/") && e.Path != "":
		return e.Path
	case e.AtRoot:
		return Origin(base) + e.Path
	}
	return base + e.Path
}

// Serves reports whether the base has an endpoint of that name.
func (b *Base) Serves(name string) bool { return find(b.Endpoints, name) != nil }

func methodOf(e *Endpoint) string {
	if e.Method != "" {
		return e.Method
	}
	return "POST"
}

// template returns an endpoint's URL, with its names in braces, below the base URL of
// the connection if it has one that the provider allows, and otherwise below that of
// the row. Amazon's other hosts are replaced by the connection's base URL too, unless
// that is one of Amazon's own, which serves nothing else.
func (d *Descriptor) template(e *Endpoint, conn *store.Connection) (string, error) {
	if !d.Compatible && (!d.Rebase || conn == nil || conn.Data.BaseURL == "") {
		return e.on(d.BaseURL), nil
	}
	own, err := ownBase(d, conn)
	if err != nil {
		return "", err
	}
	url := e.on(own)
	if d.Cloud == Bedrock && url == e.Path && !strings.HasSuffix(Origin(own), ".amazonaws.com") {
		url = own + url[len(Origin(url)):]
	}
	return url, nil
}

// OwnBase returns the base URL of the connection's calls, with its variables: the
// connection's own if the provider allows one, else that of the row. CheckBaseURL must
// accept it when a connection is saved.
func (d *Descriptor) OwnBase(conn *store.Connection) (string, error) {
	if d.Compatible {
		return ownBase(d, conn)
	}
	if d.Rebase && conn != nil && conn.Data.BaseURL != "" {
		return ownBase(d, conn)
	}
	if d.Cloud == Vertex {
		return vertexHostOf(conn) // the project does not change the host
	}
	return d.expand(d.BaseURL, conn, "", nil)
}

// ownBase returns the connection's base URL without trailing slashes, and for the
// Messages family without /messages (docs/reference/spec.md, 4.2.4).
func ownBase(d *Descriptor, conn *store.Connection) (string, error) {
	if conn == nil {
		return "", fmt.Errorf("baseUrl: %w", ErrIncomplete)
	}
	b := strings.TrimRight(strings.TrimSpace(conn.Data.BaseURL), "/")
	if d.Dialect == llm.Messages {
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

// plainAddress reports whether s consists of scheme, host and path, so that a suffix
// can only lengthen the path. It does not check the policy of base URLs, which was
// applied when the URL was stored.
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
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
			c == ']') {
			return false
		}
	}
	for i := 0; i < len(path); i++ {
		if c := path[i]; c <= ' ' || c > '~' || c == '{' || c == '}' {
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
	before, rest, more := strings.Cut(tmpl, "{")
	if !more {
		return tmpl, nil
	}
	out := make([]byte, 0, len(tmpl)+len(model)+64)
	if path, ok := strings.CutPrefix(tmpl, vertexHost); ok {
		host, err := vertexHostOf(conn)
		if err != nil {
			return "", err
		}
		out = append(out, host...)
		before, rest, more = strings.Cut(path, "{")
	}
	for more {
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", fmt.Errorf("address of %s: %w", d.ID, ErrNoEndpoint)
		}
		out = append(out, before...)
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
		before, rest, more = strings.Cut(after, "{")
	}
	return string(append(out, before...)), nil
}

// maxAny is the longest value of a part with Any, in bytes.
const maxAny = 8 << 10

// anyPart reports whether a value belongs to a part with Any. Only a dot
// segment is refused: percent-encoding does not change its meaning.
func anyPart(name, value string, parts []Part) bool {
	for _, p := range parts {
		if p.Name == name {
			return p.Any && len(value) <= maxAny && value != "." && value != ".."
		}
	}
	return false
}

// part returns the value of a name in braces, and whether its slashes are kept.
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
	if name == "location" && d.Cloud == Vertex {
		return location(conn), false
	}
	return conn.Data.Vars[name], false
}

// inHost reports whether the next byte of a URL belongs to its host.
func inHost(soFar []byte) bool {
	slashes := 0
	for _, c := range soFar {
		if c == '/' {
			slashes++
		}
	}
	return slashes == 2
}

// IsLabel reports whether s is one label of a host name, as a region must be.
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

// Authorize appends the headers of every call of the provider, and the credential. It
// uses an access token if there is no API key (docs/reference/spec.md, 4.3.3), always
// as a bearer token.
//
// The error is ErrNoCredential if there is no credential, ErrMustSign if the credential
// signs the request (the other headers have been appended), and ErrHeader if a stored
// value has bytes that are invalid in a header.
func Authorize(h *httpmsg.Header, d *Descriptor, conn *store.Connection, cred Credential) error {
	return authorize(h, d, &d.Auth, conn, cred)
}

// AuthorizeOf is Authorize for a further base of the provider, or, where that
// is nil, for its own.
func AuthorizeOf(h *httpmsg.Header, d *Descriptor, b *Base, conn *store.Connection, cred Credential) error {
	if b == nil {
		return Authorize(h, d, conn, cred)
	}
	return authorize(h, d, &b.Auth, conn, cred)
}

func authorize(h *httpmsg.Header, d *Descriptor, a *Auth, conn *store.Connection, cred Credential) error {
	if err := Constant(h, d, conn); err != nil {
		return err
	}
	return Present(h, a, cred)
}

// Constant appends the part of Authorize that does not depend on the credential.
func Constant(h *httpmsg.Header, d *Descriptor, conn *store.Connection) error {
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
	return nil
}

// Present appends the part of Authorize that presents the credential by a scheme.
func Present(h *httpmsg.Header, a *Auth, cred Credential) error {
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
