package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/v1/models"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	testSeconds = "15" // of a whole test
	maxTestBody = 1 << 20
	testTokens  = 16 // docs/reference/spec.md, 8
)

// Connectivity serves POST /api/providers/{id}/test.
type Connectivity struct {
	Objects rpc.Stub
	Cache   *snapshot.Cache // of the calls, which a success may make possible again; may be nil
	Models  *models.Handler
	// Chat, Embeddings and Search are the endpoints that a test goes through;
	// without one of them its tests answer "unsupported".
	Chat, Embeddings, Search endpoint.Handler
	Now                      func() time.Time
}

// TestResult is the outcome of a connection test. Status is the upstream's, 0
// without an answer. Error is null, or one of unauthorized, quota,
// rate_limited, not_found, rejected, failed, blocked, timeout,
// connection_failed, invalid_answer, unsupported, no_credentials; Message is its text for
// users. Model is the model that was called, "" if the test fetched the list of
// models.
type TestResult struct {
	OK        bool    `json:"ok"`
	LatencyMs int64   `json:"latencyMs"`
	Status    int     `json:"status"`
	Error     *string `json:"error"`
	Message   string  `json:"message,omitempty"`
	Model     string  `json:"model,omitempty"`

	place string // that the provider refuses; see store.Attempt
}

// testTexts are the messages by error.
var testTexts = map[string]string{
	"unauthorized":      "The provider refused the API key",
	"quota":             "The account is out of credit",
	"rate_limited":      "The provider is limiting the rate of this account",
	"not_found":         "The provider does not know this model, or the base URL is wrong",
	"rejected":          "The provider rejected the test request",
	"failed":            "The provider returned a server error",
	"blocked":           "The provider refuses calls from this location",
	"timeout":           "The provider did not answer in time",
	"connection_failed": "The provider could not be reached",
	"invalid_answer":    "The server answered, but not as this API does. Check the base URL",
	"unsupported":       "There is no model that a test can call",
	"no_credentials":    "This account has no usable credential",
}

// fail returns the outcome of a test that failed.
func fail(code string, status int) TestResult {
	text := testTexts[code]
	if status > 0 {
		text += " (status " + strconv.Itoa(status) + ")"
	}
	return TestResult{Status: status, Error: &code, Message: text + "."}
}

// healthOf returns the reason that the object's operation "tested" takes for an
// outcome. ok is false if the outcome is not a state of the account.
func healthOf(r TestResult) (reason string, ok bool) {
	if r.OK {
		return "", true
	}
	switch *r.Error {
	case "unauthorized":
		return store.KeyRefused, true
	case "quota":
		return store.OutOfCredit, true
	case "connection_failed", "timeout":
		return "unreachable", true
	case "failed", "invalid_answer":
		return "failing", true
	case "blocked":
		return "blocked", true
	case "not_found", "rejected":
		// For a called model this does not concern the account. Without one,
		// the base URL has no list of models, so it is probably wrong.
		if r.Model == "" {
			return "failing", true
		}
	}
	return "", false
}

// Test answers {"model"}, or nothing, with a TestResult: one chat call with
// max_tokens 16, or one embedding where the provider has no chat, or one search
// for one result where it only searches, or else the provider's list of models or
// the endpoint that its row names for this.
// An answer of reasoning alone is ok. At most ten tests a minute.
//
// The body of a failed probe is not shown. The upstream's status is, even for a
// tenant's own base URL, since the caller can read it in the list of requests.
// The latency of a call without an answer is rounded to one of three classes
// (docs/reference/reliability.md, T18). The outcome becomes the connection's
// health.
func (h *Connectivity) Test(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	b, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	model, err := testModel(b)
	if err != nil {
		return nil, err
	}
	id := c.Params[0]
	m, err := h.probe(ctx, c.MachineID, id)
	if err != nil {
		return nil, err
	}
	conn := m.Connection(id)
	row := provider.Lookup(conn.Provider)
	if row == nil {
		return shown(fail("unsupported", 0))
	}
	out := h.try(ctx, c, m, conn, row, model)
	if !out.OK && *out.Error == "unauthorized" && !store.HasCredential(conn.Secrets) {
		out.Message = strings.Replace(out.Message, testTexts["unauthorized"], "The provider asks for an API key, and the account has none", 1)
	}
	if out.Status == 0 && conn.Data.BaseURL != "" {
		out.LatencyMs = delayClass(out.LatencyMs)
	}
	if err := h.report(ctx, c.MachineID, id, out); err != nil {
		return nil, err
	}
	if out.OK && h.Cache != nil {
		h.Cache.Invalidate(c.MachineID)
	}
	return shown(out)
}

