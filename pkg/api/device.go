package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// Device serves the sign-in of devices, such as weir login: /api/device. See package rpc.
type Device struct {
	*Handler
	PublicURL string // see OAuth
	Rand      io.Reader
	// From returns a digest of the address that a request comes from.
	From func(r *httpmsg.Request) string
}

const maxDeviceName = 64

// deviceStarted is the answer to POST /api/device, as in RFC 8628, 3.2.
type deviceStarted struct {
	DeviceCode   string `json:"device_code"`
	UserCode     string `json:"user_code"`
	Verification string `json:"verification_uri"`
	Complete     string `json:"verification_uri_complete"`
	ExpiresIn    int    `json:"expires_in"` // seconds
	Interval     int    `json:"interval"`   // seconds
}

// Start serves POST /api/device.
//
//	{"name":"laptop"} → 200 deviceStarted; 429 after ten from an address
func (h *Device) Start(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	name, err := textField(c, "name")
	if err != nil {
		return nil, err
	}
	name = apierr.Shorten(strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, name)), maxDeviceName)
	if name == "" {
		return nil, apierr.Invalid("name", "name is required: the name of the computer.")
	}
	code, err := rpc.MintDeviceCode(h.Rand, h.KeySecret)
	if err != nil {
		return nil, err
	}
	in := rpc.DeviceStart{Digest: rpc.KeyDigest(code), Name: name, From: h.From(c.Request), Address: c.Header.Get("cf-connecting-ip")}
	started, err := rpc.Call[rpc.DeviceStarted](ctx, h.Objects, rpc.RegistryID, "device.start", in)
	if err != nil {
		return nil, err
	}
	origin := cmp.Or(h.PublicURL, c.Origin)
	shown := started.UserCode[:4] + "-" + started.UserCode[4:]
	return secretAnswer(deviceStarted{code, shown, origin + "/#/device", origin + "/#/device?code=" + shown, rpc.DeviceSeconds,
		rpc.DeviceInterval}), nil
}

// Token serves POST /api/device/token: a poll.
//
//	{"device_code":"…"} → 200 {"apiKey","machineId"};
//	400 authorization_pending, slow_down, access_denied, expired_token
func (h *Device) Token(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	code, err := textField(c, "device_code")
	if err != nil {
		return nil, err
	}
	if !rpc.IsDeviceCode(h.KeySecret, code) {
		return nil, rpc.ErrDeviceExpired()
	}
	digest := rpc.KeyDigest(code)
	to, err := rpc.Call[rpc.DeviceMachine](ctx, h.Objects, rpc.RegistryID, "device.poll", rpc.DeviceFind{Digest: digest})
	if err != nil {
		return nil, err
	}
	claim := rpc.ClaimLease{Digest: digest, Tool: rpc.DeviceTool}
	key, err := rpc.Call[rpc.ClaimedLease](ctx, h.Objects, to.MachineID, "lease.claim", claim)
	h.Cache.Invalidate(to.MachineID)
	if e, ok := errors.AsType[*apierr.Error](err); ok && e.Code == "invalid_lease" {
		return nil, rpc.ErrDeviceExpired()
	}
	if err != nil {
		return nil, err
	}
	return secretAnswer(struct {
		APIKey    string `json:"apiKey"`
		MachineID string `json:"machineId"`
	}{key.APIKey, to.MachineID}), nil
}

// Show serves GET /api/device/{code}: the sign-in that waits with a user code.
func (h *Device) Show(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	d, err := h.find(ctx, c)
	if err != nil {
		return nil, err
	}
	d.Digest = ""
	return answer(200, rpc.JSON(d)), nil
}

// Decide serves POST /api/device/{code}: the caller approves the sign-in for the machine, or
// denies it. The machine stores that first: an approval that is not noted in the registry
// leads to nothing.
//
//	{"approve":true} → 204
func (h *Device) Decide(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	approve := gjson.GetBytes(env.Body, "approve")
	if !approve.IsBool() {
		return nil, apierr.Invalid("approve", "approve is required: true or false.")
	}
	d, err := h.find(ctx, c)
	if err != nil {
		return nil, err
	}
	env.MutationID = "" // a code is decided once
	env.Params = []string{"code"}
	env.Body = rpc.JSON(map[string]any{"approve": approve.Bool(), "digest": d.Digest, "name": d.Name})
	resp, err := h.send(ctx, c, env)
	if err != nil {
		return nil, err
	}
	decided := rpc.DeviceDecide{Digest: d.Digest}
	if approve.Bool() {
		decided.MachineID = c.MachineID
	}
	if _, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "device.decide", decided); err != nil {
		return nil, err
	}
	return resp, nil
}

// find returns the sign-in of the path. Codes are compared without case and hyphens.
func (h *Device) find(ctx context.Context, c *auth.Call) (rpc.Device, error) {
	in := rpc.DeviceFind{UserCode: strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(c.Params[0])), Who: "operator"}
	switch {
	case c.Person != nil:
		in.Who = c.Person.ID
	case c.Key != nil:
		in.Who = c.MachineID + hex.EncodeToString(c.KeyDigest[:]) + c.Key.ID
	}
	return rpc.Call[rpc.Device](ctx, h.Objects, rpc.RegistryID, "device.find", in)
}

// textField reads a body that has one field, a text.
func textField(c *auth.Call, name string) (string, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return "", err
	}
	if _, err := jsonscan.Read(raw, name); err != nil {
		return "", endpoint.BadJSON(err)
	}
	v := gjson.GetBytes(raw, name)
	if v.Type != gjson.String || len(v.Str) > rpc.MaxKey {
		return "", apierr.Invalid(name, "%s must be a text of at most %d bytes.", name, rpc.MaxKey)
	}
	return v.Str, nil
}

// secretAnswer returns an answer that no cache keeps.
func secretAnswer(v any) *httpmsg.Response {
	resp := answer(200, rpc.JSON(v))
	resp.Header.Set("cache-control", "no-store")
	return resp
}
