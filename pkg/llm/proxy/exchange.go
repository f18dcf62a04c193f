package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// The limits of an exchange besides those of the settings.
const (
	maxAnswer   = 32 << 20         // bytes of a JSON answer
	streamTotal = 15 * time.Minute // docs/reference/reliability.md, F10
)

// exchange is one client's request on its way to the upstreams and back.
type exchange struct {
	ctx          context.Context
	dialog       *Dialog
	call         *auth.Call
	ask          *Ask
	many         bool              // there are several targets
	chatOnlyConn *store.Connection // the one whose Responses address turned out to be absent
	absent       *apierr.Error     // its answer
	refusal      error             // why a target could not be asked this

	// Of the attempt under way.
	to      *routing.Target
	conn    *store.Connection
	way     way
	opt     llm.Options
	tools   llm.Tools // of opt
	dropped []string
	counted int // attempts whose usage is noted
	refused refused

	// What check found.
	found found
}

// build makes the upstream's request for one target and account.
func (x *exchange) build(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
	x.failed(nil) // an attempt before this one has failed
	x.to, x.conn = to, conn
	w, ok := wayOf(to, conn, x.ask.Dialect, x.lacksResponses(conn) || x.dialog.isChatOnly(place{x.call.Machine.ID, conn.ID}))
	if !ok {
		return nil, fmt.Errorf("chat: %w", provider.ErrNoEndpoint)
	}
	x.way = w
	x.opt = x.options()
	body, dropped, err := llm.Request(x.ask.Dialect, w.dialect, x.ask.Body, x.opt)
	if err != nil {
		if x.many {
			// Another member of the combo may understand it.
			if x.refusal == nil {
				x.refusal = err
			}
			return nil, fmt.Errorf("request for %s: %w", to.Provider.ID, provider.ErrNoEndpoint)
		}
		return nil, err
	}
	x.dropped = dropped
	body, betas := x.addBetas(body)
	name := w.endpoint
	if x.ask.Stream {
		name = w.stream
	}
	method, url, err := w.address(to.Provider, conn, name)
	if err != nil {
		return nil, err
	}
	req := &upstream.Request{Method: method, URL: x.beta(url), Header: x.header(), Body: stream.FromBytes(body)}
	if betas != "" {
		req.Header.Add("anthropic-beta", betas)
	}
	s := &x.call.Machine.Settings
	if x.ask.Stream {
		req.HeaderTimeout, req.Timeout = s.FirstEvent(), streamTotal
		return req, nil
	}
	req.HeaderTimeout, req.Timeout, req.MaxBody = s.FirstByte(), s.Whole(), maxAnswer
	return req, nil
}

// form returns the form of the target's errors.
func (x *exchange) form() accounts.ErrorForm {
	if x.way.dialect == x.ask.Dialect {
		return accounts.ErrorsSame
	}
	return accounts.ErrorsForeign
}

// lacksResponses reports whether the server of an account has said, to this
// account or to another of the same address, that it has no Responses endpoint.
func (x *exchange) lacksResponses(conn *store.Connection) bool {
	from := x.chatOnlyConn
	return from != nil && from.Provider == conn.Provider && from.Data.BaseURL == conn.Data.BaseURL
}

// base is the further base whose credentials the last build wants.
func (x *exchange) base(*routing.Target) *provider.Base { return x.way.base }

func (w *way) address(d *provider.Descriptor, conn *store.Connection, name string) (method, url string, err error) {
	if w.base != nil {
		return d.EndpointOf(w.base, conn, name, w.model)
	}
	return d.Endpoint(conn, name, w.model)
}

// options returns what the translation needs besides the bodies.
func (x *exchange) options() llm.Options {
	x.tools = llm.Tools{}
	o := llm.Options{
		Model: x.way.model, ID: strings.TrimPrefix(x.call.ID, "req_"), Now: x.dialog.Now().Unix(),
		Deviations: llm.DeviationsOf(x.to.Provider.ID), StreamUsage: x.ask.Usage,
		Tools: &x.tools, Vendor: !x.to.Provider.Compatible, LongUser: x.ask.LongUser,
	}
	if x.way.dialect == llm.Chat && o.Deviations.Passes {
		o.Refuses = x.refusals()
	}
	if x.way.dialect != x.ask.Dialect && !x.ask.Stream {
		o.Lost = x.lost
	}
	if x.ask.Dialect == llm.Responses && x.way.dialect != llm.Responses {
		o.Settings = &llm.Settings{}
	}
	if x.way.dialect == x.ask.Dialect && len(o.Deviations.DropReasoning) == 0 {
		return o
	}
	if x.way.dialect != x.ask.Dialect && x.dialog.Pause != nil {
		// The call continues even if its client has disconnected.
		o.Pause = func() { _ = x.dialog.Pause.Pause(x.ctx, 0) }
	}
	for _, m := range catalog.Lookup(x.to.Provider.Alias, x.to.Model) {
		if m.Kind == catalog.LLM {
			o.MaxOutput = int64(m.MaxOutput)
			if x.way.dialect == llm.Messages {
				o.MaxTokens = o.MaxOutput // it needs a limit: none that cuts an answer short
			}
			o.Reasoning, _ = m.Caps.Get(catalog.Reasoning)
		}
	}
	return o
}

