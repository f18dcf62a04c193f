package proxy

import (
	"context"
	"errors"
	"strings"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// StoredCall is a call about a response that an upstream stores.
type StoredCall struct {
	Method     string
	ID         string // letters, digits, "_" and "-"
	Subpath    string // of the path after the id
	Provider   string // its id
	Model      string // the upstream's
	Connection string // id of the one that created it
	// Unbilled reports that what the response has used is not recorded, Counted what budgets
	// have counted for it.
	Unbilled bool
	Counted  map[string]int64
}

// ErrConnectionGone reports that the account which keeps a response is no longer there.
var ErrConnectionGone = errors.New("proxy: the account of the response was removed")

// forwardedParameters are the query parameters of a call about a stored
// response that are sent to the upstream.
var forwardedParameters = [...]string{"include[]", "include", "include%5B%5D", "stream", "starting_after",
	"include_obfuscation", "after", "limit", "order"}

// Fetch sends a call about a stored response to its account and returns the
// answer. A response that is in progress in the background may be read as a
// stream.
func (d *Proxy) Fetch(ctx context.Context, c *auth.Call, k *StoredCall) (*httpmsg.Response, error) {
	row, conn := provider.Lookup(k.Provider), c.Machine.Connection(k.Connection)
	if row == nil || conn == nil || conn.Inactive || conn.Provider != k.Provider {
		return nil, ErrConnectionGone
	}
	alias := row.Alias
	if p := strings.TrimSpace(conn.Data.Prefix); p != "" {
		alias = p
	}
	to := routing.Target{Provider: row, Alias: alias, Model: k.Model, Connections: []*store.Connection{conn}}
	if !auth.AllowsModel(c.Key, to.ID()) {
		return nil, endpoint.NotAllowed(c.Key)
	}
	streams := k.Method == "GET" && k.Subpath == "" && endpoint.Query(c.Query, "stream") == "true"
	x := &exchange{ctx: ctx, proxy: d, call: c, req: &Request{Dialect: llm.Responses, Stream: streams, WantsUsage: true}}
	call := &accounts.Call{Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: []routing.Target{to},
		Read: readStored, Estimate: accounts.Estimate{Follows: true, Counted: k.Counted}}
	call.Build = func(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
		return x.fetch(to, conn, k)
	}
	if streams {
		call.Read = readAnswer
	}
	res, err := d.Accounts.Send(ctx, call)
	if err != nil {
		return nil, err
	}
	a := res.Attempt.State.(*attempt)
	bill := *res // the trace may use its memory again
	var resp *httpmsg.Response
	if a.parsed.events {
		resp = a.stream(res)
	} else {
		resp = endpoint.JSONAnswer(res.Header, a.parsed.whole)
	}
	if k.Unbilled {
		resp.After = append(resp.After, func(ctx context.Context) { bill.Bill(ctx, k.ID, "/v1/responses") })
	}
	return resp, nil
}

// fetch returns the upstream's request.
func (x *exchange) fetch(to *routing.Target, conn *store.Connection, k *StoredCall) (*accounts.Attempt, error) {
	w, ok := chooseAPI(to, conn, llm.Responses, false)
	if !ok || w.dialect != llm.Responses {
		return nil, provider.ErrNoEndpoint
	}
	a := x.attempt(to, conn, nil)
	a.setAPI(w)
	if !k.Unbilled {
		a.Used.Price = accounts.Stated // free of charge
	}
	_, url, err := w.address(to.Provider, conn, w.endpoint)
	if err != nil {
		return nil, err
	}
	url += "/" + k.ID + k.Subpath
	sep := byte('?')
	for pair := range strings.SplitSeq(x.call.Query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		for _, q := range forwardedParameters {
			if name == q && plainValue(value) {
				url += string(sep) + pair
				sep = '&'
			}
		}
	}
	a.Request = upstream.Request{Method: k.Method, URL: url, Header: a.header()}
	req := &a.Request
	if k.Method == "POST" {
		req.Body = stream.FromString("{}")
	}
	if x.req.Stream {
		req.HeaderTimeout, req.Timeout = x.call.Machine.Settings.FirstEvent(), streamTotal
	} else {
		s := &x.call.Machine.Settings
		req.HeaderTimeout, req.Timeout, req.MaxBody = s.FirstByte(), s.Whole(), maxAnswer
	}
	return &a.Attempt, nil
}

// plainValue reports whether a value of the query is percent-encoded text, as
// in the platform's URL.
func plainValue(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return len(v) <= 512
}

// readStored reads the answer about a stored response, which is JSON of any
// kind.
func readStored(a *accounts.Attempt, resp *upstream.Response) error {
	raw, err := stream.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return err
	}
	if shapeOf(raw) != jsonBody || endpoint.ValidJSON(raw) != nil {
		return endpoint.BadBody(nil)
	}
	resp.Body = stream.FromBytes(raw)
	if resp.Header.Set("content-type", "application/json"); !endpoint.HasField(resp, "id", "object", "data") {
		return endpoint.BadBody(endpoint.ErrNoAnswer) // an error that comes with status 200
	}
	a.State.(*attempt).parsed.whole = raw
	if a.Used.Price == accounts.ByTokens { // it was not recorded yet
		a.Used.Tokens = llm.UsageOf(llm.Responses, raw)
	}
	return nil
}
