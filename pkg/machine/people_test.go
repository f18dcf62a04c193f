package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/inprocess"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// ann is a person of an identity provider.
var ann = people.Identity{Issuer: "https://idp.example", Subject: "1", Name: "Ann", Email: "ann@idp.example",
	EmailVerified: true}

// signIn opens session n of a person.
func (w *world) signIn(n int, in rpc.PersonSignIn) (int, rpc.Session) {
	w.Helper()
	in.Session.Digest = inprocess.Digest(n)
	status, a := w.At(rpc.RegistryID, "person.signIn", string(storage.Encode(in)))
	var s rpc.Session
	json.Unmarshal([]byte(a.Raw), &s)
	return status, s
}

func (w *world) setRole(id string, role people.Role) int {
	w.Helper()
	status, _ := w.At(rpc.RegistryID, "person.set", string(storage.Encode(rpc.PersonSet{ID: id, MachineID: mid,
		Grant: people.Grant{Role: role}, By: "operator"})))
	return status
}

// invite stores invitation n.
func (w *world) invite(n int, in rpc.InviteCreate) int {
	w.Helper()
	in.Digest, in.MachineID = inprocess.Digest(1000+n), mid
	status, _ := w.At(rpc.RegistryID, "invite.create", string(storage.Encode(in)))
	return status
}

// shown returns what the holder of invitation n sees of it.
func (w *world) shown(n int) (int, rpc.InvitationOffer) {
	w.Helper()
	status, a := w.At(rpc.RegistryID, "invite.show", `{"digest":"`+by(n)+`"}`)
	var o rpc.InvitationOffer
	json.Unmarshal([]byte(a.Raw), &o)
	return status, o
}

func by(n int) string { return inprocess.Digest(1000 + n) }

// editors are the roles of a rule.
var editors = people.Grants{mid: {Role: people.Editor}}

// The grants of a machine are all that moves of its people: rules are those of the provider, and of people who are
// known the grant alone changes.
func TestGrantsOfPeopleMove(t *testing.T) {
	from, to := newWorld(t), newWorld(t)
	grants := func(w *world) (out rpc.PeopleGrants) {
		t.Helper()
		status, a := w.At(rpc.RegistryID, "person.export", `{"machineId":"`+mid+`"}`)
		if json.Unmarshal([]byte(a.Raw), &out); status != 200 {
			t.Fatalf("export: %d %s", status, a.Raw)
		}
		return out
	}
	bob := people.Identity{Issuer: "https://idp.example", Subject: "2", Name: "Bob"}
	from.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	from.signIn(2, rpc.PersonSignIn{Identity: &bob, Roles: editors})
	if got := grants(from); len(got.People) != 0 {
		t.Errorf("roles by rules: %v", got)
	}
	from.setRole(ann.ID(), people.Owner)
	from.setRole(bob.ID(), people.None)
	moved := grants(from)
	if len(moved.People) != 2 {
		t.Fatalf("got %v", moved)
	}
	known := ann
	known.Name = "Ann of here"
	to.signIn(1, rpc.PersonSignIn{Identity: &known, Roles: editors})
	for range 2 { // it can be repeated
		if status, a := to.At(rpc.RegistryID, "person.import", string(storage.Encode(moved))); status != 200 {
			t.Fatalf("import: %d %s", status, a.Raw)
		}
	}
	if strings.Contains(fmt.Sprint(to.Loc.Storage(rpc.RegistryID).Listed("person:")), "Bob") {
		t.Error("a name is stored in the clear")
	}
	got := grants(to)
	for i, p := range got.People {
		if p.ID == ann.ID() && (p.Name != "Ann of here" || p.Role != people.Owner) || p.ID == bob.ID() && (p.Name != "Bob" || p.Role != people.None) {
			t.Errorf("person %d: %v", i, p)
		}
	}
	if status, _ := to.signIn(2, rpc.PersonSignIn{Identity: &bob, Roles: editors}); status != 403 || len(got.People) != 2 {
		t.Errorf("a removed person: %d, %v", status, got)
	}
	for _, wrong := range []string{`{"id":"x","issuer":"a","role":"owner"}`, `{"id":"` + ann.ID() + `","issuer":"a","role":"king"}`,
		`{"id":"` + ann.ID() + `","role":"owner"}`} {
		if status, _ := to.At(rpc.RegistryID, "person.import", `{"machineId":"`+mid+`","people":[`+wrong+`]}`); status != 400 {
			t.Errorf("%s: %d", wrong, status)
		}
	}
}

