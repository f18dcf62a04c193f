package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// The limits of an exchange besides those of the settings.
const (
	maxAnswer   = 32 << 20         // bytes of a JSON answer
	streamTotal = 15 * time.Minute // docs/reference/reliability.md, F10
)

// exchange is one client's request.
type exchange struct {
	ctx     context.Context
	proxy   *Proxy
	call    *auth.Call
	req     *Request
	targets []routing.Target
	input   int64 // estimated tokens of the request; -1 while not estimated
}

// attempt is one upstream call of an exchange.
type attempt struct {
	accounts.Attempt
	*exchange
	api   api
	opt   llm.Options
	tools llm.Tools // of opt
	// noResponses is the account whose server turned out, in this exchange, to
	// have no Responses endpoint.
	noResponses *store.Connection
	forms       refusals
	parsed      parsed
	cacheMarks  llm.CacheMarks    // of opt, if the machine's settings ask for marks
	body        stream.Bytes      // of Request
	whole       stream.Bytes      // the answer, when it is in memory
	fields      [10]httpmsg.Field // of Request, and space for the account's
}

// build makes the upstream's request for one target and account.
func (x *exchange) build(to *routing.Target, conn *store.Connection,
	before *accounts.Attempt) (*accounts.Attempt, error) {
	a := x.attempt(to, conn, before)
	w, ok := chooseAPI(to, conn, x.req.Dialect, x.req.Compacts && !to.Provider.Serves("compact") ||
		a.lacksResponses() || x.proxy.ChatOnly.has(connectionKey{x.call.Machine.ID, conn.ID}))
	if ok && x.req.Compaction && w.dialect == llm.Responses {
		w.endpoint, w.stream = "compact", "compact"
	}
	if !ok {
		return nil, fmt.Errorf("chat: %w", provider.ErrNoEndpoint)
	}
	a.setAPI(w)
	if !x.req.Background || w.dialect != llm.Responses { // else its usage may come with a later answer
		a.Estimator = a
	}
	a.opt = a.options()
	var body []byte
	var parts [][]byte // of a large body
	var dropped []string
	var err error
	if len(x.req.Body) > memory.Uncounted && !a.forms.changes() {
		if parts, dropped, err = llm.RequestParts(x.req.Dialect, w.dialect, x.req.Body, a.opt); err == nil {
			body = parts[0]
		}
	} else {
		body, dropped, err = llm.Request(x.req.Dialect, w.dialect, x.req.Body, a.opt)
	}
	if err != nil {
		if len(x.targets) > 1 {
			// Another member of the combo may understand it.
			return nil, accounts.Unsuitable(err)
		}
		return nil, err
	}
	if a.Dropped = dropped; len(x.req.Dropped) > 0 {
		a.Dropped = append(slices.Clone(x.req.Dropped), dropped...)
	}
	if a.forms.changes() {
		if body, err = a.leaveOut(x.ctx, body); err != nil {
			return nil, err
		}
	}
	betas := ""
	if len(parts) <= 1 {
		if body, err = a.leaveOutFeatures(x.ctx, body); err != nil {
			return nil, err
		}
		body, betas = a.addBetas(body)
	}
	a.CacheMarks = a.cacheMarks.Added
	x.call.Memory.Settle()
	x.call.Memory.Translates = a.api.dialect != x.req.Dialect
	name := w.endpoint
	if x.req.Stream {
		name = w.stream
	}
	var method, url string
	if w.base == nil && w.model == to.Model {
		method, url, err = to.Endpoint(conn, name)
	} else {
		method, url, err = w.address(to.Provider, conn, name)
	}
	if err != nil {
		return nil, err
	}
	a.Request = upstream.Request{Method: method, URL: a.beta(url), Header: a.header(), Body: &a.body}
	if len(parts) > 1 {
		a.Request.Body = stream.FromParts(parts)
	} else {
		a.body.Reset(body)
	}
	if betas != "" {
		a.Request.Header.Add("anthropic-beta", betas)
	}
	s := &x.call.Machine.Settings
	if x.req.Stream {
		a.Request.HeaderTimeout, a.Request.Timeout = s.FirstEvent(), streamTotal
	} else {
		a.Request.HeaderTimeout, a.Request.Timeout, a.Request.MaxBody = s.FirstByte(), s.Whole(), maxAnswer
	}
	if w.dialect == llm.Responses && x.req.Dialect == llm.Responses && !x.req.Stateful && x.req.Connection == "" {
		_, a.OtherAPI = chooseAPI(to, conn, x.req.Dialect, true)
	}
	a.Forms = a
	return &a.Attempt, nil
}

