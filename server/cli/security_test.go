package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecurityNamesWideKeys(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{
		"keys add free", "keys add short --expires 1d", "keys add bounded --daily-max 100", "keys add paid --budget 20/month",
		"keys add of-a-tag", "budgets add tagged 1/day --tag team=a", "keys add admin --scopes manage", "keys add moves --scopes manage,export",
		"keys add guest-admin --scopes manage --expires 7d", "keys add gauge --scopes metrics", "keys add asleep", "keys pause asleep",
		"machines add second",
	} {
		w.ok(strings.Fields(line)...)
	}
	w.ok("keys", "add", "of two words", "--machine", "main")
	code, out, failed := w.remote("", "doctor", "--security")
	for _, want := range []string{
		"key free of main may spend without a limit and does not expire; weir budgets add free 20/month --key free",
		"weir budgets add 'of two words' 20/month --key 'of two words'",
		"key short of main may spend without a limit; weir budgets add short",
		"key of-a-tag of main may spend without a limit",
		"key admin of main may change everything and does not expire; weir keys set admin --expires 30d",
		"key moves of main may export all secrets and does not expire",
		" of second may spend without a limit and does not expire; weir budgets add 'Default key' 20/month --key 'Default key' --machine second",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	for _, fine := range []string{"bounded", "key paid", "guest-admin", "gauge", "asleep"} {
		if strings.Contains(out, fine) {
			t.Errorf("%q is named:\n%s", fine, out)
		}
	}
	if code != 1 || !strings.Contains(failed, "not everything is safe") {
		t.Errorf("exit %d, %s", code, failed)
	}
	if code, out, _ := w.run("", "doctor", "--security", "--machine", "main"); code != 1 || !strings.Contains(out, "the environment has ADMIN_TOKEN") || strings.Contains(out, "second") {
		t.Errorf("on the data directory: exit %d\n%s", code, out)
	}
	w.ok("budgets", "add", "all", "100/month", "--machine", "main")
	if _, out, _ := w.remote("", "doctor", "--security", "--machine", "main"); strings.Contains(out, "spend") {
		t.Errorf("with a budget of the machine:\n%s", out)
	}
}

// Before 2026-11-30 the id of a record was a part of the key.
func TestSecurityCountsKeysThatTheirIDNames(t *testing.T) {
	w := newWorld(t)
	seed := filepath.Join(w.home, "seed.json")
	names := []string{"old", "older"}
	for _, name := range names { // a key of a seed is stored as all were
		text := strings.TrimSpace(w.ok("keys", "add", name))
		w.ok("keys", "revoke", name, "--yes")
		if err := os.WriteFile(seed, []byte(`{"apiKeys":["`+text+`"]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		w.ok("import", "file", seed, "--keys")
		w.ok("keys", "set", strings.Split(text, "-")[2], "--name", name)
	}
	w.ok("budgets", "add", "all", "100/month")
	if _, out, _ := w.remote("", "doctor", "--security"); !strings.Contains(out, "all but four characters: 2 (old, older); replace each: weir keys rotate NAME\n") {
		t.Errorf("before:\n%s", out)
	}
	for _, name := range names {
		w.ok("keys", "rotate", name)
	}
	if _, out, _ := w.remote("", "doctor", "--security"); strings.Contains(out, "2026-11-30") {
		t.Errorf("after a rotation:\n%s", out)
	}
}

// A thousand keys of one kind are one line.
func TestSecurityFoldsManyWideKeys(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.ok("keys", "add", fmt.Sprint("short-", i), "--expires", "1d")
	}
	w.ok("keys", "add", "admin", "--scopes", "manage")
	_, out, _ := w.remote("", "doctor", "--security")
	if n := strings.Count(out, "\n"); strings.Count(out, "short") != 1 || n != 3 ||
		!strings.Contains(out, " may spend without a limit, like 5 others; one budget for all keys: weir budgets add all 100/month") ||
		!strings.Contains(out, "key admin may change everything") {
		t.Errorf("%d lines:\n%s", n, out)
	}
}
