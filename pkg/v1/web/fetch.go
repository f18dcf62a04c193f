// Package web serves POST /v1/web/fetch: the content of one page.
//
// The page is fetched by a service of the machine's providers, or by the gateway itself
// ("web", also called "builtin"). In both cases its URL must be public, and no
// credential is ever sent to it.
package web

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	totalTimeout = 30 * time.Second // docs/reference/spec.md, 4.8
	maxAnswer    = 16 << 20         // bytes of a provider's answer
)

// Handler serves the endpoint.
type Handler struct {
	Accounts accounts.Sender
	// Do makes the gateway's own fetches. Without one nothing is fetched:
	// Accounts notes what would be, and all parts of the plan are gone through.
	Do           upstream.Doer
	AllowPrivate bool     // as in provider.CheckBaseURL
	OwnHosts     []string // names of the gateway, besides the one that a call came to
	// Decode reads a text in an encoding that Go does not know here, by its
	// WHATWG label. May be nil.
	Decode func(label string, raw []byte) (string, bool)
	// Usage records the gateway's own fetches; may be nil.
	Usage *accounts.Pool
	Now   func() time.Time
}

// step is a part of a plan: providers that are tried in turn, or the gateway
// itself.
type step struct {
	targets []routing.Target
	own     bool
}

// Fetch parses, resolves, has the page fetched and shapes the answer.
func (h *Handler) Fetch(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := h.parse(body, h.ownHosts(c))
	if err != nil {
		return nil, err
	}
	steps, err := h.plan(c, req.model)
	if err != nil {
		return nil, err
	}
	started := c.Start
	if started.IsZero() {
		started = h.Now()
	}
	deadline := accounts.Deadline(c.Request, totalTimeout, started)
	var first error
	for i := range steps {
		if i > 0 && !h.Now().Before(deadline) {
			break
		}
		got, err := h.step(ctx, c, &steps[i], req, deadline)
		if err == nil {
			return got.response(req, h.Now().Sub(started)), nil
		}
		if first == nil || better(err, first) {
			first = err
		}
		if h.Do != nil && !next(err) {
			break
		}
	}
	return nil, shown(first)
}

// step has the page fetched by one part of the plan.
func (h *Handler) step(ctx context.Context, c *auth.Call, s *step, req *request, deadline time.Time) (*page, error) {
	if s.own && h.Do == nil {
		_, err := h.Accounts.Send(ctx, &accounts.Call{
			Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: []routing.Target{itself()}, Timeout: totalTimeout,
			Build: func(*routing.Target, *store.Connection, *accounts.Attempt) (*accounts.Attempt, error) {
				return &accounts.Attempt{Request: *pageRequest(req.url, totalTimeout)}, nil
			},
		})
		return nil, err
	}
	if s.own {
		begun := h.Now()
		c.Trace.Provider, c.Trace.ConnectionID, c.Trace.Model, c.Trace.Dropped = ownAlias, "", ownModel, nil
		to := itself()
		got, err := h.own(ctx, c, &to, req, deadline)
		if h.Usage != nil {
			h.Usage.RecordDirect(c.Machine, c.Request, &c.Trace, &to, err)
		}
		if c.Trace.Err = err; err != nil {
			return nil, err
		}
		got.provider, got.latency = ownAlias, h.Now().Sub(begun)
		return got, nil
	}
	x := exchange{req: req, now: h.Now}
	targets := s.targets
	var first error
	for {
		res, err := h.Accounts.Send(ctx, &accounts.Call{
			Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: x.build, Read: x.read,
			Timeout: totalTimeout,
		})
		if err == nil {
			return res.Attempt.State.(*attempt).page, nil
		}
		if first == nil || better(err, first) {
			first = err
		}
		// A page that one provider could not read may be read by another; it
		// says nothing about the account.
		if !ofPage(err) || x.to == nil {
			return nil, first
		}
		rest := after(targets, x.to)
		if len(rest) == 0 || !h.Now().Before(deadline) {
			return nil, first
		}
		targets = rest
	}
}

// after returns the targets behind one.
func after(targets []routing.Target, to *routing.Target) []routing.Target {
	for i := range targets {
		if &targets[i] == to {
			return targets[i+1:]
		}
	}
	return nil
}

