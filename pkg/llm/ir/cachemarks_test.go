package ir

import (
	"strings"
	"testing"
)

// A one-shot call is not marked where its text would be cached for nothing.
func TestMarksOfAFirstCall(t *testing.T) {
	text := func(role Role, s string) Message {
		return Message{Role: role, Blocks: []Block{{Kind: TextBlock, Text: s}}}
	}
	first := []Message{text(RoleSystem, "Be brief."), text(RoleUser, "One")}
	later := append(append([]Message{}, first...), text(RoleAssistant, "1"), text(RoleUser, "Two"))
	for _, tt := range []struct {
		name string
		q    Request
		on   string
		auto string
	}{
		{"first call", Request{Messages: first}, "system", ""},
		{"first call with tools", Request{Messages: first, Tools: []Tool{{Name: "t"}}}, "tools system user", "tools system user"},
		{"second call", Request{Messages: later}, "system user user", "system user user"},
	} {
		for isAuto, want := range map[bool]string{false: tt.on, true: tt.auto} {
			q := tt.q
			q.Messages = nil
			for _, m := range tt.q.Messages {
				q.Messages = append(q.Messages, Message{Role: m.Role, Blocks: append([]Block{}, m.Blocks...)})
			}
			q.Tools = append([]Tool{}, tt.q.Tools...)
			marks := CacheMarks{Auto: isAuto}
			q.MarkCache(&Options{CacheMarks: &marks})
			if got := strings.Join(marks.Added, " "); got != want {
				t.Errorf("%s, auto %v: marked %q, want %q", tt.name, isAuto, got, want)
			}
		}
	}
}
