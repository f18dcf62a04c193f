package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Endpoint is a data-plane endpoint as the gateway serves it.
type Endpoint = func(ctx context.Context, c *auth.Call) (*httpmsg.Response, error)

// Explainer serves POST /api/explain.
//
//	{"path":"/v1/embeddings","body":{…},"connectionId":"…"} → Plan
//
// The path may have a query. One that opens a WebSocket has no body.
//
// The real endpoint runs with a sender that builds each request and sends
// none, so what is explained is what would happen.
type Explainer struct {
	// Endpoint returns the endpoint of a call's path over another sender, or nil. It
	// sets what the gateway sets of a call: its route, and its parameters. An endpoint
	// that opens a WebSocket makes the method GET.
	Endpoint func(c *auth.Call, s accounts.Sender) Endpoint
	Cache    cache
	Now      func() time.Time
}

// Plan is what a call would do now.
type Plan struct {
	Path        string `json:"path"`
	MaxAttempts int    `json:"maxAttempts"`
	Billable    bool   `json:"billable"` // sent again only after a definite refusal
	// Session is the field by which a strategy has recognized the session, "messages"
	// for the first ones, or "" if none has asked for it.
	Session string     `json:"session"`
	Steps   []PlanStep `json:"plan"`
}

// PlanStep is one account: in the order of the attempts, those left out after
// the others of their model.
type PlanStep struct {
	Try            int    `json:"try"` // from 1 on; 0 is left out
	Model          string `json:"model"`
	Provider       string `json:"provider"`
	ConnectionID   string `json:"connectionId"`
	ConnectionName string `json:"connectionName"`
	Upstream       string `json:"upstream"` // method and address that would be called
	// Translated names the request's fields that go up under another name or
	// in another form, Dropped those that the upstream does not know.
	Translated []string `json:"translated"`
	Dropped    []string `json:"dropped"`
	// CacheMarks names the places where marks of cached prefixes are added: tools,
	// system, and user for each turn.
	CacheMarks []string `json:"cacheMarks"`
	// NextAfter names the classes of failures after which the next member of the
	// combo is tried: limit, unavailable, context_length, model_gone,
	// content_filter, any_4xx (docs/fallback.md).
	NextAfter []string `json:"nextAfter"`
	// Skipped is why it is left out, "" if it is tried: the reason of
	// accounts.Step, blocked_here (the provider does not serve this location),
	// no_credential, incomplete (a setting is missing), refused (this model
	// does not support the request: the plan ends here), not_reached.
	Skipped    string `json:"skipped"`
	CooldownMs int64  `json:"cooldownMs"`
	Trial      bool   `json:"trial"`   // one request at a time tries it, after a long cooldown or every 30 minutes within one
	Outlier    bool   `json:"outlier"` // it fails so often that the others are tried first
	// LowQuota reports that less than 5 % is left of a limit, so accounts of equal
	// priority are tried first.
	LowQuota bool `json:"lowQuota"`
	Home     bool `json:"home"` // the session belongs to it as long as all accounts of the model are ready
}

// Explain serves the route. A request that the endpoint refuses is refused here
// in the same way.
func (h *Explainer) Explain(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	in, err := explained(raw)
	if err != nil {
		return nil, err
	}
	m, err := load(ctx, h.Cache, c)
	if err != nil {
		return nil, err
	}
	rec := &recorder{plan: Plan{Path: in.Path, MaxAttempts: accounts.MaxAttempts, Steps: []PlanStep{}}, body: in.Body, now: h.Now()}
	path, query, _ := strings.Cut(strings.TrimPrefix(in.Path, "/"+c.MachineID), "?")
	sub := &auth.Call{
		Request: &httpmsg.Request{
			ID: c.ID, Method: "POST", Path: path, Query: query, Start: c.Start, Length: int64(len(in.Body)),
			Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
			Body:   stream.FromBytes(in.Body),
		},
		Machine: m.ReadOnly(), Key: c.Key, Operator: c.Operator, MachineID: c.MachineID, MaxBody: c.MaxBody,
	}
	endpoint := h.Endpoint(sub, rec)
	if endpoint == nil {
		return nil, apierr.Invalid("path", "The path is not one whose calls are planned.")
	}
	if len(in.Body) == 0 && sub.Method == "POST" {
		return nil, apierr.Invalid("body", "body is missing.")
	}
	if in.ConnectionID != "" {
		sub.Header.Set("x-connection-id", in.ConnectionID)
	}
	if _, err := endpoint(ctx, sub); err != nil && !errors.Is(err, errExplained) {
		return nil, err
	}
	out, err := json.Marshal(rec.plan)
	if err != nil {
		return nil, err
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromBytes(out),
	}, nil
}