func TestPersonWithoutRoleIsRefusedAndRecorded(t *testing.T) {
	w := newWorld(t)
	if status, _ := w.signIn(1, rpc.PersonSignIn{Identity: &ann}); status != 403 {
		t.Errorf("got %d, want 403", status)
	}
	if status, _ := w.checked(1); status != 401 {
		t.Errorf("its session: got %d", status)
	}
	rows := w.Loc.Storage(rpc.RegistryID).Listed(storage.AuditPrefix)
	if len(rows) != 1 || !strings.Contains(string(rows[0].Value), "sign-in.refused") ||
		!strings.Contains(string(rows[0].Value), "no_access") {
		t.Errorf("got %d audit records", len(rows))
	}
	if n := len(w.Loc.Storage(rpc.RegistryID).Listed(personPrefix)); n != 0 {
		t.Errorf("%d people are stored", n)
	}
}

func TestPersonSignsInByRule(t *testing.T) {
	w := newWorld(t)
	status, s := w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	if status != 200 || s.Person == nil || s.Person.Name != "Ann" || s.Person.Roles.Of(mid).Role != people.Editor {
		t.Fatalf("got %d %+v", status, s)
	}
	status, a := w.checked(1)
	if status != 200 || a.Get("person.id").Str != ann.ID() || a.Get("person.roles."+mid+".role").Str != "editor" {
		t.Errorf("check: got %d %s", status, a.Raw)
	}
	for _, row := range w.Loc.Storage(rpc.RegistryID).Listed("") {
		if strings.Contains(string(row.Value), "Ann") || strings.Contains(string(row.Value), "ann@") {
			t.Errorf("%s holds the name or the address: %s", row.Key, row.Value)
		}
	}
	if status, _ := w.signIn(2, rpc.PersonSignIn{Identity: &ann}); status != 403 {
		t.Errorf("without the claim: got %d, want 403", status)
	}
}

func TestRemovalEndsSessionsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	w.signIn(2, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	if status := w.setRole(ann.ID(), people.None); status != 200 {
		t.Fatalf("removal: got %d", status)
	}
	for n := 1; n <= 2; n++ {
		if status, _ := w.checked(n); status != 401 {
			t.Errorf("session %d after the removal: got %d", n, status)
		}
	}
	if status, _ := w.signIn(3, rpc.PersonSignIn{Identity: &ann, Roles: editors}); status != 403 {
		t.Errorf("the rule has brought a removed person back: got %d", status)
	}
	w.invite(1, rpc.InviteCreate{Role: people.Viewer})
	if status, s := w.signIn(4, rpc.PersonSignIn{Identity: &ann, Roles: editors, Invite: by(1)}); status != 200 ||
		s.Person.Roles.Of(mid).Role != people.Editor {
		t.Errorf("invited again: got %d %+v", status, s.Person)
	}
}

func TestInvitationIsSpentOnce(t *testing.T) {
	w := newWorld(t)
	if status := w.invite(1, rpc.InviteCreate{Role: people.Member, Template: &people.Template{Keys: 2}}); status != 200 {
		t.Fatalf("got %d", status)
	}
	in := rpc.PersonSignIn{Name: "Bob", Invite: by(1), NewToken: inprocess.Digest(50)}
	status, s := w.signIn(1, in)
	if g := s.Person.Roles.Of(mid); status != 200 || g.Role != people.Member || g.Template.Keys != 2 || s.Person.Name != "Bob" {
		t.Fatalf("got %d %+v", status, s.Person)
	}
	if status, _ := w.signIn(2, in); status != 401 {
		t.Errorf("used again: got %d", status)
	}
	if status, again := w.signIn(3, rpc.PersonSignIn{Token: in.NewToken}); status != 200 || again.Person.ID != s.Person.ID {
		t.Errorf("with the token: got %d", status)
	}
	if status, _ := w.signIn(4, rpc.PersonSignIn{Token: inprocess.Digest(51)}); status != 401 {
		t.Errorf("with another token: got %d", status)
	}
	if status := w.invite(2, rpc.InviteCreate{Person: s.Person.ID}); status != 200 {
		t.Fatalf("renewal: got %d", status)
	}
	renewed := rpc.PersonSignIn{Invite: by(2), NewToken: inprocess.Digest(52)}
	if status, r := w.signIn(5, renewed); status != 200 || r.Person.ID != s.Person.ID || r.Person.Name != "Bob" {
		t.Errorf("renewed: got %d %+v", status, r.Person)
	}
	if status, _ := w.signIn(6, rpc.PersonSignIn{Token: in.NewToken}); status != 401 {
		t.Errorf("the token before the renewal: got %d", status)
	}
}

