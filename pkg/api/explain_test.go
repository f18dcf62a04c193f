package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	seals "weir/internal/testgw/sealed"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/v1/embeddings"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// explainer is the route over the real embeddings endpoint.
func explainer(t *testing.T, m *snapshot.Machine, now time.Time) *Explainer {
	return &Explainer{
		Endpoint: func(c *auth.Call, s accounts.Sender) endpoint.Handler {
			if c.Path != "/v1/embeddings" {
				return nil
			}
			return (&embeddings.Handler{Accounts: s}).Create
		},
		Cache: loader{m},
		Keys:  seals.Keys(t),
		Now:   func() time.Time { return now },
	}
}

// opens returns what names the key of its seal, which is all that a plan depends on.
func opens(t *testing.T) secret.Sealed { return secret.Sealed("v1." + seals.Keys(t).Current() + ".x") }

type loader struct{ m *snapshot.Machine }

func (l loader) Invalidate(string) {}

func (l loader) Known(ctx context.Context, id string) (*snapshot.Machine, error) {
	return l.Get(ctx, id)
}

func (l loader) Get(_ context.Context, id string) (*snapshot.Machine, error) {
	if id != l.m.ID {
		return nil, snapshot.ErrUnknown
	}
	return l.m, nil
}

func explain(t *testing.T, h *Explainer, c *auth.Call, body string) (*Plan, error) {
	t.Helper()
	c.Request = &httpmsg.Request{Body: stream.FromString(body), Length: int64(len(body))}
	c.MaxBody = 1 << 20
	resp, err := h.Explain(context.Background(), c)
	if err != nil {
		return nil, err
	}
	raw, err := stream.ReadAll(resp.Body, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var p Plan
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return &p, nil
}

func TestExplain(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	rec := &store.Machine{Version: 1, ID: "machine000000001", Connections: []store.Connection{
		{ID: "c1", Name: "first", Provider: "openai", Priority: 2, Secrets: map[string]secret.Sealed{store.APIKey: opens(t)}},
		{ID: "c2", Name: "second", Provider: "openai", Priority: 1, Secrets: map[string]secret.Sealed{store.APIKey: opens(t)}},
		{ID: "c3", Name: "tired", Provider: "openai", Secrets: map[string]secret.Sealed{store.APIKey: opens(t)}},
		{ID: "c5", Name: "sealed", Provider: "openai", Priority: 3, Secrets: map[string]secret.Sealed{store.APIKey: "v1.01234567.x"}},
		{ID: "c4", Name: "together", Provider: "together", Secrets: map[string]secret.Sealed{store.APIKey: opens(t)}},
	}, Combos: []store.Combo{{ID: "k", Name: "both", Kind: "embedding", Models: []string{"openai/text-embedding-3-small", "together/m"}}},
		Cooldowns: []store.Cooldown{{ConnectionID: "c3", Until: now.UnixMilli() + 7000, Reason: "key_refused"}}}
	m := snapshot.New(rec)
	h := explainer(t, m, now)

	p, err := explain(t, h, &auth.Call{Operator: true, MachineID: rec.ID}, `{"path":"/v1/embeddings","body":{"model":"both","input":"a","user":"u","dimensions":8}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		got = append(got, fmt.Sprintf("%d %s %s %q %d %s %v", s.Try, s.ConnectionName, s.Model, s.Skipped, s.CooldownMs, s.Upstream, s.Dropped))
	}
	want := []string{
		`1 second openai/text-embedding-3-small "" 0 POST https://api.openai.com/v1/embeddings []`,
		`2 first openai/text-embedding-3-small "" 0 POST https://api.openai.com/v1/embeddings []`,
		`0 sealed openai/text-embedding-3-small "key_unavailable" 0 POST https://api.openai.com/v1/embeddings []`,
		`0 tired openai/text-embedding-3-small "key_refused" 7000 POST https://api.openai.com/v1/embeddings []`,
		`3 together together/m "" 0 POST https://api.together.ai/v1/embeddings [user dimensions]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	p, err = explain(t, h, &auth.Call{Machine: m, MachineID: rec.ID}, `{"path":"/machine000000001/v1/embeddings","connectionId":"c1","body":{"model":"openai/text-embedding-3-small","input":"a"}}`)
	if err != nil || p.Steps[0].ConnectionID != "c1" || p.Steps[1].Skipped != "pinned" {
		t.Errorf("pinned: %+v, %v", p, err)
	}
	var e *apierr.Error
	if p, err := explain(t, h, &auth.Call{Machine: m, MachineID: rec.ID}, `{"path":"/v1/embeddings","connectionId":"c9","body":{"model":"openai/text-embedding-3-small","input":"a"}}`); !errors.As(err, &e) || e.Status != 400 || e.Param != "connectionId" {
		t.Errorf("pinned to nothing: %+v, %v", p, err)
	}
}

func TestExplainRefusesWhatTheEndpointRefuses(t *testing.T) {
	m := snapshot.New(&store.Machine{Version: 1, ID: "machine000000001"})
	h := explainer(t, m, time.Now())
	for body, want := range map[string]string{
		`{"path":"/v1/embeddings","body":{"model":"openai/x"}}`:                 "400 input",
		`{"path":"/v1/embeddings","body":{"model":"none","input":"a"}}`:         "400 model",
		`{"path":"/v1/embeddings"}`:                                             "400 body",
		`{"path":"/api/keys","body":{}}`:                                        "400 path",
		`{"path":"/v1/embeddings","body":{},"more":1}`:                          "400 ",
		`{"PATH":"/v1/embeddings","Body":{}}`:                                   "400 ",
		`{"path":"/v1/embeddings","path":"/v1/moderations","body":{}}`:          "400 ",
		`{"path":"/v1/embeddings","body":{"model":"a/b","input":"a"}} }`:        "400 ",
		`{"path":7,"body":{}}`:                                                  "400 ",
		`{"path":"/v1/embeddings","body":{"model":"a/b"},"connectionId":["c"]}`: "400 ",
		`[]`: "400 ",
	} {
		_, err := explain(t, h, &auth.Call{Machine: m, MachineID: m.ID}, body)
		var e *apierr.Error
		if !errors.As(err, &e) || fmt.Sprintf("%d %s", e.Status, e.Param) != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	_, err := explain(t, h, &auth.Call{Operator: true, MachineID: "machine000000002"}, `{"path":"/v1/embeddings","body":{"model":"a/b","input":"a"}}`)
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 404 {
		t.Errorf("unknown machine: %v", err)
	}
}

// Explain reports what Send would find out, and the places count the tried
// accounts.
func TestExplainCountsUsableAccounts(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	key := map[string]secret.Sealed{store.APIKey: opens(t)}
	rec := &store.Machine{Version: 1, ID: "machine000000001", Connections: []store.Connection{
		{ID: "c1", Provider: "openai", Priority: 1},
		{ID: "c2", Provider: "openai", Priority: 2, Secrets: key},
		{ID: "c3", Provider: "azure", Priority: 1, Secrets: key},
		{ID: "c4", Provider: "together", Secrets: key},
		{ID: "c5", Provider: "bedrock", Secrets: map[string]secret.Sealed{store.SecretAccessKey: "x"}, Data: store.ProviderData{Vars: map[string]string{"region": "us-east-1"}}},
	}, Combos: []store.Combo{{ID: "k", Name: "turns", Kind: "embedding", Strategy: "round-robin", Models: []string{
		"openai/text-embedding-3-small", "azure/mine", "bedrock/amazon.titan-embed-text-v2:0", "together/m",
	}}}}
	m := snapshot.New(rec)
	for range 3 { // no turn is taken
		p, err := explain(t, explainer(t, m, now), &auth.Call{Operator: true, Machine: m, MachineID: rec.ID}, `{"path":"/v1/embeddings","body":{"model":"turns","input":"a"}}`)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.Steps {
			got = append(got, fmt.Sprintf("%d %s %s", s.Try, s.ConnectionID, s.Skipped))
		}
		if want := "0 c1 no_credential, 1 c2 , 0 c3 incomplete, 0 c5 key_unavailable, 2 c4 "; strings.Join(got, ", ") != want {
			t.Fatalf("got  %s\nwant %s", strings.Join(got, ", "), want)
		}
	}
}

// A plan ends at the model that takes no such request, as the call would.
func TestExplainEndsWhereTheCallEnds(t *testing.T) {
	refuse := "b"
	h := explainer(t, nil, time.Now())
	m := snapshot.New(&store.Machine{Version: 1, ID: "machine000000001"})
	h.Cache = loader{m}
	d := &provider.Descriptor{ID: "openai"}
	conn := func(id string) *store.Connection {
		return &store.Connection{ID: id, Secrets: map[string]secret.Sealed{store.APIKey: opens(t)}}
	}
	h.Endpoint = func(_ *auth.Call, s accounts.Sender) endpoint.Handler {
		return func(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
			_, err := s.Send(ctx, &accounts.Call{Machine: c.Machine, Request: c.Request, Trace: &c.Trace,
				Targets: []routing.Target{{Provider: d, Model: "a", Connections: []*store.Connection{conn("a")}}, {Provider: d, Model: "b", Connections: []*store.Connection{conn("b")}}, {Provider: d, Model: "c", Connections: []*store.Connection{conn("c")}}},
				Build: func(to *routing.Target, _ *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
					if to.Model == refuse {
						return nil, apierr.Invalid("input", "too many")
					}
					return &accounts.Attempt{Request: upstream.Request{Method: "POST", URL: "https://api.openai.com/v1/embeddings?x=1"}}, nil
				}})
			return nil, err
		}
	}
	p, err := explain(t, h, &auth.Call{Machine: m, MachineID: m.ID}, `{"path":"/v1/embeddings","body":{}}`)
	if err != nil || len(p.Steps) != 3 || p.Steps[0].Try != 1 || p.Steps[1].Skipped != "refused" || p.Steps[2].Skipped != "not_reached" || p.Steps[2].Try != 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	refuse = "a"
	if _, err := explain(t, h, &auth.Call{Machine: m, MachineID: m.ID}, `{"path":"/v1/embeddings","body":{}}`); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("got %v, want the refusal", err)
	}
}
