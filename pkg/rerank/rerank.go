// Package rerank serves POST /v1/rerank: documents in the order of how well
// they answer a query, whatever the provider spoke.
package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/edge"
	"weir/pkg/media"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

const (
	headTimeout  = 30 * time.Second
	totalTimeout = 60 * time.Second
	maxAnswer    = 8 << 20 // bytes
)

// Handler serves the endpoint.
type Handler struct {
	Router   media.Router
	Accounts media.Sender
	Allows   media.Allows
}

// Create parses, resolves, sends and shapes the answer.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*edge.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := parse(body)
	if err != nil {
		return nil, err
	}
	targets, err := media.Targets(h.Router, h.Allows, c, req.model, catalog.Rerank, usable)
	if err != nil {
		return nil, err
	}
	x := exchange{req: req, first: media.FirstByte(c.Machine, headTimeout)}
	res, err := h.Accounts.Send(ctx, &accounts.Call{Machine: c.Machine, Request: c.Request, Targets: targets, Build: x.build, Check: x.check})
	if err != nil {
		return nil, err
	}
	return media.JSONAnswer(res.Header, x.write()), nil
}

// usable tells why a target cannot rerank, or nil.
func usable(to *routing.Target) error {
	switch {
	case !to.Provider.Serves("rerank"):
		return apierr.Invalid("model", "the provider of this model does not rerank")
	case to.Kind != "" && to.Kind != catalog.Rerank:
		return apierr.Invalid("model", "the model does not rerank")
	}
	return nil
}

// exchange is one request on its way to the provider and back.
type exchange struct {
	req   *request
	first time.Duration
	shape *shape
	list  []scored
	usage usage
}

func (x *exchange) build(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
	x.shape = shapeOf(to.Provider)
	method, url, err := to.Provider.Endpoint(conn, "rerank", to.Model)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(x.shape.build(x.req, to.Model, conn))
	if err != nil {
		return nil, err
	}
	return &upstream.Request{
		Method: method, URL: url, Body: stream.FromBytes(body), HeaderTimeout: x.first, Timeout: max(x.first, totalTimeout), MaxBody: maxAnswer,
		Header: edge.Header{{Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "application/json"}, {Name: "accept-encoding", Value: "identity"}},
	}, nil
}

func (x *exchange) check(resp *upstream.Response) error {
	raw, err := stream.ReadAll(resp.Body, maxAnswer)
	if err == nil {
		err = media.ValidJSON(raw)
	}
	if err != nil {
		return media.BadBody(err)
	}
	all := gjson.ParseBytes(raw)
	if x.list, err = x.shape.read(all, x.req); err != nil {
		return media.BadBody(err)
	}
	x.usage = usage{
		TotalTokens: whole(all, "usage.total_tokens", "meta.tokens.input_tokens", "meta.billed_units.input_tokens"),
		SearchUnits: whole(all, "usage.search_units", "meta.billed_units.search_units"),
	}
	return nil
}

// usage is what the provider counted; null where it does not say.
type usage struct {
	TotalTokens *int64 `json:"total_tokens"`
	SearchUnits *int64 `json:"search_units"`
}

func whole(v gjson.Result, paths ...string) *int64 {
	for _, p := range paths {
		if n := v.Get(p); n.Type == gjson.Number && n.Num >= 0 {
			i := n.Int()
			return &i
		}
	}
	return nil
}

type result struct {
	Index    int             `json:"index"`
	Score    float64         `json:"relevance_score"`
	Document json.RawMessage `json:"document,omitempty"`
}

// write shapes the answer: the best first, at most top_n. A document comes as
// an object, as the vendors give it.
func (x *exchange) write() []byte {
	slices.SortStableFunc(x.list, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return a.index - b.index
	})
	if x.req.top > 0 && len(x.list) > x.req.top {
		x.list = x.list[:x.req.top]
	}
	out := struct {
		Model   string   `json:"model"`
		Results []result `json:"results"`
		Usage   usage    `json:"usage"`
	}{Model: x.req.model, Results: make([]result, 0, len(x.list)), Usage: x.usage}
	for _, s := range x.list {
		r := result{Index: s.index, Score: s.score}
		if x.req.echo {
			given := x.req.given[s.index]
			if r.Document = json.RawMessage(given.Raw); !given.IsObject() {
				r.Document = json.RawMessage(`{"text":` + given.Raw + `}`)
			}
		}
		out.Results = append(out.Results, r)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return []byte("{}") // scores and documents have been checked
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