// The page of an invitation named neither who invites nor the machine before someone accepted.
func TestInvitationIsShownWithoutSpendingIt(t *testing.T) {
	w := newWorld(t)
	w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: people.Grants{mid: {Role: people.Owner}}})
	w.At(rpc.RegistryID, "put", `{"machineId":"`+mid+`","name":"Team <b>","state":"active"}`)
	w.invite(1, rpc.InviteCreate{Role: people.Member, By: "person:" + ann.ID(), Note: "for Bob",
		Template: &people.Template{BudgetUSD: 20, Models: []string{"openai/gpt-4o"}}})
	want := rpc.InvitationOffer{Machine: "Team <b>", By: "Ann", Role: people.Member, ExpiresAt: w.Clock.Now().UnixMilli() + inviteLife,
		BudgetUSD: 20, BudgetWindow: "month"}
	for range 2 {
		if status, got := w.shown(1); status != 200 || got != want {
			t.Fatalf("got %d %+v, want %+v", status, got, want)
		}
	}
	if status, _ := w.signIn(2, rpc.PersonSignIn{Name: "Bob", Invite: by(1), NewToken: inprocess.Digest(50)}); status != 200 {
		t.Errorf("accepted after it was shown: got %d", status)
	}
	w.invite(2, rpc.InviteCreate{Role: people.Member, Provider: true, By: "operator"})
	if status, got := w.shown(2); status != 200 || got.By != "The operator of this gateway" || !got.Provider || got.BudgetUSD != 0 {
		t.Errorf("by the operator: got %d %+v", status, got)
	}
	w.Clock.Add(7 * 24 * time.Hour)
	var answers []string
	for n := range 4 { // none, used, over, none
		status, a := w.At(rpc.RegistryID, "invite.show", `{"digest":"`+by(n)+`"}`)
		answers = append(answers, fmt.Sprint(status, a.Raw))
	}
	if slices.Sort(answers); answers[0] != answers[3] || !strings.HasPrefix(answers[0], "401") {
		t.Errorf("refusals differ: %q", answers)
	}
}

func TestInvitationEnds(t *testing.T) {
	w := newWorld(t)
	w.invite(1, rpc.InviteCreate{Role: people.Member})
	w.invite(2, rpc.InviteCreate{Role: people.Member, Provider: true})
	w.Clock.Add(time.Minute)
	if status, _ := w.signIn(1, rpc.PersonSignIn{Name: "Bob", Invite: by(2), NewToken: inprocess.Digest(50)}); status != 401 {
		t.Errorf("one that asks for a provider: got %d", status)
	}
	if status, _ := w.signIn(2, rpc.PersonSignIn{Identity: &ann, Invite: by(2)}); status != 200 {
		t.Errorf("by the provider after a refused try: got %d", status)
	}
	if status, _ := w.At(rpc.RegistryID, "invite.delete", `{"machineId":"`+mid+`","id":"`+by(1)[:16]+`"}`); status != 200 {
		t.Errorf("withdrawal: got %d", status)
	}
	if status, _ := w.signIn(3, rpc.PersonSignIn{Identity: &ann, Invite: by(1)}); status != 401 {
		t.Errorf("withdrawn: got %d", status)
	}
	w.invite(3, rpc.InviteCreate{Role: people.Member})
	w.Clock.Add(7 * 24 * time.Hour)
	if status, _ := w.signIn(4, rpc.PersonSignIn{Identity: &ann, Invite: by(3)}); status != 401 {
		t.Errorf("after seven days: got %d", status)
	}
}

