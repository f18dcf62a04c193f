package machine

import (
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/wire/secret"
)

func TestRefreshStoppedByProxyHasKnownOutcome(t *testing.T) {
	tests := []struct {
		name    string
		sockets inprocess.Sockets
		none    bool // the platform has no sockets
		unknown int
		text    string
	}{
		{name: "unreachable", text: "cannot be reached"},
		{name: "refused", sockets: inprocess.Sockets{Proxy: "HTTP/1.1 403 No\r\n\r\n"}, text: "status 403"},
		{name: "no_sockets", none: true, text: "no sockets"},
		{name: "answer_lost", sockets: inprocess.Sockets{Proxy: inprocess.Tunnel}, unknown: 1, text: "no usable answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.Create()
			id := w.OAuth()
			w.OK("PUT", "/api/providers/"+id, `{"providerSpecificData":{"proxyUrl":"http://user:pass-word@proxy.example.com:3128"}}`)
			if !tt.none {
				w.obj.Dialer = &tt.sockets
			}
			a := w.Want(503, "refresh", inprocess.RefreshBody(id, 1))
			var i tokens.IntentRow
			c := w.OK("GET", "/api/providers/"+id, "")
			w.obj.Begin(w.Loc.Storage(mid), mid).Load(storage.IntentPrefix+id, &i)
			if i.Unknown != tt.unknown || i.At == 0 || w.IDP.Calls != 0 {
				t.Errorf("%+v, %d direct calls", i, w.IDP.Calls)
			}
			if got := a.Get("error.retryAfterMs").Int(); got != 1000 {
				t.Errorf("tried again after %d ms, want 1000 as after any temporary failure", got)
			}
			if got := c.Get("lastError").Str; !strings.Contains(got, tt.text) || strings.Contains(got+a.Raw+strings.Join(w.Logs, ""), "pass-word") {
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
	w.Create()
	s := &inprocess.Sockets{}
	w.obj.Dialer, w.obj.Proxy = s, tokens.Proxy{Address: "operator.example.com:8080", Auth: secret.New("operator:pass-word")}
	id := w.OAuth()
	w.Want(503, "refresh", inprocess.RefreshBody(id, 1))
	w.OK("PUT", "/api/providers/"+id, `{"providerSpecificData":{"proxyUrl":"http://own.example.com:3128"}}`)
	w.Clock.Add(time.Hour)
	w.Want(503, "refresh", inprocess.RefreshBody(id, 1))
	if got := strings.Join(s.Dialled, " "); got != "operator.example.com:8080 own.example.com:3128" {
		t.Errorf("dialled %s", got)
	}
}

// A new password for the proxy says nothing of the tokens: those of a refresh
// under way must not be thrown away for it.
func TestUserAndPasswordOfAProxy(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	path := "/api/providers/" + id
	put := func(body, secrets string) {
		t.Helper()
		c := w.OK("PUT", path, body)
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
	c := w.OK("PUT", path, `{"providerSpecificData":{"baseUrl":"https://other.example.com/v1","proxyUrl":"http://user:pass-word@proxy.example.com:3128"}}`)
	if c.Get("status").Str != storage.NeedsCredential || c.Get("hasKey").Bool() || c.Get("secrets").Raw != `["proxyAuth"]` {
		t.Errorf("another origin keeps only what is the proxy's: %s", c.Raw)
	}
	for _, name := range []string{"proxy", "upstreamUrl"} {
		if status, a := w.API("PUT", path, `{"providerSpecificData":{"`+name+`":"http://user:pass-word@proxy.example.com"}}`); status != 400 || strings.Contains(a.Raw, "pass-word") {
			t.Errorf("a password in the clear: %d %s", status, a.Raw)
		}
	}
}
