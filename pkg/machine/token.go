package machine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/edge"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

const (
	tokenTimeout = 10 * time.Second
	maxTokenBody = 64 << 10
	minLife      = 30 * time.Second
	maxLife      = 90 * 24 * time.Hour
	usualLife    = time.Hour
)

// tokens is what a token endpoint gave. Only the fields needed are kept
// (reliability T62).
type tokens struct {
	access, refresh string
	life            time.Duration
}

// grantError is a definite refusal of a token endpoint: an HTTP status, or one
// of the codes of RFC 6749, 5.2.
type grantError struct{ code string }

func (e *grantError) Error() string { return "token endpoint answered " + e.code }

// final tells that asking again cannot help.
func (e *grantError) final() bool { return e.code == "invalid_grant" }

// tokenURL gives the token endpoint of a provider, "" for none.
func (o *Object) tokenURL(providerID string) string {
	if o.TokenURL != nil {
		return o.TokenURL(providerID)
	}
	d := provider.Lookup(providerID)
	if d == nil {
		return ""
	}
	if d.Auth.TokenURL != "" {
		return d.Auth.TokenURL
	}
	for _, a := range d.Auth.Alt {
		if a.TokenURL != "" {
			return a.TokenURL
		}
	}
	return ""
}

// tokenRequest makes the call of the token endpoint: a refresh (RFC 6749, 6)
// or, for a Google service account, a signed assertion (RFC 7523).
func (o *Object) tokenRequest(r *request, c *connRow, field string, sealed store.Sealed, endpoint string) (*upstream.Request, error) {
	plain, err := o.Keyring.Open(r.id, c.ID, field, sealed)
	if err != nil {
		e := apierr.New(503, "key_unavailable", "the stored credential cannot be opened")
		e.Err = err
		return nil, e
	}
	form := url.Values{}
	if field == store.ServiceAccount {
		assertion, err := o.assertion(r, c, plain, endpoint)
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		form.Set("assertion", assertion)
	} else {
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", plain.Reveal())
		if id := c.Data.Vars["clientId"]; id != "" {
			form.Set("client_id", id)
		}
		if s := c.Secrets[store.ClientSecret]; s != "" {
			secret, err := o.Keyring.Open(r.id, c.ID, store.ClientSecret, s)
			if err != nil {
				e := apierr.New(503, "key_unavailable", "the stored credential cannot be opened")
				e.Err = err
				return nil, e
			}
			form.Set("client_secret", secret.Reveal())
		}
	}
	return &upstream.Request{
		Method: "POST", URL: endpoint,
		Header: edge.Header{
			{Name: "content-type", Value: "application/x-www-form-urlencoded"},
			{Name: "accept", Value: "application/json"},
		},
		Body:          stream.FromString(form.Encode()),
		HeaderTimeout: tokenTimeout, Timeout: tokenTimeout, MaxBody: maxTokenBody,
		Outlive: true,
	}, nil
}

// assertion signs a service account's claim to an access token.
func (o *Object) assertion(r *request, c *connRow, file store.Secret, endpoint string) (string, error) {
	key := gjson.Parse(file.Reveal())
	block, _ := pem.Decode([]byte(key.Get("private_key").Str))
	d := provider.Lookup(c.Provider)
	if block == nil || d == nil || o.SignRS256 == nil {
		return "", apierr.New(409, "not_refreshable", "the connection's key file cannot be used")
	}
	head, _ := json.Marshal(struct {
		Alg string `json:"alg"`
		Typ string `json:"typ"`
		Kid string `json:"kid,omitempty"`
	}{"RS256", "JWT", key.Get("private_key_id").Str})
	claims, _ := json.Marshal(struct {
		Iss   string `json:"iss"`
		Scope string `json:"scope"`
		Aud   string `json:"aud"`
		Iat   int64  `json:"iat"`
		Exp   int64  `json:"exp"`
	}{key.Get("client_email").Str, d.Auth.Scope, endpoint, r.now / 1000, r.now/1000 + 3600})
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64(head) + "." + b64(claims)
	sig, err := o.SignRS256(r.ctx, block.Bytes, []byte(text))
	if err != nil {
		return "", apierr.New(409, "not_refreshable", "the connection's private key cannot be used")
	}
	return text + "." + b64(sig), nil
}

// askTokens calls the token endpoint once. A *grantError is a definite
// refusal; after any other error nobody knows whether the call was served.
func (o *Object) askTokens(ctx context.Context, req *upstream.Request) (*tokens, error) {
	resp, err := upstream.Do(ctx, o.Do, req)
	if err != nil {
		return nil, err
	}
	body, err := stream.ReadAll(resp.Body, maxTokenBody)
	if err != nil {
		return nil, err
	}
	if resp.Status < 200 || resp.Status > 299 {
		code := strconv.Itoa(resp.Status)
		if resp.Status < 500 && gjson.ValidBytes(body) {
			switch e := gjson.GetBytes(body, "error").Str; e {
			case "invalid_grant", "invalid_client", "invalid_request", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
				code = e
			}
		}
		return nil, &grantError{code}
	}
	if !gjson.ValidBytes(body) {
		return nil, fmt.Errorf("token endpoint: no JSON")
	}
	t := &tokens{access: gjson.GetBytes(body, "access_token").Str, refresh: gjson.GetBytes(body, "refresh_token").Str}
	if len(t.access) < minSecret || !provider.SafeValue(t.access) || len(t.refresh) > maxKeyFile {
		return nil, fmt.Errorf("token endpoint: no usable access token")
	}
	t.life = lifeOf(gjson.GetBytes(body, "expires_in"))
	return t, nil
}

// lifeOf reads expires_in, a number or a string of seconds, into bounds
// (reliability T62). Without one a token is taken to live an hour.
func lifeOf(v gjson.Result) time.Duration {
	n := v.Num
	if v.Type == gjson.String {
		var err error
		if n, err = strconv.ParseFloat(v.Str, 64); err != nil {
			return usualLife
		}
	} else if v.Type != gjson.Number {
		return usualLife
	}
	if math.IsNaN(n) || n <= 0 {
		return usualLife
	}
	if n > maxLife.Seconds() {
		return maxLife
	}
	return max(time.Duration(n*float64(time.Second)), minLife)
}

// sealTokens puts new tokens into a connection. Where no new refresh token
// came the old one stays.
func (o *Object) sealTokens(machineID string, c *connRow, t *tokens, now int64) error {
	secrets := map[string]store.Sealed{}
	for f, s := range c.Secrets {
		secrets[f] = s
	}
	for f, v := range map[string]string{store.AccessToken: t.access, store.RefreshToken: t.refresh} {
		if v == "" {
			continue
		}
		s, err := o.Keyring.Seal(machineID, c.ID, f, store.NewSecret(v))
		if err != nil {
			return err
		}
		secrets[f] = s
	}
	c.Secrets = secrets
	c.ExpiresAt = now + t.life.Milliseconds()
	c.TokenGeneration++
	c.Status, c.LastError, c.UpdatedAt = "", "", now
	return nil
}