// question is what is to be explained.
type question struct {
	Path         string          `json:"path"`
	Body         json.RawMessage `json:"body"`
	ConnectionID string          `json:"connectionId"`
}

// explained reads the question: exactly its fields, each once.
func explained(raw []byte) (in question, err error) {
	if !exact(raw, "path", "body", "connectionId") || json.Unmarshal(raw, &in) != nil {
		return in, apierr.Invalid("", "The body must be {path, body, connectionId}.")
	}
	return in, nil
}

// exact reports whether a body is an object with none but the named fields,
// each at most once and spelt so: Go's decoder takes other cases too.
func exact(raw []byte, names ...string) bool {
	_, err := jsonscan.Read(raw, names...)
	ok := err == nil
	gjson.ParseBytes(raw).ForEach(func(k, _ gjson.Result) bool {
		ok = ok && slices.Contains(names, k.String())
		return ok
	})
	return ok
}

// errExplained ends an endpoint where it would have sent.
var errExplained = errors.New("explained")

// recorder is the sender that sends nothing.
type recorder struct {
	plan Plan
	body []byte // of the client
	now  time.Time
}

// Send notes the plan of a call.
func (r *recorder) Send(_ context.Context, call *accounts.Call) (*accounts.Result, error) {
	r.plan.Billable = call.Billable
	tries, over := 0, false
	pin := call.Request.Header.Get("x-connection-id")
	steps := accounts.Explain(call, pin, r.now)
	if pin != "" && !slices.ContainsFunc(steps, func(s accounts.Step) bool { return s.Connection.ID == pin }) {
		return nil, apierr.Invalid("connectionId", "connectionId names no active connection of this model.")
	}
	if call.Session != nil {
		r.plan.Session = call.Session.By()
	}
	for _, s := range steps {
		step := PlanStep{
			Model: s.Target.ID(), Provider: s.Target.Provider.ID,
			ConnectionID: s.Connection.ID, ConnectionName: s.Connection.Name,
			Translated: []string{}, Dropped: []string{}, CacheMarks: []string{}, Skipped: s.Skipped, CooldownMs: s.Wait.Milliseconds(), Trial: s.Trial, Outlier: s.Outlier, LowQuota: s.Low, Home: s.Home,
			NextAfter: append([]string{}, s.NextAfter...),
		}
		a, err := call.Build(s.Target, s.Connection, nil)
		var refusal *apierr.Error
		switch {
		case err == nil:
			req := &a.Request
			url, _, _ := strings.Cut(req.URL, "?")
			step.Upstream = req.Method + " " + url
			step.Dropped = append(step.Dropped, a.Dropped...)
			step.CacheMarks = append(step.CacheMarks, a.CacheMarks...)
			step.Translated = append(step.Translated, translated(r.body, req, a.Dropped)...)
			switch {
			case s.Try == 0:
			case accounts.Usable(a, s.Target, s.Connection) != nil:
				step.Skipped = "no_credential"
			case accounts.Blocked(call.Machine, step.Provider, req.URL, r.now.UnixMilli()):
				step.Skipped = "blocked_here"
			}
		case s.Try == 0:
		case errors.As(err, &refusal):
			if tries == 0 && !over {
				return nil, err
			}
			step.Skipped, over = "refused", true
		default:
			step.Skipped = "incomplete"
		}
		switch {
		case step.Skipped != "":
		case over:
			step.Skipped = "not_reached"
		default:
			tries++
			step.Try = tries
		}
		r.plan.Steps = append(r.plan.Steps, step)
	}
	return nil, errExplained
}

// translated names the fields of a request that its upstream request has not,
// or has with another value. The model's id is another one in any case.
func translated(client []byte, req *upstream.Request, dropped []string) (names []string) {
	b, ok := req.Body.(*stream.Bytes)
	if !ok {
		return nil
	}
	sent := map[string]string{}
	gjson.ParseBytes(b.All()).ForEach(func(name, v gjson.Result) bool {
		sent[name.String()] = compact(v.Raw)
		return true
	})
	gjson.ParseBytes(client).ForEach(func(name, v gjson.Result) bool {
		n := name.String()
		if got, ok := sent[n]; n != "model" && v.Type != gjson.Null && !slices.Contains(dropped, n) && (!ok || got != compact(v.Raw)) {
			names = append(names, n)
		}
		return true
	})
	return names
}

func compact(raw string) string { return gjson.Get(raw, "@ugly").Raw }
