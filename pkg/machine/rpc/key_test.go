package rpc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

var keySecret = []byte("0123456789abcdef0123456789abcdef")

const (
	mid   = "abcdefgh01234567"
	keyID = "abcdefghijklmnopqrstuvwxyz"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("a", 600)
	for s, want := range map[string]string{
		"sk-" + mid + "-" + keyID + "-0123abcd":           mid,
		"sk-" + mid + "-" + keyID + "0123456789-0123abcd": mid,
		"sk-abcdefgh":             "old",
		"sk-ABC_def0123456789":    "old",
		"":                        "no",
		"sk-":                     "no",
		"sk-short":                "no",
		"pk-abcdefgh":             "no",
		"SK-abcdefgh":             "no",
		"sk-" + mid + "-" + keyID: "no",
		"sk-" + mid + "-" + keyID[1:] + "-0123abcd":              "no",
		"sk-" + mid[1:] + "-" + keyID + "-0123abcd":              "no",
		"sk-" + mid + "a-" + keyID + "-0123abcd":                 "no",
		"sk-" + mid + "-" + keyID + "-0123ABCD":                  "no",
		"sk-" + mid + "-" + keyID + "-0123abc":                   "no",
		"sk-" + mid + "-" + keyID + "-0123abcd-x":                "no",
		"sk-" + strings.ToUpper(mid) + "-" + keyID + "-0123abcd": "no",
		"sk-" + mid + "-" + strings.ToUpper(keyID) + "-0123abcd": "no",
		"sk-" + mid + "-" + keyID + "-0123abcd ":                 "no",
		"sk-../../../machine-" + keyID + "-0123abcd":             "no",
		"sk-' OR 1=1--":   "no",
		"sk-abcdefgh\x00": "no",
		"sk-abcdéfgh":     "no",
		"sk-" + long:      "no",
		"sk-" + mid + "-" + strings.Repeat("a", 65) + "-" + "0123abcd": "no",
	} {
		k, ok := ParseKey(s)
		got := k.MachineID
		switch {
		case !ok:
			got = "no"
		case k.Old():
			got = "old"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestMintedKeyCanBeParsed(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		id, err := NewMachineID(rand.Reader)
		if err != nil || !IsMachineID(id) {
			t.Fatalf("machine id %q, %v", id, err)
		}
		s, k, err := MintKey(rand.Reader, keySecret, id)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := ParseKey(s)
		if !ok || !IsMinted(k.ID) || k.Last4 != s[len(s)-4:] || p.MachineID != id || !p.CheckOK(keySecret) || seen[s] {
			t.Fatalf("minted %q, parsed %+v", s, p)
		}
		if before := ImportedKey(s); NamesKey(&k, keySecret, id) || !NamesKey(&before, keySecret, id) || NamesKey(&before, keySecret, mid) {
			t.Fatalf("whether the id %s or %s is a part of %s is wrong", k.ID, before.ID, s)
		}
		if strings.Contains(s, k.ID) {
			t.Fatalf("the id %s, which is shown, is a part of the key", k.ID)
		}
		if p.CheckOK([]byte("another secret of 32 bytes......")) {
			t.Fatal("the check does not depend on the secret")
		}
		if p.Digest != sha256.Sum256([]byte(s)) || hex.EncodeToString(p.Digest[:]) != k.Digest {
			t.Fatal("the digest is SHA-256 of the whole key")
		}
		seen[s] = true
	}
	if _, _, err := MintKey(rand.Reader, keySecret, "short"); err == nil {
		t.Error("minted a key for an invalid machineId")
	}
}

// Issued keys have this check, so it must never change.
func TestCheckIsStable(t *testing.T) {
	// printf '%s' abcdefgh01234567abcdefghijklmnopqrstuvwxyz | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
	if got, want := check(keySecret, mid, keyID), "bc1bcdcf"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A key of a seed document may have been any text before.
func TestParseSeededKey(t *testing.T) {
	for s, want := range map[string]bool{
		"my-own-gateway-key": true, "sk-short1": true, "sk-with.dots": true, "two words": true, "12345678": true, "sk-abcdefgh": true,
		"sk-" + mid + "-" + keyID + "-0123abcd": true, strings.Repeat("a", MaxKey): true,
		"": false, "1234567": false, " 12345678": false, "12345678 ": false, "1234567é": false, "1234567\x00": false, strings.Repeat("a", MaxKey+1): false,
	} {
		k, ok := ParseSeededKey(s)
		if ok != want || ok && (k.Old() != (k.ID == "") || k.Digest != sha256.Sum256([]byte(s))) {
			t.Errorf("%.40q: got %v %+v", s, ok, k)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("sk-" + mid + "-" + keyID + "-0123abcd")
	f.Add("sk-abcdefgh")
	f.Fuzz(func(t *testing.T, s string) {
		k, ok := ParseKey(s)
		if !ok {
			return
		}
		if k.Old() {
			if k.ID != "" || k.Check != "" || strings.Contains(s[3:], "-") {
				t.Fatalf("%q: old key with parts", s)
			}
			return
		}
		// Only 16 of [a-z0-9] become a part of a storage key.
		if !IsMachineID(k.MachineID) || "sk-"+k.MachineID+"-"+k.ID+"-"+k.Check != s || len(s) > MaxKey {
			t.Fatalf("%q: parsed wrong: %+v", s, k)
		}
	})
}
