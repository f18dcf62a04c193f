package auth

import (
	"context"
	"strings"
	"testing"

	"weir/internal/testgw/sealed"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

const providersSecret = "ek_0123456789abcdef"

// newClientSecret returns the secret of a key of mid that is valid for a minute.
func newClientSecret(keyID string) *ClientSecret {
	return &ClientSecret{KeyID: keyID, ConnectionID: "c1", Asked: "voice", Model: "openai/gpt-realtime", ExpiresAt: now.Unix() + 60, Value: secret.New(providersSecret)}
}

func sealSecret(t *testing.T, k *keys, machine string, s *ClientSecret) string {
	t.Helper()
	text, err := k.auth.SealClientSecret(machine, s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keyID returns the id of the key of mid that a text is.
// keyID returns the id of the record of a key, "none" without one.
func keyID(k *keys, text string) string {
	for _, m := range k.have {
		for i := range m.Keys {
			if m.Keys[i].Digest == rpc.KeyDigest(text) {
				return m.Keys[i].ID
			}
		}
	}
	return "none"
}

func withVault(t *testing.T) *keys {
	k := newKeys(t)
	k.auth.Vault = sealed.Keys(t)
	return k
}

func TestClientSecretCountsAsItsKey(t *testing.T) {
	k := withVault(t)
	text := sealSecret(t, k, mid, newClientSecret(keyID(k, k.data)))
	if !strings.HasPrefix(text, "ek_"+mid+"_") || strings.Contains(text, providersSecret) {
		t.Fatalf("got %s", text)
	}
	for _, path := range []string{"", mid, other} { // the machine of a credential overrides that of the path
		c, err := k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(text)}, path)
		if got := outcome(c, err); got != mid {
			t.Fatalf("path %q: got %s", path, got)
		}
		s := c.ClientSecret
		if c.Key == nil || c.Key.ID != keyID(k, k.data) || s.ConnectionID != "c1" || s.Model != "openai/gpt-realtime" || s.Asked != "voice" || s.Value.Reveal() != providersSecret {
			t.Errorf("path %q: got %+v of %+v", path, s, c.Key)
		}
	}
	for _, call := range []func(context.Context, *httpmsg.Request, string) (*Call, error){k.auth.Data, k.auth.List, k.auth.Manage, k.auth.Operator} {
		if got := outcome(call(context.Background(), &httpmsg.Request{Header: bearer(text)}, mid)); got != "401" {
			t.Errorf("another route admits it: %s", got)
		}
	}
	if got := outcome(k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(k.data)}, "")); got != mid {
		t.Errorf("with a key: %s", got)
	}
}

// A client secret ends with the text of the key that created it.
func TestClientSecretEndsWithTheTextOfItsKey(t *testing.T) {
	k := withVault(t)
	delete(k.newer, mid)
	record := &k.have[mid].Keys[0]
	secret := newClientSecret(record.ID)
	digest := Digest(k.data)
	secret.KeyDigest = digest[:]
	text := sealSecret(t, k, mid, secret)
	admitted := func() string {
		return outcome(k.auth.Realtime(t.Context(), &httpmsg.Request{Header: bearer(text)}, ""))
	}
	if got := admitted(); got != mid {
		t.Errorf("before: got %s", got)
	}
	replaced := record.Digest
	record.Digest, record.Earlier = strings.Repeat("0", 64), &store.EarlierKey{Digest: replaced, Until: now.UnixMilli() + 1}
	if got := admitted(); got != mid {
		t.Errorf("within the overlap of a rotation: got %s", got)
	}
	record.Earlier.Until--
	if got := admitted(); got != "401" {
		t.Errorf("after it: got %s", got)
	}
	record.PausedAt, record.Earlier, record.Digest = 1, nil, replaced
	if got := admitted(); got != "401" {
		t.Errorf("paused: got %s", got)
	}
}

