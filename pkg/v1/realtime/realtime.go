// Package realtime serves GET /v1/realtime, a WebSocket of OpenAI's Realtime API: its
// messages pass between the client and a provider that has it. The program reads only
// those that state usage. POST /v1/realtime/client_secrets creates credentials for
// browsers.
package realtime

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm/ir"
	"weir/pkg/machine/rpc"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/upstream"
)

// usual are the vendors of models that clients name without one.
var usual = [...]struct{ alias, begins string }{
	{"openai", "gpt-realtime"}, {"openai", "gpt-4o-realtime"}, {"openai", "gpt-4o-mini-realtime"}, {"xai", "grok-voice"},
}

// The sub-protocol that browsers offer beside the one with their key.
const protocol = "realtime"

const (
	maxRefusal = 64 << 10 // bytes of the answer of a provider that refuses
	checkEvery = time.Minute
)

// authenticator is the part of auth.Authenticator used here.
type authenticator interface {
	Live(ctx context.Context, c *auth.Call) bool
	SealClientSecret(machineID string, s *auth.ClientSecret) (string, error)
}

// flusher sends the usage of a machine.
type flusher interface {
	Flush(ctx context.Context, m *snapshot.Machine)
}

// Handler serves the endpoint.
type Handler struct {
	Accounts accounts.Sender
	Keys     authenticator
	Reports  flusher // may be nil
	Now      func() time.Time
}

// Connect resolves the model of the address, opens the provider's socket and then the
// client's. The account stays the same as long as they are open.
func (h *Handler) Connect(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	targets, err := h.asked(c)
	if err != nil {
		return nil, err
	}
	x := session{request: c.Request, limits: socket.Standard(), settings: &c.Machine.Settings}
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: x.build, Read: opened,
		Credential: credential(c.ClientSecret),
	})
	if e := (*apierr.Error)(nil); c.ClientSecret != nil && errors.As(err, &e) && e.Status == 401 {
		return nil, rpc.ErrClientSecret()
	}
	if err != nil {
		return nil, err
	}
	resp := &httpmsg.Response{Status: 101, Upgrade: &socket.Upgrade{Limits: x.limits,
		Serve: func(ctx context.Context, client socket.Conn) {
			h.relay(ctx, c, client, res)
		}}}
	if offers(c.Header.Get("sec-websocket-protocol"), protocol) {
		resp.Header.Add("sec-websocket-protocol", protocol)
	}
	return resp, nil
}

// asked returns the targets of the address, or of the caller's client secret.
func (h *Handler) asked(c *auth.Call) ([]routing.Target, error) {
	model := endpoint.Query(c.Query, "model")
	switch {
	case c.ClientSecret != nil:
		return h.boundTargets(c, model)
	case model == "":
		return nil, apierr.Invalid("model", "The address names no model; connect to /v1/realtime?model=NAME.")
	}
	return h.targets(c, model, "realtime")
}

// targets resolves a model of providers with an endpoint. A vendor's bare name means that
// vendor, if it is connected.
func (h *Handler) targets(c *auth.Call, asked, name string) ([]routing.Target, error) {
	model := asked
	if !strings.Contains(asked, "/") && c.Machine.Combo(asked) == nil && c.Machine.Alias(asked) == "" {
		for _, u := range usual {
			if strings.HasPrefix(asked, u.begins) && len(c.Machine.Active(u.alias)) > 0 {
				model = u.alias + "/" + asked
				break
			}
		}
	}
	return endpoint.Targets(c, model, "", serves(name))
}

// serves returns a check that the provider of a target has an endpoint.
func serves(name string) func(*routing.Target) error {
	return func(to *routing.Target) error {
		switch {
		case !to.Provider.Serves("realtime"):
			return apierr.Invalid("model", "The provider of this model has no Realtime API.")
		case !to.Provider.Serves(name):
			return apierr.Invalid("model", "The provider of this model has no client secrets for its Realtime API. Connect with an API key.")
		}
		return nil
	}
}

// session is a client's request for a socket.
type session struct {
	request  *httpmsg.Request
	limits   socket.Limits
	settings *store.Settings
}

