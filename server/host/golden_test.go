package host

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// golden calls use with each row of a file that test/webapi/golden.mjs has written.
// The row is a JSON array whose fields use reads.
func golden(t testing.TB, name string, use func(row []json.RawMessage)) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var row []json.RawMessage
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		use(row)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

// text reads a JSON string, or {"hex"} for bytes that are not UTF-8.
func text(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	if raw[0] == '{' {
		var b struct{ Hex string }
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		return string(unhex(t, b.Hex))
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func TestDecodingMatchesWorkerd(t *testing.T) {
	asian := regexp.MustCompile(`^(gb|big5|euc|iso-2022-jp|shift_jis|sjis|windows-31j|ks_c)`)
	unmapped := regexp.MustCompile(`[\x{fffd}\x{e000}-\x{f8ff}]`)
	n, exact := 0, 0
	golden(t, "decodings.jsonl", func(row []json.RawMessage) {
		n++
		label, raw := text(t, row[0]), unhex(t, text(t, row[1]))
		got, ok := decode(label, raw)
		if ok == isNull(row[2]) {
			t.Errorf("%q, % x: got %q %v, want %s", label, raw, got, ok, row[2])
		}
		if !ok || asian.MatchString(label) && unmapped.MatchString(got) {
			return
		}
		if exact++; got != text(t, row[2]) {
			t.Errorf("%q, % x:\ngot  %q\nwant %s", label, raw, got, row[2])
		}
	})
	if n < 2000 || exact < n*2/3 {
		t.Errorf("%d rows, %d of them are compared", n, exact)
	}
}

func TestSignaturesMatchWorkerd(t *testing.T) {
	n := 0
	golden(t, "signed.jsonl", func(row []json.RawMessage) {
		n++
		got, err := signRS256(context.Background(), unhex(t, text(t, row[0])), unhex(t, text(t, row[1])))
		if (err == nil) == isNull(row[2]) || err == nil && hex.EncodeToString(got) != text(t, row[2]) {
			t.Errorf("row %d: got %x %v, want %s", n, got, err, row[2])
		}
	})
	if n < 5 {
		t.Errorf("%d rows", n)
	}
}
