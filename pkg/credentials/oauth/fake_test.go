package oauth

import (
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// idp is a fake identity provider: a function per address, and what it saw.
type idp struct {
	t      *testing.T
	answer func(url string, form map[string]string) (int, string)
	err    error
	calls  []map[string]string // the forms, with the address under "url"
	header httpmsg.Header
}

type ready struct {
	resp *upstream.Response
	err  error
}

func (r ready) Wait() (*upstream.Response, error) { return r.resp, r.err }

func (s *idp) Start(_ context.Context, req *upstream.Request) upstream.Pending {
	body, err := stream.ReadAll(req.Body, 1<<20)
	if err != nil {
		s.t.Fatal(err)
	}
	form, ok := params(string(body))
	if !ok || req.Method != "POST" || req.Header.Get("content-type") != "application/x-www-form-urlencoded" ||
		req.Header.Get("accept") != "application/json" || req.Timeout <= 0 || req.MaxBody <= 0 {
		s.t.Errorf("bad call: %+v %s", req, body)
	}
	s.header = req.Header
	form["url"] = req.URL
	s.calls = append(s.calls, form)
	if s.err != nil {
		return ready{nil, s.err}
	}
	status, text := s.answer(req.URL, form)
	return ready{&upstream.Response{Status: status, Body: stream.FromString(text)}, nil}
}

type rows map[string][]byte

func (r rows) Get(key string) ([]byte, bool) { v, ok := r[key]; return v, ok }
func (r rows) Put(key string, v []byte)      { r[key] = v }
func (r rows) Delete(key string)             { delete(r, key) }

// vault seals by place: it opens only what was sealed for the same one.
type vault struct{}

func (vault) Seal(row, field string, plain secret.Secret) (secret.Sealed, error) {
	return secret.Sealed(digest(row+field) + ":" + rot(plain.Reveal())), nil
}

func (vault) Open(row, field string, s secret.Sealed) (secret.Secret, error) {
	text, ok := strings.CutPrefix(string(s), digest(row+field)+":")
	if !ok {
		return secret.Secret{}, io.ErrUnexpectedEOF
	}
	return secret.New(rot(text)), nil
}

func rot(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] ^= 1
	}
	return string(b)
}

type world struct {
	*Engine
	idp  *idp
	rows rows
	now  time.Time
}

const config = `[
	{"id":"acme","authorizeUrl":"https://id.acme.test/authorize?tenant=a","tokenUrl":"https://id.acme.test/token","deviceUrl":"https://id.acme.test/device",
	 "scopes":["a","b:c"],"clientId":"client-1"},
	{"id":"conf","authorizeUrl":"https://conf.test/authorize","tokenUrl":"https://conf.test/token","deviceUrl":"https://conf.test/device","issuer":"https://issuer.conf.test",
	 "clientId":"id:2","clientSecret":"s3cret/+word","basicAuth":true,"devicePkce":true,"authorizeParams":[["access_type","offline"]]},
	{"id":"nodevice","authorizeUrl":"https://n.test/a","tokenUrl":"https://n.test/t","clientId":"c"},
	{"id":"onlydevice","deviceUrl":"https://o.test/d","tokenUrl":"https://o.test/t","clientId":"c","clientSecret":"posted-secret"}]`

func newWorld(t *testing.T, answer func(url string, form map[string]string) (int, string)) *world {
	list, err := ParseProviders(config, false)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{idp: &idp{t: t, answer: answer}, rows: rows{}, now: time.UnixMilli(1_700_000_000_000)}
	w.Engine = &Engine{
		Providers: list, Rows: w.rows, Vault: vault{}, Doer: func(*Provider, string) upstream.Doer { return w.idp }, MachineID: "abcdefgh12345678",
		Rand: rand.NewChaCha8([32]byte{1}), Now: func() time.Time { return w.now },
	}
	return w
}

// atRest is all that the rows hold.
func (w *world) atRest() string {
	all := ""
	for k, v := range w.rows {
		all += k + string(v)
	}
	return all
}
