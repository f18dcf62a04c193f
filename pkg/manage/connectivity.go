package manage

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/edge"
	"weir/pkg/machine"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/stream"
)

const (
	testSeconds = "15" // of a whole test
	maxTestBody = 1 << 20
	testTokens  = 16 // spec 8
)

// Connectivity serves POST /api/providers/{id}/test.
type Connectivity struct {
	Objects machine.Stub
	Models  connectionModels
	// Chat, Embeddings and Search are the endpoints that a test goes through;
	// without one of them its tests answer "unsupported".
	Chat, Embeddings, Search Endpoint
	Now                      func() time.Time
}

// TestResult is the outcome of a connection test. Status is the upstream's, 0
// when there is none to tell; Error one of unauthorized, quota, rate_limited,
// not_found, rejected, failed, connection_failed, unsupported, no_credentials.
type TestResult struct {
	OK        bool   `json:"ok"`
	LatencyMs int64  `json:"latencyMs"`
	Status    int    `json:"status"`
	Error     string `json:"error,omitempty"`
	Model     string `json:"model,omitempty"`
}

// Test answers {"model"}, or nothing, with a TestResult: one chat call with
// max_tokens 16, or one embedding where the provider has no chat, or one search
// for one result where it only searches. An answer of reasoning alone is ok. At
// most ten tests a minute.
//
// Nothing of a failed probe's body is shown. Where the address is the tenant's
// own choice every failure is the same answer, with its time in one of three
// classes: a test must not tell what listens where (reliability T18).
func (h *Connectivity) Test(ctx context.Context, c *auth.Call) (*edge.Response, error) {
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
		return shown(TestResult{Error: "unsupported"})
	}
	call, endpoint := h.testCall(ctx, c, m, conn, row, model)
	if endpoint == nil {
		return shown(TestResult{Error: "unsupported"})
	}
	start := h.Now()
	out := outcome(endpoint(ctx, call))
	out.LatencyMs = h.Now().Sub(start).Milliseconds()
	out.Model = call.Trace.Model
	if !out.OK && conn.Data.BaseURL != "" {
		out = TestResult{LatencyMs: delayClass(out.LatencyMs), Error: "connection_failed"}
	}
	return shown(out)
}

// probe asks the object to admit a test. It gives the machine as it is now.
func (h *Connectivity) probe(ctx context.Context, machineID, connection string) (*snapshot.Machine, error) {
	body, err := json.Marshal(struct {
		ID string `json:"connectionId"`
	}{connection})
	if err != nil {
		return nil, err
	}
	raw, err := (&Handler{Objects: h.Objects}).ask(ctx, machineID, "probe", body)
	if err != nil {
		return nil, err
	}
	return snapshot.Parse(machineID, raw)
}

func shown(r TestResult) (*edge.Response, error) {
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
		return "", apierr.Invalid("model", "only model, a string, can be set here")
	}
	if model.Str != "" && provider.CheckModel(model.Str) != nil {
		return "", apierr.Invalid("model", "the model id is not usable")
	}
	return model.Str, nil
}

// testCall makes the call of a test: to a machine that has only this
// connection, so that nothing else can answer.
func (h *Connectivity) testCall(ctx context.Context, c *auth.Call, m *snapshot.Machine, conn *store.Connection, row *provider.Descriptor, model string) (*auth.Call, Endpoint) {
	only := *conn
	only.Inactive = false
	only.Data.Prefix = ""
	rec := &store.Machine{Version: m.Version, ID: m.ID, Generation: m.Generation, Connections: []store.Connection{only}, Settings: m.Settings}
	alone := snapshot.New(rec)
	searches := row.Search && !row.Has(catalog.LLM)
	if model == "" && !searches {
		model = h.firstModel(ctx, c, m, conn, row)
	}
	if model == "" && !searches {
		return nil, nil
	}
	kind := kindOf(row, model)
	var endpoint Endpoint
	var body []byte
	switch {
	case searches && h.Search != nil:
		endpoint = h.Search
		body = []byte(`{"provider":"` + row.ID + `","query":"ping","max_results":1}`)
	case kind == catalog.Embedding && h.Embeddings != nil:
		endpoint = h.Embeddings
		body, _ = json.Marshal(struct {
			Model string `json:"model"`
			Input string `json:"input"`
		}{conn.Provider + "/" + model, "ping"})
	case kind != catalog.Embedding && row.Has(catalog.LLM) && h.Chat != nil:
		endpoint = h.Chat
		type message struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}
		body, _ = json.Marshal(struct {
			Model     string    `json:"model"`
			Messages  []message `json:"messages"`
			MaxTokens int       `json:"max_tokens"`
		}{conn.Provider + "/" + model, []message{{"user", "ping"}}, testTokens})
	default:
		return nil, nil
	}
	r := &edge.Request{
		ID: c.ID, Method: "POST", Path: "/v1/connection-test", Origin: c.Origin, Start: c.Start,
		Header: edge.Header{{Name: "content-type", Value: "application/json"}, {Name: "x-stainless-timeout", Value: testSeconds}},
		Body:   stream.FromBytes(body), Length: int64(len(body)),
	}
	if hop := c.Header.Get("x-weir-hop"); hop != "" {
		r.Header.Add("x-weir-hop", hop)
	}
	return &auth.Call{Request: r, Machine: alone, MachineID: m.ID, MaxBody: maxTestBody}, endpoint
}

