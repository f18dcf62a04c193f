package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// callTimeout limits one call of a provider.
const callTimeout = 10 * time.Second

// RefreshTimeout limits a refresh: a slow endpoint may have rotated the refresh
// token long before it answers, so giving up early loses the account.
const RefreshTimeout = 60 * time.Second

// Refresh exchanges a refresh token for a new access token. If the response has no
// refresh token, Token.Refresh is the old one. The error is a *Failure; the caller
// decides whether and when to retry (docs/reference/reliability.md, T60).
func Refresh(ctx context.Context, do upstream.Doer, p *Provider, refresh secret.Secret, now time.Time) (Token, error) {
	var f form
	f.add("grant_type", "refresh_token")
	f.add("refresh_token", refresh.Reveal())
	t, err := exchange(ctx, do, p, f, RefreshTimeout, now)
	if err == nil && t.Refresh.IsZero() {
		t.Refresh = refresh
	}
	return t, err
}

// exchange calls the token endpoint as the provider's client.
func exchange(ctx context.Context, do upstream.Doer, p *Provider, f form, limit time.Duration,
	now time.Time) (Token, error) {
	status, header, body, err := post(ctx, do, p.TokenURL, p.identify(&f), f, limit)
	if err != nil {
		return Token{}, err
	}
	return ReadToken(status, header, body, now)
}

// identify adds the client to a form, or returns the value of the authorization header
// if the provider expects the client there.
func (p *Provider) identify(f *form) (authorization string) {
	if p.BasicAuth {
		// RFC 6749 2.3.1: both are form-encoded first.
		pair := formEscape(p.ClientID) + ":" + formEscape(p.ClientSecret.Reveal())
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
	}
	f.add("client_id", p.ClientID)
	if !p.ClientSecret.IsZero() {
		f.add("client_secret", p.ClientSecret.Reveal())
	}
	return ""
}

// Form returns the call of a token endpoint. Its response has its body in memory.
func Form(url string, body []byte) *upstream.Request {
	return &upstream.Request{
		Method: "POST", URL: url,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "application/x-www-form-urlencoded"},
			{Name: "accept", Value: "application/json"},
		},
		Body:          stream.FromBytes(body),
		HeaderTimeout: callTimeout, Timeout: callTimeout, MaxBody: maxAnswer,
		Outlive: true,
	}
}

// Answer sends the call and reads the whole response. The error is a *Failure.
func Answer(ctx context.Context, do upstream.Doer,
	req *upstream.Request) (status int, header httpmsg.Header, body []byte, err error) {
	resp, err := upstream.Do(ctx, do, req)
	if err != nil {
		return 0, nil, nil, &Failure{Kind: unanswered(err), Err: err}
	}
	body, err = stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		f := &Failure{Kind: Transient, Status: resp.Status, Err: err}
		if resp.Status >= 200 && resp.Status <= 299 {
			f.Kind = Lost
		}
		return 0, nil, nil, f
	}
	return resp.Status, resp.Header, body, nil
}

// unanswered classifies a call without a usable response: a response that is too large
// or too late may have been a grant.
func unanswered(err error) Kind {
	if errors.Is(err, stream.ErrTooLarge) {
		return Lost
	}
	return Transient
}

func post(ctx context.Context, do upstream.Doer, url, authorization string, f form,
	limit time.Duration) (int, httpmsg.Header, []byte, error) {
	req := Form(url, f)
	req.HeaderTimeout, req.Timeout = limit, limit
	if authorization != "" {
		req.Header.Add("authorization", authorization)
	}
	return Answer(ctx, do, req)
}