// attempt begins an attempt with what the one before has learned.
func (x *exchange) attempt(to *routing.Target, conn *store.Connection, before *accounts.Attempt) *attempt {
	a := &attempt{exchange: x}
	a.State, a.Target, a.Connection = a, to, conn
	if before != nil {
		last := before.State.(*attempt)
		if a.noResponses = last.noResponses; before.Retry == accounts.OtherAPI {
			a.noResponses = before.Connection
		}
		if last.forms.connection == conn.ID {
			a.forms = last.forms
		}
		a.forms.noThoughts = last.forms.noThoughts && last.Target.Provider == to.Provider
	}
	a.forms.connection = conn.ID
	return a
}

// setAPI sets the API by which the account is called.
func (a *attempt) setAPI(w api) {
	a.api, a.Base = w, w.base
	if a.Errors = accounts.ErrorsForeign; w.dialect == a.req.Dialect {
		a.Errors = accounts.ErrorsSame
	}
}

// lacksResponses reports whether the server of the account has answered, to this
// account or to another of the same address, that it has no Responses endpoint.
func (a *attempt) lacksResponses() bool {
	from, conn := a.noResponses, a.Connection
	return from != nil && from.Provider == conn.Provider && from.Data.BaseURL == conn.Data.BaseURL
}

func (w *api) address(d *provider.Descriptor, conn *store.Connection, name string) (method, url string, err error) {
	if w.base != nil {
		return d.EndpointOf(w.base, conn, name, w.model)
	}
	return d.Endpoint(conn, name, w.model)
}

// options returns the parameters of the translation.
func (a *attempt) options() llm.Options {
	a.tools = llm.Tools{}
	o := llm.Options{
		Model: a.api.model, ID: strings.TrimPrefix(a.call.ID, "req_"), Now: a.proxy.Now().Unix(),
		Deviations: ir.DeviationsOf(a.Target.Provider.ID), StreamUsage: a.req.WantsUsage,
		Stream: a.req.Stream, HideThoughts: a.req.HideThoughts,
		Tools: &a.tools, Vendor: !a.Target.Provider.Compatible, LongUser: a.req.LongUser,
		Attribution: a.atAnthropic(),
	}
	if !a.req.Compaction { // which has no limit
		o.OutputLimit = a.Target.OutputLimit
	}
	if a.api.dialect != a.req.Dialect && len(a.req.Body) > memory.Uncounted {
		o.Memory = a.memory
	}
	a.opt.Deviations = o.Deviations
	adapts, asks := a.adapts(), a.acceptsStreamOptions()
	if adapts || asks {
		a.readRefusals()
	}
	if adapts && a.api.dialect == llm.Chat {
		o.Refuses = a.forms.avoid
	}
	o.AskUsage = asks && !a.forms.avoid.Has(refusedStreamOptions)
	o.NoThoughts = a.forms.noThoughts
	if a.call.Machine.Settings.MarksCaches() && a.req.Dialect != llm.Messages && !a.refusesCacheMarks() {
		o.CacheMarks = &a.cacheMarks
		a.cacheMarks.Auto = a.call.Machine.Settings.PromptCaching == store.CachingAuto
	}
	if a.api.dialect != a.req.Dialect && !a.req.Stream {
		o.Lost = a.lost
	}
	if a.api.dialect != a.req.Dialect && a.Estimator != nil {
		o.Settle = a.settle
	}
	if a.req.Dialect == llm.Responses && a.api.dialect != llm.Responses {
		o.Settings = &llm.Settings{Compact: a.req.Compacts}
	}
	if a.api.dialect == a.req.Dialect {
		o.Marked, o.ModelAt = a.req.marked, a.req.modelAt
	}
	if a.api.dialect == a.req.Dialect && len(o.Deviations.DropReasoning) == 0 {
		return o
	}
	if a.api.dialect != a.req.Dialect && a.proxy.Pause != nil {
		// The call continues even if its client has disconnected.
		o.Pause = func() { _ = a.proxy.Pause.Pause(a.ctx, 0) }
	}
	for _, m := range a.call.Machine.Catalog().Facts(a.Target.Provider.Alias, a.Target.Model) {
		if m.Kind == catalog.LLM {
			o.MaxOutput = int64(m.MaxOutput)
			if a.api.dialect == llm.Messages {
				o.MaxTokens = o.MaxOutput // it needs a limit: none that cuts an answer short
			}
			o.Reasoning, _ = m.Caps.Get(catalog.Reasoning)
		}
	}
	return o
}