// plan finds out who fetches: what the model string names, else all fetch
// providers of the machine, else the gateway itself.
func (h *Handler) plan(c *auth.Call, model string) ([]step, error) {
	if model == "" {
		var all []routing.Target
		for _, id := range c.Machine.Providers() {
			d := provider.Lookup(id)
			if d == nil || !d.Fetch {
				continue
			}
			if conns := c.Machine.Visible(d.Alias, c.Machine.Active(id), "fetch"); len(conns) > 0 {
				all = append(all, routing.Target{Provider: d, Alias: aliasOf(d, conns), Model: "fetch", Kind: catalog.WebFetch,
					Connections: conns})
			}
		}
		if len(all) == 0 {
			return h.named(c, nil, ownModel, "")
		}
		kept, err := endpoint.FilterTargets(all, c.Key, "", usable)
		if err != nil {
			return nil, err
		}
		return []step{{targets: kept}}, nil
	}
	combo := c.Machine.Combo(model)
	if combo == nil || !h.mixed(c, combo, 0) {
		return h.named(c, nil, model, model)
	}
	// Members are resolved one by one, since the router does not know the
	// gateway's own.
	members, err := members(c, nil, combo, 0)
	if err != nil {
		return nil, err
	}
	var steps []step
	var first error
	for _, m := range members {
		more, err := h.named(c, steps, m, model)
		if err == nil {
			steps = more
		} else if first == nil {
			first = err
		}
	}
	if len(steps) == 0 {
		return nil, first
	}
	return steps, nil
}

// named appends what one model string names. asked is what the client named.
func (h *Handler) named(c *auth.Call, steps []step, model, asked string) ([]step, error) {
	if h.isOwn(c, model) {
		if (asked == "" || !auth.AllowsModel(c.Key, asked)) && !auth.AllowsModel(c.Key, ownModel) {
			return nil, endpoint.NotAllowed(c.Key)
		}
		if c.Machine.Hidden(ownAlias, "fetch") {
			return nil, apierr.New(404, "model_not_found", "The model is disabled. Enable it on the page Models, or choose another one.")
		}
		return append(steps, step{own: true}), nil
	}
	c.Trace.Asked = model
	all, err := routing.Resolve(model, c.Machine, catalog.WebFetch, c.Session())
	if err != nil {
		return nil, endpoint.Unresolved(err, c.Key, asked)
	}
	kept, err := endpoint.FilterTargets(all, c.Key, asked, usable)
	if err != nil {
		return nil, err
	}
	if n := len(steps); n > 0 && !steps[n-1].own {
		steps[n-1].targets = append(steps[n-1].targets, kept...)
		return steps, nil
	}
	return append(steps, step{targets: kept}), nil
}

// mixed reports whether the gateway itself is among a combo's members, or those
// of a combo within it.
func (h *Handler) mixed(c *auth.Call, combo *store.Combo, depth int) bool {
	if depth >= routing.MaxDepth || len(combo.Models) > routing.MaxTargets {
		return false // the router refuses it
	}
	for _, m := range combo.Models {
		if sub := c.Machine.Combo(m); sub != nil && h.mixed(c, sub, depth+1) || h.isOwn(c, m) {
			return true
		}
	}
	return false
}

// members appends what a combo comes down to, in the order to try it. The
// bounds are the router's.
func members(c *auth.Call, out []string, combo *store.Combo, depth int) (_ []string, err error) {
	if depth >= routing.MaxDepth {
		return nil, apierr.Invalid("model", "The combos and aliases of this model are nested more than %d deep.", routing.MaxDepth)
	}
	n, start := len(combo.Models), 0
	if combo.Strategy == "round-robin" && n > 0 {
		start = int(c.Machine.Turn("combo/"+combo.Name) % uint32(n))
	}
	for i := range n {
		m := combo.Models[(start+i)%n]
		if sub := c.Machine.Combo(m); sub == nil {
			out = append(out, m)
		} else if out, err = members(c, out, sub, depth+1); err != nil {
			return nil, err
		}
		if len(out) > routing.MaxTargets {
			return nil, apierr.Invalid("model", "The combo has more than %d members.", routing.MaxTargets)
		}
	}
	return out, nil
}

// isOwn reports whether a model string names the gateway's own fetch, or is an
// alias of that. A combo or a connection's prefix of the same name goes before
// it.
func (h *Handler) isOwn(c *auth.Call, model string) bool {
	if isItself(c, model) {
		return true
	}
	full := c.Machine.Alias(model)
	return strings.Contains(full, "/") && c.Machine.Combo(model) == nil && isItself(c, full)
}

