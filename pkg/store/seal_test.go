package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/wire/secret"
)

const (
	secretA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	secretB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func ring(t *testing.T, secret string) *Keyring {
	t.Helper()
	k, err := NewKeyring(secret)
	if err != nil {
		t.Fatalf("NewKeyring: %v", err)
	}
	return k
}

func seal(t *testing.T, k *Keyring, plain string) secret.Sealed {
	t.Helper()
	s, err := k.Seal("m", "c", APIKey, secret.New(plain))
	if err != nil {
		t.Fatalf("Seal: %v", err)
	}
	return s
}

func TestKeyringRefusesAWeakSecret(t *testing.T) {
	for name, secret := range map[string]string{
		"empty":         "",
		"31 bytes":      secretA[:31],
		"short second":  secretA + ",short",
		"empty second":  secretA + ",",
		"three entries": secretA + "," + secretB + "," + secretA,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewKeyring(secret); !errors.Is(err, ErrKeySecret) {
				t.Errorf("got %v, want ErrKeySecret", err)
			}
		})
	}
}

func TestSealedTextHidesAndOpens(t *testing.T) {
	k := ring(t, secretA)
	for _, plain := range []string{"", "x", "sk-live-0123456789", strings.Repeat("long ", 2000)} {
		s := seal(t, k, plain)
		if !strings.HasPrefix(string(s), "v1."+k.Current()+".") {
			t.Fatalf("got %.20s…, want the prefix v1.%s.", s, k.Current())
		}
		if len(plain) > 1 && strings.Contains(string(s), plain) {
			t.Error("sealed text shows the secret")
		}
		if seal(t, k, plain) == s {
			t.Error("two seals of one secret are equal: nonce reused")
		}
		got, err := k.Open("m", "c", APIKey, s)
		if err != nil || got.Reveal() != plain {
			t.Errorf("got %q, %v, want %q", got.Reveal(), err, plain)
		}
	}
}

func TestSealedTextOpensOnlyInItsPlace(t *testing.T) {
	k := ring(t, secretA)
	s := seal(t, k, "sk-live-0123456789")
	for name, at := range map[string][3]string{
		"other machine":    {"n", "c", APIKey},
		"other connection": {"m", "d", APIKey},
		"other field":      {"m", "c", AccessToken},
		"border moved":     {"mc", "", APIKey},
		"border moved on":  {"m", "capiKe", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := k.Open(at[0], at[1], at[2], s); !errors.Is(err, ErrOpen) || !got.IsZero() {
				t.Errorf("got %v, want ErrOpen and nothing", err)
			}
		})
	}
}

func TestEveryFlippedByteIsRefused(t *testing.T) {
	k := ring(t, secretA+","+secretB)
	s := seal(t, k, "sk-live-01234567")
	for i := range s {
		for bit := range 8 {
			b := []byte(s)
			b[i] ^= 1 << bit
			if _, err := k.Open("m", "c", APIKey, secret.Sealed(b)); !errors.Is(err, ErrOpen) {
				t.Fatalf("byte %d bit %d flipped: got %v, want ErrOpen", i, bit, err)
			}
		}
		if _, err := k.Open("m", "c", APIKey, s[:i]); !errors.Is(err, ErrOpen) {
			t.Fatalf("cut to %d bytes: got %v, want ErrOpen", i, err)
		}
		if _, err := k.Open("m", "c", APIKey, s[:i]+"\n"+s[i:]); !errors.Is(err, ErrOpen) {
			t.Fatalf("newline at %d: got %v, want ErrOpen", i, err)
		}
	}
}

func TestPlainTextIsNotOpenedAsSecret(t *testing.T) {
	k := ring(t, secretA)
	for _, s := range []secret.Sealed{"", "sk-live-0123456789", "v1.", "v1..", "v1.12345678.", secret.Sealed("v1." + k.Current() + ".")} {
		if _, err := k.Open("m", "c", APIKey, s); !errors.Is(err, ErrOpen) {
			t.Errorf("%q: got %v, want ErrOpen", s, err)
		}
	}
}

func TestTwoKeysLiveDuringARotation(t *testing.T) {
	old, both, fresh := ring(t, secretA), ring(t, secretB+","+secretA), ring(t, secretB)
	s := seal(t, old, "sk-live-0123456789")
	if got, err := both.Open("m", "c", APIKey, s); err != nil || got.Reveal() != "sk-live-0123456789" {
		t.Errorf("old seal: got %v", err)
	}
	if both.Current() != fresh.Current() || KeyID(s) != old.Current() || KeyID(s) == both.Current() {
		t.Errorf("ids: current %s, new %s, old %s", both.Current(), fresh.Current(), KeyID(s))
	}
	if s2 := seal(t, both, "x"); KeyID(s2) != fresh.Current() {
		t.Errorf("sealed with %s, want the first key %s", KeyID(s2), fresh.Current())
	}
	if _, err := fresh.Open("m", "c", APIKey, s); !errors.Is(err, ErrOpen) {
		t.Errorf("after the rotation: got %v, want ErrOpen", err)
	}
}

func TestSecretPrintsAsStars(t *testing.T) {
	s := secret.New("sk-live-0123456789")
	j, _ := json.Marshal(struct{ S secret.Secret }{s})
	for _, got := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %d %x", s, s, s, s, s, s, []secret.Secret{s}), fmt.Sprint(&s), string(j)} {
		if strings.Contains(got, "sk-live") {
			t.Errorf("shows the secret: %s", got)
		}
	}
}
