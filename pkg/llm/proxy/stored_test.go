package proxy

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

func TestStoredResponses(t *testing.T) {
	w := newWorld(t, provided{prefix: "oa", provider: "openai"}, provided{prefix: "oa#2", provider: "openai", priority: 1}, provided{prefix: "cl", provider: "anthropic"})
	fetch := func(k StoredCall, query string) (*httpmsg.Response, error) {
		w.call = &auth.Call{Request: &httpmsg.Request{ID: "req_1", Method: k.Method, Query: query, Start: w.Now()}, Machine: w.machine, MachineID: mid}
		return w.dialog.Fetch(context.Background(), w.call, &k)
	}
	stored := StoredCall{Method: "GET", ID: "resp_1", Provider: "openai", Model: "m", Connection: "c-oa#2"}
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(200, `{"id":"resp_1"}`) }
	tests := []struct {
		name, query string
		change      func(k *StoredCall)
		method, url string
		body        string
	}{
		{"get", "", func(*StoredCall) {}, "GET", "https://api.openai.com/v1/responses/resp_1", ""},
		{"query", "include[]=a%20b&key=secret&limit=2", func(*StoredCall) {}, "GET", "https://api.openai.com/v1/responses/resp_1?include[]=a%20b&limit=2", ""},
		{"items", "", func(k *StoredCall) { k.Subpath = "/input_items" }, "GET", "https://api.openai.com/v1/responses/resp_1/input_items", ""},
		{"delete", "", func(k *StoredCall) { k.Method = "DELETE" }, "DELETE", "https://api.openai.com/v1/responses/resp_1", ""},
		{"cancel", "", func(k *StoredCall) { k.Method, k.Subpath = "POST", "/cancel" }, "POST", "https://api.openai.com/v1/responses/resp_1/cancel", "{}"},
	}
	for _, tt := range tests {
		w.Seen = nil
		k := stored
		tt.change(&k)
		resp, err := fetch(k, tt.query)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		raw, _ := stream.ReadAll(resp.Body, 1<<20)
		if r := w.Seen[0]; len(w.Seen) != 1 || r.Method != tt.method || r.URL != tt.url || w.Seen[0].Body != tt.body || r.Header.Get("authorization") != "Bearer key-oa#2-0123456789" || string(raw) != `{"id":"resp_1"}` {
			t.Errorf("%s: %s %s %q %v → %s", tt.name, r.Method, r.URL, w.Seen[0].Body, r.Header, raw)
		}
	}

	// A failing account is not replaced by another one.
	w.Seen = nil
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(503, `{}`) }
	if _, err := fetch(stored, ""); status(err) != 503 || len(w.Seen) != 1 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(200, `<html>`) }
	if _, err := fetch(stored, ""); status(err) != 502 {
		t.Errorf("%v", err)
	}
	for _, gone := range []func(k *StoredCall){
		func(k *StoredCall) { k.Connection = "c-other" },
		func(k *StoredCall) { k.Provider = "anthropic" },
		func(k *StoredCall) { k.Provider = "no-such" },
	} {
		k := stored
		gone(&k)
		if _, err := fetch(k, ""); !errors.Is(err, ErrConnectionGone) {
			t.Errorf("%+v: %v", k, err)
		}
	}

	w.Add(time.Minute) // past the cooldown
	// A response in progress is read as a stream.
	w.Answer = func(*fake.Seen) fake.Answer { return recorded(t, llm.Responses, true) }
	resp, err := fetch(stored, "stream=true&starting_after=3")
	if err != nil {
		t.Fatal(err)
	}
	if got := ends(t, llm.Responses, w.text(&Result{Response: resp})); got != "well" || w.Seen[len(w.Seen)-1].URL != "https://api.openai.com/v1/responses/resp_1?stream=true&starting_after=3" {
		t.Errorf("ended %s", got)
	}
	for _, r := range w.rows() {
		if r.InputTokens+r.OutputTokens+r.Unpriced != 0 || r.CostUSD != 0 {
			t.Errorf("reading uses no tokens: %+v", r)
		}
	}
}

func TestRequestBoundToConnection(t *testing.T) {
	w := newWorld(t, provided{prefix: "oa", provider: "openai"}, provided{prefix: "oa#2", provider: "openai", priority: 1})
	w.Answer = w.good()
	a, err := ReadRequest(llm.Responses, []byte(`{"model":"oa/m","input":"x","previous_response_id":"resp_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.Connection = "c-oa#2"
	if _, err := w.send(a); err != nil || len(w.Seen) != 1 || w.Seen[0].Header.Get("authorization") != "Bearer key-oa#2-0123456789" {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(500, `{}`) }
	if _, err := w.send(a); status(err) != 500 || len(w.Seen) != 2 {
		t.Errorf("%v after %d calls: another account was called", err, len(w.Seen))
	}
	a.Connection = "c-gone"
	if _, err := w.send(a); status(err) != 400 || len(w.Seen) != 2 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}
