package oidc

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/weburl"
)

// Reasons for which an identity provider cannot be used.
const (
	errAddress     Refusal = "issuer_address_refused"
	errUnreachable Refusal = "issuer_unreachable"
	errTooLarge    Refusal = "issuer_answer_too_large"
	errRedirect    Refusal = "issuer_redirects"
	errStatus      Refusal = "issuer_status"
	errDocument    Refusal = "issuer_document_invalid"
	errOtherIssuer Refusal = "issuer_of_another_name"
)

const (
	timeout     = 10 * time.Second
	maxDocument = 64 << 10         // bytes of discovery, keys and other answers
	newFor      = int64(3600)      // seconds for which an answer is not asked for again
	validFor    = int64(24 * 3600) // seconds for which one counts while a newer one cannot be had
	betweenKeys = int64(60)        // seconds between two requests for keys because of an unknown kid
	maxIssuers  = 100              // in memory
	wellKnown   = "/.well-known/openid-configuration"
)

// Client calls identity providers. Answers are cached in memory.
type Client struct {
	Do     upstream.Doer
	Verify Verify
	Now    func() time.Time
	// AllowPrivate and OwnHosts are those of provider.CheckBaseURL. Natively each connection
	// is judged after DNS too.
	AllowPrivate bool
	OwnHosts     []string

	mu      sync.Mutex
	answers map[string]answer // by address
}

// answer is a document of an identity provider.
type answer struct {
	body []byte
	at   int64 // Unix seconds; 0 for none
	next int64 // when it may be asked for again because of an unknown kid
}

// metadata is what weir reads of a discovery document.
type metadata struct {
	authorization, token, keys, userinfo string

	sendsIss, postsSecret bool
}

// document returns an answer of an identity provider, from memory where it is new. again asks
// for a newer one, at most once a minute.
func (c *Client) document(ctx context.Context, address string, again bool) ([]byte, error) {
	now := c.Now().Unix()
	c.mu.Lock()
	a := c.answers[address]
	ask := a.at == 0 || now >= a.at+newFor
	if again || ask && a.at != 0 { // a provider that is down is asked once a minute too
		ask = now >= a.next
	}
	if ask && a.at != 0 {
		a.next = now + betweenKeys
		c.answers[address] = a
	}
	c.mu.Unlock()
	if !ask {
		return a.body, nil
	}
	body, err := c.fetch(ctx, address)
	if err != nil && a.at != 0 && now < a.at+validFor {
		return a.body, nil
	}
	return body, err
}

