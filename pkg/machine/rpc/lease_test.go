package rpc

import (
	"crypto/rand"
	"strings"
	"testing"
)

func TestLeaseNamesItsMachine(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	const machine = "abcdefghij012345"
	text, err := MintLease(rand.Reader, secret, machine)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := LeaseMachine(secret, text); !ok || got != machine {
		t.Errorf("%s: got %q, %v", text, got, ok)
	}
	key, _, err := MintKey(rand.Reader, secret, machine)
	if err != nil {
		t.Fatal(err)
	}
	last := "0"
	if strings.HasSuffix(text, "0") {
		last = "1"
	}
	for _, bad := range []string{
		"", "setup-", key, "setup-" + strings.TrimPrefix(key, "sk-"), text + "0", text[:len(text)-1], text[:len(text)-1] + last, strings.ToUpper(text),
		strings.Replace(text, machine, "abcdefghij012346", 1), "sk-" + strings.TrimPrefix(text, "setup-"), text + "-x", strings.Repeat("a", MaxKey+1),
	} {
		if _, ok := LeaseMachine(secret, bad); ok {
			t.Errorf("%q is a lease", bad)
		}
	}
	if _, ok := LeaseMachine([]byte(strings.Repeat("t", 32)), text); ok {
		t.Error("a lease of another gateway is accepted")
	}
	if k, ok := ParseKey("sk-" + strings.TrimPrefix(text, "setup-")); ok && k.CheckOK(secret) {
		t.Error("a lease has the check of a key")
	}
}

func FuzzLeaseMachine(f *testing.F) {
	secret := []byte(strings.Repeat("s", 32))
	text, err := MintLease(rand.Reader, secret, "abcdefghij012345")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("setup-abcdefghij012345-abcdefghijklmnopqrstuvwxyz-01234567")
	f.Add("setup---")
	f.Fuzz(func(t *testing.T, s string) {
		if machine, ok := LeaseMachine(secret, s); ok && (!IsMachineID(machine) || !strings.HasPrefix(s, "setup-"+machine+"-")) {
			t.Errorf("%q: got %q", s, machine)
		}
	})
}
