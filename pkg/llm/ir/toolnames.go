package ir

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// plainSpace is the namespace whose tools are called by their names alone.
const plainSpace = "functions"

// namer chooses a name that the upstream accepts for each tool: stable across
// requests, and unique within a request.
type namer struct {
	ToolRules
	taken  map[string]bool
	names  map[string]string // by identity
	byName map[string]string // by the name within its namespace, "" for several
}

// ToolRules are a dialect's rules for tools.
type ToolRules struct {
	MaxName     int  // maximum length of a name in characters
	LetterFirst bool // a name begins with a letter or an underscore
}

// identity returns a unique key of a tool. Names do not contain NUL.
func identity(space, name string, built Builtin) string {
	if built != 0 {
		return "\x00" + BuiltinNames[built]
	}
	if space == "" || space == plainSpace {
		return name
	}
	return space + "\x00" + name
}

// fits reports whether the upstream accepts a name.
func (n *namer) fits(name string) bool {
	if len(name) > n.MaxName || n.LetterFirst && name != "" && !IsLetter(name[0]) && name[0] != '_' {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !nameByte(name[i]) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool { return IsLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' }

// reserve registers a tool that keeps its name.
func (n *namer) reserve(name string) {
	n.taken[name], n.names[name] = true, name
}

// name returns the name of a tool at the upstream.
func (n *namer) name(space, name string, built Builtin) string {
	id := identity(space, name, built)
	if got, ok := n.names[id]; ok {
		return got
	}
	if got := n.byName[id]; got != "" {
		return got // a call without its namespace
	}
	want := name
	if id != name && built == 0 {
		if want = space + name; !strings.HasSuffix(space, "_") {
			want = space + "__" + name
		}
	}
	if !n.fits(want) || n.taken[want] {
		want = n.shorten(want, id)
	}
	n.taken[want], n.names[id] = true, want
	if space != "" {
		if _, several := n.byName[name]; several {
			n.byName[name] = ""
		} else {
			n.byName[name] = want
		}
	}
	return want
}

// shorten inserts a hash of the tool's identity into a name, and keeps its end,
// which is the most descriptive part.
func (n *namer) shorten(name, id string) string {
	const hashed, head = 9, 22
	b := make([]byte, 0, len(name)+1)
	if n.LetterFirst && name != "" && !IsLetter(name[0]) && name[0] != '_' {
		b = append(b, '_')
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; nameByte(c) {
			b = append(b, c)
		} else {
			b = append(b, '_')
		}
	}
	start, end := string(b), ""
	if length := n.MaxName - hashed; len(b) > length {
		start, end = string(b[:head]), "_"+string(b[len(b)-(length-head-1):])
	}
	for try := 0; ; try++ {
		if short := start + "_" + digest(id + strings.Repeat("\x00", try))[:hashed-1] + end; !n.taken[short] {
			return short
		}
	}
}

// digest returns the SHA-256 of a text in hexadecimal.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
