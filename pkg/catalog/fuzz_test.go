package catalog

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

// A text is refused, or is a price that stays the same when it is read again and costs a
// finite amount that is not negative.
func FuzzParsePrice(f *testing.F) {
	for _, text := range []string{"4/20/0.4/5", "1//0.1", "image=0.04 minute=0.006", "1/2 >200000:2/4", "0", "-1/2", "1e9", "NaN/1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrice(text)
		if err != nil {
			return
		}
		if again, err := ParsePrice(string(p)); err != nil || again != p {
			t.Errorf("%q is %q, then %q: %v", text, p, again, err)
		}
		rates, _ := p.Rates(Terms{})
		for u, x := range rates {
			if x < 0 && x != -1 || math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%q: %v for %d", text, x, u)
			}
		}
	})
}

// Any text that is stored as refreshed prices is read as encoding/json would write it.
func FuzzReadUpdate(f *testing.F) {
	f.Add([]byte(`{"source":"s","signed":true,"issuedAt":1,"fetchedAt":2,"rows":3,"priceText":"a\tb","limitText":"c"}`))
	f.Add([]byte(`{"rows":1e99,"issuedAt":"x","error":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, ok := ReadUpdate(raw)
		if !ok {
			return
		}
		text, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		if again, ok := ReadUpdate(text); !ok || !reflect.DeepEqual(again, u) {
			t.Errorf("%+v becomes %+v", u, again)
		}
	})
}