func TestSessionsOfPeopleAndOperatorAreCountedApart(t *testing.T) {
	w := newWorld(t)
	w.opened(1)
	for n := range maxPersonSessions + 2 {
		w.Clock.Add(time.Second)
		w.signIn(100+n, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	}
	for n, want := range map[int]int{1: 200, 100: 401, 101: 401, 102: 200} {
		if status, _ := w.checked(n); status != want {
			t.Errorf("session %d: got %d, want %d", n, status, want)
		}
	}
	w.At(rpc.RegistryID, "person.end", `{"id":"`+ann.ID()+`"}`)
	for n, want := range map[int]int{1: 200, 102: 401} {
		if status, _ := w.checked(n); status != want {
			t.Errorf("after the end of all: session %d: got %d, want %d", n, status, want)
		}
	}
}

func TestFailedWriteKeepsInvitation(t *testing.T) {
	w := newWorld(t)
	w.invite(1, rpc.InviteCreate{Role: people.Member})
	in := rpc.PersonSignIn{Name: "Bob", Invite: by(1), NewToken: inprocess.Digest(50)}
	st := w.Loc.Storage(rpc.RegistryID)
	st.Fault = func(key string) bool { return strings.HasPrefix(key, sessionPrefix) }
	if status, _ := w.signIn(1, in); status != 503 {
		t.Fatalf("got %d, want 503", status)
	}
	st.Fault = nil
	if status, _ := w.signIn(2, in); status != 200 {
		t.Errorf("again: got %d", status)
	}
}

// A deleted machine leaves no role, no invitation, and no person without another role.
func TestDeletedMachineForgetsPeople(t *testing.T) {
	w := newWorld(t)
	w.invite(1, rpc.InviteCreate{Role: people.Member})
	w.signIn(1, rpc.PersonSignIn{Name: "Bob", Invite: by(1), NewToken: inprocess.Digest(50)})
	w.invite(2, rpc.InviteCreate{Role: people.Member})
	w.invite(3, rpc.InviteCreate{Role: people.Member})
	w.signIn(3, rpc.PersonSignIn{Name: "Cyd", Invite: by(3), Subject: "c", NewPasskey: &rpc.Passkey{Digest: inprocess.Digest(51)}})
	if n := len(w.Loc.Storage(rpc.RegistryID).Listed(passkeyPrefix)); n != 1 {
		t.Fatalf("%d passkeys", n)
	}
	other := "zzzzzzzzzzzzzzzz"
	w.signIn(2, rpc.PersonSignIn{Identity: &ann, Roles: people.Grants{mid: {Role: people.Editor}, other: {Role: people.Viewer}}})
	w.At(rpc.RegistryID, "put", `{"machineId":"`+mid+`","state":""}`)
	st := w.Loc.Storage(rpc.RegistryID)
	for prefix, want := range map[string]int{personPrefix: 1, tokenPrefix: 0, passkeyPrefix: 0,
		invitePrefix: 0, sessionPrefix: 1} {
		if n := len(st.Listed(prefix)); n != want {
			t.Errorf("%s: %d rows, want %d", prefix, n, want)
		}
	}
	if status, a := w.checked(2); status != 200 || a.Get("person.roles."+mid).Exists() {
		t.Errorf("the other: got %d %s", status, a.Raw)
	}
}

// recorded returns the newest records of the registry as "actor action target fields".
func (w *world) recorded(most int) (out []string) {
	w.Helper()
	_, a := w.At(rpc.RegistryID, "signIn.list", `{}`)
	for _, r := range a.Get("data").Array() {
		if len(out) < most {
			out = append(out, strings.TrimSpace(fmt.Sprint(r.Get("actor").Str, " ", r.Get("action").Str, " ", r.Get("target").Str, " ", r.Get("fields").Raw)))
		}
	}
	return out
}

// An accepted invitation was recorded as a sign-in like any other.
func TestAcceptedInvitationIsRecordedWithItsMaker(t *testing.T) {
	w := newWorld(t)
	w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: people.Grants{mid: {Role: people.Owner}}})
	w.invite(1, rpc.InviteCreate{Role: people.Member, By: "person:" + ann.ID()})
	_, s := w.signIn(2, rpc.PersonSignIn{Invite: by(1), NewToken: inprocess.Digest(1), Name: "Bob"})
	bob := "person:" + s.Person.ID
	w.signIn(3, rpc.PersonSignIn{Token: inprocess.Digest(1)})
	w.invite(2, rpc.InviteCreate{Person: s.Person.ID, By: "operator"})
	w.signIn(4, rpc.PersonSignIn{Invite: by(2), NewToken: inprocess.Digest(2)})
	want := []string{bob + " link.use operator", bob + " sign-in", bob + " invitation.accept person:" + ann.ID() + ` ["member of ` + mid + `"]`}
	if got := w.recorded(3); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Sessions that a removal ended were not in the audit log.
