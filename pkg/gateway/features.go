package gateway

import (
	"context"
	"encoding/json"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// withFeatures adds GET /api/features: what this build serves, read off the
// route table, so that the dashboard offers nothing that is not there. It
// needs no key: the table is no secret.
//
//	{"routes":["GET /v1/models", …]}
func withFeatures(list []Route) []Route {
	var body []byte
	serve := func(context.Context, *auth.Call) (*httpmsg.Response, error) {
		if body == nil {
			b, err := json.Marshal(struct {
				Routes []string `json:"routes"`
			}{names(list)})
			if err != nil {
				return nil, err
			}
			body = b
		}
		return &httpmsg.Response{
			Status: 200,
			Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
			Body:   stream.FromBytes(body),
		}, nil
	}
	return append(list, Route{
		Pattern: "/api/features", Access: endpoint.Public, Methods: []Method{{Name: "GET", Handler: serve}},
	})
}

// names lists the routes, "GET /v1/models".
func names(list []Route) []string {
	out := []string{}
	for i := range list {
		for _, m := range list[i].Methods {
			out = append(out, m.Name+" "+list[i].Pattern)
		}
	}
	return out
}