// memory acquires what a translation takes beside the bytes that it reads.
func (a *attempt) memory(bytes int64) error {
	if bytes <= memory.Uncounted {
		return nil
	}
	return a.call.Memory.Acquire(a.ctx, memory.Work, memory.Amount{Program: bytes})
}

// answerMemory is memory for the translation of an answer.
func (a *attempt) answerMemory(bytes int64) error {
	return a.call.Memory.Acquire(a.ctx, memory.Reply, memory.Amount{Program: bytes})
}

// lost adds the name of a part of the answer to x-weir-dropped.
func (a *attempt) lost(name string) {
	if !slices.Contains(a.Dropped, name) {
		a.Dropped = append(a.Dropped[:len(a.Dropped):len(a.Dropped)], name)
	}
}

const messagesVersion = "2023-06-01" // docs/reference/spec.md, 9

// beta passes ?beta=true of Anthropic's clients to an upstream of their own
// dialect.
func (a *attempt) beta(url string) string {
	if a.req.Dialect != llm.Messages || a.api.dialect != llm.Messages || a.api.hosted ||
		endpoint.Query(a.call.Query, "beta") != "true" {
		return url
	}
	if strings.Contains(url, "?") {
		return url + "&beta=true"
	}
	return url + "?beta=true"
}

// header returns the fields of the upstream's request. Version, beta and
// session fields of a client go to an upstream of its own dialect only.
func (a *attempt) header() httpmsg.Header {
	accept := "application/json"
	switch {
	case a.req.Stream && a.api.frames:
		accept = "application/vnd.amazon.eventstream"
	case a.req.Stream:
		accept = "text/event-stream"
	}
	h := append(httpmsg.Header(a.fields[:0]),
		httpmsg.Field{Name: "content-type", Value: "application/json"},
		httpmsg.Field{Name: "accept", Value: accept},
		httpmsg.Field{Name: "accept-encoding", Value: "identity"})
	h = append(h, provider.IdempotencyKey(a.call.Header, 0)...)
	if a.api.dialect == a.req.Dialect && !a.api.hosted {
		if to := a.req.Dialect.Client().Header; to != 0 {
			h = provider.AppendRequestHeader(h, a.call.Header, to)
		}
	}
	if a.forms.changes() {
		h = a.leaveOutBetas(h)
	}
	if a.api.dialect == llm.Messages && !a.api.hosted && h.Get("anthropic-version") == "" {
		h = append(h, httpmsg.Field{Name: "anthropic-version", Value: messagesVersion})
	}
	return h
}
