package jsonscan

import (
	"strings"
	"testing"
)

func TestValidBoundsDepth(t *testing.T) {
	nested := func(n int) string {
		return `{"error":{"message":"x","a":` + strings.Repeat(`{"a":[`, n/2) + "1" + strings.Repeat("]}", n/2) + "}}"
	}
	for _, tt := range []struct {
		name, doc string
		want      bool
	}{
		{"plain", `{"a":[1,"b",null]}`, true},
		{"as deep as is read", nested(MaxDepth - 2), true},
		{"deeper", nested(MaxDepth), false},
		{"30,000 deep", nested(30_000), false},
		{"never closed", strings.Repeat("[", 60_000), false},
		{"many side by side", "[" + strings.Repeat("[],", 50_000) + "{}]", true},
		{"brackets in a text", `["` + strings.Repeat(`[\"{`, 10_000) + `"]`, true},
		{"a text that ends with a backslash", `["\\",` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "]", false},
		{"no JSON", "<html>", false},
		{"nothing", "", false},
	} {
		if got := Valid([]byte(tt.doc)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
