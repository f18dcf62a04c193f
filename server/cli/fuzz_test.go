package cli

import (
	"testing"
	"unicode/utf8"
)

// A file never panics, and an error is one line.
func FuzzReadFile(f *testing.F) {
	for _, s := range []string{"keys:\n- name: a\n  rpm: 5\n", "accounts: [{name: a, provider: openai, apiKey: {env: A}}]", "a: &a [*a]", "settings: {modelPrices: {a/b: 1/2}}",
		"? [a, b]\n: c", "keys: !!binary aGk=", "aliases: {a: b}\n---\nkeys: []", "\xff", "keys: {<<: *x}", "disabled: {a: [1, null]}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := readFileText([]byte(text))
		if err == nil {
			for _, s := range fileSections {
				itemsOf(values, s.name)
			}
		} else if s := err.Error(); s == "" {
			t.Error("an error without a text")
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add("a name", 10)
	f.Add("\x1b[31m", 3)
	f.Fuzz(func(t *testing.T, text string, width int) {
		cells := [][]cell{{plain(text), plain("b")}, {plain("c"), plain(text)}}
		tab := table{columns: []column{{}, {right: true}}}
		widths := fit(cells, []int{0, 0}, width%200)
		var a app
		_ = a.render(table{columns: tab.columns, rows: cells}, true)
		for _, w := range widths {
			if w < 0 || width%200 > 10 && w > width%200 {
				t.Errorf("%q in %d: %v", text, width, widths)
			}
		}
		if out := printable(text); utf8.ValidString(text) && len([]rune(out)) != len([]rune(text)) {
			t.Errorf("%q became %q", text, out)
		}
	})
}
