package llm_test

import (
	"strings"
	"testing"

	"weir/pkg/llm"
)

const (
	textChunk  = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\n"
	usageChunk = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n"
	doneChunk  = "data: [DONE]\n\n"
)

// Only the chunk that is nothing but the usage is removed, however the stream is split.
func TestUsageFilterRemovesTheExtraChunk(t *testing.T) {
	filtered := "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n"
	with := "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3}}\n\n"
	tests := []struct{ name, in, want string }{
		{"at the end", textChunk + usageChunk + doneChunk, textChunk + doneChunk},
		{"twice", usageChunk + textChunk + usageChunk + doneChunk, textChunk + doneChunk},
		{"CRLF", strings.ReplaceAll(textChunk+usageChunk+doneChunk, "\n", "\r\n"), strings.ReplaceAll(textChunk+doneChunk, "\n", "\r\n")},
		{"usage with a choice", textChunk + with + doneChunk, textChunk + with + doneChunk},
		{"no usage", filtered + textChunk + doneChunk, filtered + textChunk + doneChunk},
		{"comments and other fields", ": x\n\nid: 1\n" + textChunk, ": x\n\nid: 1\n" + textChunk},
		{"cut within it", textChunk + usageChunk[:30], textChunk + usageChunk[:30]},
		{"not JSON", "data: {\"choices\":[],\"usage\":{}\n\n", "data: {\"choices\":[],\"usage\":{}\n\n"},
		{"a long line", "data: " + strings.Repeat("x", 200<<10) + "\n\n" + usageChunk, "data: " + strings.Repeat("x", 200<<10) + "\n\n"},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 5, 64, len(tt.in)} {
			if size == 1 && len(tt.in) > 1<<16 {
				continue
			}
			var f llm.UsageFilter
			var out []byte
			for rest := tt.in; rest != ""; {
				n := min(size, len(rest))
				out = f.Push([]byte(rest[:n]), out)
				rest = rest[n:]
			}
			if out = f.End(out); string(out) != tt.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", tt.name, size, out, tt.want)
			}
		}
	}
}

// The filter passes every byte but those of removed lines, in the same memory for every
// length.
func FuzzUsageFilter(f *testing.F) {
	f.Add([]byte(textChunk+usageChunk+doneChunk), 7)
	f.Add([]byte("data: {}\r\rdata: x\r"), 3)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		if size < 1 {
			return
		}
		var split, whole llm.UsageFilter
		var out []byte
		for rest := in; len(rest) > 0; {
			n := min(size, len(rest))
			out = split.Push(rest[:n], out)
			rest = rest[n:]
		}
		out = split.End(out)
		if len(out) > len(in) || !strings.Contains(string(in), "usage") && string(out) != string(in) {
			t.Fatalf("%q from %q", out, in)
		}
		if all := whole.End(whole.Push(in, nil)); !strings.Contains(string(in), "\r") && len(in) < 1<<16 && string(all) != string(out) {
			t.Fatalf("whole %q, split %q", all, out)
		}
	})
}
