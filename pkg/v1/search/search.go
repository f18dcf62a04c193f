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

// Time limits. docs/reference/spec.md, 4.8; a chat model that searches takes
// longer than a search service, so it has the time of the whole.
const (
	providerTimeout = 10 * time.Second
	totalTimeout    = 15 * time.Second
	maxAnswer       = 16 << 20 // bytes
)

// Handler serves the endpoint.
type Handler struct {
	Accounts accounts.Sender
	Now      func() time.Time
}

// Create parses, resolves, searches and shapes the answer.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := parse(body)
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
	x := exchange{req: req, now: h.Now}
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: x.build, Read: x.read,
		Repeats: true, Timeout: totalTimeout,
	})
	if err != nil {
		return nil, err
	}
	a := res.Attempt.State.(*attempt)
	return endpoint.JSONAnswer(res.Header, a.resp.write(a.call, h.Now().Sub(started))), nil
}

// targets finds out who searches: what the model string names, else the
// search services of the machine, else its chat models with a search tool.
func (h *Handler) targets(c *auth.Call, model string) ([]routing.Target, error) {
	if model != "" {
		c.Trace.Asked = model
		all, err := routing.Resolve(model, c.Machine, catalog.WebSearch, c.Session())
		if err != nil {
			return nil, endpoint.Unresolved(err, c.Key, model)
		}
		for i := range all {
			// A provider of chat models that is named alone: its usual model.
			if to := &all[i]; to.Model == "search" && !to.Provider.Search {
				if s := serviceOf(to); s != nil {
					to.Model, to.Kind = s.chat.model, catalog.LLM
				}
			}
		}
		return endpoint.FilterTargets(all, c.Key, model, func(to *routing.Target) error {
			if to.Connections = c.Machine.Visible(to.Provider.Alias, to.Connections, to.Model); len(to.Connections) == 0 {
				return apierr.New(404, "model_not_found", "The model is disabled. Enable it on the page Models, or choose another one.")
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
			to := routing.Target{Provider: d, Alias: aliasOf(d, conns), Model: "search", Kind: catalog.WebSearch,
				Connections: conns}
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
		kept, err := endpoint.FilterTargets(all, c.Key, "", usable)
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
	e := apierr.Invalid("model", "No account of a provider with web search is connected. Add one under Providers.")
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
		return apierr.Invalid("model", "This model does not search the web. GET /v1/models/web lists those that do.")
	}
	if serviceOf(to) == nil {
		return apierr.Invalid("model", "The provider of this model does not search the web.")
	}
	return nil
}

var errShape = errors.New("the answer has another shape")

// exchange is one client's request.
type exchange struct {
	req *request
	now func() time.Time
}

// attempt is one upstream call and its answer.
type attempt struct {
	accounts.Attempt
	call *call
	resp *response
}

// build makes the upstream request of an attempt.
func (x *exchange) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	a := &attempt{call: newCall(x.req, serviceOf(to), to, x.now())}
	a.State = a
	method, url, err := to.Provider.Endpoint(conn, a.call.endpoint, a.call.model)
	if err != nil {
		return nil, err
	}
	body, query := a.call.payload()
	a.Dropped = a.call.dropped
	limit := providerTimeout
	if a.call.service.chat != nil {
		limit = totalTimeout
	}
	a.Request = upstream.Request{
		Method: method, URL: url + query, HeaderTimeout: limit, Timeout: limit, MaxBody: maxAnswer,
		Header: append(httpmsg.Header{{Name: "accept", Value: "application/json"},
			{Name: "accept-encoding", Value: "identity"}}, a.call.header...),
	}
	if body != nil {
		a.Request.Header.Add("content-type", "application/json")
		a.Request.Body = stream.FromBytes(body)
	}
	return &a.Attempt, nil
}

// read reads an answer.
func (x *exchange) read(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*attempt)
	raw, err := endpoint.ReadJSON(resp.Body, maxAnswer)
	if err != nil {
		return err
	}
	r := &response{provider: a.Target.Provider.ID, latency: x.now().Sub(a.call.now)}
	ok, err := a.call.read(r, gjson.ParseBytes(raw))
	if err == nil && !ok {
		err = endpoint.BadBody(errShape)
	}
	if err != nil {
		return err
	}
	if chat := a.call.service.chat; chat != nil {
		r.tokens = llm.UsageOf(chat.dialect, raw)
	}
	a.resp, a.Used = r, r.used()
	return nil
}
