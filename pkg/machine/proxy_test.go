package machine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/wire/secret"
)

// sockets is a proxy whose tunnel ends at a token endpoint: what each says.
type sockets struct {
	proxy, endpoint string
	dialled         []string
	sent            bytes.Buffer
}

type socket struct {
	io.Reader
	of *sockets
}

func (s *sockets) Dial(_ context.Context, address string, _ time.Duration) (proxydial.Conn, error) {
	s.dialled = append(s.dialled, address)
	if s.proxy == "" {
		return nil, errors.New("refused")
	}
	return socket{strings.NewReader(s.proxy), s}, nil
}
func (c socket) Write(p []byte) (int, error) { return c.of.sent.Write(p) }
func (socket) Close() error                  { return nil }
func (c socket) StartTLS(string) (io.ReadWriteCloser, error) {
	return socket{strings.NewReader(c.of.endpoint), c.of}, nil
}

const tunnel = "HTTP/1.1 200 OK\r\n\r\n"

func TestRefreshStoppedByProxyHasKnownOutcome(t *testing.T) {
	tests := []struct {
		name    string
		sockets sockets
		none    bool // the platform has no sockets
		unknown int
		text    string
	}{
		{name: "unreachable", text: "cannot be reached"},
		{name: "refused", sockets: sockets{proxy: "HTTP/1.1 403 No\r\n\r\n"}, text: "status 403"},
		{name: "no_sockets", none: true, text: "no sockets"},
		{name: "answer_lost", sockets: sockets{proxy: tunnel}, unknown: 1, text: "no usable answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			id := w.oauth()
			w.ok("PUT", "/api/providers/"+id, `{"providerSpecificData":{"proxyUrl":"http://user:pass-word@proxy.example.com:3128"}}`)
			if !tt.none {
				w.obj.Dialer = &tt.sockets
			}
			a := w.want(503, "refresh", refreshBody(id, 1))
			var i tokens.IntentRow
			c := w.ok("GET", "/api/providers/"+id, "")
			w.obj.Begin(w.loc.Storage(mid), mid).Load(storage.IntentPrefix+id, &i)
			if i.Unknown != tt.unknown || i.At == 0 || w.idp.calls != 0 {
				t.Errorf("%+v, %d direct calls", i, w.idp.calls)
			}
			if got := a.Get("error.retryAfterMs").Int(); got != 1000 {
				t.Errorf("tried again after %d ms, want 1000 as after any temporary failure", got)
			}
			if got := c.Get("lastError").Str; !strings.Contains(got, tt.text) || strings.Contains(got+a.Raw+strings.Join(w.logs, ""), "pass-word") {
				t.Errorf("last error %q, answer %s", got, a.Raw)
			}
			if c.Get("status").Str != "active" || !strings.Contains(c.Get("secrets").Raw, "refreshToken") {
				t.Errorf("given up: %s", c.Raw)
			}
		})
	}
}

func TestConnectionProxyPrecedesOperatorProxy(t *testing.T) {
	w := newWorld(t)
	w.create()
	s := &sockets{}
	w.obj.Dialer, w.obj.Proxy = s, tokens.Proxy{Address: "operator.example.com:8080", Auth: secret.New("operator:pass-word")}
	id := w.oauth()
	w.want(503, "refresh", refreshBody(id, 1))
	w.ok("PUT", "/api/providers/"+id, `{"providerSpecificData":{"proxyUrl":"http://own.example.com:3128"}}`)
	w.clock.Add(time.Hour)
	w.want(503, "refresh", refreshBody(id, 1))
	if got := strings.Join(s.dialled, " "); got != "operator.example.com:8080 own.example.com:3128" {
		t.Errorf("dialled %s", got)
	}
}

// A new password for the proxy says nothing of the tokens: those of a refresh
// under way must not be thrown away for it.
func TestUserAndPasswordOfAProxy(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	path := "/api/providers/" + id
	put := func(body, secrets string) {
		t.Helper()
		c := w.ok("PUT", path, body)
		if got := c.Get("secrets").Raw; got != secrets || c.Get("tokenGeneration").Int() != 1 || strings.Contains(c.Raw, "word") {
			t.Errorf("%s: %s", body, c.Raw)
		}
	}
	const tokens, all = `["accessToken","refreshToken"]`, `["accessToken","proxyAuth","refreshToken"]`
	put(`{"providerSpecificData":{"proxyUrl":"http://user:pass-word-of-some-length@proxy.example.com:3128"}}`, all)
	put(`{"name":"x"}`, all)
	put(`{"providerSpecificData":{"prefix":"p"}}`, all)
	put(`{"providerSpecificData":{"proxyUrl":"http://proxy.example.com:3128"}}`, all)
	put(`{"providerSpecificData":{"proxyUrl":"http://other.example.com:3128"}}`, tokens)
	put(`{"proxyAuth":"user:pass-word"}`, all)
	put(`{"providerSpecificData":{"proxyUrl":null}}`, tokens)
	c := w.ok("PUT", path, `{"providerSpecificData":{"baseUrl":"https://other.example.com/v1","proxyUrl":"http://user:pass-word@proxy.example.com:3128"}}`)
	if c.Get("status").Str != storage.NeedsCredential || c.Get("hasKey").Bool() || c.Get("secrets").Raw != `["proxyAuth"]` {
		t.Errorf("another origin keeps only what is the proxy's: %s", c.Raw)
	}
	for _, name := range []string{"proxy", "upstreamUrl"} {
		if status, a := w.api("PUT", path, `{"providerSpecificData":{"`+name+`":"http://user:pass-word@proxy.example.com"}}`); status != 400 || strings.Contains(a.Raw, "pass-word") {
			t.Errorf("a password in the clear: %d %s", status, a.Raw)
		}
	}
}