func isItself(c *auth.Call, model string) bool {
	switch model {
	case ownAlias, ownModel, "builtin", "builtin/fetch":
	default:
		return false
	}
	if c.Machine.Combo(model) != nil {
		return false
	}
	alias, _, _ := strings.Cut(model, "/")
	for _, id := range c.Machine.Providers() {
		for _, conn := range c.Machine.Active(id) {
			if strings.TrimSpace(conn.Data.Prefix) == alias {
				return false
			}
		}
	}
	return true
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

// usable returns why a target cannot fetch, or nil.
func usable(to *routing.Target) error {
	if !to.Provider.Fetch || serviceOf(to.Provider) == nil {
		return apierr.Invalid("model", "The provider of this model does not fetch pages.")
	}
	if to.Model != "fetch" {
		return apierr.Invalid("model", "The model does not fetch pages: name the provider, or <alias>/fetch.")
	}
	return nil
}

var errShape = errors.New("the answer has another shape")

// exchange is one request on its way to the providers and back.
type exchange struct {
	req *request
	now func() time.Time
	to  *routing.Target // of the last attempt
}

// attempt is one upstream call and the page that it fetched.
type attempt struct {
	accounts.Attempt
	service *service
	begun   time.Time
	page    *page
}

// build makes the upstream request of an attempt.
func (x *exchange) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	x.to = to
	a := &attempt{service: serviceOf(to.Provider), begun: x.now()}
	a.State = a
	method, url, err := to.Provider.Endpoint(conn, "fetch", to.Model)
	if err != nil {
		return nil, err
	}
	if slices.Contains(a.service.lacks, x.req.format) {
		a.Dropped = []string{"format"}
	}
	header := httpmsg.Header{
		{Name: "content-type", Value: "application/json"},
		{Name: "accept", Value: "application/json"},
		{Name: "accept-encoding", Value: "identity"},
	}
	if a.service.header != nil {
		header = append(header, a.service.header(x.req)...)
	}
	a.Request = upstream.Request{
		Method: method, URL: url, Header: header, Body: stream.FromString(a.service.body(x.req)),
		HeaderTimeout: totalTimeout, Timeout: totalTimeout, MaxBody: maxAnswer,
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
	now := x.now()
	p := &page{provider: a.Target.Provider.ID, format: x.req.format, header: resp.Header, now: now,
		latency: now.Sub(a.begun)}
	switch ok, err := a.service.read(p, gjson.ParseBytes(raw), x.req); {
	case err != nil:
		return err
	case !ok:
		return endpoint.BadBody(errShape)
	case p.text == "":
		return unavailable("The provider found no content on the page.")
	}
	usd, bad := strconv.ParseFloat(p.cost, 64)
	a.page, a.Used = p, accounts.StatedCost(usd, bad == nil)
	return nil
}

// Codes of failures that are the page's.
const (
	pageUnavailable = "page_unavailable"
	pageNotFound    = "page_not_found"
	pageUnreadable  = "unsupported_content"
)

// unavailable is the failure of a page that could not be fetched. Its status is one
// that says nothing about an account.
func unavailable(format string, args ...any) *apierr.Error {
	return apierr.New(422, pageUnavailable, format, args...)
}

// ofPage reports whether a failure is the page's.
func ofPage(err error) bool {
	var e *apierr.Error
	return errors.As(err, &e) && (e.Code == pageUnavailable || e.Code == pageNotFound || e.Code == pageUnreadable)
}

// next reports whether the next part of the plan is tried, by the same rule
// that goes on to the next account (docs/fallback.md).
func next(err error) bool {
	var e *apierr.Error
	if !errors.As(err, &e) {
		return false
	}
	switch s := e.Status; {
	case ofPage(err), s == 401, s == 402, s == 403, s == 408, s == 429, s >= 500 && s != 508,
		s == 400 && e.Code == "no_credentials":
		return true
	}
	return false
}

// better reports whether a failure is more useful to the client than another.
func better(a, b error) bool { return ofPage(a) && !ofPage(b) }

// shown returns the failure as the client sees it.
func shown(err error) error {
	var e *apierr.Error
	if errors.As(err, &e) && e.Code == pageUnavailable {
		s := *e
		s.Status, s.Type = 502, apierr.TypeOf(502)
		return &s
	}
	return err
}

// ownHosts returns the hosts of the gateway, with the port of the one that the
// call came to.
func (h *Handler) ownHosts(c *auth.Call) []string {
	_, host, _ := strings.Cut(c.Origin, "://")
	return append([]string{host}, h.OwnHosts...)
}
