package models

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/store"
)

// Claude Code asks with limit=1000; whether it sends anthropic-version is not
// documented.
func TestFormFollowsHeaderAndParameters(t *testing.T) {
	w := newWorld(store.Connection{Provider: "deepseek", Data: store.ProviderData{EnabledModels: []string{"m"}}})
	for _, tt := range []struct {
		query, header string
		anthropic     bool
	}{
		{"", "", false},
		{"x=limit", "", false},
		{"limit=", "", false},
		{"", "2023-06-01", true},
		{"limit=1000", "", true},
		{"limit=1000", "2023-06-01", true},
		{"after_id=deepseek/m", "", true},
		{"before_id=deepseek/m", "", true},
	} {
		c := w.call(tt.query)
		if tt.header != "" {
			c = w.call(tt.query, "anthropic-version", tt.header)
		}
		got := body(w.List(context.Background(), c))
		if gjson.Get(got, "has_more").Exists() != tt.anthropic || (gjson.Get(got, "object").Str == "list") == tt.anthropic {
			t.Errorf("%q with version %q: %s", tt.query, tt.header, got)
		}
	}
}

// The list of a coding tool has what is known within 2.5 s, the plain list waits
// 5 s (docs/reference/spec.md, 4.2).
func TestCodingToolsListWaitsLess(t *testing.T) {
	for _, silent := range []int{1, 4, 40} {
		for _, tt := range []struct {
			query string
			most  time.Duration
		}{{"", total}, {"limit=1000", 2500 * time.Millisecond}, {"client_version=0.160.0", 2500 * time.Millisecond}} {
			var conns []store.Connection
			for i := range silent + 1 {
				c := compat(fmt.Sprintf("https://bad%02d.example", i))
				if i == silent {
					c.Data.BaseURL = "https://good.example"
				}
				c.Provider = fmt.Sprintf("openai-compatible-%08d", i)
				c.Data.Prefix = fmt.Sprintf("p%02d", i)
				conns = append(conns, c)
			}
			w := newWorld(conns...)
			w.up.stall("bad")
			w.up.json("good", 200, `[{"id":"m"}]`)
			begun := w.clock.Now()
			resp, err := w.List(context.Background(), w.call(tt.query))
			took := w.clock.Now().Sub(begun)
			if took > tt.most || took < tt.most-time.Second {
				t.Errorf("%d silent, %q: took %v, want up to %v", silent, tt.query, took, tt.most)
			}
			if got := ids(body(resp, err)); !strings.Contains(got, fmt.Sprintf("p%02d/m", silent)) {
				t.Errorf("%d silent, %q: got %q", silent, tt.query, got)
			}
		}
	}
}

// A token is refreshed in the machine's object, within that call's own limit, which
// may be longer than a coding tool waits.
func TestCodingToolsListWaitsForNoToken(t *testing.T) {
	for name, expired := range map[string]bool{"past its end": true, "refused": false} {
		w := newWorld(compat("https://a.example/v1"))
		w.keys.expired = map[string]bool{"c1": expired}
		w.up.on("a.example", func(r *fake.Seen) fake.Answer {
			if expired && w.keys.expired["c1"] || !expired && w.keys.refreshed["c1"] == 0 {
				return fake.Answer{Status: 401}
			}
			return fake.Answer{Status: 200, Body: `[{"id":"m"}]`}
		})
		resp, err := w.List(context.Background(), w.call("limit=1000"))
		if err != nil || w.keys.refreshed["c1"] != 0 {
			t.Fatalf("%s: %v, %d refreshes before the answer", name, err, w.keys.refreshed["c1"])
		}
		want(t, gjson.Get(body(resp, err), "data.#").Raw, "0")
		if w.keys.refreshed["c1"] != 1 {
			t.Errorf("%s: %d refreshes after the answer", name, w.keys.refreshed["c1"])
		}
		w.keys.expired = nil
		w.clock.Add(retryAfter)
		want(t, ids(body(w.List(context.Background(), w.call("limit=1000")))), "claude-weir/c/m c/m")
	}
}
