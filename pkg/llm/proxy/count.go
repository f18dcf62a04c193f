package proxy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Tokens is a count of input tokens. Exact reports whether the provider
// counted.
type Tokens struct {
	Input int64
	Exact bool
	// Answer is the counter's own answer if client and counter speak Gemini's dialect,
	// where it has more than the count.
	Answer string
}

// Response returns the answer of an endpoint that counts, which names who has counted.
func (n Tokens) Response(body string) *httpmsg.Response {
	how := "estimate"
	if n.Exact {
		how = "exact"
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "application/json"},
			{Name: "x-weir-token-count", Value: how},
		},
		Body: stream.FromString(body),
	}
}

const (
	countTimeout = 20 * time.Second
	maxCount     = 64 << 10 // bytes of a counter's answer
)

// Count counts the input tokens of a request of a client's dialect in the body that
// would be sent: by the vendor's own counter if the target has one, or by an estimate. A
// request that the vendor refuses as invalid is an error; a counter that fails
// for another reason is replaced by the estimate. An empty request has 0
// tokens, also without a model.
func (d *Proxy) Count(ctx context.Context, c *auth.Call, dialect llm.Dialect, body []byte) (Tokens, error) {
	return d.CountAt(ctx, c, dialect, body, "")
}

// CountAt is Count by one connection, which stores what the request refers to. An
// empty id is any.
func (d *Proxy) CountAt(ctx context.Context, c *auth.Call, dialect llm.Dialect, body []byte,
	connection string) (Tokens, error) {
	set, err := jsonscan.Read(body, "model", "messages")
	if err != nil {
		return Tokens{}, endpoint.BadJSON(err)
	}
	if k := set.Get("messages").Kind; dialect.Client().MessagesArray && k > jsonscan.Null && k != jsonscan.Array {
		return Tokens{}, apierr.Invalid("messages", "messages must be an array.")
	}
	model, given, err := set.String("model")
	if err != nil {
		return Tokens{}, apierr.Invalid("model", "model must be a string.")
	}
	plain := Tokens{Input: llm.Estimate(body)}
	if !given || model == "" || plain.Input == 0 {
		return plain, nil
	}
	n := &counting{exchange: exchange{req: &Request{Dialect: dialect, Body: body, Model: model, Connection: connection}},
		estimate: plain.Input}
	return d.count(ctx, c, n)
}

// CountGemini is Count for a request of the Gemini API, whose URL names the model:
//
//	{contents} or {generateContentRequest{model, contents, …}}
func (d *Proxy) CountGemini(ctx context.Context, c *auth.Call, model string, body []byte) (Tokens, error) {
	set, err := jsonscan.Read(body, "contents", "generateContentRequest", "generate_content_request")
	if err != nil {
		return Tokens{}, endpoint.BadJSON(err)
	}
	n := &counting{exchange: exchange{req: &Request{Dialect: llm.Gemini, Body: body, Model: model}}}
	for _, name := range [...]string{"generateContentRequest", "generate_content_request"} {
		switch v := set.Get(name); {
		case v.Kind <= jsonscan.Null:
		case v.Kind != jsonscan.Object || set.Has("contents") || n.whole != nil:
			return Tokens{}, apierr.Invalid(name, "Send either contents or an object %s.", name)
		default:
			n.whole, n.at, n.req.Body = body, v.Span, body[v.Start:v.End]
		}
	}
	if n.estimate = llm.Estimate(n.req.Body); n.estimate == 0 {
		return Tokens{}, nil
	}
	return d.count(ctx, c, n)
}