// try makes the calls of a test.
func (h *Connectivity) try(ctx context.Context, c *auth.Call, m *snapshot.Machine, conn *store.Connection,
	row *provider.Descriptor, model string) TestResult {
	if conn.Status == "needs_credential" {
		return fail("no_credentials", 0)
	}
	start := h.Now()
	var listed *TestResult
	if model == "" && !(row.Search && !row.Has(catalog.LLM)) {
		model, listed = h.firstModel(ctx, c, m, conn, row)
	}
	var out TestResult
	call, serve := h.testCall(c, m, conn, row, model)
	switch {
	case serve != nil:
		start = h.Now()
		out = run(ctx, call, serve)
		if own := model != "" && model == row.Test && len(conn.Data.EnabledModels) == 0; own && !out.OK &&
			(*out.Error == "not_found" || *out.Error == "rejected") {
			// The provider may have ended the model, or not serve it in this region.
			if id, _ := h.listedModel(ctx, c, m, conn, row); id != "" && id != model {
				call, serve = h.testCall(c, m, conn, row, id)
				out = run(ctx, call, serve)
			}
		}
	case row.Check != "" && h.Models != nil:
		out = h.check(ctx, c, m, conn)
	case listed == nil && h.Models != nil && row.Serves("models") && !row.Models.None:
		_, out = h.list(ctx, c, m, conn)
	case listed != nil:
		out = *listed
	default:
		out = fail("unsupported", 0)
	}
	out.LatencyMs = h.Now().Sub(start).Milliseconds()
	if out.OK && out.Model != "" && listed == nil && row.Compatible && h.Models != nil {
		_, _ = h.list(ctx, c, m, conn) // for the limits that it states, which budgets ask for
	}
	return out
}

// run makes the call of a test.
func run(ctx context.Context, call *auth.Call, serve endpoint.Handler) TestResult {
	out := outcome(serve(ctx, call))
	if tried := call.Trace.Failed(); !out.OK && out.Status > 0 && len(tried) > 0 {
		// The client's error may have another status than the upstream's.
		last := tried[len(tried)-1]
		if s := shownStatus(&apierr.Error{Status: last.Status, Code: last.Code}); s >= 400 {
			out = fail(*out.Error, s)
		}
		out.place = last.Place
	}
	out.Model = call.Trace.Model
	return out
}

// report reports an outcome to the object.
func (h *Connectivity) report(ctx context.Context, machineID, connection string, r TestResult) error {
	reason, ok := healthOf(r)
	if !ok {
		return nil
	}
	_, err := rpc.Call[struct{}](ctx, h.Objects, machineID, "tested", struct {
		ID     string `json:"connectionId"`
		Reason string `json:"reason"`
		Status int    `json:"status"`
		Text   string `json:"text,omitempty"`
		Place  string `json:"place,omitempty"`
	}{connection, reason, r.Status, r.Message, r.place})
	return err
}

// list fetches the upstream's models. Without a list, or with an empty one, the
// test has failed with "unsupported".
func (h *Connectivity) list(ctx context.Context, c *auth.Call, m *snapshot.Machine,
	conn *store.Connection) (ids []string, out TestResult) {
	call := *c
	call.Machine = m
	ids, err := h.Models.Probe(ctx, &call, conn)
	switch {
	case err == nil && len(ids) > 0:
		return ids, TestResult{OK: true, Status: 200}
	case err == nil:
		return nil, fail("unsupported", 200)
	}
	return nil, unanswered(err)
}

// check calls the endpoint of the row that is there for a test.
func (h *Connectivity) check(ctx context.Context, c *auth.Call, m *snapshot.Machine,
	conn *store.Connection) TestResult {
	call := *c
	call.Machine = m
	if err := h.Models.Check(ctx, &call, conn); err != nil {
		return unanswered(err)
	}
	return TestResult{OK: true, Status: 200}
}

// unanswered returns the outcome of a GET that failed.
func unanswered(err error) TestResult {
	status, answered := models.UpstreamStatus(err)
	switch {
	case answered:
		return fail(statusCode(status), status)
	case errors.Is(err, upstream.ErrTimeout):
		return fail("timeout", 0)
	case errors.Is(err, models.ErrNoList):
		return fail("invalid_answer", 0)
	case errors.Is(err, provider.ErrNoCredential):
		return fail("no_credentials", 0)
	case errors.Is(err, accounts.ErrSealed):
		return sealed()
	}
	return lost(err)
}

