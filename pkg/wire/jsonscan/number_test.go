package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Numbers are read by words of 8 bytes: every form at every offset of them, alone and
// as the elements of an array.
func TestNumbersAtEveryOffset(t *testing.T) {
	forms := []string{
		"0", "-0", "01", "-", "7.", ".5", "1.5", "-1.25e7", "2E-3", "3e+", "3e", "1e5.5", "+1", "1:", "1/2", "1f", "0x1", "1\xb9", "1\xfa1",
		"12345678", "123456789", "1234567:9", "123456789012345678.12345678901234567", "0.00000000", "-12345678.e",
	}
	for n := range 18 {
		digits := strings.Repeat("8", n)
		for _, form := range forms {
			for _, number := range []string{form, form + digits, "1" + digits + form, "1." + digits + form} {
				for _, doc := range []string{number, "[" + number + "]", "[1, " + number + ",\n          " + number + " ,3]", `{"n":` + number + `}`} {
					if got, want := valid(doc) == nil, json.Valid([]byte(doc)); got != want {
						t.Fatalf("%q: accepted %v, want %v", doc, got, want)
					}
					checkNumbers(t, []byte(doc))
				}
			}
		}
	}
}

// checkNumbers compares Numbers with encoding/json.
func checkNumbers(t *testing.T, doc []byte) {
	t.Helper()
	var list []json.Number
	if len(doc) == 0 || doc[0] != '[' || bytes.IndexByte(doc, '"') >= 0 || json.Unmarshal(doc, &list) != nil {
		return
	}
	integers := true
	for _, n := range list {
		if n == "" {
			return // null
		}
		integers = integers && !strings.ContainsAny(string(n), ".eE")
	}
	var c Cursor
	c.Reset(doc)
	if n, ints, ok := c.Numbers(); n != len(list) || ints != integers || !ok || c.End() != nil {
		t.Fatalf("%q: got %d numbers, integers %v, ok %v; want %d, %v", doc, n, ints, ok, len(list), integers)
	}
}
