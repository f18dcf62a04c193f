// Package embeddings serves POST /v1/embeddings.
//
// The provider's accounts are tried in turn, and the answer has the shape of
// docs/reference/spec.md, 2.9 whatever the provider spoke: items in the order
// of the input, in the encoding the client asked for, with usage and the model
// id it asked for.
package embeddings

import (
	"context"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	maxAnswer = 32 << 20 // bytes of one upstream answer
	// maxCalls is the number of upstream calls that one request may be split
	// into where a provider takes few inputs at a time.
	maxCalls = 64
	// leastUser is the length of a user's id that every provider accepts.
	leastUser = 64
)

// router is the part of routing.Router used here.
type router interface {
	Resolve(model string, m *snapshot.Machine, kind catalog.Kind) ([]routing.Target, error)
}

// sender is the part of accounts.Pool used here.
type sender interface {
	Send(ctx context.Context, call *accounts.Call) (*accounts.Result, error)
}

// Handler serves the endpoint.
type Handler struct {
	Router   router
	Accounts sender
	// Allows reports whether a key may use a model, by the name asked for or the
	// public id of a target. nil allows all.
	Allows func(k *store.Key, id string) bool
}

// Create parses, resolves, sends and shapes the answer.
//
// Inputs over what the provider takes in one call go up in several, one after
// the other, to the same upstream model; the answer is whole or an error.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := parse(body)
	if err != nil {
		return nil, err
	}
	targets, err := h.targets(c, req)
	if err == nil {
		err = endpoint.Further(h.Allows, c.Key, body, targets)
	}
	if err != nil {
		return nil, err
	}
	x := exchange{req: req, call: c}
	call := &accounts.Call{Machine: c.Machine, Request: c.Request, Targets: targets, Build: x.build, Check: x.check, Dropped: func() []string { return x.drops }}
	var res *accounts.Result
	for x.from < req.count {
		if res, err = h.Accounts.Send(ctx, call); err != nil {
			return nil, err
		}
		x.settle()
		// The vectors of one answer must come from one model.
		call.Targets = []routing.Target{*res.Target}
	}
	c.Trace.Dropped = x.dropped
	used := usage.Row{Requests: 1} // whether or not its price is known
	used.Price(res.Target.Provider.Alias, res.Target.Model, llm.Usage{Input: max(x.answer.inputTokens, 0), Known: x.answer.inputTokens >= 0})
	c.Trace.Used = used.Used()
	out, err := x.answer.write(req)
	if err != nil {
		return nil, err
	}
	header := append(make(httpmsg.Header, 0, 12), httpmsg.Field{Name: "content-type", Value: "application/json"})
	return &httpmsg.Response{
		Status: 200,
		Header: append(header, provider.ResponseNotes(res.Header)...),
		Body:   stream.FromBytes(out),
	}, nil
}

// targets resolves the model and leaves the targets that the key may use and
// that can embed this input.
func (h *Handler) targets(c *auth.Call, req *request) ([]routing.Target, error) {
	c.Trace.Asked = req.model
	all, err := h.Router.Resolve(req.model, c.Machine, catalog.Embedding)
	if err != nil {
		return nil, err
	}
	asked := h.Allows == nil || h.Allows(c.Key, req.model)
	kept := all[:0]
	var refusal error
	for i := range all {
		err := usable(&all[i], req)
		if err == nil && !asked && !h.Allows(c.Key, all[i].ID()) {
			err = apierr.New(403, "model_not_allowed", "this key may not use the model")
		}
		if err == nil {
			kept = append(kept, all[i])
		} else if refusal == nil {
			refusal = err
		}
	}
	if len(kept) == 0 {
		return nil, refusal
	}
	return kept, nil
}

// usable returns why a target cannot embed the input, or nil.
func usable(to *routing.Target, req *request) error {
	if !to.Provider.Serves("embeddings") {
		return apierr.Invalid("model", "the provider of this model has no embeddings")
	}
	s := shapeOf(to.Provider)
	if s == nil {
		return apierr.Invalid("model", "the provider's embeddings are not supported")
	}
	if s.textOnly && req.kind >= tokens {
		return apierr.Invalid("input", "the provider of this model takes text, not tokens")
	}
	if n := s.limit(to.Model); n > 0 && req.count > n*maxCalls {
		return apierr.Invalid("input", "the provider of this model takes at most %d inputs in one request", n*maxCalls)
	}
	return nil
}

// exchange is one client's request on its way to the provider and back.
type exchange struct {
	req   *request
	call  *auth.Call
	calls int // number of calls that were answered
	from  int // first input that has no vector yet

	shape   *shape // of the attempt under way
	to      int    // end of its inputs
	drops   []string
	batch   answer
	dropped []string
	answer  answer
}

// build makes the upstream request for the inputs that are due.
func (x *exchange) build(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
	s := shapeOf(to.Provider)
	x.shape, x.to = s, x.req.count
	if n := s.limit(to.Model); n > 0 && x.from+n < x.to {
		x.to = x.from + n
	}
	p := &part{request: x.req, model: to.Model, from: x.from, to: x.to, purpose: x.call.Machine.Settings.EmbeddingInput}
	if v := x.req.at[fUser]; v.Kind == jsonscan.String && v.End-v.Start > leastUser && !to.Provider.Compatible {
		id := jsonscan.Text(x.req.body, v)
		if short := llm.ShortUser(id, llm.UserLimit(to.Provider.ID)); short != id {
			p.user = jsonscan.Quote(nil, short)
		}
	}
	endpoint := "embeddings"
	if s.endpoint != nil {
		endpoint = s.endpoint(p)
	}
	method, url, err := to.Provider.Endpoint(conn, endpoint, to.Model)
	if err != nil {
		return nil, err
	}
	if s.address != nil {
		url = s.address(to.Model, url)
	}
	body := s.write(p)
	x.drops = p.dropped
	header := make(httpmsg.Header, 0, 8)
	header = append(header,
		httpmsg.Field{Name: "content-type", Value: "application/json"},
		httpmsg.Field{Name: "accept", Value: "application/json"},
		httpmsg.Field{Name: "accept-encoding", Value: "identity"})
	header = append(header, provider.IdempotencyKey(x.call.Header, x.calls)...)
	limits := &x.call.Machine.Settings
	return &upstream.Request{
		Method: method, URL: url, Header: header, Body: stream.FromBytes(body),
		HeaderTimeout: limits.FirstByte(), Timeout: limits.Whole(), MaxBody: maxAnswer,
	}, nil
}

// check reads an answer. One that cannot be read is no answer: another account
// may be tried.
func (x *exchange) check(resp *upstream.Response) error {
	body, err := stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return badBody(err)
	}
	x.batch = answer{body: body}
	if err := x.shape.read(&x.batch, x.req); err != nil {
		return badBody(err)
	}
	if err := x.batch.order(x.to - x.from); err != nil {
		return badBody(err)
	}
	return nil
}

// settle takes the answer of the last call.
func (x *exchange) settle() {
	if x.batch.inputTokens < 0 && x.shape.estimate {
		x.batch.inputTokens = x.req.estimate(x.from, x.to)
	}
	x.answer.merge(&x.batch, x.from == 0 && x.to == x.req.count)
	x.dropped, x.from = x.drops, x.to
	x.calls++
}

func badBody(err error) error {
	e := apierr.New(502, "bad_upstream_body", "the provider's answer could not be read")
	e.Err = err
	return e
}