// lost returns the outcome of a call without an answer.
func lost(err error) TestResult {
	r := fail("connection_failed", 0)
	if errors.Is(err, upstream.ErrNetwork) {
		r.Message = upstream.Unreachable("The provider", err)
	}
	return r
}

// sealed returns the outcome for credentials that this gateway cannot open, which says
// nothing about the account.
func sealed() TestResult {
	r := fail("no_credentials", 0)
	r.Message = store.SealedText
	return r
}

// probe asks the object to admit a test. It returns the current machine, with what this isolate
// has seen of it, so that calls know what the test learns.
func (h *Connectivity) probe(ctx context.Context, machineID, connection string) (*snapshot.Machine, error) {
	raw, err := rpc.Call[json.RawMessage](ctx, h.Objects, machineID, "probe", struct {
		ID string `json:"connectionId"`
	}{connection})
	if err != nil {
		return nil, err
	}
	m, err := snapshot.Parse(machineID, raw)
	if err != nil || h.Cache == nil {
		return m, err
	}
	if known, err := h.Cache.Get(ctx, machineID); err == nil {
		m.Local = known.Local
	}
	return m, nil
}

func shown(r TestResult) (*httpmsg.Response, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return answer(200, b), nil
}

func testModel(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	model := gjson.GetBytes(b, "model")
	if !exact(b, "model") || model.Exists() && model.Type != gjson.String {
		return "", apierr.Invalid("model", "Only model, a string, can be set here.")
	}
	if model.Str != "" && provider.CheckModel(model.Str) != nil {
		return "", apierr.Invalid("model", "The model ID is not valid.")
	}
	return model.Str, nil
}

// testCall makes the call of a test: to a machine that has only this
// connection, so that nothing else can answer.
func (h *Connectivity) testCall(
	c *auth.Call, m *snapshot.Machine, conn *store.Connection, row *provider.Descriptor, model string,
) (*auth.Call, endpoint.Handler) {
	only := *conn
	only.Inactive = false
	rec := &store.Machine{Version: m.Version, ID: m.ID, Generation: m.Generation, Connections: []store.Connection{only},
		Settings: m.Settings}
	alone := snapshot.New(rec)
	searches := row.Search && !row.Has(catalog.LLM)
	if model == "" && !searches {
		return nil, nil
	}
	kind := kindOf(m, row, model)
	name := cmp.Or(conn.Data.Prefix, conn.Provider) + "/" + model // as clients write it
	var serve endpoint.Handler
	var body []byte
	switch {
	case searches && h.Search != nil:
		serve = h.Search
		body = []byte(`{"provider":"` + row.ID + `","query":"ping","max_results":1}`)
	case kind == catalog.Embedding && h.Embeddings != nil:
		serve = h.Embeddings
		body, _ = json.Marshal(struct {
			Model string `json:"model"`
			Input string `json:"input"`
		}{name, "ping"})
	case kind != catalog.Embedding && row.Has(catalog.LLM) && h.Chat != nil:
		serve = h.Chat
		type message struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}
		body, _ = json.Marshal(struct {
			Model     string    `json:"model"`
			Messages  []message `json:"messages"`
			MaxTokens int       `json:"max_tokens"`
		}{name, []message{{"user", "ping"}}, testTokens})
	default:
		return nil, nil
	}
	r := &httpmsg.Request{
		ID: c.ID, Method: "POST", Path: "/v1/connection-test", Origin: c.Origin, Start: c.Start,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"},
			{Name: "x-stainless-timeout", Value: testSeconds}},
		Body: stream.FromBytes(body), Length: int64(len(body)),
	}
	if hop := c.Header.Get(clientheader.Hop); hop != "" {
		r.Header.Add(clientheader.Hop, hop)
	}
	return &auth.Call{Request: r, Machine: alone, MachineID: m.ID, MaxBody: maxTestBody}, serve
}

// firstModel picks the model of a test: the first for chat or embeddings that the
// connection enables, "" if it enables others alone; else the one that the row names,
// else a custom one, else one that the upstream lists. If it fetched the list, it also
// returns the outcome of that. An account of Azure calls deployments, whose names no
// list has.
func (h *Connectivity) firstModel(ctx context.Context, c *auth.Call, m *snapshot.Machine, conn *store.Connection,
	row *provider.Descriptor) (string, *TestResult) {
	for _, id := range conn.Data.EnabledModels {
		for _, lead := range []string{conn.Data.Prefix, row.Alias, row.ID} {
			if lead != "" {
				id = strings.TrimPrefix(id, lead+"/")
			}
		}
		if kind := kindOf(m, row, id); kind == catalog.LLM || kind == catalog.Embedding {
			return id, nil
		}
	}
	if len(conn.Data.EnabledModels) > 0 {
		return "", nil
	}
	if row.Test != "" {
		return row.Test, nil
	}
	for i := range m.CustomModels {
		if t := m.CustomModels[i].Type; t != "" && t != string(catalog.LLM) && t != string(catalog.Embedding) {
			continue
		}
		if a := m.CustomModels[i].ProviderAlias; a == row.ID || a == row.Alias || a == conn.Data.Prefix && a != "" {
			return m.CustomModels[i].ID, nil
		}
	}
	if row.Cloud == provider.Azure {
		return "", nil
	}
	return h.listedModel(ctx, c, m, conn, row)
}