// count counts a request that is not empty.
func (d *Proxy) count(ctx context.Context, c *auth.Call, n *counting) (Tokens, error) {
	n.ctx, n.proxy, n.call = ctx, d, c
	plain := Tokens{Input: n.estimate}
	targets, err := d.targets(c, n.req)
	if err != nil {
		var e *apierr.Error
		if errors.As(err, &e) && e.Code == "no_credentials" {
			return plain, nil
		}
		return Tokens{}, err
	}
	// A combo is counted as its first member.
	to := &targets[0]
	if len(to.Connections) > 0 {
		if _, err := n.build(to, to.Connections[0], nil); err != nil && !errors.Is(err, errNoCounter) &&
			!errors.Is(err, provider.ErrIncomplete) {
			return Tokens{}, err
		} else if err != nil {
			c.Trace.Model = to.ID()
			return Tokens{Input: n.estimate}, nil
		}
	}
	res, err := d.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets[:1], Timeout: countTimeout, Build: n.build,
		Read: readCount, Estimate: accounts.Estimate{Follows: true},
	})
	var e *apierr.Error
	switch {
	case err == nil:
		a := res.Attempt.State.(*countAttempt)
		t := Tokens{Input: a.counted, Exact: true}
		if a.by.dialect == llm.Gemini && n.req.Dialect == llm.Gemini {
			t.Answer = string(a.answer)
		}
		return t, nil
	case errors.As(err, &e) && (e.Status == 400 && e.Code != "no_credentials" && e.Code != "unsupported_endpoint" ||
		e.Status == 413 || e.Status == 422 || e.Status == 499):
		return Tokens{}, err
	case !errors.As(err, &e):
		return Tokens{}, err
	}
	c.Trace.Model = to.ID()
	return Tokens{Input: n.estimate}, nil
}

// errNoCounter means that the target has no counter for this request. It is
// not an account's fault.
var errNoCounter = errors.New("proxy: the provider does not count tokens")

// counting is one call of a counter.
type counting struct {
	exchange
	estimate int64 // over the body that would be sent
	// whole is the body of a Gemini client in which the request is at at; nil if the
	// body is the request.
	whole []byte
	at    jsonscan.Span
}

// countAttempt is one call of a counter.
type countAttempt struct {
	*attempt
	by      *counter
	counted int64
	answer  []byte
}

// counter describes a vendor's endpoint "countTokens".
type counter struct {
	cloud   provider.Cloud
	dialect llm.Dialect
	// body returns the counter's request for the one that would be sent, or nil
	// if it cannot count that.
	body func(sent []byte, model string) []byte
	path string // of the count in the answer
}

// counters are the vendors' counters (docs/reference/api-shapes.md, 4, 8.4,
// 10).
var counters = [...]counter{
	{0, llm.Messages, forMessages, "input_tokens"},
	{provider.Vertex, llm.Messages, forHosted, "input_tokens"},
	{0, llm.Responses, forResponses, "input_tokens"},
	{0, llm.Chat, forTokenizer, "data.total_tokens"},
	{0, llm.Gemini, forGemini, "totalTokens"},
}

// counterOf returns the counter of a target, whose dialect may be another than
// that of its chat: OpenAI counts in its Responses dialect.
func counterOf(d *provider.Descriptor, w *api) *counter {
	if !d.Serves("countTokens") {
		return nil
	}
	dialect := d.Dialect
	switch {
	case dialect == llm.Chat && d.Serves("responses"):
		dialect = llm.Responses
	case w.hosted:
		dialect = llm.Messages
	}
	if d.Dialect != llm.Chat && w.dialect != dialect {
		return nil
	}
	for i := range counters {
		if n := &counters[i]; n.cloud == d.Cloud && n.dialect == dialect {
			return n
		}
	}
	return nil
}

