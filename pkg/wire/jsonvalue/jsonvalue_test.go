package jsonvalue

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestNullIsAbsent(t *testing.T) {
	v := gjson.Parse(`{"a":null,"b":" ","c":"x","n":null,"m":1.50,"inf":1e999,"l":null,"o":{},"k":[1]}`)
	if got := Text(v, "a", "b", "missing", "c"); got != "x" {
		t.Errorf("Text: got %q, want x", got)
	}
	if got := Text(v, "a", "b"); got != "" {
		t.Errorf("Text of blank values: got %q", got)
	}
	for path, want := range map[string]string{"n": "", "m": "1.50", "inf": "", "c": "", "missing": ""} {
		if got := Number(v, path); got != want {
			t.Errorf("Number(%s): got %q, want %q", path, got, want)
		}
	}
	calls := 0
	Each(v.Get("l"), func(_, _ gjson.Result) bool { calls++; return true })
	if calls != 0 {
		t.Errorf("Each called its function %d times for null", calls)
	}
	Each(v.Get("k"), func(_, e gjson.Result) bool { calls += int(e.Num); return true })
	if calls != 1 {
		t.Errorf("Each: got %d elements, want 1", calls)
	}
	if list, ok := FirstArray(v, "l", "o", "k"); !ok || list.Raw != "[1]" {
		t.Errorf("FirstArray: got %s, %v", list.Raw, ok)
	}
	if _, ok := FirstArray(v, "l", "o"); ok {
		t.Error("FirstArray: found an array, want none")
	}
}

func TestWriter(t *testing.T) {
	var w Writer
	w.Object("")
	w.Text("a", "")
	w.Text("b", "say \"hi\"")
	w.String("c", "")
	w.Raw("d", "")
	w.Raw("e", "1.5")
	w.Array("f")
	w.Int("", 1)
	w.Object("")
	w.End('}')
	w.Text("", "x[")
	w.Text("", "y")
	w.End(']')
	w.Object("g")
	w.Int("h", -1)
	w.End('}')
	w.End('}')
	const want = `{"a":null,"b":"say \"hi\"","c":"","d":null,"e":1.5,"f":[1,{},"x[","y"],"g":{"h":-1}}`
	if string(w) != want || !gjson.ValidBytes(w) {
		t.Errorf("got  %s\nwant %s", w, want)
	}
	if got := Strings([]string{"a", "b\n"}); got != `["a","b\n"]` {
		t.Errorf("Strings: got %s", got)
	}
	if got := Strings(nil); got != "" {
		t.Errorf("Strings of an empty list: got %q", got)
	}
}
