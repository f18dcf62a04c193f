package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Explainer serves POST /api/explain.
//
//	{"path":"/v1/embeddings","body":{…},"connectionId":"…","keyId":"…","headers":{…},"session":"…"} → Plan
//
// headers are fields of the call that decide on its route: x-connection-id, x-provider, and
// those by which tools name their session. session is the number of a session, as GET
// /api/requests shows it. The path may have a query. One that opens a WebSocket has no body.
// With keyId the call is one of that key: its models and its budgets hold.
//
// The real endpoint runs with a sender that builds each request and sends
// none, so what is explained is what would happen.
type Explainer struct {
	// Endpoint returns the endpoint of a call's path over another sender, or nil. It
	// sets what the gateway sets of a call: its route, and its parameters. An endpoint
	// that opens a WebSocket makes the method GET.
	Endpoint func(c *auth.Call, s accounts.Sender) endpoint.Handler
	Objects  rpc.Stub
	Cache    cache
	Keys     *store.Keyring
	Now      func() time.Time
}

// Plan is what a call would do now.
type Plan struct {
	Path        string `json:"path"`
	MaxAttempts int    `json:"maxAttempts"`
	Billable    bool   `json:"billable"` // sent again only after a definite refusal
	// Session is the field by which a strategy has recognized the session, "messages"
	// for the first ones, "session" if the question names it, or "" if none has asked for it.
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
	// in another form, Dropped those that the upstream does not know, and
	// with a value those that weir adds or lowers: "max_tokens=4096".
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
	// accounts.Step, budget_exceeded or model_not_priced (a budget refuses the
	// call), rate_limit_exceeded (a limit of the key), key_paused, invalid_api_key (the
	// key expired), scope_required (it has no scope data), blocked_here (the provider does not serve this location),
	// no_credential, key_unavailable (CREDENTIALS_KEY does not open its credentials), incomplete
	// (a setting is missing), refused (this model does not support the request: the plan ends
	// here), not_reached.
	Skipped    string `json:"skipped"`
	CooldownMs int64  `json:"cooldownMs"`
	Trial      bool   `json:"trial"`   // one request at a time tries it, after a long cooldown or every 30 minutes within one
	Outlier    bool   `json:"outlier"` // it fails so often that the others are tried first
	// LowQuota reports that less than 5 % is left of a limit, so accounts of equal
	// priority are tried first.
	LowQuota bool `json:"lowQuota"`
	Home     bool `json:"home"` // the session belongs to it as long as all accounts of the model are ready
	// Budgets are those that cover the call.
	Budgets []PlanBudget `json:"budgets"`
}

// PlanBudget is what a call would reserve of a budget. Amounts are US dollars, tokens or
// requests.
type PlanBudget struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Reserves float64 `json:"reserves"`
	Left     float64 `json:"left"` // of the limit; what is reserved by calls under way counts as left
	// Refused is the code of the refusal, budget_exceeded or model_not_priced, or "".
	Refused string `json:"refused"`
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
	number, err := in.session()
	if err != nil {
		return nil, err
	}
	rec := &recorder{session: number, plan: Plan{Path: in.Path, MaxAttempts: accounts.MaxAttempts, Steps: []PlanStep{}},
		body: in.Body, keys: h.Keys, now: h.Now()}
	path, query, _ := strings.Cut(strings.TrimPrefix(in.Path, "/"+c.MachineID), "?")
	sub := &auth.Call{
		Request: &httpmsg.Request{
			ID: c.ID, Method: "POST", Path: path, Query: query, Start: c.Start, Length: int64(len(in.Body)),
			Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
			Body:   stream.FromBytes(in.Body),
		},
		Machine: m.ReadOnly(), Key: c.Key, Operator: c.Operator, MachineID: c.MachineID, MaxBody: c.MaxBody,
		SessionID: number,
	}
	endpoint := h.Endpoint(sub, rec)
	if endpoint == nil {
		return nil, apierr.Invalid("path", "path must be that of a request that goes to a provider, such as /v1/chat/completions.")
	}
	if len(in.Body) == 0 && sub.Method == "POST" {
		return nil, apierr.Invalid("body", "body is missing.")
	}
	if in.KeyID != "" {
		if sub.Key = auth.KeyOf(m, in.KeyID); sub.Key == nil {
			return nil, apierr.Invalid("keyId", "No key has this id. GET /api/keys lists the keys.")
		}
		sub.Operator = false
		rec.refused = auth.RefusalOf(sub.Key, rec.now.UnixMilli())
	}
	if len(m.Budgets) > 0 {
		if rec.spent, err = h.spent(ctx, c); err != nil {
			return nil, err
		}
	}
	if sub.Key != nil {
		sub.Trace.KeyID = sub.Key.ID
		if err := h.limits(ctx, c.MachineID, sub.Key.ID, m.Limits(sub.Key.ID), rec); err != nil {
			return nil, err
		}
	}
	for name, value := range in.Headers {
		sub.Header.Set(name, value)
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
	KeyID        string          `json:"keyId"`
	// Headers are in lower case; see explainedHeader.
	Headers map[string]string `json:"headers"`
	Session string            `json:"session"` // hexadecimal digits
}

// session returns the number of the session; 0 for that of the call.
func (q *question) session() (uint64, error) {
	if q.Session == "" {
		return 0, nil
	}
	number, err := strconv.ParseUint(q.Session, 16, 64)
	if err != nil || number == 0 {
		return 0, apierr.Invalid("session", "session must be the session of a request, as GET /api/requests shows it.")
	}
	return number, nil
}