// build returns the counter's request, and stores the estimate of the same
// body.
func (n *counting) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	from := n.req.Dialect
	w, ok := chooseAPI(to, conn, from, n.proxy.ChatOnly.has(connectionKey{n.call.Machine.ID, conn.ID}))
	if !ok {
		return nil, errNoCounter
	}
	a := &countAttempt{attempt: n.attempt(to, conn, nil)}
	a.setAPI(w)
	a.opt = a.options()
	sent, _, err := llm.Request(from, w.dialect, n.req.Body, a.opt)
	if err != nil {
		return nil, err
	}
	n.estimate = llm.Estimate(sent)
	if a.by = counterOf(to.Provider, &w); a.by == nil {
		return nil, errNoCounter
	}
	w.base = nil // the counter is at the provider's own address
	if by := a.by.dialect; by != w.dialect || w.hosted {
		w.dialect, w.model = by, to.Model
		a.setAPI(w)
		opt := a.options()
		if w.hosted {
			opt.Deviations = nil // the counter's address does not name the model
		}
		if sent, _, err = llm.Request(from, by, n.req.Body, opt); err != nil {
			return nil, err
		}
	}
	a.setAPI(w)
	var body []byte
	switch {
	case from != llm.Gemini || a.by.dialect != llm.Gemini:
		body = a.by.body(sent, to.Model)
	case n.whole != nil:
		body = jsonscan.Splice(n.whole, n.at, sent)
	default:
		body = sent
	}
	if body == nil {
		return nil, errNoCounter
	}
	method, url, err := to.Provider.Endpoint(conn, "countTokens", to.Model)
	if err != nil {
		return nil, err
	}
	a.Request = upstream.Request{
		Method: method, URL: a.beta(url), Header: a.header(), Body: stream.FromBytes(body),
		HeaderTimeout: countTimeout / 2, Timeout: countTimeout, MaxBody: maxCount,
	}
	a.State, a.Used.Price = a, accounts.Stated // free of charge
	return &a.Attempt, nil
}

// readCount reads the count.
func readCount(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*countAttempt)
	raw, err := stream.ReadAll(resp.Body, maxCount)
	if err != nil {
		return err
	}
	v := gjson.GetBytes(raw, a.by.path)
	if endpoint.ValidJSON(raw) != nil || v.Type != gjson.Number || v.Num < 0 || v.Num > 1e12 {
		return endpoint.BadBody(nil)
	}
	a.counted, a.answer = v.Int(), raw
	resp.Body = stream.FromBytes(raw)
	return nil
}

// selectMembers copies the named members of a body.
func selectMembers(body []byte, names ...string) []byte {
	return copyMembers(body, func(name string) bool { return slices.Contains(names, name) })
}

func copyMembers(body []byte, wanted func(name string) bool) []byte {
	out := make([]byte, 1, len(body))
	out[0] = '{'
	gjson.ParseBytes(body).ForEach(func(k, v gjson.Result) bool {
		if wanted(k.Str) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, k.Raw...), ':'), v.Raw...)
		}
		return true
	})
	return append(out, '}')
}

// uncounted are the members of a Messages request that Anthropic's counter refuses.
var uncounted = [...]string{
	"max_tokens", "stream", "metadata", "stop_sequences", "temperature", "top_k", "top_p", "service_tier", "container",
	"inference_geo",
}

// forMessages returns the request of Anthropic's counter. Fields that are not known
// here belong to features that the header anthropic-beta names, so they go with it
// (docs/reference/clients.md, 1.5).
func forMessages(sent []byte, _ string) []byte {
	return copyMembers(sent, func(name string) bool { return !slices.Contains(uncounted[:], name) })
}

func forHosted(sent []byte, _ string) []byte {
	return selectMembers(sent, "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
		"cache_control", "mcp_servers")
}

func forResponses(sent []byte, _ string) []byte {
	return selectMembers(sent, "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text",
		"reasoning", "truncation", "previous_response_id", "conversation")
}

// forTokenizer returns the request of Moonshot's counter, which supports
// messages only.
func forTokenizer(sent []byte, _ string) []byte {
	if gjson.GetBytes(sent, "tools").Exists() {
		return nil
	}
	return selectMembers(sent, "model", "messages")
}

func forGemini(sent []byte, model string) []byte {
	out := append([]byte(`{"generateContentRequest":{"model":`), jsonscan.Quote(nil, "models/"+model)...)
	if len(sent) > 2 {
		out = append(out, ',')
	}
	return append(append(out, sent[1:]...), '}')
}
