package api

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/openapi"
	"weir/internal/testgw/front"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/server/jwk"
)

// authenticator is one with a passkey. A test changes its fields.
type authenticator struct {
	key                crypto.Signer
	id                 []byte
	person, host       string
	origin, get, make  string
	flags              byte
	counter            uint32
	algorithm          int
	extra, spki        []byte
	clientData, change func(map[string]any)
}

func newAuthenticator(key crypto.Signer) *authenticator {
	a := &authenticator{key: key, id: make([]byte, 32), host: "gateway.example", origin: "https://gateway.example",
		get: "webauthn.get", make: "webauthn.create", flags: 0x1d, algorithm: -7}
	rand.Read(a.id)
	if _, ok := key.(*rsa.PrivateKey); ok {
		a.algorithm = -257
	}
	a.spki, _ = x509.MarshalPKIXPublicKey(key.Public())
	return a
}

func newEC() crypto.Signer {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return key
}

var base64url = base64.RawURLEncoding.EncodeToString

// signed returns the client data of a ceremony and the authenticator data.
func (a *authenticator) data(kind, challenge string, flags byte, rest []byte) (clientData, authData []byte) {
	doc := map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false}
	if a.clientData != nil {
		a.clientData(doc)
	}
	clientData, _ = json.Marshal(doc)
	host := sha256.Sum256([]byte(a.host))
	authData = binary.BigEndian.AppendUint32(append(host[:], flags), a.counter)
	return clientData, append(authData, rest...)
}

func (a *authenticator) body(name string, fields map[string]any, more string) string {
	if a.change != nil {
		a.change(fields)
	}
	b, _ := json.Marshal(fields)
	return `{"` + name + `":` + string(b) + more + `}`
}

// made returns the body of a registration for the options of an answer.
func (a *authenticator) made(options, more string) string {
	a.person = gjson.Get(options, "person").Str
	rest := binary.BigEndian.AppendUint16(make([]byte, 16), uint16(len(a.id)))
	rest = append(append(rest, a.id...), 0xa0) // the key, which is not read
	clientData, authData := a.data(a.make, gjson.Get(options, "challenge").Str, a.flags|0x40, append(rest, a.extra...))
	return a.body("newPasskey", map[string]any{"clientDataJSON": base64url(clientData), "authenticatorData": base64url(authData),
		"publicKey": base64url(a.spki), "algorithm": a.algorithm}, more)
}

// signs returns the body of a sign-in for a challenge.
func (a *authenticator) signs(challenge, more string) string {
	a.counter++
	clientData, authData := a.data(a.get, challenge, a.flags, a.extra)
	hash := sha256.Sum256(clientData)
	sum := sha256.Sum256(append(slices.Clone(authData), hash[:]...))
	sig, _ := a.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	return a.body("passkey", map[string]any{"id": base64url(a.id), "clientDataJSON": base64url(clientData),
		"authenticatorData": base64url(authData), "signature": base64url(sig), "userHandle": base64url([]byte(a.person))}, more)
}

// passkeyWorld is a gateway with passkeys and one machine.
func passkeyWorld(t *testing.T) (w *world, machineID string) {
	w = &world{Gateway: front.New(func(p *gateway.Ports) { p.Verify = jwk.Verify }), t: t, origin: "https://gateway.example"}
	w.Answer = newWorld(t).Answer
	machineID, _ = w.tenant(1)
	for range 2 { // there is one entry
		w.get(201, w.do("POST", "/api/identity-providers", adminToken, `{"kind":"passkey","name":"Passkeys"}`), nil)
	}
	return w, machineID
}

func (w *world) post(path, body string) reply {
	w.t.Helper()
	return w.do("POST", path, "", body, httpmsg.Field{Name: "origin", Value: w.origin})
}

// options returns those of a ceremony.
func (w *world) options(body string) string {
	w.t.Helper()
	r := w.fits("POST", "/api/sign-in/passkey", w.post("/api/sign-in/passkey", body))
	if r.status != 200 || gjson.Get(r.body, "rpId").Str != "gateway.example" || r.header.Get("cache-control") != "no-store" {
		w.t.Fatalf("options: %d %s", r.status, r.body)
	}
	return r.body
}

func (w *world) challenge() string { return gjson.Get(w.options("{}"), "challenge").Str }

