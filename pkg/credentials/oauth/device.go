package oauth

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/secret"
)

// device is a pending device flow; a provider has at most one.
type device struct {
	ID         string        `json:"id"`
	DeviceCode secret.Sealed `json:"deviceCode"`
	Verifier   secret.Sealed `json:"verifier,omitempty"`
	UserCode   string        `json:"userCode"`
	URI        string        `json:"uri"`
	Complete   string        `json:"complete,omitempty"`
	Note       string        `json:"note,omitempty"`
	Interval   int64         `json:"interval"`  // milliseconds
	NextPoll   int64         `json:"nextPoll"`  // Unix milliseconds
	ExpiresAt  int64         `json:"expiresAt"` // Unix milliseconds
}

// Device is the part of a device flow that is shown to the user. The engine keeps the
// device code.
type Device struct {
	UserCode                string
	VerificationURI         string
	VerificationURIComplete string // "" when the provider has none
	Interval                time.Duration
	ExpiresAt               time.Time
	Note                    string // of whoever began it
}

// Polled is the result of a poll: a Grant, or how long to wait before the next one.
type Polled struct {
	Grant *Grant
	Wait  time.Duration
}

const (
	deviceField     = "deviceCode"
	defaultInterval = 5 * time.Second // RFC 8628 3.2
	maxInterval     = 5 * time.Minute
	slowDown        = 5 * time.Second // RFC 8628 3.5
	deviceGrant     = "urn:ietf:params:oauth:grant-type:device_code"
)

func deviceKey(providerID string) string { return "oauth/device/" + providerID }

func (d *device) shown() *Device {
	return &Device{d.UserCode, d.URI, d.Complete, time.Duration(d.Interval) * time.Millisecond,
		time.UnixMilli(d.ExpiresAt), d.Note}
}

// active returns the pending flow, or nil.
func (e *Engine) active(key string) *device {
	d := new(device)
	if !e.load(key, d) || d.ExpiresAt <= e.Now().UnixMilli() {
		return nil
	}
	return d
}

// Device starts a device flow, or returns the pending one with the note of its start.
// The note must not contain a secret. A failure of the provider is a *Failure.
func (e *Engine) Device(ctx context.Context, providerID, note string) (*Device, error) {
	p, err := e.provider(providerID)
	if err != nil {
		return nil, err
	}
	if p.DeviceURL == "" {
		return nil, apierr.New(400, "unsupported_flow", "This provider has no sign-in by a device code. Use the one in the browser.")
	}
	key := deviceKey(p.ID)
	if d := e.active(key); d != nil {
		return d.shown(), nil
	}
	var body form
	authorization := p.identify(&body) // RFC 8628 3.1
	if len(p.Scopes) > 0 {
		body.add("scope", strings.Join(p.Scopes, " "))
	}
	d := &device{Note: note}
	if d.ID, err = e.secret(); err != nil {
		return nil, err
	}
	if p.DevicePKCE {
		verifier, err := e.secret()
		if err != nil {
			return nil, err
		}
		body.add("code_challenge", Challenge(verifier))
		body.add("code_challenge_method", "S256")
		if d.Verifier, err = e.Vault.Seal(key, verifierField, secret.New(verifier)); err != nil {
			return nil, err
		}
	}
	status, header, answer, err := post(ctx, e.Doer(p, note), p.DeviceURL, authorization, body, callTimeout)
	if err != nil {
		return nil, err
	}
	code, err := d.read(status, answer, e.Now())
	if err != nil {
		return nil, err
	}
	if code == "" {
		return nil, refusal(status, header, gjson.GetBytes(answer, "error").Str)
	}
	if d.DeviceCode, err = e.Vault.Seal(key, deviceField, secret.New(code)); err != nil {
		return nil, err
	}
	if other := e.active(key); other != nil { // begun meanwhile
		return other.shown(), nil
	}
	if err := e.save(key, d); err != nil {
		return nil, err
	}
	return d.shown(), nil
}

