// Package search serves POST /v1/search: results of a web search in one shape,
// whoever searched.
//
// A search service of the machine's providers is asked, or a chat model that
// has a search tool.
package search

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Time limits. docs/reference/spec-gaps.md, 5; a chat model that searches takes
// longer than a search service, so it has the time of the whole.
const (
	providerTimeout = 10 * time.Second
	totalTimeout    = 15 * time.Second
	maxAnswer       = 16 << 20 // bytes
)

// Handler serves the endpoint.
type Handler struct {
	Router   endpoint.Router
	Accounts endpoint.Sender
	Allows   endpoint.Allows
	// Normalize returns the NFKC form of a text. The platform provides it, because
	// own tables would slow the start. nil leaves texts unchanged.
	Normalize func(string) string
	Usage     endpoint.Meter // may be nil
	Now       func() time.Time
}

// Create parses, resolves, searches and shapes the answer.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := parse(body, h.Normalize)
	if err != nil {
		return nil, err
	}
	targets, err := h.targets(c, req.model)
	if err != nil {
		return nil, err
	}
	started := c.Start
	if started.IsZero() {
		started = h.Now()
	}
	x := exchange{req: req, now: h.Now, tally: endpoint.Tally{Meter: h.Usage, Call: c}}
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Targets: targets, Build: x.build, Check: x.check,
		Dropped: func() []string { return x.call.dropped }, Timeout: totalTimeout,
	})
	if err != nil {
		x.tally.Failed(err)
		return nil, err
	}
	x.tally.Done(x.resp.count)
	c.Trace.Dropped = x.call.dropped
	return endpoint.JSONAnswer(res.Header, x.resp.write(x.call, h.Now().Sub(started))), nil
}

// targets finds out who searches: what the model string names, else the
// search services of the machine, else its chat models with a search tool.
func (h *Handler) targets(c *auth.Call, model string) ([]routing.Target, error) {
	if model != "" {
		c.Trace.Asked = model
		all, err := h.Router.Resolve(model, c.Machine, catalog.WebSearch)
		if err != nil {
			return nil, err
		}
		for i := range all {
			// A provider of chat models that is named alone: its usual model.
			if to := &all[i]; to.Model == "search" && !to.Provider.Search {
				if s := serviceOf(to); s != nil {
					to.Model, to.Kind = s.chat.model, catalog.LLM
				}
			}
		}
		return endpoint.Keep(all, h.Allows, c.Key, model, func(to *routing.Target) error {
			if to.Connections = c.Machine.Visible(to.Provider.Alias, to.Connections, to.Model); len(to.Connections) == 0 {
				return apierr.New(404, "model_not_found", "the model is disabled")
			}
			return usable(to)
		})
	}
	var refusal error
	for _, native := range [...]bool{true, false} {
		var all []routing.Target
		for _, id := range c.Machine.Providers() {
			conns := c.Machine.Active(id)
			d := provider.Lookup(id)
			if d == nil || d.Search != native {
				continue
			}
			to := routing.Target{Provider: d, Alias: aliasOf(d, conns), Model: "search", Kind: catalog.WebSearch, Connections: conns}
			s := serviceOf(&to)
			if s == nil {
				continue
			}
			if !native {
				to.Model, to.Kind = s.chat.model, catalog.LLM
			}
			if to.Connections = c.Machine.Visible(d.Alias, to.Connections, to.Model); len(to.Connections) > 0 {
				all = append(all, to)
			}
		}
		if len(all) == 0 {
			continue
		}
		kept, err := endpoint.Keep(all, h.Allows, c.Key, "", usable)
		if err == nil {
			return kept, nil
		}
		if refusal == nil {
			refusal = err
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	e := apierr.Invalid("model", "there are no credentials for a provider that searches the web")
	e.Code = "no_credentials"
	return nil, e
}

// aliasOf returns the output alias of a provider for its connections.
func aliasOf(d *provider.Descriptor, conns []*store.Connection) string {
	if len(conns) > 0 {
		if p := strings.TrimSpace(conns[0].Data.Prefix); p != "" {
			return p
		}
	}
	return d.Alias
}

// usable returns why a target cannot search, or nil.
func usable(to *routing.Target) error {
	switch to.Kind {
	case "", catalog.LLM, catalog.ImageToText, catalog.WebSearch:
	default:
		return apierr.Invalid("model", "the model does not search the web")
	}
	if serviceOf(to) == nil {
		return apierr.Invalid("model", "the provider of this model does not search the web")
	}
	return nil
}

var errShape = errors.New("the answer has another shape")

// exchange is one request on its way to the providers and back.
type exchange struct {
	req   *request
	now   func() time.Time
	to    *routing.Target
	call  *call
	resp  *response
	tally endpoint.Tally
}

// build makes the upstream request of an attempt.
func (x *exchange) build(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
	x.tally.Begin(to, conn)
	x.to = to
	x.call = newCall(x.req, serviceOf(to), to, x.now())
	method, url, err := to.Provider.Endpoint(conn, x.call.endpoint, x.call.model)
	if err != nil {
		return nil, err
	}
	body, query := x.call.payload()
	limit := providerTimeout
	if x.call.service.chat != nil {
		limit = totalTimeout
	}
	req := &upstream.Request{
		Method: method, URL: url + query, HeaderTimeout: limit, Timeout: limit, MaxBody: maxAnswer,
		Header: append(httpmsg.Header{{Name: "accept", Value: "application/json"}, {Name: "accept-encoding", Value: "identity"}}, x.call.header...),
	}
	if body != nil {
		req.Header.Add("content-type", "application/json")
		req.Body = stream.FromBytes(body)
	}
	return req, nil
}

// check reads an answer.
func (x *exchange) check(resp *upstream.Response) error {
	raw, err := stream.ReadAll(resp.Body, maxAnswer)
	if err == nil {
		err = endpoint.ValidJSON(raw)
	}
	if err != nil {
		return endpoint.BadBody(err)
	}
	r := &response{provider: x.to.Provider.ID, header: resp.Header, latency: x.now().Sub(x.call.now)}
	ok, err := x.call.read(r, gjson.ParseBytes(raw))
	if err == nil && !ok {
		err = endpoint.BadBody(errShape)
	}
	if err != nil {
		return err
	}
	if chat := x.call.service.chat; chat != nil {
		r.tokens = llm.UsageOf(chat.dialect, raw)
	}
	x.resp = r
	return nil
}
