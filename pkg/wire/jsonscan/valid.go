package jsonscan

import "github.com/tidwall/gjson"

// Valid reports whether b is one JSON value whose containers nest at most MaxDepth
// deep. A recursive check of deeper ones could exhaust the stack, and end the
// program for all tenants, with a few KiB of brackets.
func Valid(b []byte) bool { return shallow(b) && gjson.ValidBytes(b) }

// shallow reports whether no more than MaxDepth brackets are open at once.
func shallow(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}
