package words

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestLists(t *testing.T) {
	for list, want := range map[string]bool{"": false, "a": true, "b a": true, "ab ba": false, "b": false} {
		if got := Has(list, "a"); got != want {
			t.Errorf("%q has a: %v", list, got)
		}
	}
	for name, want := range map[string]string{"a": "x|y", "b": "", "c": "z=1", "d": ""} {
		if got := Value("a=x|y b= c=z=1", name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestOneOfPassesOverWhatIsNoText(t *testing.T) {
	v := gjson.Parse(`{"a":1,"b":" ","c":{"d":"x"},"e":null}`)
	for paths, want := range map[string]string{"a|b|c.d": "x", "e|a": "", "": "", "c": ""} {
		if got := OneOf(v, paths); got != want {
			t.Errorf("%s: got %q, want %q", paths, got, want)
		}
	}
}

func TestNumbersStayAsTheyAreWritten(t *testing.T) {
	for in, want := range map[string]string{"0.910": "0.910", "-1e3": "-1e3", `"1"`: "", "1e999": "", "null": ""} {
		if got := Number(gjson.Parse(`{"a":`+in+`,"":1}`), "a"); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestNoPathIsNothing(t *testing.T) {
	if v := gjson.Parse(`{"":1}`); Number(v, "") != "" || OneOf(v, "") != "" {
		t.Error("a field without a name was read")
	}
}

func TestWriting(t *testing.T) {
	got := string(Fill([]byte("x"), `{"a":$,"b":$,"c":#,"d":#}`, "x\"$#\n", "", "", List([]string{"1", "é"})))
	if want := `x{"a":"x\"$#\n","b":null,"c":null,"d":["1","é"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if List(nil) != "" || Quote("a") != `"a"` {
		t.Error("an empty list is left out, a text is quoted")
	}
}

func TestEachIgnoresScalars(t *testing.T) {
	for in, want := range map[string]int{`[1,null]`: 2, `{"a":1}`: 1, `null`: 0, `"a"`: 0, `1`: 0, `[]`: 0, ``: 0} {
		n := 0
		Each(gjson.Parse(in), func(_, _ gjson.Result) bool { n++; return true })
		if n != want {
			t.Errorf("%s: %d elements, want %d", in, n, want)
		}
	}
}
