package setup

import (
	"bytes"
	"encoding/json"
	"strings"
)

// AllTexts returns the texts to copy, with placeholders: of a tool with files the
// content of each file as the script writes it where there was none.
func (t *Tool) AllTexts() []Text {
	if len(t.Files) == 0 {
		return t.Texts
	}
	var out []Text
	for i := range t.Files {
		f := &t.Files[i]
		out = append(out, Text{"In " + f.Path(), f.language(), strings.TrimSuffix(f.fresh(), "\n")})
	}
	return out
}

func (f *File) language() string {
	if f.Format == Env {
		return "text"
	}
	return string(f.Format)
}

// fresh returns the content of a file that did not exist.
func (f *File) fresh() string {
	switch f.Format {
	case JSON:
		return freshJSON(f.Edits)
	case TOML:
		return freshTOML(f.Edits)
	case YAML:
		return freshYAML(f.Edits)
	}
	var b strings.Builder
	for i := range f.Edits {
		b.WriteString(f.Edits[i].Path + "=" + f.Edits[i].Value + "\n")
	}
	return b.String()
}

// node is a JSON object with its members in order, a list, or a value.
type node struct {
	names    []string
	members  []*node
	items    []string
	literal  string
	isObject bool
}

func (n *node) member(name string) *node {
	n.isObject = true
	for i, known := range n.names {
		if known == name {
			return n.members[i]
		}
	}
	m := &node{}
	n.names, n.members = append(n.names, name), append(n.members, m)
	return m
}

func (n *node) text() string {
	switch {
	case len(n.items) > 0:
		return "[" + strings.Join(n.items, ",") + "]"
	case !n.isObject:
		return n.literal
	}
	var parts []string
	for i, name := range n.names {
		parts = append(parts, `"`+name+`":`+n.members[i].text())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func freshJSON(edits []Edit) string {
	root := &node{}
	for i := range edits {
		e := &edits[i]
		at := root
		for name := range strings.SplitSeq(e.Path, ".") {
			at = at.member(name)
		}
		if e.Op == Item {
			at.items = append(at.items, e.Value)
		} else {
			at.literal = e.Value
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(root.text()), "", "  "); err != nil {
		panic(err) // the table is tested
	}
	return b.String() + "\n"
}

func freshTOML(edits []Edit) string {
	var b strings.Builder
	table := ""
	for i := range edits {
		e := &edits[i]
		name := e.Path
		if at := strings.LastIndexByte(e.Path, '.'); at >= 0 {
			name = e.Path[at+1:]
			if e.Path[:at] != table {
				table = e.Path[:at]
				b.WriteString("\n[" + table + "]\n")
			}
		}
		b.WriteString(name + " = " + e.Value + "\n")
	}
	return b.String()
}

func freshYAML(edits []Edit) string {
	var b strings.Builder
	for i := range edits {
		e := &edits[i]
		if e.Op != Item {
			b.WriteString(e.Path + ": " + e.Value + "\n")
			continue
		}
		b.WriteString(e.Path + ":\n  - " + strings.ReplaceAll(e.Value, "\n", "\n    ") + "\n")
	}
	return b.String()
}
