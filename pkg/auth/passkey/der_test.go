package passkey

import (
	"bytes"
	"encoding/asn1"
	"math/big"
	"math/rand"
	"testing"
)

// asn1Signature is plainSignature by the standard library: what it reads, and writes in the same bytes.
func asn1Signature(der []byte) ([]byte, bool) {
	var v struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &v)
	if err != nil || len(rest) > 0 || v.R.Sign() <= 0 || v.S.Sign() <= 0 || v.R.BitLen() > 256 || v.S.BitLen() > 256 {
		return nil, false
	}
	if again, _ := asn1.Marshal(v); !bytes.Equal(again, der) {
		return nil, false
	}
	return append(v.R.FillBytes(make([]byte, 32)), v.S.FillBytes(make([]byte, 32))...), true
}

// Changed at random, a signature is read as by the standard library, or refused as there.
func TestSignaturesAreReadAsByASN1(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	valid := 0
	for range 200_000 {
		number := func() *big.Int { return new(big.Int).Rand(r, new(big.Int).Lsh(big.NewInt(1), uint(r.Intn(270)))) }
		der, _ := asn1.Marshal(struct{ R, S *big.Int }{number(), number()})
		switch r.Intn(5) {
		case 0:
			der[r.Intn(len(der))] = byte(r.Int())
		case 1:
			der = der[:r.Intn(len(der))]
		case 2:
			der = append(der, 0)
		case 3:
			at := 2 + r.Intn(len(der)-2)
			der = append(der[:at:at], append([]byte{byte(r.Intn(2))}, der[at:]...)...)
			der[1]++
		}
		got, ok := plainSignature(der)
		want, wantOK := asn1Signature(der)
		if ok != wantOK || !bytes.Equal(got, want) {
			t.Fatalf("%x: got %x %v, want %x %v", der, got, ok, want, wantOK)
		}
		if ok {
			valid++
		}
	}
	if valid < 20_000 {
		t.Errorf("only %d are valid", valid)
	}
}