func TestRemovalRecordsHowManySessionsItEnded(t *testing.T) {
	w := newWorld(t)
	w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	w.signIn(2, rpc.PersonSignIn{Identity: &ann, Roles: editors})
	if w.setRole(ann.ID(), people.Viewer); strings.Contains(w.recorded(1)[0], "sessions.end") {
		t.Errorf("a change of role: %q", w.recorded(1))
	}
	w.setRole(ann.ID(), people.None)
	if got, want := w.recorded(1)[0], "operator sessions.end "+ann.ID()+` ["2 sessions"]`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if w.setRole(ann.ID(), people.None); len(w.recorded(9)) != 3 {
		t.Errorf("once more: %q", w.recorded(9))
	}
	w.signIn(3, rpc.PersonSignIn{Identity: &people.Identity{Issuer: ann.Issuer, Subject: "2"}, Roles: editors})
	bea := people.Identity{Issuer: ann.Issuer, Subject: "3"}
	w.signIn(4, rpc.PersonSignIn{Identity: &bea, Roles: editors})
	w.At(rpc.RegistryID, "session.end", `{"digest":"`+inprocess.Digest(4)+`","all":true}`)
	if got, want := w.recorded(1)[0], "person:"+bea.ID()+" sessions.end "+bea.ID()+` ["1 session"]`; got != want {
		t.Errorf("by the person: got %q, want %q", got, want)
	}
	w.At(rpc.RegistryID, "person.end", `{"id":"`+ann.ID()+`","by":"key:abcdefghijklmnop"}`)
	if got := w.recorded(1)[0]; strings.Contains(got, "abcdefghijklmnop") || !strings.HasPrefix(got, "key:") {
		t.Errorf("by a key: %q", got)
	}
	w.At(rpc.RegistryID, "person.end", `{"all":true,"by":"operator"}`)
	if got, want := w.recorded(1)[0], `operator sessions.end everyone ["1 session"]`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Owners are told of a sign-in of a person from a new address, on the machines that this
// person may change.
func TestSignInFromNewAddressIsANotice(t *testing.T) {
	w := newWorld(t)
	from := func(n int, role people.Role, place string) []rpc.Notice {
		t.Helper()
		in := rpc.PersonSignIn{Identity: &ann, Roles: people.Grants{mid: {Role: role}}}
		in.Session.From, in.Session.Address = strings.Repeat(place, 32), "192.0.2."+place
		if status, _ := w.signIn(n, in); status != 200 {
			t.Fatalf("got %d", status)
		}
		w.Clock.Add(time.Minute)
		var all []rpc.Notice
		for _, row := range w.Loc.Storage(rpc.RegistryID).Listed(noticesRow) {
			json.Unmarshal(row.Value, &all)
		}
		return all
	}
	for n, step := range []struct {
		role  people.Role
		place string
		want  int
	}{{people.Editor, "1", 0}, {people.Editor, "1", 0}, {people.Editor, "2", 1}, {people.Viewer, "3", 1}, {people.Owner, "3", 1}} {
		if all := from(n+1, step.role, step.place); len(all) != step.want {
			t.Errorf("sign-in %d: %d notices, want %d", n, len(all), step.want)
		} else if step.want > 0 && (!strings.Contains(all[0].Text, "Ann, from 192.0.2.2") || len(all[0].Machines) != 1 ||
			all[0].Machines[0] != mid) {
			t.Errorf("got %+v", all[0])
		}
	}
}

// An owner of one machine could become a person of two, by the link that renews their token.
func TestOwnerOfOneMachineRenewsNoPersonOfTwo(t *testing.T) {
	w := newWorld(t)
	other := strings.Repeat("b", len(mid))
	w.invite(1, rpc.InviteCreate{Role: people.Member})
	_, s := w.signIn(1, rpc.PersonSignIn{Invite: by(1), Name: "Bob", NewToken: inprocess.Digest(1)})
	id := s.Person.ID
	owner := "person:" + ann.ID()
	w.signIn(90, rpc.PersonSignIn{Identity: &ann, Roles: people.Grants{mid: {Role: people.Owner}}})
	renewed := func(n int, actor string) (created, used int) {
		created = w.invite(n, rpc.InviteCreate{Person: id, By: actor})
		used, _ = w.signIn(n, rpc.PersonSignIn{Invite: by(n), NewToken: inprocess.Digest(n)})
		return created, used
	}
	if created, used := renewed(2, owner); created != 200 || used != 200 {
		t.Errorf("a person of this machine alone: got %d and %d", created, used)
	}
	w.invite(3, rpc.InviteCreate{Person: id, By: "key:1"})
	invite := rpc.InviteCreate{Digest: by(4), MachineID: other, Role: people.Owner}
	w.At(rpc.RegistryID, "invite.create", string(storage.Encode(invite)))
	if status, s := w.signIn(4, rpc.PersonSignIn{Token: inprocess.Digest(2), Invite: by(4)}); status != 200 ||
		s.Person.Roles.Of(other).Role != people.Owner {
		t.Fatalf("a second machine: got %d %+v", status, s.Person)
	}
	if status, _ := w.shown(3); status != 401 {
		t.Errorf("it is shown: got %d, want 401", status)
	}
	if used, _ := w.signIn(5, rpc.PersonSignIn{Invite: by(3), NewToken: inprocess.Digest(5)}); used != 401 {
		t.Errorf("a link from before the second machine: got %d, want 401", used)
	}
	if created, used := renewed(6, owner); created != 403 || used != 401 {
		t.Errorf("a person of two machines: got %d and %d, want 403 and 401", created, used)
	}
	if created, used := renewed(7, "operator"); created != 200 || used != 200 {
		t.Errorf("by the operator: got %d and %d", created, used)
	}
}

// An owner kept a way back by an invitation that they had made before.
func TestInvitationEndsWithTheRoleOfItsMaker(t *testing.T) {
	owners := people.Grants{mid: {Role: people.Owner}}
	for name, lose := range map[string]func(w *world){
		"nothing":      nil,
		"removed":      func(w *world) { w.setRole(ann.ID(), people.None) },
		"another role": func(w *world) { w.signIn(8, rpc.PersonSignIn{Identity: &ann, Roles: editors}) },
	} {
		w, want := newWorld(t), 200
		w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: owners})
		w.invite(1, rpc.InviteCreate{Role: people.Owner, By: "person:" + ann.ID()})
		if lose != nil {
			want = 401
			lose(w)
		}
		if status, _ := w.shown(1); status != want {
			t.Errorf("%s, shown: got %d, want %d", name, status, want)
		}
		if status, _ := w.signIn(2, rpc.PersonSignIn{Invite: by(1), Name: "Ann", NewToken: inprocess.Digest(2)}); status != want {
			t.Errorf("%s: got %d, want %d", name, status, want)
		}
	}
}