// firstModel picks the model of a test: the first that the connection enables,
// else the provider's first chat model, else its first for embeddings, else
// the first that the upstream lists.
func (h *Connectivity) firstModel(ctx context.Context, c *auth.Call, m *snapshot.Machine, conn *store.Connection, row *provider.Descriptor) string {
	for _, id := range conn.Data.EnabledModels {
		for _, lead := range []string{conn.Data.Prefix, row.Alias, row.ID} {
			if lead != "" {
				id = strings.TrimPrefix(id, lead+"/")
			}
		}
		return id
	}
	known := catalog.Models(row.Alias)
	for _, kind := range []catalog.Kind{catalog.LLM, catalog.Embedding} {
		for i := range known {
			if known[i].Kind == kind && row.Has(kind) {
				return known[i].ID
			}
		}
	}
	for i := range m.CustomModels {
		if a := m.CustomModels[i].ProviderAlias; a == row.ID || a == row.Alias || a == conn.Data.Prefix && a != "" {
			return m.CustomModels[i].ID
		}
	}
	if h.Models == nil || !row.Serves("models") {
		return ""
	}
	call := *c
	call.Machine = m
	resp, err := h.Models.Connection(ctx, &call, conn)
	if err != nil || resp.Status != 200 {
		return ""
	}
	b, err := stream.ReadAll(resp.Body, maxTestBody)
	if err != nil {
		return ""
	}
	return gjson.GetBytes(b, "data.0.id").Str
}

func kindOf(row *provider.Descriptor, model string) catalog.Kind {
	kind, known := catalog.KindOf(row.Alias, model)
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
func outcome(resp *edge.Response, err error) TestResult {
	var e *apierr.Error
	switch {
	case errors.As(err, &e):
		return TestResult{Status: shownStatus(e), Error: errorCode(e)}
	case err != nil:
		return TestResult{Error: "connection_failed"}
	}
	b, err := stream.ReadAll(resp.Body, maxTestBody)
	a := gjson.ParseBytes(b)
	if err != nil || !gjson.ValidBytes(b) || !a.Get("choices").IsArray() && !a.Get("data").IsArray() && !a.Get("results").IsArray() {
		return TestResult{Error: "connection_failed"}
	}
	return TestResult{OK: true, Status: resp.Status}
}

// shownStatus gives the upstream's status, 0 where it has not answered.
func shownStatus(e *apierr.Error) int {
	switch e.Code {
	case "upstream_unreachable", "upstream_timeout", "no_credentials", "key_unavailable", "unsupported_endpoint", "upstream_redirect", "bad_upstream_body", "empty_upstream":
		return 0
	}
	return e.Status
}

// errorCode gives the one word that a failure is told in.
func errorCode(e *apierr.Error) string {
	switch e.Code {
	case "no_credentials", "key_unavailable":
		return "no_credentials"
	case "unsupported_endpoint":
		return "unsupported"
	}
	if shownStatus(e) == 0 {
		return "connection_failed"
	}
	switch {
	case e.Status == 401, e.Status == 403:
		return "unauthorized"
	case e.Status == 402:
		return "quota"
	case e.Status == 429:
		return "rate_limited"
	case e.Status == 404:
		return "not_found"
	case e.Status < 500:
		return "rejected"
	}
	return "failed"
}

// delayClass gives one of three classes of time, in milliseconds.
func delayClass(ms int64) int64 {
	switch {
	case ms < time.Second.Milliseconds():
		return 1000
	case ms < 5*time.Second.Milliseconds():
		return 5000
	}
	return 15000
}
