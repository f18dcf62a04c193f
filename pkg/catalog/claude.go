package catalog

import "strings"

// ClaudePrefix begins the names under which Claude Code shows models of any
// vendor: its discovery ignores names that do not begin with "claude" or
// "anthropic" (docs/reference/clients.md, 1.4).
const ClaudePrefix = "claude-weir/"

// PlainName returns a model's name without ClaudePrefix.
func PlainName(name string) string {
	for strings.HasPrefix(name, ClaudePrefix) {
		name = name[len(ClaudePrefix):]
	}
	return name
}

// Discoverable reports whether the discovery of every version of Claude Code
// shows a name.
func Discoverable(name string) bool {
	for _, head := range [...]string{"claude", "anthropic"} {
		if len(name) >= len(head) && strings.EqualFold(name[:len(head)], head) {
			return true
		}
	}
	return false
}