// Refusals of anyone who calls made the audit of the registry grow without bounds until a person signed in.
func TestRefusalsArePruned(t *testing.T) {
	w := newWorld(t)
	for range storage.MaxAudit + pruneEach {
		w.At(rpc.RegistryID, "signIn.failed", `{"reason":"token_malformed"}`)
	}
	if n := len(w.Loc.Storage(rpc.RegistryID).Listed(storage.AuditPrefix)); n > storage.MaxAudit {
		t.Errorf("%d records, want %d at most", n, storage.MaxAudit)
	}
}

// A person without a role, such as any job of a CI service, pushed the records of others out of the audit.
func TestRefusedPersonFillsNoAudit(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		want := 403
		if i >= attemptMost {
			want = 429
		}
		if status, _ := w.signIn(1, rpc.PersonSignIn{Identity: &ann}); status != want {
			t.Errorf("sign-in %d: got %d, want %d", i, status, want)
		}
	}
	if n := len(w.Loc.Storage(rpc.RegistryID).Listed(storage.AuditPrefix)); n != attemptMost {
		t.Errorf("%d records, want %d", n, attemptMost)
	}
	if status, _ := w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors}); status != 200 {
		t.Errorf("with a role since: got %d", status)
	}
}

// Calls that the role of a person does not include are recorded, the first ones alone.
func TestRefusalsByRoleAreRecordedAndBounded(t *testing.T) {
	w := newWorld(t)
	call := `{"person":"` + ann.ID() + `","machineId":"` + mid + `","route":"PUT /api/keys/{id}"}`
	for range 3 * attemptMost {
		if status, a := w.At(rpc.RegistryID, "role.refused", call); status != 200 {
			t.Fatalf("got %d %s", status, a.Raw)
		}
	}
	rows := w.Loc.Storage(rpc.RegistryID).Listed(storage.AuditPrefix)
	if len(rows) != attemptMost || !strings.Contains(string(rows[0].Value), "role.refused") ||
		!strings.Contains(string(rows[0].Value), "PUT /api/keys/{id}") || !strings.Contains(string(rows[0].Value), mid) {
		t.Errorf("%d records, want %d", len(rows), attemptMost)
	}
	if status, _ := w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors}); status != 200 {
		t.Errorf("a sign-in: got %d", status)
	}
}

