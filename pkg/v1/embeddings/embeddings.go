// Package embeddings serves POST /v1/embeddings, and the methods of the Gemini API
// that embed.
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
	"weir/pkg/llm/ir"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
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

// Handler serves the endpoint.
type Handler struct{ Accounts accounts.Sender }

// Create parses, resolves, sends and shapes the answer.
//
// Inputs over what the provider takes in one call go up in several, one after
// the other, to the same upstream model; the answer is whole or an error.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	x := &exchange{call: c}
	if err := x.req.parse(body); err != nil {
		return nil, err
	}
	return h.answer(ctx, c, x)
}

// answer resolves a request, sends it and shapes the answer.
func (h *Handler) answer(ctx context.Context, c *auth.Call, x *exchange) (*httpmsg.Response, error) {
	req := &x.req
	targets, err := endpoint.Targets(c, req.model, catalog.Embedding,
		func(to *routing.Target) error { return usable(to, req) })
	if err == nil && req.further {
		err = endpoint.CheckFurtherModels(c.Key, req.body, targets)
	}
	if err != nil {
		return nil, err
	}
	x.send = accounts.Call{Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: x.build,
		Read: read, Repeats: true, Estimate: accounts.EstimateOf(req.body)}
	for {
		res, err := h.Accounts.Send(ctx, &x.send)
		if err != nil {
			return nil, err
		}
		a := res.Attempt.State.(*attempt)
		if x.accept(a); x.from == req.count {
			var out []byte
			switch {
			case req.gemini == nil:
				out, err = x.answer.write(req)
			case a.shape == &gemini && x.calls == 1:
				out = a.batch.body
			default:
				out, err = x.answer.writeGemini(req.gemini)
			}
			if err != nil {
				return nil, err
			}
			return endpoint.JSONAnswer(res.Header, out), nil
		}
		// The vectors of one answer must come from one model.
		x.send.Targets = []routing.Target{*res.Target}
	}
}

// usable returns the reason why a target cannot embed the input, or nil.
func usable(to *routing.Target, req *request) error {
	if !to.Provider.Serves("embeddings") {
		return apierr.Invalid("model", "The provider of this model has no embeddings. GET /v1/models/embedding lists the models that can be called.")
	}
	s := shapeOf(to.Provider)
	if s == nil {
		return apierr.Invalid("model", "The provider's embeddings are not supported.")
	}
	if s.textOnly && req.kind >= tokens {
		return apierr.Invalid("input", "The provider of this model takes text, not tokens.")
	}
	if req.gemini != nil {
		if err := req.gemini.usable(s, to.Model); err != nil {
			return err
		}
	}
	if n := s.limit(to.Model); n > 0 && req.count > n*maxCalls {
		return apierr.Invalid("input", "The provider of this model takes at most %d inputs in one request.", n*maxCalls)
	}
	return nil
}

// exchange is one client's request, and what is answered of it so far.
type exchange struct {
	req    request
	call   *auth.Call
	send   accounts.Call
	calls  int // number of calls that were answered
	from   int // first input that has no vector yet
	answer answer
}

// attempt is one upstream call: its part of the inputs, and their vectors.
type attempt struct {
	accounts.Attempt
	part
	shape *shape
	batch answer

	body   stream.Bytes     // of Request
	header [6]httpmsg.Field // of Request; the account's are appended
	only   [1]item          // of batch, if it has one
}

// build makes the upstream request for the inputs that are due.
func (x *exchange) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	s := shapeOf(to.Provider)
	a := &attempt{shape: s}
	a.State, a.Estimator = a, a
	a.part = part{request: &x.req, model: to.Model, from: x.from, to: x.req.count,
		purpose: x.call.Machine.Settings.EmbeddingInput}
	if g := x.req.gemini; g != nil && g.purpose() != "" {
		a.purpose = g.purpose()
	}
	if n := s.limit(to.Model); n > 0 && a.from+n < a.to {
		a.to = a.from + n
	}
	if v := x.req.at[fUser]; v.Kind == jsonscan.String && v.End-v.Start > leastUser && !to.Provider.Compatible {
		id := jsonscan.Text(x.req.body, v)
		if short := ir.ShortUser(id, ir.UserLimit(to.Provider.ID)); short != id {
			a.user = jsonscan.Quote(nil, short)
		}
	}
	endpoint := "embeddings"
	if s.endpoint != nil {
		endpoint = s.endpoint(&a.part)
	}
	method, url, err := to.Endpoint(conn, endpoint)
	if err != nil {
		return nil, err
	}
	if s.address != nil {
		url = s.address(to.Model, url)
	}
	a.body.Reset(s.write(&a.part))
	a.Dropped = a.part.dropped
	if g := x.req.gemini; g != nil {
		a.Dropped = g.dropped(s, a.Dropped)
		if a.Errors = accounts.ErrorsForeign; s == &gemini {
			a.Errors = accounts.ErrorsSame
		}
	}
	header := append(httpmsg.Header(a.header[:0]),
		httpmsg.Field{Name: "content-type", Value: "application/json"},
		httpmsg.Field{Name: "accept", Value: "application/json"},
		httpmsg.Field{Name: "accept-encoding", Value: "identity"})
	header = append(header, provider.IdempotencyKey(x.call.Header, x.calls)...)
	limits := &x.call.Machine.Settings
	a.Request = upstream.Request{
		Method: method, URL: url, Header: header, Body: &a.body,
		HeaderTimeout: limits.FirstByte(), Timeout: limits.Whole(), MaxBody: maxAnswer,
	}
	return &a.Attempt, nil
}

// read reads an answer. After one that cannot be read another account may be
// tried.
func read(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*attempt)
	body, err := stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return endpoint.BadBody(err)
	}
	a.batch = answer{body: body, owned: resp.Owned, space: a.only[:0]}
	if err := a.shape.read(&a.batch, a.request); err != nil {
		return endpoint.BadBody(err)
	}
	if err := a.batch.order(a.to - a.from); err != nil {
		return endpoint.BadBody(err)
	}
	if a.batch.inputTokens < 0 && a.shape.estimate {
		a.batch.inputTokens = a.request.estimate(a.from, a.to)
	}
	tokens := a.batch.inputTokens
	if tokens < 0 {
		tokens = a.batch.allTokens
	}
	a.Used.Tokens = llm.Usage{Input: max(tokens, 0), Known: tokens >= 0}
	return nil
}

// InputTokens returns an estimate of what the model has read.
func (a *attempt) InputTokens() int64 { return a.request.estimate(a.from, a.to) }

// OutputTokens returns 0.
func (a *attempt) OutputTokens() int64 { return 0 }

// accept takes the answer of the last call.
func (x *exchange) accept(a *attempt) {
	x.answer.merge(&a.batch, a.from == 0 && a.to == x.req.count)
	x.from = a.to
	x.calls++
}