// lost adds the name of a part of the answer to x-weir-dropped.
func (x *exchange) lost(name string) {
	if !slices.Contains(x.dropped, name) {
		x.dropped = append(x.dropped[:len(x.dropped):len(x.dropped)], name)
	}
}

const messagesVersion = "2023-06-01" // docs/reference/spec.md, 9

// beta passes ?beta=true of Anthropic's clients to an upstream of their own
// dialect.
func (x *exchange) beta(url string) string {
	if x.ask.Dialect != llm.Messages || x.way.dialect != llm.Messages || x.way.hosted || endpoint.Query(x.call.Query, "beta") != "true" {
		return url
	}
	if strings.Contains(url, "?") {
		return url + "&beta=true"
	}
	return url + "?beta=true"
}

// header makes the fields of the upstream's request. Version, beta and session
// fields of a client go to an upstream of its own dialect only.
func (x *exchange) header() httpmsg.Header {
	accept := "application/json"
	switch {
	case x.ask.Stream && x.way.frames:
		accept = "application/vnd.amazon.eventstream"
	case x.ask.Stream:
		accept = "text/event-stream"
	}
	h := make(httpmsg.Header, 0, 10)
	h = append(h,
		httpmsg.Field{Name: "content-type", Value: "application/json"},
		httpmsg.Field{Name: "accept", Value: accept},
		httpmsg.Field{Name: "accept-encoding", Value: "identity"})
	h = append(h, provider.IdempotencyKey(x.call.Header, 0)...)
	if x.way.dialect == x.ask.Dialect && !x.way.hosted {
		switch x.ask.Dialect {
		case llm.Messages:
			h = append(h, provider.RequestHeader(x.call.Header, clientheader.ToMessages)...)
		case llm.Responses:
			h = append(h, provider.RequestHeader(x.call.Header, clientheader.ToResponses)...)
		}
	}
	if x.way.dialect == llm.Messages && !x.way.hosted && h.Get("anthropic-version") == "" {
		h = append(h, httpmsg.Field{Name: "anthropic-version", Value: messagesVersion})
	}
	return h
}

// hasNoResponses tells whether a failure may mean that the server has no
// Responses endpoint, and that the request can go to its chat.
func (x *exchange) hasNoResponses(err error) bool {
	return absent(err) && x.ask.Dialect == llm.Responses && x.way.dialect == llm.Responses && !x.ask.Stateful && x.ask.Connection == ""
}

// unasked returns the reason why no target could be called, if that is what
// failed; or the refusal of the client's own form of the request, if the other
// form was refused too.
func (x *exchange) unasked(err error) error {
	var e *apierr.Error
	if !errors.As(err, &e) {
		return err
	}
	if x.refusal != nil && (e.Code == "unsupported_endpoint" || e.Code == "no_credentials") {
		return x.refusal
	}
	if first := x.refused.first; first != nil && e.Status < 500 && e.Param != "" && e.Param != first.Param {
		if r := llm.RefusalOf(e.Param); r != 0 && opposite(r)&x.refused.learned != 0 {
			return first
		}
	}
	return err
}

// row is a row of usage of the attempt under way.
func (x *exchange) row() usage.Row {
	return usage.Row{
		KeyID: x.call.Trace.KeyID, ConnectionID: x.conn.ID, Provider: x.to.Provider.ID,
		Model: x.to.ID(), Endpoint: x.call.Trace.Route, Requests: 1,
	}
}

// failed notes the attempt under way as one that failed, if it was made and is
// not noted yet. err is what the whole plan came to, or nil.
func (x *exchange) failed(err error) {
	made := x.call.Trace.Attempts
	if made <= x.counted || x.found.settled {
		return
	}
	x.counted, x.call.Trace.Metered = made, true
	var e *apierr.Error
	if x.dialog.Usage == nil || errors.As(err, &e) && e.Status == 499 {
		return
	}
	r := x.row()
	r.Errors = 1
	x.dialog.Usage.Use(x.call.Machine, r)
}

// used notes what the answer has used. failed tells that it did not come to
// its proper end.
func (x *exchange) used(u llm.Usage, failed bool) {
	x.counted = x.call.Trace.Attempts
	if x.dialog.Usage == nil {
		return
	}
	r := x.row()
	if failed {
		r.Errors = 1
	}
	r.Price(x.to.Provider.Alias, x.to.Model, u)
	x.call.Trace.Metered, x.call.Trace.Used = true, r.Used()
	x.dialog.Usage.Use(x.call.Machine, r)
}