// An import names people by ids alone. One that says of a person of an identity provider that they come by a link
// lets an owner of its machine make such a link: what opens it ends at the sign-in by the provider.
func TestProviderTakesImportedPersonOver(t *testing.T) {
	w := newWorld(t)
	in := rpc.PeopleGrants{MachineID: mid, People: []rpc.PersonGrant{{ID: ann.ID(), Issuer: linkIssuer, Role: people.Viewer}}}
	if status, a := w.At(rpc.RegistryID, "person.import", string(storage.Encode(in))); status != 200 {
		t.Fatalf("import: %d %s", status, a.Raw)
	}
	token := inprocess.Digest(77)
	w.invite(2, rpc.InviteCreate{Person: ann.ID(), By: "key"})
	if status, _ := w.signIn(1, rpc.PersonSignIn{Invite: by(2), NewToken: token}); status != 200 {
		t.Fatalf("by the link: %d", status)
	}
	w.invite(3, rpc.InviteCreate{Person: ann.ID(), By: "key"})
	if status, s := w.signIn(2, rpc.PersonSignIn{Identity: &ann, Roles: editors}); status != 200 ||
		s.Person.Roles.Of(mid).Role != people.Editor {
		t.Fatalf("by the provider: %d %+v", status, s.Person)
	}
	if status, _ := w.signIn(3, rpc.PersonSignIn{Token: token}); status != 401 {
		t.Errorf("the token of the link opens a session with the roles of the provider: %d", status)
	}
	if status, _ := w.signIn(4, rpc.PersonSignIn{Invite: by(3), NewToken: inprocess.Digest(78)}); status != 401 {
		t.Errorf("another link opens one: %d", status)
	}
	if status, _ := w.At(rpc.RegistryID, "session.check", `{"digest":"`+inprocess.Digest(1)+`"}`); status == 200 {
		t.Error("the session of the link goes on")
	}
}

// A person who is removed by an import has no passkey left, and a link for them stores none.
func TestImportedRemovalEndsCredentials(t *testing.T) {
	w := newWorld(t)
	w.invite(1, rpc.InviteCreate{Role: people.Editor, By: "operator"})
	key := func(n int) *rpc.Passkey { return &rpc.Passkey{Digest: inprocess.Digest(n), Alg: "ES256"} }
	status, s := w.signIn(1, rpc.PersonSignIn{Invite: by(1), Name: "Bob", Subject: "x", NewPasskey: key(50)})
	if status != 200 {
		t.Fatalf("sign-in: %d", status)
	}
	w.invite(2, rpc.InviteCreate{Person: s.Person.ID, By: "operator"})
	in := rpc.PeopleGrants{MachineID: mid, People: []rpc.PersonGrant{{ID: s.Person.ID, Issuer: linkIssuer, Role: people.None}}}
	if status, a := w.At(rpc.RegistryID, "person.import", string(storage.Encode(in))); status != 200 {
		t.Fatalf("import: %d %s", status, a.Raw)
	}
	passkeys := func() int {
		tx, _ := w.obj.begin(w.Loc.Storage(rpc.RegistryID), rpc.RegistryID)
		return len(tx.List(passkeyPrefix))
	}
	if n := passkeys(); n != 0 {
		t.Errorf("%d passkeys of a removed person are left", n)
	}
	if status, _ := w.signIn(2, rpc.PersonSignIn{Invite: by(2), NewPasskey: key(51)}); status != 401 {
		t.Errorf("the link of a removed person: %d", status)
	}
	more := rpc.Passkey{Person: s.Person.ID, Digest: inprocess.Digest(52)}
	if status, _ := w.At(rpc.RegistryID, "passkey.add", string(storage.Encode(more))); status != 403 {
		t.Errorf("a removed person adds a passkey: %d", status)
	}
	if n := passkeys(); n != 0 {
		t.Errorf("%d passkeys of a removed person were stored", n)
	}
}

