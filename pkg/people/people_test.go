package people

import (
	"errors"
	"testing"
)

const groupsOfMany = `{"sub":"1","_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"https://graph.example"}}}`

// owners is a rule for Owner on all machines.
func owners(value string, claim ...string) []Rule {
	return []Rule{{Claim: claim, Value: value, Role: Owner, Machines: []string{Everywhere}}}
}

func TestRulesByClaimsOfProviders(t *testing.T) {
	for _, tt := range []struct {
		name, claims string
		rules        []Rule
		want         Role
	}{
		{"Entra: group ids", `{"groups":["8a1e","77b2"]}`, owners("77b2", "groups"), Owner},
		{"Entra: app roles", `{"roles":["Gateway.Admin"]}`, owners("Gateway.Admin", "roles"), Owner},
		{"Entra: overage of a claim without a rule", groupsOfMany[:len(groupsOfMany)-1] + `,"roles":["a"]}`, owners("a", "roles"), Owner},
		{"Okta: groups", `{"groups":["Everyone","ai-admins"]}`, owners("ai-admins", "groups"), Owner},
		{"Keycloak: realm roles", `{"realm_access":{"roles":["ai"]}}`, owners("ai", "realm_access", "roles"), Owner},
		{"Keycloak: roles of a client", `{"resource_access":{"weir.gw":{"roles":["ai"]}}}`, owners("ai", "resource_access", "weir.gw", "roles"), Owner},
		{"Google: domain", `{"hd":"example.com","email":"a@example.com"}`, owners("example.com", "hd"), Owner},
		{"Google: another domain that ends alike", `{"hd":"notexample.com"}`, owners("example.com", "hd"), Nobody},
		{"Auth0: namespaced", `{"https://weir.example/roles":["ai"]}`, owners("ai", "https://weir.example/roles"), Owner},
		{"Authentik, Dex: groups", `{"groups":["ai"]}`, owners("ai", "groups"), Owner},
		{"Zitadel: names of an object", `{"urn:zitadel:iam:org:project:roles":{"ai":{"1":"a.example"}}}`, owners("ai", "urn:zitadel:iam:org:project:roles"), Owner},
		{"GitLab: groups", `{"groups_direct":["acme/ai"]}`, owners("acme/ai", "groups_direct"), Owner},
		{"one text", `{"groups":"ai"}`, owners("ai", "groups"), Owner},
		{"another case", `{"groups":["AI"]}`, owners("ai", "groups"), Nobody},
		{"a part", `{"groups":["ai-admins"]}`, owners("ai", "groups"), Nobody},
		{"a number", `{"groups":[7]}`, owners("7", "groups"), Nobody},
		{"true", `{"admin":true}`, owners("true", "admin"), Nobody},
		{"dotted name for a path", `{"realm_access":{"roles":["ai"]}}`, owners("ai", "realm_access.roles"), Nobody},
		{"wildcard for a path", `{"groups":["ai"]}`, owners("ai", "g*"), Nobody},
		{"empty value", `{"groups":[""]}`, owners("", "groups"), Nobody},
		{"no rule", `{"groups":["ai"]}`, nil, Nobody},
		{"no claim", `{}`, owners("ai", "groups"), Nobody},
		{"unknown role", `{"groups":["ai"]}`, []Rule{{Claim: []string{"groups"}, Value: "ai", Role: "root", Machines: []string{"*"}}}, Nobody},
	} {
		got, err := Resolve(tt.rules, []byte(tt.claims))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if role := got.Of("any").Role; role != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, role, tt.want)
		}
	}
}

func TestGroupOverageIsRefused(t *testing.T) {
	got, err := Resolve(owners("ai", "groups"), []byte(groupsOfMany))
	if !errors.Is(err, ErrTooManyGroups) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, claims := range []string{``, `[]`, `"groups"`, `{`, `null`} {
		if got, err := Resolve(owners("ai", "groups"), []byte(claims)); err == nil || got != nil {
			t.Errorf("%s: got %v, %v", claims, got, err)
		}
	}
}