// visitorOf is the person of a sign-in.
func (w *world) visitorOf(r reply) *visitor {
	w.t.Helper()
	if r.status != 200 {
		w.t.Fatalf("sign-in: %d %s", r.status, r.body)
	}
	return &visitor{w, gjson.Get(r.body, "personId").Str, gjson.Get(r.body, "token").Str, []httpmsg.Field{
		cookieOf(r, "__Host-weir"), {Name: "origin", Value: w.origin},
		{Name: "x-csrf-token", Value: gjson.Get(r.body, "csrfToken").Str}}}
}

// accepts accepts an invitation by a new passkey.
func (w *world) accepts(a *authenticator, secret, name string) *visitor {
	w.t.Helper()
	more := `,"invitation":"` + secret + `","name":"` + name + `"`
	return w.visitorOf(w.post("/api/session/passkey", a.made(w.options(`{"invitation":"`+secret+`"}`), more)))
}

func (w *world) signsIn(a *authenticator) reply {
	return w.post("/api/session/passkey", a.signs(w.challenge(), ""))
}

func TestPersonSignsInByPasskey(t *testing.T) {
	key, _ := rsa.GenerateKey(rand.Reader, 2048)
	for name, key := range map[string]crypto.Signer{"ES256": newEC(), "RS256": key} {
		t.Run(name, func(t *testing.T) {
			w, mine := passkeyWorld(t)
			if r := w.do("GET", "/api/auth", "", ""); gjson.Get(r.body, "methods").Raw != `["token","passkey"]` ||
				gjson.Get(r.body, "providers").Raw != "[]" {
				t.Errorf("auth: %s", r.body)
			}
			a := newAuthenticator(key)
			ann := w.accepts(a, w.invited(mine, `{"role":"editor"}`), "Ann")
			if ann.token != "" || ann.id != a.person {
				t.Errorf("id %s, handle %s, token %q", ann.id, a.person, ann.token)
			}
			ann.wants(200, "GET", "/"+mine+"/api/keys", "")
			again := w.visitorOf(w.signsIn(a))
			if again.id != ann.id {
				t.Errorf("another person: %s", again.id)
			}
			again.wants(200, "GET", "/"+mine+"/api/keys", "")
			other, _ := w.tenant(0)
			r := w.post("/api/session/passkey", a.signs(w.challenge(), `,"invitation":"`+w.invited(other, `{"role":"viewer"}`)+`"`))
			if v := w.visitorOf(r); v.id != ann.id || gjson.Get(r.body, "roles."+other).Str != "viewer" {
				t.Errorf("an invitation to another machine: %s", r.body)
			}
			if r := w.do("GET", "/"+mine+"/api/people", adminToken, ""); gjson.Get(r.body, "data.0.name").Str != "Ann" {
				t.Errorf("people: %s", r.body)
			}
			for _, row := range w.Objects.Storage("registry").Listed("passkey:") {
				if strings.Contains(string(row.Value), "Ann") {
					t.Errorf("the row has the name: %s", row.Value)
				}
			}
		})
	}
}

// fits fails the test unless an answer is as the OpenAPI document says.
func (w *world) fits(method, path string, r reply) reply {
	w.t.Helper()
	check, err := openapi.NewChecker()
	if err == nil {
		err = check.Answer(method, path, r.status, r.header.Get("content-type"), r.body)
	}
	if err != nil {
		w.t.Error(err)
	}
	return r
}

// refusals returns the reasons of the records of refused sign-ins.
func (w *world) refusals() (out []string) {
	for _, rec := range gjson.Get(w.do("GET", "/api/sign-ins", adminToken, "").body, "data").Array() {
		if rec.Get("action").Str == "sign-in.refused" {
			out = append(out, rec.Get("fields.0").Str)
		}
	}
	return out
}

