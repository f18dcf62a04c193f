// Package rerank serves POST /v1/rerank: documents in the order of how well
// they answer a query, whatever the provider spoke.
package rerank

import (
	"context"
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonvalue"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	maxAnswer = 8 << 20 // bytes
)

// Handler serves the endpoint.
type Handler struct {
	Accounts accounts.Sender
}

// Create parses, resolves, sends and shapes the answer.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := parse(body)
	if err != nil {
		return nil, err
	}
	targets, err := endpoint.Targets(c, req.model, catalog.Rerank, usable)
	if err == nil {
		err = endpoint.CheckFurtherModels(c.Key, body, targets)
	}
	if err != nil {
		return nil, err
	}
	x := exchange{req: req, limits: &c.Machine.Settings, estimate: accounts.EstimateOf(body)}
	res, err := h.Accounts.Send(ctx, &accounts.Call{Machine: c.Machine, Request: c.Request, Trace: &c.Trace,
		Targets: targets, Build: x.build, Read: x.read, Repeats: true, Estimate: x.estimate})
	if err != nil {
		return nil, err
	}
	return endpoint.JSONAnswer(res.Header, res.Attempt.State.(*ranking).write(req)), nil
}

// usable returns the reason why a target cannot rerank, or nil.
func usable(to *routing.Target) error {
	switch {
	case !to.Provider.Serves("rerank"):
		return apierr.Invalid("model", "The provider of this model does not rerank.")
	case to.Kind != "" && to.Kind != catalog.Rerank:
		return apierr.Invalid("model", "This model does not rerank. GET /v1/models/rerank lists those that do.")
	}
	return nil
}

// exchange is one client's request.
type exchange struct {
	req    *request
	limits *store.Settings

	estimate accounts.Estimate
}

// ranking is what a provider answered.
type ranking struct {
	list          []scored
	tokens, units int64 // -1 if the provider does not count them
}

func (x *exchange) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	method, url, err := to.Provider.Endpoint(conn, "rerank", to.Model)
	if err != nil {
		return nil, err
	}
	return &accounts.Attempt{Estimator: &x.estimate, Request: upstream.Request{
		Method: method, URL: url, Body: stream.FromBytes(shapeOf(to.Provider).body(x.req, to.Model, conn)),
		HeaderTimeout: x.limits.FirstByte(), Timeout: x.limits.Whole(), MaxBody: maxAnswer,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "application/json"},
			{Name: "accept-encoding", Value: "identity"}},
	}}, nil
}

func (x *exchange) read(a *accounts.Attempt, resp *upstream.Response) error {
	raw, err := stream.ReadAll(resp.Body, maxAnswer)
	if err == nil {
		err = endpoint.ValidJSON(raw)
	}
	if err != nil {
		return endpoint.BadBody(err)
	}
	all, r := gjson.ParseBytes(raw), &ranking{}
	if r.list, err = shapeOf(a.Target.Provider).read(all, x.req); err != nil {
		return endpoint.BadBody(err)
	}
	r.tokens = count(all, "usage.total_tokens", "meta.tokens.input_tokens", "meta.billed_units.input_tokens")
	r.units = count(all, "usage.search_units", "meta.billed_units.search_units")
	a.State, a.Used.Tokens = r, llm.Usage{Input: max(r.tokens, 0), Known: r.tokens >= 0}
	if r.units > 0 && r.units <= maxDocuments { // it is not billed by tokens
		a.Used.Media, a.Estimator = &usage.Media{Requests: r.units}, nil
	}
	return nil
}

// count returns the first count at one of the paths, or -1.
func count(v gjson.Result, paths ...string) int64 {
	for _, p := range paths {
		if n := v.Get(p); n.Type == gjson.Number && n.Num >= 0 {
			return n.Int()
		}
	}
	return -1
}

// counted returns a count in decimal, or "" for an unknown one.
func counted(n int64) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// write returns the client's answer: the best results first, at most top_n. A
// document is an object, as vendors return it.
//
//	{"model","results":[{"index","relevance_score","document"?}],"usage":{"total_tokens","search_units"}}
func (r *ranking) write(req *request) []byte {
	sort(r.list)
	if req.top > 0 && len(r.list) > req.top {
		r.list = r.list[:req.top]
	}
	w := make(jsonvalue.Writer, 0, 512)
	w.Object("")
	w.Text("model", req.model)
	w.Array("results")
	for _, s := range r.list {
		w.Object("")
		w.Int("index", s.index)
		w.Raw("relevance_score", s.raw)
		if given := req.given[s.index]; req.echo && given.IsObject() {
			w.Raw("document", given.Raw)
		} else if req.echo {
			w.Raw("document", `{"text":`+given.Raw+`}`)
		}
		w.End('}')
	}
	w.End(']')
	w.Object("usage")
	w.Raw("total_tokens", counted(r.tokens))
	w.Raw("search_units", counted(r.units))
	w.End('}')
	w.End('}')
	return w
}

// sort orders the results by score, and those with equal scores by their place
// in the request. Providers return them nearly in order, and there are few.
func sort(list []scored) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && (list[j].score > list[j-1].score || list[j].score == list[j-1].score &&
			list[j].index < list[j-1].index); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}
