package manage

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"testing"
)

// The keys are those that WebCrypto derives, which earlier exports are encrypted with.
func TestKeysOfExportsAreThoseOfWebCrypto(t *testing.T) {
	nonce := make([]byte, 12)
	for _, tt := range []struct {
		pass, salt string
		iterations int
		key        string
	}{
		{"password", "salt", 1, "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b"},
		{"a long enough passphrase", "0123456789abcdef", 1000, "1c129989802f2f39c6eaf57e91fd9bf4d584883c5202c0bed2b35c3ab80ce551"},
		{"pässwörd \U0001f600", "\x00\xff\x00\xff", 4096, "d9877790423ba252e8ecc1f045b1f954f1820a1e29a1b6cb2a7159735f846f88"},
		{"", "salt", 2, "62384466264daadc4144018c6bd864648272b34da8980d31521ffcce92ae003b"},
	} {
		got, err := Sealer(tt.pass, []byte(tt.salt), tt.iterations)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := hex.DecodeString(tt.key)
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		want, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Seal(nil, nonce, []byte("text"), nil), want.Seal(nil, nonce, []byte("text"), nil)) {
			t.Errorf("%q is another key", tt.pass)
		}
	}
}