func TestHighestRuleWinsPerMachine(t *testing.T) {
	small := &Template{Keys: 1}
	rules := []Rule{
		{[]string{"g"}, "a", Editor, []string{"m1", "m2"}, nil},
		{[]string{"g"}, "a", Member, []string{"m1", "m3"}, small},
		{[]string{"g"}, "b", Owner, []string{"m2"}, nil},
		{[]string{"g"}, "a", Viewer, []string{"*"}, nil},
	}
	got, err := Resolve(rules, []byte(`{"g":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[string]Role{"m1": Editor, "m2": Editor, "m3": Viewer, "m4": Viewer} {
		if g := got.Of(machine); g.Role != want {
			t.Errorf("%s: got %q, want %q", machine, g.Role, want)
		}
	}
}

func TestGrantOfNoneWins(t *testing.T) {
	role := func(r Role) Grant { return Grant{Role: r} }
	for _, tt := range []struct {
		name          string
		rules, grants Grants
		want          Role
		any           bool
	}{
		{"nothing", nil, nil, Nobody, false},
		{"a rule", Grants{"m": role(Editor)}, nil, Editor, true},
		{"a higher grant", Grants{"m": role(Member)}, Grants{"m": role(Owner)}, Owner, true},
		{"a lower grant", Grants{"m": role(Owner)}, Grants{"m": role(Member)}, Owner, true},
		{"none over a rule", Grants{"m": role(Owner)}, Grants{"m": role(None)}, None, false},
		{"none over a rule of all", Grants{"*": role(Owner)}, Grants{"m": role(None)}, None, true},
		{"none everywhere", Grants{"m": role(Owner)}, Grants{"*": role(None)}, None, false},
		{"another machine", Grants{"n": role(Owner)}, nil, Nobody, true},
		{"an unknown role", nil, Grants{"m": role("root")}, Nobody, false},
	} {
		got := Merge(tt.rules, tt.grants)
		if r := got.Of("m").Role; r != tt.want || got.Any() != tt.any {
			t.Errorf("%s: got %q, any %v, want %q, %v", tt.name, r, got.Any(), tt.want, tt.any)
		}
	}
	tight, wide := &Template{Keys: 1}, &Template{Keys: 9}
	got := Merge(Grants{"m": {Member, wide}}, Grants{"m": {Member, tight}})
	if got.Of("m").Template != tight {
		t.Error("the template of the rule went before that of the grant")
	}
}

func TestRolesIncludeLowerOnes(t *testing.T) {
	order := []Role{Member, Viewer, Editor, Owner}
	for i, a := range order {
		for j, b := range order {
			if a.AtLeast(b) != (i >= j) {
				t.Errorf("%s at least %s: got %v", a, b, !(i >= j))
			}
		}
		for _, no := range []Role{Nobody, None, "root"} {
			if no.AtLeast(a) || a.AtLeast(no) || no.Valid() {
				t.Errorf("%q has access", no)
			}
		}
	}
}

func TestIDIsOfIssuerAndSubject(t *testing.T) {
	a := Identity{Issuer: "https://a.example", Subject: "1", Name: "Ann", Email: "a@a.example"}
	same := Identity{Issuer: "https://a.example", Subject: "1", Name: "Bob"}
	moved := Identity{Issuer: "https://a.example1", Subject: ""}
	if !IsID(a.ID()) || a.ID() != same.ID() || a.ID() == moved.ID() {
		t.Errorf("got %s, %s, %s", a.ID(), same.ID(), moved.ID())
	}
	for _, s := range []string{"", "p_", "x", a.ID() + "0", a.ID()[:33] + "G", "P" + a.ID()[1:]} {
		if IsID(s) {
			t.Errorf("%q counts as an id", s)
		}
	}
}
