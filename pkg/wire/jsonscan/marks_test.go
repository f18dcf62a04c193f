package jsonscan

import (
	"strings"
	"testing"
)

func TestMarks(t *testing.T) {
	marks := &Marks{Strings: []string{`custom"`, "weir.", "tool_use_id"}, Names: []string{"models", "fallbacks"}}
	for _, tt := range []struct {
		doc   string
		has   string // the marks, by number
		named bool
		lacks string // of the names a and b
	}{
		{`{"a":"custom","b":["custom",{"custom":1}]}`, "0", false, ""},
		{`{"a":"customs","b":"my custom","custo":1}`, "", false, ""},
		{`{"a":"weir.x.y","A":{"tool_use_id_":"weir"}}`, "12", false, "b"},
		{`{"a b":"say \"custom\"","":"w"}`, "", false, "ab"},
		{`{"c":{"a":1,"b":2,"models":3}}`, "", false, "ab"},
		{`{"\u0061":1}`, "", false, ""},
		{`{"Models":1}`, "", true, "ab"},
		{`{"model\u017f":1}`, "", true, ""},
		{"{\"FALLBAC\u212Aſ\":1}", "", true, "ab"},
		{`{"model":1,"modelss":2}`, "", false, "ab"},
		{`{` + strings.Repeat(`"c":1,`, maxMembers-1) + `"a":1}`, "", false, "b"},
		{`{` + strings.Repeat(`"c":1,`, maxMembers) + `"a":1}`, "", false, ""},
		{`["custom"]`, "0", false, "ab"},
	} {
		doc := []byte(tt.doc)
		check := func(m *Marked) {
			t.Helper()
			for i, s := range marks.Strings {
				at := 0
				if strings.ContainsRune(tt.has, rune('0'+i)) {
					at = strings.LastIndex(tt.doc, `"`+s)
				}
				if m.Last(i) != at || m.Has(i) != (at > 0) {
					t.Errorf("%s: %s at %d, want %d", doc, s, m.Last(i), at)
				}
			}
			lacks := ""
			for _, name := range []string{"a", "b"} {
				if m.Lacks(doc, name) {
					lacks += name
				}
			}
			if lacks != tt.lacks || m.Named() != tt.named {
				t.Errorf("%s: lacks %q, named %v, want %q and %v", doc, lacks, m.Named(), tt.lacks, tt.named)
			}
		}
		var m, r Marked
		if err := Mark(doc, marks, &m); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		check(&m)
		if _, err := ReadMarked(doc, marks, &r, "b"); err == nil {
			check(&r)
		} else if doc[0] == '{' {
			t.Errorf("%s: %v", doc, err)
		}
	}
	for _, doc := range []string{"", `{"a":"custom`, `{"a":"weir.`, `{"`, `{"a":"`, `{"a":"\`} {
		var m Marked
		if err := Mark([]byte(doc), marks, &m); err == nil {
			t.Errorf("%q is accepted", doc)
		}
	}
}

// Without marks everything may be in a document.
func TestNoMarks(t *testing.T) {
	var m *Marked
	if !m.Has(0) || !m.Named() || m.Lacks([]byte("{}"), "a") {
		t.Error("a missing Marked excludes something")
	}
}
