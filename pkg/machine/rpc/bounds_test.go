package rpc

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLengthsOfKeys(t *testing.T) {
	key := func(id string) string { return "sk-" + mid + "-" + id + "-0123abcd" }
	for text, want := range map[string]bool{
		"sk-" + strings.Repeat("a", MaxKey-3):   true,
		"sk-" + strings.Repeat("a", MaxKey-2):   false,
		"sk-aaaaaaaa":                           true,
		"sk-aaaaaaa":                            false,
		"sk-AZaz09_Z":                           true,
		"sk-AZaz09@Z":                           false,
		"sk-AZaz09[Z":                           false,
		key(strings.Repeat("a", 26)):            true,
		key(strings.Repeat("z", 25)):            false,
		key(strings.Repeat("9", 64)):            true,
		key(strings.Repeat("0", 65)):            false,
		key(strings.Repeat("a", 25) + "{"):      false,
		key(strings.Repeat("a", 25) + "`"):      false,
		key(strings.Repeat("a", 25) + "/"):      false,
		key(strings.Repeat("a", 25) + ":"):      false,
		"sk-" + mid + "-" + keyID + "-0123abcf": true,
		"sk-" + mid + "-" + keyID + "-0123abcg": false,
	} {
		if _, ok := ParseKey(text); ok != want {
			t.Errorf("%.60s (%d bytes): got %v", text, len(text), ok)
		}
	}
}

// The characters of an id are uniformly distributed: bytes from 252 on are
// skipped.
func TestNewIDIsUniform(t *testing.T) {
	block := make([]byte, 64)
	copy(block, []byte{0, 35, 36, 251, 252, 255, 26})
	if id, err := NewID(bytes.NewReader(block), 5); err != nil || id != "a9a90" {
		t.Errorf("got %q, %v", id, err)
	}
	failed := errors.New("no entropy")
	if _, err := NewID(iotest.ErrReader(failed), 5); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if _, _, err := MintKey(iotest.ErrReader(failed), keySecret, mid); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

func TestFormsOfIDs(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a": true, "Z-_9": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a.b": false, "a/b": false, "é": false,
	} {
		if IsRowID(s) != want {
			t.Errorf("row id %q: got %v", s, !want)
		}
	}
	for s, want := range map[string]bool{mid: true, mid[1:]: false, mid + "a": false, strings.ToUpper(mid): false, "": false} {
		if IsMachineID(s) != want {
			t.Errorf("machine id %q: got %v", s, !want)
		}
	}
	digest := KeyDigest("sk-aaaaaaaa")
	for s, want := range map[string]bool{digest: true, digest[1:]: false, digest + "0": false, strings.ToUpper(digest): false, digest[1:] + "g": false} {
		if IsDigest(s) != want {
			t.Errorf("digest %q: got %v", s, !want)
		}
	}
	if !IsLowerAlphanumeric("az09", 4) || IsLowerAlphanumeric("az09", 3) || IsLowerAlphanumeric("aZ09", 4) {
		t.Error("lower-case letters and digits are not recognized")
	}
	if id := MachineIDOf(sha256.Sum256([]byte("a"))); !IsMachineID(id) || id != MachineIDOf(sha256.Sum256([]byte("a"))) || id == MachineIDOf(sha256.Sum256([]byte("b"))) {
		t.Errorf("got %q", id)
	}
}

func TestLastFourOfLongSecretsOnly(t *testing.T) {
	if got := Last4(strings.Repeat("a", 16) + "wxyz"); got != "wxyz" {
		t.Errorf("20 characters: got %q", got)
	}
	if got := Last4(strings.Repeat("a", 15) + "wxyz"); got != "" {
		t.Errorf("19 characters: got %q", got)
	}
}

func TestImportedKeyKeepsIDOfItsForm(t *testing.T) {
	for text, want := range map[string]string{
		"sk-" + mid + "-" + keyID + "-0123abcd":                   keyID,
		"sk-" + mid + "-" + keyID + "-another-check":              "",
		"sk-" + mid + "-" + keyID[1:] + "-0123abcd":               "",
		"sk-" + mid + "-" + strings.Repeat("a", 64) + "-0123abcd": strings.Repeat("a", 64),
		"sk-" + mid + "-" + strings.Repeat("a", 65) + "-0123abcd": "",
		"pk-" + mid + "-" + keyID + "-0123abcd":                   "",
		"sk-oldkey0123456789":                                     "", "anything": "",
	} {
		k := ImportedKey(text)
		if want == "" {
			want = "k" + KeyDigest(text)[:24]
		}
		if k.ID != want || k.Digest != KeyDigest(text) || k.Last4 != Last4(text) || !IsRowID(k.ID) {
			t.Errorf("%s: got %+v, want the id %s", text, k, want)
		}
	}
}

func TestReadFailureReturnsErrorOfAnswer(t *testing.T) {
	for _, tt := range []struct {
		status int
		answer string
		want   int
		code   string
	}{
		{409, `{"error":{"message":"m","type":"t","code":"c","param":"p","retryAfterMs":1500}}`, 409, "c"},
		{400, `{"error":{"message":"m"}}`, 400, ""},
		{599, `{"error":{"message":"m"}}`, 599, ""},
		{399, `{"error":{"message":"m"}}`, 503, "unavailable"},
		{600, `{"error":{"message":"m"}}`, 503, "unavailable"},
		{404, `{"error":{}}`, 503, "unavailable"},
		{404, `not JSON`, 503, "unavailable"},
	} {
		e := ReadFailure(tt.status, []byte(tt.answer))
		if e.Status != tt.want || e.Code != tt.code {
			t.Errorf("%d %s: got %d %s", tt.status, tt.answer, e.Status, e.Code)
		}
		if tt.want == 409 && (e.RetryAfter.Milliseconds() != 1500 || e.Param != "p" || e.Type != "t" || e.Message != "m" || FailureOf(e).Error.RetryAfterMs != 1500) {
			t.Errorf("got %+v", e)
		}
	}
}