// fetch asks for a document and remembers it.
func (c *Client) fetch(ctx context.Context, address string) ([]byte, error) {
	body, err := c.call(ctx, &upstream.Request{Method: "GET", URL: address})
	if err == nil && !isObject(body) {
		err = errDocument
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= 2*maxIssuers {
		c.answers = map[string]answer{}
	}
	now := c.Now().Unix()
	c.answers[address] = answer{body, now, now + betweenKeys}
	return body, nil
}

// call returns the body of a 200 answer to a call. Redirects are not followed.
func (c *Client) call(ctx context.Context, req *upstream.Request) ([]byte, error) {
	var err error
	if req.URL, err = c.address(req.URL); err != nil {
		return nil, err
	}
	req.Timeout, req.MaxBody = timeout, maxDocument
	req.Header.Set("accept", "application/json")
	req.Header.Set(clientheader.Hop, "1")
	resp, err := upstream.Do(ctx, c.Do, req)
	switch {
	case errors.Is(err, stream.ErrTooLarge):
		return nil, errTooLarge
	case err != nil:
		return nil, errUnreachable
	}
	defer resp.Body.Close()
	switch {
	case resp.Status >= 300 && resp.Status <= 399:
		return nil, errRedirect
	case resp.Status != 200:
		return nil, errStatus
	}
	body, err := stream.ReadAll(resp.Body, maxDocument)
	if errors.Is(err, stream.ErrTooLarge) {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, errUnreachable
	}
	return body, nil
}

// address returns the canonical form of an address that may be called or opened.
func (c *Client) address(raw string) (string, error) {
	canonical, ok := weburl.Canonical(raw)
	plain, _, _ := strings.Cut(canonical, "?")
	if team, found := strings.CutSuffix(plain, accessKeys); found && isTeam(team) { // other such paths are refused
		plain = team
	}
	if !ok || strings.Contains(canonical, "#") || provider.CheckBaseURL(plain, c.AllowPrivate, c.OwnHosts...) != nil {
		return "", errAddress
	}
	return canonical, nil
}

func discoveryOf(issuer string) string { return strings.TrimSuffix(issuer, "/") + wellKnown }

// discover returns the endpoints of an issuer.
func (c *Client) discover(ctx context.Context, issuer string) (*metadata, error) {
	raw, err := c.document(ctx, discoveryOf(issuer), false)
	if err != nil {
		return nil, err
	}
	return c.read(raw, issuer)
}

// read reads a discovery document, which must have the issuer's exact name.
func (c *Client) read(raw []byte, issuer string) (*metadata, error) {
	d := gjson.ParseBytes(raw)
	if text(d, "issuer") != issuer {
		return nil, errOtherIssuer
	}
	m := &metadata{authorization: text(d, "authorization_endpoint"), token: text(d, "token_endpoint"),
		keys: text(d, "jwks_uri"), userinfo: text(d, "userinfo_endpoint"),
		sendsIss: member(d, "authorization_response_iss_parameter_supported").Bool()}
	if methods := member(d, "token_endpoint_auth_methods_supported"); methods.IsArray() {
		m.postsSecret = !strings.Contains(methods.Raw, `"client_secret_basic"`) &&
			strings.Contains(methods.Raw, `"client_secret_post"`)
	}
	for _, address := range [...]string{m.authorization, m.token, m.keys} {
		if _, err := c.address(address); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// claims returns the claims of a token by a key of keysURL. It asks for the keys again, at
// most once a minute, if none fits.
func (c *Client) claims(ctx context.Context, keysURL, token string, x *expect) (gjson.Result, error) {
	t, err := Parse(token)
	if err != nil {
		return gjson.Result{}, err
	}
	for _, again := range [...]bool{false, true} {
		var keys []byte
		if keys, err = c.document(ctx, keysURL, again); err != nil {
			return gjson.Result{}, err
		}
		if err = t.Verify(ctx, c.Verify, keys); err != errNoKey {
			break
		}
	}
	if err != nil {
		return gjson.Result{}, err
	}
	return x.check(t)
}

// exchange returns the answer of the token endpoint to an authorization code.
func (c *Client) exchange(ctx context.Context, m *metadata, p *Provider, form url.Values) (gjson.Result, error) {
	req := &upstream.Request{Method: "POST", URL: m.token}
	req.Header.Set("content-type", "application/x-www-form-urlencoded")
	switch {
	case p.ClientSecret.IsZero():
		form.Set("client_id", p.ClientID)
	case m.postsSecret:
		form.Set("client_id", p.ClientID)
		form.Set("client_secret", p.ClientSecret.Reveal())
	default: // RFC 6749, 2.3.1: both are form-encoded first
		pair := url.QueryEscape(p.ClientID) + ":" + url.QueryEscape(p.ClientSecret.Reveal())
		req.Header.Set("authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	req.Body = stream.FromString(form.Encode())
	raw, err := c.call(ctx, req)
	if err != nil {
		return gjson.Result{}, err
	}
	if !isObject(raw) {
		return gjson.Result{}, errDocument
	}
	return gjson.ParseBytes(raw), nil
}

// userinfo returns the claims of the userinfo endpoint, which must be of the same person.
func (c *Client) userinfo(ctx context.Context, m *metadata, access, sub string) (gjson.Result, error) {
	req := &upstream.Request{Method: "GET", URL: m.userinfo,
		Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + access}}}
	raw, err := c.call(ctx, req)
	if err != nil {
		return gjson.Result{}, err
	}
	if !isObject(raw) || cmp.Or(text(gjson.ParseBytes(raw), "sub"), " ") != sub {
		return gjson.Result{}, errSubject
	}
	return gjson.ParseBytes(raw), nil
}