// read reads the response of a device endpoint, RFC 8628 3.2, and returns the device
// code; "" if the response is a refusal.
func (d *device) read(status int, answer []byte, now time.Time) (string, error) {
	ok := status >= 200 && status <= 299
	if !jsonscan.Valid(answer) || !gjson.ParseBytes(answer).IsObject() {
		return "", failure(Transient, status, nil, "")
	}
	get := func(name string) string { return gjson.GetBytes(answer, name).Str }
	code := get("device_code")
	if !ok || code == "" && get("error") != "" {
		return "", nil
	}
	d.UserCode, d.URI, d.Complete = get("user_code"), get("verification_uri"), get("verification_uri_complete")
	if d.URI == "" {
		d.URI = get("verification_url") // Google's name
	}
	if d.Complete != "" && !isLink(d.Complete) {
		d.Complete = ""
	}
	if code == "" || len(code) > 8<<10 || d.UserCode == "" || len(d.UserCode) > 256 || !isLink(d.URI) {
		return "", failure(Transient, status, nil, "")
	}
	// Limited before the conversion to a Duration: a provider may send any number.
	interval := defaultInterval
	if n := gjson.GetBytes(answer, "interval"); n.Type == gjson.Number && n.Num > 0 {
		interval = time.Duration(max(1, min(n.Num, maxInterval.Seconds())) * float64(time.Second))
	}
	life := flowLife
	if n := gjson.GetBytes(answer, "expires_in"); n.Type == gjson.Number {
		life = time.Duration(max(minLife.Seconds(), min(n.Num, flowLife.Seconds())) * float64(time.Second))
	}
	d.Interval = interval.Milliseconds()
	d.NextPoll = now.Add(interval).UnixMilli()
	d.ExpiresAt = now.Add(life).UnixMilli()
	return code, nil
}

// isLink reports whether s may be shown to the user as a link.
func isLink(s string) bool {
	return strings.HasPrefix(s, "https://") && isVisible(s) && len(s) <= 2048 && !strings.ContainsAny(s, "\"<>\\")
}

// Poll asks the provider whether the user has decided, at most as often as the provider
// allows: the result of an early poll, or of one during another, is the time to wait.
//
// Errors that end the flow are a 400 with code no_flow, expired_token or access_denied,
// and a *Failure of kind Refused, Reauth or Lost. After a transient *Failure the caller
// may poll again.
func (e *Engine) Poll(ctx context.Context, providerID string) (*Polled, error) {
	p, err := e.provider(providerID)
	if err != nil {
		return nil, err
	}
	key := deviceKey(p.ID)
	d := e.active(key)
	if d == nil {
		if _, there := e.Rows.Get(key); there {
			e.Rows.Delete(key)
			return nil, apierr.New(400, "expired_token", "The code has expired. Start again.")
		}
		return nil, apierr.New(400, "no_flow", "No sign-in by a device code is under way at this provider. Start one.")
	}
	now := e.Now().UnixMilli()
	if now < d.NextPoll {
		return &Polled{Wait: time.Duration(d.NextPoll-now) * time.Millisecond}, nil
	}
	code, err := e.Vault.Open(key, deviceField, d.DeviceCode)
	if err != nil {
		return nil, err
	}
	var body form
	body.add("grant_type", deviceGrant)
	body.add("device_code", code.Reveal())
	if d.Verifier != "" {
		verifier, err := e.Vault.Open(key, verifierField, d.Verifier)
		if err != nil {
			return nil, err
		}
		body.add("code_verifier", verifier.Reveal())
	}
	// No other poll calls the provider during this call.
	d.NextPoll = now + d.Interval + callTimeout.Milliseconds()
	if err := e.save(key, d); err != nil {
		return nil, err
	}
	t, err := exchange(ctx, e.Doer(p, d.Note), p, body, callTimeout, e.Now())
	again := e.active(key)
	mine := again != nil && again.ID == d.ID
	if err == nil {
		if mine {
			e.Rows.Delete(key)
		}
		return &Polled{Grant: &Grant{p.ID, t, d.Note}}, nil
	}
	var f *Failure
	if !errors.As(err, &f) {
		return nil, err
	}
	switch f.Kind {
	case Pending, SlowDown, Transient:
		if !mine {
			return nil, apierr.New(400, "expired_token", "The code has expired. Start again.")
		}
		wait := time.Duration(again.Interval) * time.Millisecond
		switch {
		case f.Kind == SlowDown:
			wait = min(wait+slowDown, maxInterval)
			again.Interval = wait.Milliseconds()
		case f.Kind == Transient && f.Status == 0:
			// RFC 8628 3.5: back off after a time-out.
			wait = min(2*wait, maxInterval)
			again.Interval = wait.Milliseconds()
		}
		wait = max(wait, f.RetryAfter)
		again.NextPoll = e.Now().Add(wait).UnixMilli()
		if err := e.save(key, again); err != nil {
			return nil, err
		}
		if f.Kind == Transient {
			return nil, f
		}
		return &Polled{Wait: wait}, nil
	}
	if mine {
		e.Rows.Delete(key)
	}
	switch f.Kind {
	case Expired:
		return nil, apierr.New(400, "expired_token", "The code has expired. Start again.")
	case Denied:
		return nil, apierr.New(400, "access_denied", "Access was denied at the provider. Start again and allow it.")
	}
	return nil, f
}

// Cancel ends the device flow of a provider, if there is one.
func (e *Engine) Cancel(providerID string) { e.Rows.Delete(deviceKey(providerID)) }