// The registry has no alarm, so nothing sealed names and client secrets again: after a rotation they were lost.
func TestPeopleAndIdentityProvidersAreSealedAgainAfterARotation(t *testing.T) {
	w := newWorld(t)
	w.Create()
	old, fresh := sealed.Secret, strings.Repeat("n", 40)
	if status, _ := w.signIn(1, rpc.PersonSignIn{Identity: &ann, Roles: editors}); status != 200 {
		t.Fatalf("sign-in: %d", status)
	}
	idp := rpc.IdentityProvider{ID: strings.Repeat("a", 20), Name: "Acme"}
	secretOf := func(keys *store.Keyring, p rpc.IdentityProvider) string {
		plain, _ := keys.Open(rpc.RegistryID, p.SealedAs(), rpc.ClientSecretField, p.ClientSecret)
		return plain.Reveal()
	}
	var err error
	if idp.ClientSecret, err = w.obj.Keyring.Seal(rpc.RegistryID, idp.SealedAs(), rpc.ClientSecretField, secret.New("client-secret")); err != nil {
		t.Fatal(err)
	}
	if status, a := w.At(rpc.RegistryID, "idp.put", string(storage.Encode(idp))); status != 200 {
		t.Fatalf("%d %s", status, a.Raw)
	}
	w.obj.Keyring = sealed.Keys(t, fresh, old)
	if status, a := w.At(rpc.RegistryID, "tick", ""); status != 200 {
		t.Fatalf("%d %s", status, a.Raw)
	}
	// The next ticks write nothing and say once what does not open.
	lost := rpc.IdentityProvider{ID: strings.Repeat("b", 20), Name: "Lost"}
	lost.ClientSecret, _ = sealed.Keys(t, strings.Repeat("x", 40)).Seal(rpc.RegistryID, lost.SealedAs(), rpc.ClientSecretField, secret.New("s"))
	w.At(rpc.RegistryID, "idp.put", string(storage.Encode(lost)))
	var lines []string
	w.obj.Log = func(line string) { lines = append(lines, line) }
	st := w.Loc.Storage(rpc.RegistryID)
	written := st.Written
	for range 3 {
		w.At(rpc.RegistryID, "tick", "")
	}
	if n := st.Written - written; n != 0 || len(lines) != 1 {
		t.Errorf("%d rows written, log %q", n, lines)
	}
	w.obj.Keyring = sealed.Keys(t, fresh)
	if _, a := w.At(rpc.RegistryID, "person.list", `{"machineId":"`+mid+`"}`); !strings.Contains(a.Raw, `"name":"Ann"`) {
		t.Errorf("people: %s", a.Raw)
	}
	_, a := w.At(rpc.RegistryID, "idp.list", "")
	var list []rpc.IdentityProvider
	json.Unmarshal([]byte(a.Get("data").Raw), &list)
	if len(list) != 2 || secretOf(w.obj.Keyring, list[0]) != "client-secret" {
		t.Errorf("identity providers: %s", a.Raw)
	}
}

// A sign-in while CREDENTIALS_KEY was another one sealed an empty name in place of the stored one.
func TestSignInWithAnotherKeyKeepsTheName(t *testing.T) {
	w := newWorld(t)
	w.invite(1, rpc.InviteCreate{Role: people.Member, By: "operator"})
	_, s := w.signIn(1, rpc.PersonSignIn{Invite: by(1), NewToken: inprocess.Digest(1), Name: "Ann"})
	right := w.obj.Keyring
	w.obj.Keyring = sealed.Keys(t, strings.Repeat("w", 40))
	if status, s := w.signIn(2, rpc.PersonSignIn{Token: inprocess.Digest(1)}); status != 200 || s.Person.Name != "" {
		t.Fatalf("with another key: %d %+v", status, s)
	}
	w.obj.Keyring = right
	if _, a := w.At(rpc.RegistryID, "person.names", `{"ids":["`+s.Person.ID+`"]}`); a.Get(s.Person.ID).Str != "Ann" {
		t.Errorf("the name with the right key: %s", a.Raw)
	}
}
