package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
)

// observer writes a line of each request that it receives.
type observer struct{ lines []string }

func (o *observer) Ended(_ context.Context, e *gateway.Ended) {
	c := e.Call
	line := fmt.Sprintf("%s %d", c.Route, e.Status)
	if e.Err != nil {
		line += " " + e.Err.Code
	}
	if c.Machine != nil {
		line += " machine"
	}
	if c.Key != nil {
		line += " key"
	}
	if took := e.At.Sub(c.Start); took > 0 {
		line += " " + took.String()
	}
	for _, out := range c.Trace.Outcomes {
		line += " | "
		if out.Connection != nil {
			line += out.Connection.Name
		}
		switch {
		case out.Failed != nil:
			line += fmt.Sprintf(" failed %d", out.Failed.Status)
		case out.Sent:
			line += " answered " + out.Target.ID()
		default:
			line += " " + out.Skipped
		}
	}
	o.lines = append(o.lines, line)
}

// An observer receives every request once: those of a machine with what became of its
// accounts, and those whose caller is not known.
func TestObserversReceiveEveryRequest(t *testing.T) {
	seen := &observer{}
	w := &world{Gateway: front.New(func(p *gateway.Ports) { p.Observers = []gateway.Observer{seen} }), t: t}
	w.Answer = func(s *fake.Seen) fake.Answer {
		if strings.Contains(s.Header.Get("authorization"), "upstream-key-0") {
			return fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "9"}}}
		}
		w.Add(40 * time.Millisecond)
		return fake.JSON(embedding)
	}
	_, key := w.tenant(2)
	seen.lines = nil
	w.embed(key)
	w.embed(key)
	w.do("POST", "/v1/web/fetch", key, `{"provider":"builtin","url":"http://a.example.com/x"}`)
	w.do("POST", "/v1/embeddings", key, `{"model":"up/m"}`)
	w.do("POST", "/v1/embeddings", "no-key", `{"model":"up/m","input":"a"}`)
	w.do("GET", "/v1/embeddings", key, "")
	w.do("GET", "/nowhere", key, "")
	w.do("GET", "/health", "", "")
	want := []string{
		"/v1/embeddings 200 machine key 40ms | account 0 failed 429 | account 1 answered up/m",
		"/v1/embeddings 200 machine key 40ms | account 0 rate_limited | account 1 answered up/m",
		"/v1/web/fetch 200 machine key 40ms | the gateway itself answered web/fetch",
		"/v1/embeddings 400  machine key",
		"/v1/embeddings 401 invalid_api_key",
		"/v1/embeddings 405 method_not_allowed",
		"none 404 not_found",
		"/health 200",
	}
	if !slices.Equal(seen.lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(seen.lines, "\n"), strings.Join(want, "\n"))
	}
}
