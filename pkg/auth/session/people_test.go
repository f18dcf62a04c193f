package session

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// ann is a person of a provider whose group is "ai".
var ann = people.Identity{Issuer: "https://idp.example", Subject: "1", Name: "Ann", Claims: []byte(`{"groups":["ai"]}`)}

// rule is a rule of a role for the group "ai".
func rule(role people.Role, machines ...string) []people.Rule {
	return []people.Rule{{Claim: []string{"groups"}, Value: "ai", Role: role, Machines: machines}}
}

// opened returns the cookie and what the page is told of the answer to a sign-in.
func (w *world) opened(resp *httpmsg.Response, err error) (cookie string, v View, status int) {
	w.Helper()
	if err != nil {
		return "", v, statusOf(err)
	}
	raw, _ := stream.ReadAll(resp.Body, 1<<16)
	if err := json.Unmarshal(raw, &v); err != nil {
		w.Fatal(err)
	}
	cookie, _, _ = strings.Cut(resp.Header.Get("set-cookie"), ";")
	return cookie, v, 200
}

func (w *world) person(in *SignIn) (string, View, int) {
	w.Helper()
	return w.opened(w.s.OpenPerson(context.Background(), &auth.Call{Request: from("GET", "/oidc/callback", "")}, in))
}

func (w *world) sent(body string) (string, View, int) {
	w.Helper()
	return w.opened(w.s.Create(context.Background(), &auth.Call{Request: from("POST", "/api/session", body), MaxBody: 4096}))
}

func TestPersonOfProviderSignsIn(t *testing.T) {
	w := newWorld(t)
	cookie, v, status := w.person(&SignIn{Identity: ann, Rules: rule(people.Editor, mid)})
	if status != 200 || v.Operator || v.PersonID != ann.ID() || v.PersonName != "Ann" || v.Roles[mid] != people.Editor ||
		v.Token != "" {
		t.Fatalf("got %d %+v", status, v)
	}
	if c, err := w.auth.Operator(context.Background(), from("GET", "/api/machines", "", "cookie", cookie), ""); err != nil ||
		c.Operator || c.Person.Role != people.Member {
		t.Errorf("a route of the operator: got %+v, %v", c, err)
	}
	for name, in := range map[string]*SignIn{
		"no rule":        {Identity: ann},
		"another value":  {Identity: people.Identity{Issuer: "i", Subject: "2", Claims: []byte(`{}`)}, Rules: rule(people.Owner, "*")},
		"group overage":  {Identity: people.Identity{Issuer: "i", Subject: "2", Claims: []byte(`{"_claim_names":{"groups":"s"}}`)}, Rules: rule(people.Owner, "*")},
		"invalid claims": {Identity: people.Identity{Issuer: "i", Subject: "2"}, Rules: rule(people.Owner, "*")},
	} {
		if _, _, status := w.person(in); status != 403 {
			t.Errorf("%s: got %d, want 403", name, status)
		}
	}
}

func TestInvitationOpensSessionByItself(t *testing.T) {
	w := newWorld(t)
	const link = InvitePrefix + "0123456789012345678901234567890123456789012"
	w.object(rpc.RegistryID, "invite.create", `{"digest":"`+rpc.KeyDigest(link)+`","machineId":"`+mid+`","role":"viewer"}`)
	if _, _, status := w.sent(`{"invitation":"` + link + `"}`); status != 400 {
		t.Errorf("without a name: got %d", status)
	}
	offer := func() (o rpc.InvitationOffer, cookie string) {
		resp, err := w.s.Create(context.Background(), &auth.Call{Request: from("POST", "/api/session",
			`{"invitation":"`+link+`","preview":true}`), MaxBody: 4096})
		if err == nil {
			raw, _ := stream.ReadAll(resp.Body, 1<<16)
			json.Unmarshal(raw, &o)
			cookie = resp.Header.Get("set-cookie")
		}
		return o, cookie
	}
	if o, cookie := offer(); o.Machine != mid || o.Role != people.Viewer || cookie != "" {
		t.Errorf("before it is accepted: got %+v, cookie %q", o, cookie)
	}
	_, v, status := w.sent(`{"invitation":"` + link + `","name":"Bob"}`)
	if status != 200 || v.PersonName != "Bob" || v.Roles[mid] != people.Viewer || !strings.HasPrefix(v.Token, TokenPrefix) {
		t.Fatalf("got %d %+v", status, v)
	}
	if _, again, status := w.sent(`{"token":"` + v.Token + `"}`); status != 200 || again.PersonID != v.PersonID || again.Token != "" {
		t.Errorf("the token: got %d %+v", status, again)
	}
	for _, body := range []string{`{"invitation":"` + link + `","name":"Eve"}`, `{"token":"wp_x"}`, `{"invitation":"wi_","name":"Eve"}`,
		`{"invitation":"` + link + `","preview":true}`, `{"invitation":"wi_","preview":true}`} {
		if _, _, status := w.sent(body); status != 401 {
			t.Errorf("%s: got %d, want 401", body, status)
		}
	}
	for _, body := range []string{`{}`, `{"token":"a","invitation":"wi_a"}`, `{"name":"Eve"}`, `{"preview":true}`,
		`{"token":"a","preview":true}`} {
		if _, _, status := w.sent(body); status != 400 {
			t.Errorf("%s: got %d, want 400", body, status)
		}
	}
}

func TestGuessedInvitationsAreLimited(t *testing.T) {
	for _, rest := range []string{`"name":"Eve"`, `"preview":true`} {
		w := newWorld(t)
		last := 0
		for range 12 {
			_, _, last = w.sent(`{"invitation":"wi_guess",` + rest + `}`)
		}
		if last != 429 {
			t.Errorf("%s: got %d, want 429", rest, last)
		}
	}
}