func TestInvalidClientSecretIsRefusedUnread(t *testing.T) {
	k := withVault(t)
	valid := newClientSecret(keyID(k, k.data))
	text := sealSecret(t, k, mid, valid)
	expired, elsewhere := *valid, withVault(t)
	expired.ExpiresAt = now.Unix()
	elsewhere.auth.Vault = sealed.Keys(t, strings.Repeat("x", 40))
	// A secret of an account of the machine is no client secret.
	account, err := k.auth.Vault.Seal(mid, "c1", store.APIKey, secret.New(`{"k":"","c":"c1","e":9999999999,"v":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	long := secret.New(`{"k":"","c":"c1","e":9999999999,"v":"x"}` + strings.Repeat(" ", maxClientSecret))
	tooLong, err := k.auth.Vault.Seal(mid, clientSecretOwner, clientSecretField, long)
	if err != nil {
		t.Fatal(err)
	}
	for name, forged := range map[string]string{
		"sealed, but too long":     "ek_" + mid + "_" + string(tooLong),
		"sealed for no machine":    sealSecret(t, k, "nowhere", valid),
		"a provider's":             providersSecret,
		"empty":                    "ek_",
		"no seal":                  "ek_" + mid + "_",
		"of no machine":            "ek__" + strings.TrimPrefix(text, "ek_"+mid+"_"),
		"of another machine":       strings.Replace(text, mid, other, 1),
		"of another gateway":       sealSecret(t, elsewhere, mid, valid),
		"expired":                  sealSecret(t, k, mid, &expired),
		"of an account":            "ek_" + mid + "_" + string(account),
		"cut":                      text[:len(text)-1],
		"with more after it":       text + "A",
		"longer than any":          text + strings.Repeat("A", maxClientSecret),
		"in which one bit differs": text[:60] + string(text[60]^1) + text[61:],
	} {
		k.gets, k.forced = nil, 0
		if got := outcome(k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(forged)}, mid)); got != "401" || len(k.gets) > 0 || k.forced > 0 {
			t.Errorf("%s: got %s after %d look-ups of machines", name, got, len(k.gets)+k.forced)
		}
	}
	for i := range text { // no byte of it may differ
		changed := text[:i] + string('A'+(text[i]-'A'+1)%26) + text[i+1:]
		if changed == text {
			continue
		}
		if got := outcome(k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(changed)}, mid)); got != "401" {
			t.Fatalf("byte %d changed: got %s", i, got)
		}
	}
}

func TestClientSecretEndsWithItsKey(t *testing.T) {
	k := withVault(t)
	for name, tt := range map[string]struct{ key, want string }{
		"revoked":         {keyID(k, k.revoked), "401"},
		"expired":         {keyID(k, k.expired), "401"},
		"without scope":   {keyID(k, k.manage), "401"},
		"removed":         {keyID(k, k.unknown), "401"},
		"of another":      {keyID(k, k.foreign), "401"},
		"made lately":     {"fresh", mid},
		"none, but it is": {"", "401"},
	} {
		if got := outcome(k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(sealSecret(t, k, mid, newClientSecret(tt.key)))}, "")); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	if got := outcome(k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(sealSecret(t, k, "nomachine0123456", newClientSecret("x")))}, "")); got != "401" {
		t.Errorf("of a machine that was removed: got %s", got)
	}
	k.auth.RequireKey = false
	if got := outcome(k.auth.Realtime(context.Background(), &httpmsg.Request{Header: bearer(sealSecret(t, k, mid, newClientSecret("")))}, "")); got != mid {
		t.Errorf("without a key where none is required: got %s", got)
	}
}

func FuzzClientSecret(f *testing.F) {
	a := Authenticator{Vault: sealed.Keys(f)}
	for _, s := range []string{"ek_", "ek_" + mid + "_v1.01234567.AAAA", "ek_" + mid, "ek__v1.", "ek_" + mid + "_" + mid + "_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, ok := a.openClientSecret(text); ok {
			t.Errorf("%q opens", text)
		}
	})
}

// The longest client secret that is created is accepted.
func TestClientSecretIsBounded(t *testing.T) {
	k := withVault(t)
	longest := 0
	for n := maxClientSecret / 2; n < maxClientSecret; n++ {
		s := newClientSecret(keyID(k, k.data))
		s.Asked = strings.Repeat("a", n)
		text, err := k.auth.SealClientSecret(mid, s)
		if err != nil {
			break
		}
		longest = len(text)
		if longest < maxClientSecret-4 {
			continue
		}
		if got := outcome(k.auth.Realtime(t.Context(), &httpmsg.Request{Header: bearer(text)}, "")); got != mid {
			t.Errorf("%d bytes: got %s", longest, got)
		}
	}
	if longest != maxClientSecret {
		t.Errorf("the longest has %d bytes, want %d", longest, maxClientSecret)
	}
}
