package oauth

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// idp is a fake identity provider: a function per address, and what it saw.
type idp struct {
	*fake.Upstream
	t      *testing.T
	answer func(url string, form map[string]string) (int, string)
	err    error
	calls  []map[string]string // the forms, with the address under "url"
	header httpmsg.Header
}

func (s *idp) reply(seen *fake.Seen) fake.Answer {
	form, ok := params(seen.Body)
	if !ok || seen.Method != "POST" || seen.Header.Get("content-type") != "application/x-www-form-urlencoded" ||
		seen.Header.Get("accept") != "application/json" || seen.Timeout <= 0 || seen.MaxBody <= 0 {
		s.t.Errorf("bad call: %+v", seen)
	}
	s.header = seen.Header
	form["url"] = seen.URL
	s.calls = append(s.calls, form)
	if s.err != nil {
		return fake.Answer{Err: s.err}
	}
	status, text := s.answer(seen.URL, form)
	return fake.Answer{Status: status, Body: text}
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
	parsed, err := ParseProviders(config, false)
	if err != nil {
		t.Fatal(err)
	}
	var list []Provider
	for _, r := range parsed {
		if r.Wrong != "" {
			t.Fatalf("%s: bad %s", r.ID, r.Wrong)
		}
		list = append(list, r.Provider)
	}
	w := &world{idp: &idp{Upstream: &fake.Upstream{}, t: t, answer: answer}, rows: rows{}, now: time.UnixMilli(1_700_000_000_000)}
	w.idp.Answer = w.idp.reply
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