// listedModel returns a model of the upstream's own list, the row's own under a
// longer name ("eu.amazon.nova-micro-v1:0") if it is there, else the first for chat, else
// for embeddings.
func (h *Connectivity) listedModel(ctx context.Context, c *auth.Call, m *snapshot.Machine, conn *store.Connection,
	row *provider.Descriptor) (string, *TestResult) {
	if h.Models == nil || !row.Serves("models") || row.Models.None {
		return "", nil
	}
	ids, out := h.list(ctx, c, m, conn)
	for _, id := range ids {
		if row.Test != "" && id != row.Test && strings.HasSuffix(id, row.Test) {
			return id, &out
		}
	}
	for _, kind := range []catalog.Kind{catalog.LLM, catalog.Embedding} {
		for _, id := range ids {
			if kindOf(m, row, id) == kind && row.Has(kind) {
				return id, &out
			}
		}
	}
	return "", &out
}

func kindOf(m *snapshot.Machine, row *provider.Descriptor, model string) catalog.Kind {
	kind, known := m.Catalog().KindOf(row.Alias, model)
	if !known {
		kind = catalog.InferKind(model)
	}
	if kind != catalog.Embedding && !row.Has(catalog.LLM) && row.Has(catalog.Embedding) {
		return catalog.Embedding
	}
	return kind
}

// outcome judges the answer of the data plane: one that its endpoint has
// settled for and that is what the endpoint answers with.
func outcome(resp *httpmsg.Response, err error) TestResult {
	var e *apierr.Error
	switch {
	case errors.As(err, &e) && e.Code == "key_unavailable":
		return sealed()
	case errors.As(err, &e) && e.Code == "upstream_unreachable", err != nil && e == nil:
		return lost(err)
	case e != nil:
		return fail(errorCode(e), shownStatus(e))
	}
	b, err := stream.ReadAll(resp.Body, maxTestBody)
	if err != nil {
		return lost(err)
	}
	a := gjson.ParseBytes(b)
	if !jsonscan.Valid(b) || !a.Get("choices.0").Exists() && !a.Get("data.0").Exists() && !a.Get("results").IsArray() {
		return fail("invalid_answer", resp.Status)
	}
	return TestResult{OK: true, Status: resp.Status}
}

// shownStatus returns the upstream's status, 0 where it has not answered.
func shownStatus(e *apierr.Error) int {
	switch e.Code {
	case "upstream_unreachable", "upstream_timeout", "no_credentials", "unsupported_endpoint", "upstream_redirect",
		"bad_upstream_body", "empty_upstream":
		return 0
	}
	return e.Status
}

// errorCode returns the one word for a failure of the data plane.
func errorCode(e *apierr.Error) string {
	switch e.Code {
	case "no_credentials":
		return "no_credentials"
	case "unsupported_endpoint":
		return "unsupported"
	case "upstream_timeout":
		return "timeout"
	case "upstream_blocked_here":
		return "blocked"
	case "insufficient_quota":
		return "quota"
	case "account_lacks_model":
		return "rejected"
	case "bad_upstream_body", "empty_upstream":
		return "invalid_answer"
	}
	if shownStatus(e) == 0 {
		return "connection_failed"
	}
	return statusCode(e.Status)
}

// statusCode returns the word for an upstream's status.
func statusCode(status int) string {
	switch {
	case status == 401, status == 403:
		return "unauthorized"
	case status == 402:
		return "quota"
	case status == 404:
		return "not_found"
	case status == 429:
		return "rate_limited"
	case status >= 400 && status < 500:
		return "rejected"
	case status >= 500:
		return "failed"
	}
	return "connection_failed" // a redirect
}

// delayClass returns one of three classes of time, in milliseconds.
func delayClass(ms int64) int64 {
	switch {
	case ms < time.Second.Milliseconds():
		return 1000
	case ms < 5*time.Second.Milliseconds():
		return 5000
	}
	return 15000
}