// explainedHeader reports whether a field of a call can be explained: those that lead to
// a provider or name a session.
func explainedHeader(name string) bool {
	return slices.Contains([]string{"x-connection-id", "x-provider", "x-model", "x-weir-tags", "user-agent"}, name) ||
		routing.NamesSession(name)
}

const maxExplainedHeader = 1024 // bytes

// explained reads the question: exactly its fields, each once.
func explained(raw []byte) (in question, err error) {
	if !exact(raw, "path", "body", "connectionId", "keyId", "headers", "session") || json.Unmarshal(raw, &in) != nil {
		return in, apierr.Invalid("", "The body must be {path, body, connectionId, keyId, headers, session}.")
	}
	for name, value := range in.Headers {
		if !explainedHeader(name) || len(value) > maxExplainedHeader {
			return in, apierr.Invalid("headers", "headers may have x-connection-id, x-provider, x-model, x-weir-tags, user-agent and the fields that name a session, in lower case, of at most %d bytes.", maxExplainedHeader)
		}
	}
	return in, nil
}

// spent returns what is used of the budgets of the machine as its object knows them now, by
// their ids.
func (h *Explainer) spent(ctx context.Context, c *auth.Call) (map[string]float64, error) {
	env := rpc.ManageCall{Method: "GET", Route: "/api/budgets"}
	if c.Key != nil {
		env.KeyID = c.Key.ID
	}
	a, err := rpc.Call[rpc.ManageAnswer](ctx, h.Objects, c.MachineID, "manage", env)
	if err != nil {
		return nil, err
	}
	spent := map[string]float64{}
	for _, b := range gjson.GetBytes(a.Body, "data").Array() {
		spent[b.Get("id").Str] = b.Get("spent").Float()
	}
	return spent, nil
}

// limits adds what is used of the limits of a key to what a recorder knows.
func (h *Explainer) limits(ctx context.Context, machineID, keyID string, limits []store.Budget, rec *recorder) error {
	if len(limits) == 0 {
		return nil
	}
	q := rpc.KeyUsageQuery{KeyID: keyID}
	own, err := rpc.Call[json.RawMessage](ctx, h.Objects, machineID, "key.usage", q)
	if err != nil {
		return err
	}
	if rec.spent == nil {
		rec.spent = map[string]float64{}
	}
	used := gjson.GetBytes(own, "limits").Array()
	for i := range limits {
		l := &limits[i]
		// The limits of the key come before its budgets.
		at := slices.IndexFunc(used, func(o gjson.Result) bool {
			return o.Get("unit").Str == l.Unit && o.Get("window").Str == l.Window
		})
		if at >= 0 {
			rec.spent[l.ID] = used[at].Get("used").Float()
		}
	}
	return nil
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
	session uint64 // see auth.Call.SessionID
	refused string // the code with which the key is refused, or ""
	plan    Plan
	body    []byte // of the client
	keys    *store.Keyring
	now     time.Time
	spent   map[string]float64 // of budgets and limits of the key, by their ids
}

// left returns how much of a budget is not spent.
func (r *recorder) left(b *store.Budget) int64 {
	spent := r.spent[b.ID]
	if b.Unit == store.USD {
		spent *= store.NanoDollars
	}
	return max(b.Limit-int64(math.Round(spent)), 0)
}

// Send notes the plan of a call.
func (r *recorder) Send(_ context.Context, call *accounts.Call) (*accounts.Result, error) {
	r.plan.Billable = call.Billable
	if call.Session == nil {
		call.Session = &routing.Session{Request: call.Request, Given: r.session}
	}
	tries, over := 0, false
	pin := call.Request.Header.Get("x-connection-id")
	steps := accounts.Explain(call, pin, r.now, r.left, r.refused)
	if pin != "" && !slices.ContainsFunc(steps, func(s accounts.Step) bool { return s.Connection.ID == pin }) {
		return nil, apierr.Invalid("connectionId", "connectionId names no active account of this model. GET /api/providers lists the accounts.")
	}
	r.plan.Session = call.Session.By()
	for _, s := range steps {
		step := PlanStep{
			Model: s.Target.ID(), Provider: s.Target.Provider.ID,
			ConnectionID: s.Connection.ID, ConnectionName: s.Connection.Name,
			Translated: []string{}, Dropped: []string{}, CacheMarks: []string{}, Skipped: s.Skipped,
			CooldownMs: s.Wait.Milliseconds(), Trial: s.Trial, Outlier: s.Outlier, LowQuota: s.Low, Home: s.Home,
			NextAfter: append([]string{}, s.NextAfter...), Budgets: []PlanBudget{},
		}
		for _, ch := range s.Charges {
			b := ch.Budget
			step.Budgets = append(step.Budgets, PlanBudget{
				b.ID, b.Name, b.Unit, store.ShownAmount(b.Unit, ch.Amount), store.ShownAmount(b.Unit, ch.Left), ch.Refused,
			})
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
			case !r.keys.Has(s.Connection.Secrets):
				step.Skipped = store.KeyUnavailable
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
		case over, tries == accounts.MaxAttempts:
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
		if got, ok := sent[n]; n != "model" && v.Type != gjson.Null && !slices.Contains(dropped, n) &&
			(!ok || got != compact(v.Raw)) {
			names = append(names, n)
		}
		return true
	})
	return names
}

func compact(raw string) string { return gjson.Get(raw, "@ugly").Raw }