func (x *session) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	method, url, err := to.Provider.Endpoint(conn, "realtime", to.Model)
	if err != nil {
		return nil, err
	}
	if endpoint.Query(x.request.Query, "intent") == "transcription" {
		url += "&intent=transcription"
	}
	a := &accounts.Attempt{Request: upstream.Request{
		Method: method, URL: url, Socket: &x.limits, MaxBody: maxRefusal, HeaderTimeout: x.settings.FirstByte(),
	}}
	for _, f := range x.request.Header {
		if clientheader.Sent(f.Name, clientheader.ToRealtime) {
			a.Request.Header.Add(f.Name, f.Value)
		}
	}
	return a, nil
}

// opened refuses an answer of 2xx that is no socket.
func opened(_ *accounts.Attempt, resp *upstream.Response) error {
	if resp.Socket == nil {
		return apierr.New(502, "bad_upstream_body", "The provider did not open a WebSocket.")
	}
	return nil
}

// relay passes the messages until one side ends, and records what they used. Answers that
// have not ended then are billed too, and unpriced.
func (h *Handler) relay(ctx context.Context, c *auth.Call, client socket.Conn, res *accounts.Result) {
	answers := 0 // that have begun and not ended
	end, byProvider := client.Relay(res.Socket, socket.Watch{
		Texts: []string{`"response.created"`, `"response.done"`, `input_audio_transcription.completed"`},
		Seen: func(event []byte) *socket.Closed {
			answers = max(answers+answersBy(event), 0)
			used, ok := usedBy(event)
			if !ok {
				return nil
			}
			res.Use(used)
			if e := res.Next(ctx); e != nil {
				c.Trace.Err = e
				return &socket.Closed{Code: socket.Policy, Reason: e.Code + ": a budget of the machine has ended the session"}
			}
			return nil
		},
		Every: checkEvery,
		Check: func() *socket.Closed {
			if !h.Keys.Live(ctx, c) {
				return &socket.Closed{Code: socket.Policy, Reason: "the API key may not be used any more"}
			}
			if h.Reports != nil {
				h.Reports.Flush(ctx, c.Machine)
			}
			return nil
		},
	})
	for range answers {
		left := accounts.Used{Price: accounts.Unknown}
		left.Tokens.NoRate("tokens") // no event states them
		res.Use(left)
	}
	res.Closed()
	if byProvider && end.Code == socket.Abnormal {
		c.Trace.Err = end
	}
}

// answersBy returns 1 for an event of the provider with which an answer begins, and -1 for
// one with which it ends.
func answersBy(event []byte) int {
	switch gjson.GetBytes(event, "type").Str {
	case "response.created":
		return 1
	case "response.done":
		return -1
	}
	return 0
}

// usedBy returns what an event of the provider says was used.
//
//	response.done            response.usage, one of each answer
//	….transcription.completed  usage, of the transcription of the user's speech
//
// Audio and images have prices of their own, also when they were cached, if the event says
// what was. The cost of a transcription is unknown: it has the prices of another model.
func usedBy(event []byte) (accounts.Used, bool) {
	e := gjson.ParseBytes(event)
	var v gjson.Result
	transcript := false
	switch e.Get("type").Str {
	case "response.done":
		v = e.Get("response.usage")
	case "conversation.item.input_audio_transcription.completed":
		v, transcript = e.Get("usage"), true
	}
	if !v.IsObject() {
		return accounts.Used{}, false
	}
	used := accounts.Used{Price: accounts.Unknown}
	if n := v.Get("input_tokens"); n.Type == gjson.Number {
		in, out := v.Get("input_token_details"), v.Get("output_token_details")
		cached := in.Get("cached_tokens_details")
		used.Tokens = ir.Usage{
			Known: true, Final: true, Input: ir.Count(n), Output: ir.Count(v.Get("output_tokens")),
			CacheRead:  ir.Count(in.Get("cached_tokens")),
			AudioInput: ir.Count(in.Get("audio_tokens")), AudioOutput: ir.Count(out.Get("audio_tokens")),
			ImageInput:     ir.Count(in.Get("image_tokens")),
			AudioCacheRead: ir.Count(cached.Get("audio_tokens")), ImageCacheRead: ir.Count(cached.Get("image_tokens")),
			CacheByKind: cached.IsObject(),
		}
		if !transcript {
			used.Price = accounts.ByTokens
		}
	}
	if transcript {
		used.Tokens.NoRate("transcription")
	}
	return used, true
}

// offers reports whether a list of sub-protocols has one.
func offers(list, name string) bool {
	for p := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(p) == name {
			return true
		}
	}
	return false
}