// Each attack leads to no session and to one record, which has nothing of the passkey.
func TestPasskeyAttacks(t *testing.T) {
	set := func(name string, value any) func(map[string]any) {
		return func(m map[string]any) { m[name] = value }
	}
	bytesOf := func(m map[string]any, name string, f func([]byte) []byte) {
		raw, _ := base64.RawURLEncoding.DecodeString(m[name].(string))
		m[name] = base64url(f(raw))
	}
	signature := func(f func(der []byte) []byte) func(a *authenticator) {
		return func(a *authenticator) {
			a.change = func(m map[string]any) { bytesOf(m, "signature", f) }
		}
	}
	for name, attack := range map[string]struct {
		want string
		act  func(a *authenticator)
	}{
		"another origin":       {"passkey_origin", func(a *authenticator) { a.origin = "https://evil.example" }},
		"a subdomain":          {"passkey_origin", func(a *authenticator) { a.origin = "https://a.gateway.example" }},
		"another port":         {"passkey_origin", func(a *authenticator) { a.origin = "https://gateway.example:8443" }},
		"the port of https":    {"passkey_origin", func(a *authenticator) { a.origin = "https://gateway.example:443" }},
		"another scheme":       {"passkey_origin", func(a *authenticator) { a.origin = "http://gateway.example" }},
		"upper case":           {"passkey_origin", func(a *authenticator) { a.origin = "https://Gateway.example" }},
		"a suffix":             {"passkey_origin", func(a *authenticator) { a.origin = "https://gateway.example.evil.example" }},
		"a frame":              {"passkey_origin", func(a *authenticator) { a.clientData = set("crossOrigin", true) }},
		"a frame, as text":     {"passkey_origin", func(a *authenticator) { a.clientData = set("crossOrigin", "false") }},
		"a page around it":     {"passkey_origin", func(a *authenticator) { a.clientData = set("topOrigin", "https://evil.example") }},
		"another RP id":        {"passkey_host", func(a *authenticator) { a.host = "example" }},
		"an RP id below":       {"passkey_host", func(a *authenticator) { a.host = "a.gateway.example" }},
		"a registration":       {"passkey_type", func(a *authenticator) { a.get = "webauthn.create" }},
		"no verification":      {"passkey_unverified", func(a *authenticator) { a.flags &^= 4 }},
		"no presence":          {"passkey_unverified", func(a *authenticator) { a.flags &^= 1 }},
		"synced, not syncable": {"passkey_malformed", func(a *authenticator) { a.flags &^= 8 }},
		"another key":          {"passkey_signature", func(a *authenticator) { a.key = newEC() }},
		"another credential":   {"passkey_unknown", func(a *authenticator) { a.id = slices.Concat(a.id, []byte{0}) }},
		"another person":       {"passkey_person", func(a *authenticator) { a.person = a.person[:33] + "x" }},
		"no person":            {"passkey_person", func(a *authenticator) { a.person = "" }},
		"counter back":         {"passkey_counter", func(a *authenticator) { a.counter = 3 }},
		"counter again":        {"passkey_counter", func(a *authenticator) { a.counter = 8 }},
		"counter 0":            {"passkey_counter", func(a *authenticator) { a.counter = ^uint32(0) }},
		"data after it":        {"passkey_malformed", func(a *authenticator) { a.extra = []byte{0} }},
		"no extensions":        {"passkey_malformed", func(a *authenticator) { a.flags |= 0x80 }},
		"a key in it":          {"passkey_malformed", func(a *authenticator) { a.flags |= 0x40; a.extra = make([]byte, 99) }},
		"a challenge of ours":  {"passkey_challenge", func(a *authenticator) { a.clientData = set("challenge", "AAAA") }},
		"huge id":              {"passkey_malformed", func(a *authenticator) { a.change = set("id", base64url(make([]byte, 1024))) }},
		"huge client data": {"passkey_malformed", func(a *authenticator) {
			a.change = set("clientDataJSON", strings.Repeat("A", 6000))
		}},
		"no client data": {"passkey_malformed", func(a *authenticator) { a.change = set("clientDataJSON", "") }},
		"no data":        {"passkey_malformed", func(a *authenticator) { a.change = set("authenticatorData", "AAAA") }},
		"padding":        {"passkey_malformed", func(a *authenticator) { a.change = set("id", "AAA=") }},
		"stray bits":     {"passkey_malformed", func(a *authenticator) { a.change = set("id", "AB") }},
		"line break":     {"passkey_malformed", func(a *authenticator) { a.change = set("id", "AA\nAA") }},
		"a member twice": {"passkey_malformed", func(a *authenticator) {
			a.change = func(m map[string]any) {
				bytesOf(m, "clientDataJSON", func(b []byte) []byte {
					return append(b[:len(b)-1], `,"origin":"https://evil.example"}`...)
				})
			}
		}},
		"changed client data": {"passkey_signature", func(a *authenticator) {
			a.change = func(m map[string]any) {
				bytesOf(m, "clientDataJSON", func(b []byte) []byte { return append(b, ' ') })
			}
		}},
		"no signature": {"passkey_signature", signature(func([]byte) []byte { return nil })},
		"r and s without DER": {"passkey_signature", signature(func(der []byte) []byte {
			return slices.Concat(der[len(der)-32:], der[len(der)-32:])
		})},
		"bytes after DER":       {"passkey_signature", signature(func(der []byte) []byte { return append(der, 0) })},
		"a long length":         {"passkey_signature", signature(func(der []byte) []byte { return slices.Concat([]byte{0x30, 0x81}, der[1:]) })},
		"an indefinite length":  {"passkey_signature", signature(func(der []byte) []byte { return slices.Concat([]byte{0x30, 0x80}, der[2:], []byte{0, 0}) })},
		"a cut signature":       {"passkey_signature", signature(func(der []byte) []byte { return der[:len(der)-1] })},
		"a zero before r":       {"passkey_signature", signature(padded)},
		"r and s of 0":          {"passkey_signature", signature(func([]byte) []byte { return []byte{0x30, 6, 2, 1, 0, 2, 1, 0} })},
		"a signature of 4 KiB":  {"passkey_signature", signature(func([]byte) []byte { return make([]byte, 4<<10) })},
		"a signature, 4 KiB +1": {"passkey_malformed", signature(func([]byte) []byte { return make([]byte, 4<<10+1) })},
	} {
		t.Run(name, func(t *testing.T) {
			w, mine := passkeyWorld(t)
			a := newAuthenticator(newEC())
			a.counter = 8
			w.accepts(a, w.invited(mine, `{"role":"editor"}`), "Ann")
			w.visitorOf(w.signsIn(a))
			good := *a
			attack.act(a)
			body := a.signs(w.challenge(), "")
			w.refusesPasskey(attack.want, w.post("/api/session/passkey", body), body)
			w.visitorOf(w.signsIn(&good))
		})
	}
}

