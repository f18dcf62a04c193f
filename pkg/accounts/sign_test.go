package accounts

import (
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/credentials/sigv4"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

var bedrock = provider.Lookup("bedrock")

// signing adds connections that sign, each with a region and secrets.
func (w *world) signing(conns ...store.Connection) *world {
	for i := range conns {
		c := &conns[i]
		c.Provider = "bedrock"
		sealed := map[string]secret.Sealed{}
		for f, plain := range c.Secrets {
			sealed[f] = w.seal(c.ID, f, string(plain))
		}
		c.Secrets = sealed
	}
	rec := *w.machine.Machine
	rec.Connections = append(rec.Connections, conns...)
	w.machine = snapshot.New(&rec)
	return w
}

func awsConn(id, region string, secrets map[string]secret.Sealed) store.Connection {
	return store.Connection{ID: id, Secrets: secrets, Data: store.ProviderData{Vars: map[string]string{"region": region}}}
}

func keys(id, token string) map[string]secret.Sealed {
	m := map[string]secret.Sealed{store.AccessKeyID: secret.Sealed("AKIA" + id + "000000000"), store.SecretAccessKey: secret.Sealed("secret-of-" + id + "-0123456789")}
	if token != "" {
		m[store.SessionToken] = secret.Sealed(token)
	}
	return m
}

func (w *world) signedCall() *Call {
	c := w.call()
	c.Targets = []routing.Target{{Provider: bedrock, Alias: "bedrock", Model: "a:0", Connections: w.machine.Active("bedrock")}}
	c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		method, url, err := to.Provider.Endpoint(conn, "chat", to.Model)
		return &Attempt{Request: upstream.Request{Method: method, URL: url, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: stream.FromString(`{"n":1}`)}}, err
	}
	return c
}

// wantSigned checks a request against a signature made of the parts that are
// expected to be in it.
func (w *world) wantSigned(req *upstream.Request, url, region, id, token string) {
	w.Helper()
	want := &upstream.Request{Method: "POST", URL: url, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: stream.FromString(`{"n":1}`)}
	keys := sigv4.Keys{AccessKeyID: "AKIA" + id + "000000000", SecretAccessKey: "secret-of-" + id + "-0123456789", SessionToken: token}
	if err := sigv4.Sign(want, keys, sigv4.Scope{Region: region, Service: "bedrock"}, w.Now()); err != nil {
		w.Fatal(err)
	}
	for _, f := range [...]string{"authorization", "x-amz-date", "x-amz-security-token"} {
		if got := req.Header.Get(f); got != want.Header.Get(f) {
			w.Errorf("%s is %q, want %q", f, got, want.Header.Get(f))
		}
	}
	if req.URL != url {
		w.Errorf("went to %s, want %s", req.URL, url)
	}
}

func TestSignedWithTheKeysAndTheRegionOfTheAccount(t *testing.T) {
	w := newWorld(t).signing(awsConn("A", "eu-west-1", keys("A", "the-session-token/+==")))
	if _, e := w.sendCall(w.signedCall()); e != nil {
		t.Fatal(e)
	}
	w.wantSigned(w.Seen[0].Request, "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/converse", "eu-west-1", "A", "the-session-token/+==")
}

func TestEachAttemptIsSignedAgain(t *testing.T) {
	for _, status := range []int{403, 401, 429, 529, 500} {
		w := newWorld(t).signing(awsConn("A", "us-east-1", keys("A", "")), awsConn("B", "US-West-2", keys("B", "")))
		w.script["*"] = []fake.Answer{{Status: status, Body: `{"message":"no"}`}, {Status: 200, Body: "{}"}}
		res, e := w.sendCall(w.signedCall())
		if e != nil || res.Connection.ID != "B" || len(w.Seen) != 2 {
			t.Fatalf("%d: %d calls, %v", status, len(w.Seen), e)
		}
		w.wantSigned(w.Seen[0].Request, "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse", "us-east-1", "A", "")
		w.wantSigned(w.Seen[1].Request, "https://bedrock-runtime.us-west-2.amazonaws.com/model/a%3A0/converse", "us-west-2", "B", "")
	}
}

func TestAPIKeyIsKeyIDOnlyWithSecret(t *testing.T) {
	w := newWorld(t).signing(
		awsConn("A", "us-east-1", map[string]secret.Sealed{store.APIKey: "AKIAA000000000", store.SecretAccessKey: "secret-of-A-0123456789"}),
		awsConn("B", "us-east-1", map[string]secret.Sealed{store.APIKey: "bedrock-api-key-B"}))
	w.script["*"] = []fake.Answer{{Status: 429}, {Status: 200}}
	if _, e := w.sendCall(w.signedCall()); e != nil {
		t.Fatal(e)
	}
	w.wantSigned(w.Seen[0].Request, "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse", "us-east-1", "A", "")
	if got := w.Seen[1].Request.Header.Get("authorization"); got != "Bearer bedrock-api-key-B" || w.Seen[1].Request.Header.Get("x-amz-date") != "" {
		t.Errorf("the API key went as %q", got)
	}
}

func TestAccountsThatCannotSignAreSkipped(t *testing.T) {
	for name, tt := range map[string]struct {
		conn store.Connection
		says string
	}{
		"no_region":      {awsConn("A", "", keys("A", "")), "region is missing"},
		"strange_region": {awsConn("A", "us/east", keys("A", "")), "region"},
		"strange_key_id": {awsConn("A", "us-east-1", map[string]secret.Sealed{store.AccessKeyID: "AKIA/x", store.SecretAccessKey: "s"}), "No account of provider bedrock has usable credentials. Add its API key under Providers"},
		"no_key_id":      {awsConn("A", "us-east-1", map[string]secret.Sealed{store.SecretAccessKey: "s"}), "No account of provider bedrock has usable credentials. Add its API key under Providers"},
	} {
		w := newWorld(t).signing(tt.conn, awsConn("B", "us-east-1", keys("B", "")))
		if res, e := w.sendCall(w.signedCall()); e != nil || res.Connection.ID != "B" || len(w.Seen) != 1 {
			t.Errorf("%s: %d calls, %v", name, len(w.Seen), e)
		}
		w = newWorld(t).signing(tt.conn)
		_, e := w.sendCall(w.signedCall())
		if e == nil || e.Status != 400 || e.Code != "no_credentials" || !strings.Contains(e.Message, tt.says) || len(w.Seen) != 0 {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestNoSecretOfASignatureIsShown(t *testing.T) {
	w := newWorld(t).signing(awsConn("A", "us-east-1", keys("A", "the-session-token")))
	w.script["*"] = []fake.Answer{{Status: 400, Header: httpmsg.Header{{Name: "x-amzn-errortype", Value: "ValidationException:http://internal.example/"}},
		Body: `{"message":"AKIAA000000000 and secret-of-A-0123456789 and the-session-token"}`}}
	_, e := w.sendCall(w.signedCall())
	if e == nil || e.Status != 400 || e.Code != "ValidationException" || e.Message != "*** and *** and ***" {
		t.Errorf("shown %v", e)
	}
}
