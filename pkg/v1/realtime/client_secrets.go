package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	maxSecretAnswer = 8 << 20 // bytes; it repeats the session
	minSecret       = 8       // characters of a provider's client secret
	maxSecret       = 4 << 10
)

// CreateSecret serves POST /v1/realtime/client_secrets in OpenAI's shape.
//
//	{expires_after?, session: {type: "realtime", model, …}} → {value: "ek_…", expires_at, session}
//
// The provider creates the secret; the client gets one of the gateway, which has the
// provider's sealed inside.
func (h *Handler) CreateSecret(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	x := secretRequest{body: body, request: c.Request, settings: &c.Machine.Settings, now: h.Now}
	if err := x.parse(); err != nil {
		return nil, err
	}
	targets, err := h.targets(c, x.asked, "clientSecrets")
	if err == nil {
		err = endpoint.CheckFurtherModels(c.Key, body, targets)
	}
	if err != nil {
		return nil, err
	}
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: x.build, Read: x.read,
	})
	if err != nil {
		return nil, err
	}
	made := res.Attempt.State.(*createdSecret)
	s := &auth.ClientSecret{
		ConnectionID: res.Connection.ID, Asked: x.asked, Model: res.Target.ID(), ExpiresAt: made.expiresAt,
		Value: secret.New(made.value),
	}
	if c.Key != nil {
		s.KeyID, s.KeyDigest = c.Key.ID, c.KeyDigest[:]
	}
	own, err := h.Keys.SealClientSecret(c.MachineID, s)
	if err != nil {
		return nil, err
	}
	out, err := x.answer(made, own)
	if err != nil {
		return nil, endpoint.BadBody(err)
	}
	return endpoint.JSONAnswer(res.Header, out), nil
}

// secretRequest is a client's request for a client secret.
type secretRequest struct {
	body     []byte
	asked    string        // the model
	model    jsonscan.Span // of its value in body
	request  *httpmsg.Request
	settings *store.Settings
	now      func() time.Time
}

// createdSecret is a provider's answer.
type createdSecret struct {
	raw       []byte
	value     string
	expiresAt int64 // Unix seconds
}

// parse checks the body and finds its model.
func (x *secretRequest) parse() error {
	outer, err := jsonscan.Read(x.body, "session")
	if err != nil {
		return endpoint.BadJSON(err)
	}
	v := outer.Get("session")
	if v.Kind != jsonscan.Object || misspelled(x.body) {
		return apierr.Invalid("session", `session must be an object that names the model, as in {"session":{"type":"realtime","model":NAME}}.`)
	}
	inner, err := jsonscan.Read(outer.Raw("session"), "type", "model")
	if err != nil {
		return endpoint.BadJSON(err)
	}
	if kind, ok, err := inner.String("type"); ok && (err != nil || kind != "realtime") {
		return apierr.Invalid("session.type", `session.type must be "realtime": other sessions have no client secrets here.`)
	}
	x.asked, _, err = inner.String("model")
	if err != nil || x.asked == "" {
		return apierr.Invalid("session.model", "session.model must name a model.")
	}
	at := inner.Get("model")
	x.model = jsonscan.Span{Start: v.Start + at.Start, End: v.Start + at.End}
	return nil
}

// misspelled reports whether a field differs from "session" in case only: a server that
// ignores case might take the model from there.
func misspelled(body []byte) (bad bool) {
	gjson.ParseBytes(body).ForEach(func(name, _ gjson.Result) bool {
		bad = name.Str != "session" && strings.EqualFold(name.Str, "session")
		return !bad
	})
	return bad
}

func (x *secretRequest) build(to *routing.Target, conn *store.Connection,
	_ *accounts.Attempt) (*accounts.Attempt, error) {
	method, url, err := to.Provider.Endpoint(conn, "clientSecrets", to.Model)
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(to.Model)
	if err != nil {
		return nil, err
	}
	a := &accounts.Attempt{Request: upstream.Request{
		Method: method, URL: url, Body: stream.FromBytes(jsonscan.Splice(x.body, x.model, name)),
		HeaderTimeout: x.settings.FirstByte(), Timeout: x.settings.Whole(), MaxBody: maxSecretAnswer,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "application/json"},
			{Name: "accept-encoding", Value: "identity"}},
	}}
	for _, f := range x.request.Header {
		if clientheader.Sent(f.Name, clientheader.ToRealtime) {
			a.Request.Header.Add(f.Name, f.Value)
		}
	}
	return a, nil
}

// read reads an answer.
func (x *secretRequest) read(a *accounts.Attempt, resp *upstream.Response) error {
	raw, err := stream.ReadAll(resp.Body, maxSecretAnswer)
	if err == nil {
		err = endpoint.ValidJSON(raw)
	}
	if err != nil {
		return endpoint.BadBody(err)
	}
	made := &createdSecret{raw: raw, value: gjson.GetBytes(raw, "value").Str,
		expiresAt: gjson.GetBytes(raw, "expires_at").Int()}
	if !isToken(made.value) || made.expiresAt <= x.now().Unix() {
		return endpoint.BadBody(errors.New("the answer has no valid client secret"))
	}
	a.State, a.Used = made, accounts.StatedCost(0, true)
	return nil
}

// isToken reports whether a text may be sent as a bearer token (RFC 6750, 2.1).
func isToken(s string) bool {
	if len(s) < minSecret || len(s) > maxSecret {
		return false
	}
	for _, b := range []byte(s) {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-._~+/=", b) >= 0) {
			return false
		}
	}
	return true
}

// answer returns the provider's answer with the gateway's own secret in place of the
// provider's, and with the model as the client named it.
func (x *secretRequest) answer(made *createdSecret, own string) ([]byte, error) {
	out, err := sjson.SetBytes(bytes.ReplaceAll(made.raw, []byte(made.value), []byte(own)), "value", own)
	if err == nil && gjson.GetBytes(out, "session.client_secret").Exists() {
		out, err = sjson.SetBytes(out, "session.client_secret", map[string]any{"value": own, "expires_at": made.expiresAt})
	}
	if err == nil && !gjson.GetBytes(out, "session").IsObject() {
		out, err = sjson.SetRawBytes(out, "session", []byte(gjson.GetBytes(x.body, "session").Raw))
	}
	if err == nil {
		out, err = sjson.SetBytes(out, "session.model", x.asked)
	}
	return out, err
}

// boundTargets returns the target that a client secret stands for.
func (h *Handler) boundTargets(c *auth.Call, asked string) ([]routing.Target, error) {
	s := c.ClientSecret
	c.Trace.Asked = s.Asked
	if asked != "" && asked != s.Asked && asked != s.Model {
		return nil, apierr.New(403, "model_not_allowed",
			"This client secret is for another model. Connect to the one that it was created for, or create another.")
	}
	all, err := routing.Resolve(s.Model, c.Machine, "", c.Session())
	if err != nil {
		return nil, err
	}
	for i := range all {
		to := &all[i]
		for _, conn := range to.Connections {
			if conn.ID == s.ConnectionID && to.ID() == s.Model {
				to.Connections = []*store.Connection{conn}
				return endpoint.FilterTargets(all[i:i+1], c.Key, s.Asked, serves("realtime"))
			}
		}
	}
	return nil, rpc.ErrClientSecret()
}

// credential returns what is presented in place of an account's own credential.
func credential(s *auth.ClientSecret) *provider.Credential {
	if s == nil {
		return nil
	}
	return &provider.Credential{AccessToken: s.Value}
}
