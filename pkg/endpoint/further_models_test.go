package endpoint

import (
	"strings"
	"testing"

	"weir/pkg/routing"
	"weir/pkg/store"
)

func TestFurtherModelsOfALimitedKey(t *testing.T) {
	key := &store.Key{Models: []string{"or/a", "or/good/*"}}
	targets := []routing.Target{{Alias: "or", Model: "a"}}
	for _, tt := range []struct {
		body string
		ok   bool
	}{
		{`{"model":"or/a"}`, true},
		{`{"model":"or/a","models":["a","good/x"]}`, true},
		{`{"model":"or/a","models":["a","b"]}`, false},
		{`{"model":"or/a","models":["or/a"]}`, false}, // or/or/a at this upstream
		{`{"model":"or/a","models":"b"}`, false},
		{`{"model":"or/a","models":null,"fallbacks":null}`, true},
		{`{"model":"or/a","models":["a"],"models":["b"]}`, false},
		{`{"model":"or/a","mod\u0065ls":["b"]}`, false},
		{`{"model":"or/a","Models":["b"]}`, false},
		{`{"model":"or/a","fallbacks":["b"]}`, false},
		{`{"model":"or/a","fallbacks":[{"model":"b"}]}`, false},
		{`{"model":"or/a","fallbacks":[{"provider":"p","model":"a"}]}`, true},
		{`{"model":"or/a","fallbacks":[{"a":["b"]}]}`, false},
		{`{"model":"or/a","context_window_fallbacks":[{"a":["good/y"]}]}`, true},
		{`{"model":"or/a","providerOptions":{"gateway":{"models":["b"]}}}`, false},
		{`{"model":"or/a","metadata":{"models":["b"]}}`, true},
	} {
		if err := CheckFurtherModels(key, []byte(tt.body), targets); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.body, err)
		}
		if err := CheckFurtherModels(&store.Key{}, []byte(tt.body), targets); err != nil {
			t.Errorf("%s with a key without a list: %v", tt.body, err)
		}
	}
}

// Fallback models nest a few levels deep. Deeper lists would be read once for each
// level, so they are refused.
func TestFurtherRefusesDeepLists(t *testing.T) {
	key := &store.Key{Models: []string{"*"}}
	to := []routing.Target{{Alias: "openai"}}
	for depth, want := range map[int]bool{1: true, 4: true, 100: false} {
		body := `{"models":` + strings.Repeat("[", depth) + `"a"` + strings.Repeat("]", depth) + `}`
		if err := CheckFurtherModels(key, []byte(body), to); (err == nil) != want {
			t.Errorf("depth %d: got %v, want allowed %v", depth, err, want)
		}
	}
}