// padded returns a signature in DER with one more zero before its first integer.
func padded(der []byte) []byte {
	n := int(der[3])
	return slices.Concat([]byte{0x30, der[1] + 1, 2, byte(n + 1), 0}, der[4:])
}

// refusesPasskey fails the test unless an answer to a body is a refusal for a reason, without a session and with one
// record.
func (w *world) refusesPasskey(want string, r reply, body string) {
	w.t.Helper()
	if r.status != 403 || cookieOf(r, "__Host-weir").Name != "" || !strings.Contains(r.body, "("+want+")") {
		w.t.Errorf("%d %s", r.status, r.body)
	}
	if got := w.refusals(); !slices.Equal(got, []string{want}) {
		w.t.Errorf("records %v, want %s", got, want)
	}
	records := w.do("GET", "/api/sign-ins", adminToken, "").body
	gjson.Parse(body).ForEach(func(_, passkey gjson.Result) bool {
		passkey.ForEach(func(name, v gjson.Result) bool {
			if len(v.Str) > 8 && strings.Contains(records, v.Str) {
				w.t.Errorf("the record has %s", name.Str)
			}
			return true
		})
		return true
	})
}

func TestPasskeyChallengesAreOfOneUse(t *testing.T) {
	type prepared struct {
		w      *world
		a      *authenticator
		ann    *visitor
		invite string
	}
	for name, v := range map[string]struct {
		want string
		body func(p *prepared) string
	}{
		"replayed": {"passkey_used", func(p *prepared) string {
			body := p.a.signs(p.w.challenge(), "")
			p.w.visitorOf(p.w.post("/api/session/passkey", body))
			return body
		}},
		"used with a higher counter": {"passkey_used", func(p *prepared) string {
			challenge := p.w.challenge()
			p.w.visitorOf(p.w.post("/api/session/passkey", p.a.signs(challenge, "")))
			return p.a.signs(challenge, "")
		}},
		"older than five minutes": {"passkey_expired", func(p *prepared) string {
			body := p.a.signs(p.w.challenge(), "")
			p.w.Clock.Add(5 * time.Minute)
			return body
		}},
		"of an invitation": {"passkey_challenge", func(p *prepared) string {
			return p.a.signs(gjson.Get(p.w.options(`{"invitation":"`+p.invite+`"}`), "challenge").Str, "")
		}},
		"of a session": {"passkey_challenge", func(p *prepared) string {
			return p.a.signs(gjson.Get(p.ann.wants(200, "POST", "/api/passkeys/challenge", "{}").body, "challenge").Str, "")
		}},
		"of a sign-in, for a registration": {"passkey_challenge", func(p *prepared) string {
			return newAuthenticator(newEC()).made(p.w.options("{}"), `,"invitation":"`+p.invite+`","name":"Eve"`)
		}},
		"of another invitation": {"passkey_challenge", func(p *prepared) string {
			return newAuthenticator(newEC()).made(p.w.options(`{"invitation":"`+p.w.invited(p.w.machine(), `{"role":"owner"}`)+`"}`),
				`,"invitation":"`+p.invite+`","name":"Eve"`)
		}},
		"a sign-in as a registration": {"passkey_type", func(p *prepared) string {
			a := newAuthenticator(newEC())
			a.make = "webauthn.get"
			return a.made(p.w.options(`{"invitation":"`+p.invite+`"}`), `,"invitation":"`+p.invite+`","name":"Eve"`)
		}},
		"the credential of another person": {"passkey_taken", func(p *prepared) string {
			a := newAuthenticator(newEC())
			a.id = p.a.id
			return a.made(p.w.options(`{"invitation":"`+p.invite+`"}`), `,"invitation":"`+p.invite+`","name":"Eve"`)
		}},
		"of a removed person": {"passkey_unknown", func(p *prepared) string {
			p.w.do("DELETE", "/"+p.w.machine()+"/api/people/"+p.ann.id, adminToken, "")
			p.ann.wants(401, "GET", "/api/passkeys", "")
			return p.a.signs(p.w.challenge(), "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, mine := passkeyWorld(t)
			p := &prepared{w: w, a: newAuthenticator(newEC()), invite: w.invited(mine, `{"role":"viewer"}`)}
			p.ann = w.accepts(p.a, w.invited(mine, `{"role":"viewer"}`), "Ann")
			body := v.body(p)
			w.refusesPasskey(v.want, w.post("/api/session/passkey", body), body)
		})
	}
}

// machine returns the id of the first machine.
func (w *world) machine() string {
	return gjson.Get(w.do("GET", "/api/machines", adminToken, "").body, "data.0.machineId").Str
}

// A new passkey is refused as a sign-in is, and its invitation stays.
func TestNewPasskeyIsChecked(t *testing.T) {
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	for name, v := range map[string]struct {
		want string
		key  crypto.Signer
		act  func(a *authenticator)
	}{
		"RSA of 1024 bits":       {"passkey_key", small, func(*authenticator) {}},
		"P-384":                  {"passkey_key", p384, func(*authenticator) {}},
		"EC as RS256":            {"passkey_key", newEC(), func(a *authenticator) { a.algorithm = -257 }},
		"another algorithm":      {"passkey_key", newEC(), func(a *authenticator) { a.algorithm = -8 }},
		"a byte after the key":   {"passkey_key", newEC(), func(a *authenticator) { a.spki = append(a.spki, 0) }},
		"no key":                 {"passkey_key", newEC(), func(a *authenticator) { a.spki = nil }},
		"no credential":          {"passkey_malformed", newEC(), func(a *authenticator) { a.id = nil }},
		"credential of 1 KiB":    {"passkey_malformed", newEC(), func(a *authenticator) { a.id = make([]byte, 1024) }},
		"no verification":        {"passkey_unverified", newEC(), func(a *authenticator) { a.flags &^= 4 }},
		"another origin":         {"passkey_origin", newEC(), func(a *authenticator) { a.origin = "https://evil.example" }},
		"another RP id":          {"passkey_host", newEC(), func(a *authenticator) { a.host = "evil.example" }},
		"authenticator data cut": {"passkey_malformed", newEC(), func(a *authenticator) { a.id = a.id[:0]; a.extra = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w, mine := passkeyWorld(t)
			secret := w.invited(mine, `{"role":"viewer"}`)
			a := newAuthenticator(v.key)
			v.act(a)
			more := `,"invitation":"` + secret + `","name":"Eve"`
			body := a.made(w.options(`{"invitation":"`+secret+`"}`), more)
			w.refusesPasskey(v.want, w.post("/api/session/passkey", body), body)
			w.accepts(newAuthenticator(newEC()), secret, "Ann")
			if r := w.post("/api/sign-in/passkey", `{"invitation":"`+secret+`"}`); r.status != 401 {
				t.Errorf("the invitation opens twice: %d", r.status)
			}
		})
	}
}

func TestAuthenticatorWithoutCounterSignsIn(t *testing.T) {
	w, mine := passkeyWorld(t)
	a := newAuthenticator(newEC())
	w.accepts(a, w.invited(mine, `{"role":"viewer"}`), "Ann")
	for range 3 {
		a.counter = ^uint32(0) // 0 when it signs
		w.visitorOf(w.signsIn(a))
	}
}

func TestPersonManagesPasskeys(t *testing.T) {
	w, mine := passkeyWorld(t)
	first, second := newAuthenticator(newEC()), newAuthenticator(newEC())
	ann := w.accepts(first, w.invited(mine, `{"role":"member"}`), "Ann")
	bob := w.accepts(newAuthenticator(newEC()), w.invited(mine, `{"role":"owner"}`), "Bob")
	begin := func(v *visitor) string {
		return w.fits("POST", "/api/passkeys/challenge", v.wants(200, "POST", "/api/passkeys/challenge", "{}")).body
	}
	options := begin(ann)
	if gjson.Get(options, "exclude").Raw != `["`+base64url(first.id)+`"]` || gjson.Get(options, "person").Str != ann.id ||
		gjson.Get(options, "name").Str != "Ann" {
		t.Errorf("options: %s", options)
	}
	made := w.fits("POST", "/api/passkeys", ann.wants(201, "POST", "/api/passkeys", second.made(options, `,"name":"Phone"`)))
	id := gjson.Get(made.body, "id").Str
	if gjson.Get(made.body, "name").Str != "Phone" {
		t.Errorf("made: %s", made.body)
	}
	if r := ann.wants(403, "POST", "/api/passkeys", second.made(options, "")); !strings.Contains(r.body, "passkey_used") {
		t.Errorf("the challenge again: %s", r.body)
	}
	if r := bob.wants(403, "POST", "/api/passkeys", newAuthenticator(newEC()).made(begin(ann), "")); !strings.Contains(r.body, "passkey_challenge") {
		t.Errorf("a challenge of another person: %s", r.body)
	}
	if v := w.visitorOf(w.fits("POST", "/api/session/passkey", w.signsIn(second))); v.id != ann.id {
		t.Errorf("the second passkey is that of %s", v.id)
	}
	bob.wants(404, "PUT", "/api/passkeys/"+id, `{"name":"Mine"}`)
	bob.wants(404, "DELETE", "/api/passkeys/"+id, "{}")
	w.fits("PUT", "/api/passkeys/"+id, ann.wants(200, "PUT", "/api/passkeys/"+id, `{"name":"Telephone"}`))
	list := w.fits("GET", "/api/passkeys", ann.wants(200, "GET", "/api/passkeys", "")).body
	if gjson.Get(list, "data.#").Int() != 2 || gjson.Get(list, "data.1.name").Str != "Telephone" ||
		gjson.Get(list, "data.1.usedAt").Int() == 0 || strings.Contains(list, base64url(second.id)) {
		t.Errorf("list: %s", list)
	}
	w.fits("DELETE", "/api/passkeys/"+id, ann.wants(204, "DELETE", "/api/passkeys/"+id, "{}"))
	if r := ann.wants(409, "DELETE", "/api/passkeys/"+gjson.Get(list, "data.0.id").Str, "{}"); !strings.Contains(r.body, "last_passkey") {
		t.Errorf("the last one: %s", r.body)
	}
	body := second.signs(w.challenge(), "")
	if r := w.post("/api/session/passkey", body); !strings.Contains(r.body, "passkey_unknown") {
		t.Errorf("the deleted one: %d %s", r.status, r.body)
	}
	w.get(403, w.do("GET", "/api/passkeys", adminToken, ""), nil)
	w.Clock.Add(6 * time.Minute)
	if r := ann.wants(403, "POST", "/api/passkeys/challenge", "{}"); !strings.Contains(r.body, "reauth_required") {
		t.Errorf("a sign-in of six minutes ago: %s", r.body)
	}
	records := w.do("GET", "/api/sign-ins", adminToken, "").body
	for action, n := range map[string]int{"passkey.create": 1, "passkey.update": 1, "passkey.delete": 1} {
		if got := strings.Count(records, `"`+action+`"`); got != n {
			t.Errorf("%d records of %s", got, action)
		}
	}
}

// A link of an owner takes the place of a lost passkey, also of a token.
func TestLinkReplacesPasskeys(t *testing.T) {
	w, mine := passkeyWorld(t)
	lost, found := newAuthenticator(newEC()), newAuthenticator(newEC())
	ann := w.accepts(lost, w.invited(mine, `{"role":"member"}`), "Ann")
	link := func() string {
		secret, _, _ := strings.Cut(w.invited(mine, `{"person":"`+ann.id+`"}`), "?")
		return secret
	}
	renewed := w.accepts(found, link(), "")
	if renewed.id != ann.id {
		t.Errorf("the link made another person: %s", renewed.id)
	}
	if r := w.signsIn(lost); r.status != 403 {
		t.Errorf("the lost passkey: %d", r.status)
	}
	w.visitorOf(w.signsIn(found))
	byToken, r := w.enter(`{"invitation":"` + link() + `"}`)
	if r.status != 200 || byToken.id != ann.id || w.signsIn(found).status != 403 {
		t.Errorf("a link for a token: %d %s", r.status, r.body)
	}
	if list := byToken.wants(200, "GET", "/api/passkeys", "").body; gjson.Get(list, "data.#").Int() != 0 {
		t.Errorf("passkeys: %s", list)
	}
	third := newAuthenticator(newEC())
	options := byToken.wants(200, "POST", "/api/passkeys/challenge", "{}").body
	made := byToken.wants(201, "POST", "/api/passkeys", third.made(options, ""))
	byToken.wants(204, "DELETE", "/api/passkeys/"+gjson.Get(made.body, "id").Str, "{}") // the token is another way
}

func TestPasskeysNeedTheSettingAndAName(t *testing.T) {
	w, mine := passkeyWorld(t)
	a := newAuthenticator(newEC())
	w.accepts(a, w.invited(mine, `{"role":"member"}`), "Ann")
	challenge := w.challenge()
	only := w.invited(mine, `{"role":"member","signIn":"provider"}`)
	if r := w.post("/api/sign-in/passkey", `{"invitation":"`+only+`"}`); r.status != 401 {
		t.Errorf("an invitation for providers alone: %d %s", r.status, r.body)
	}
	if r := w.post("/api/session/passkey", a.signs(w.challenge(), `,"invitation":"`+only+`"`)); r.status != 401 {
		t.Errorf("a passkey accepts it: %d %s", r.status, r.body)
	}
	if r := w.do("POST", "/api/session/passkey", "", a.signs(challenge, ""), httpmsg.Field{Name: "origin", Value: "https://evil.example"}); r.status != 403 {
		t.Errorf("another page: %d %s", r.status, r.body)
	}
	for origin, ok := range map[string]bool{"http://gateway.example": false, "https://127.0.0.1": false, "http://127.0.0.1:8787": false,
		"https://[::1]": false, "http://localhost:8787": true, "https://a.example:8443": true, "http://localhost.evil.example": false} {
		w.origin = origin
		r := w.post("/api/sign-in/passkey", "{}")
		if (r.status == 200) != ok || !ok && !strings.Contains(r.body, "https://NAME") {
			t.Errorf("%s: %d %s", origin, r.status, r.body)
		}
		test := w.do("POST", "/api/identity-providers/passkey/test", adminToken, "{}")
		if gjson.Get(test.body, "ok").Bool() != ok {
			t.Errorf("%s: %s", origin, test.body)
		}
	}
	w.origin = "http://localhost:8787"
	if r := w.do("POST", "/api/sign-in/passkey", "", "{}", httpmsg.Field{Name: "origin", Value: "http://127.0.0.1:8787"}); !strings.Contains(r.body, "belong to http://localhost:8787") {
		t.Errorf("a page of another address: %d %s", r.status, r.body)
	}
	w.origin = "https://gateway.example"
	w.get(204, w.do("DELETE", "/api/identity-providers/passkey", adminToken, ""), nil)
	for _, path := range []string{"/api/sign-in/passkey", "/api/session/passkey"} {
		if r := w.post(path, a.signs(challenge, "")); r.status != 404 || !strings.Contains(r.body, "passkeys_off") {
			t.Errorf("%s while passkeys are off: %d %s", path, r.status, r.body)
		}
	}
}
