package routing

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"weir/pkg/wire/httpmsg"
)

type body struct {
	name, value string
	opening     string
}

func (b body) SessionField() (name, value string) { return b.name, b.value }
func (b body) Opening() (Digest, bool)            { return DigestOf(b.opening), b.opening != "" }

func TestSessionIsRecognized(t *testing.T) {
	all := body{"prompt_cache_key", "k", "hello"}
	for _, tt := range []struct {
		header, by string
		body       Conversation
		same       string // a text with the same id, "" for none
	}{
		{"x-session-id: s; session_id: other", "x-session-id", all, "s"},
		{"x-session-affinity: s", "x-session-affinity", all, "s"},
		{"x-claude-code-session-id: s", "x-claude-code-session-id", all, "s"},
		{"session-id: s", "session-id", all, "s"},
		{"session_id: s", "session_id", all, "s"},
		{"conversation_id: s", "conversation_id", nil, "s"},
		{"x-client-session-id: s", "x-client-session-id", all, "s"},
		{"agent-session-id: s", "agent-session-id", all, "s"},
		{"x-litellm-session-id: s", "x-litellm-session-id", all, "s"},
		{"x-openwebui-chat-id: s", "x-openwebui-chat-id", all, "s"},
		{"x-session-id: ", "prompt_cache_key", all, "k"},
		{"", "prompt_cache_key", all, "k"},
		{"", ByOpening, body{opening: "hello"}, "hello"},
		{"", "", body{}, "req_1"},
		{"", "", nil, "req_1"},
	} {
		r := &httpmsg.Request{ID: "req_1"}
		for field := range strings.SplitSeq(tt.header, "; ") {
			if name, value, ok := strings.Cut(field, ": "); ok {
				r.Header.Add(name, value)
			}
		}
		s := &Session{Request: r, Conversation: tt.body}
		if s.By() != "" {
			t.Error("the session is read before it is asked for")
		}
		if id := s.ID(); id != DigestOf(tt.same).sum() || s.By() != tt.by || s.ID() != id {
			t.Errorf("%q: session %x by %q, want that of %q by %q", tt.header, id, s.By(), tt.same, tt.by)
		}
	}
}

// Texts that differ a little have ids that differ in about half of their bits, and no
// two of them the same.
func TestDigestSpreads(t *testing.T) {
	seen := map[uint64]string{}
	texts := []string{"", "\x00", "\x00\x00"}
	for i := range 20_000 {
		texts = append(texts, fmt.Sprint("session-", i), strings.Repeat("a", i%300)+fmt.Sprint(i))
	}
	for _, text := range texts {
		id := DigestOf(text).sum()
		if other, ok := seen[id]; ok && other != text {
			t.Fatalf("%q and %q have the same id", text, other)
		}
		seen[id] = text
	}
	if DigestOf("").Text("ab").Text("c") == DigestOf("").Text("a").Text("bc") {
		t.Error("where one text ends and the next begins does not count")
	}
}

// Isolates of two versions must choose the same account for a session.
func TestDigestsAreStable(t *testing.T) {
	for text, want := range map[string]Digest{
		"": 0x1137509a84ab7784, "a": 0x34ff6bda139689ce, "1234567": 0x8e57c3372ee68e67, "12345678": 0xcc55af87fd984cae,
		"123456789": 0xae40d6b2a212f531, "0123456789abcdef": 0x5a6372bb65109b87,
	} {
		if got := DigestOf(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}

func TestScoreFollowsWeights(t *testing.T) {
	names := []string{"a", "b", "c"}
	weights := []int{1, 2, 7}
	counts := make([]int, 3)
	const n = 20_000
	for s := range uint64(n) {
		best, most := 0, math.Inf(-1)
		for i, name := range names {
			v := Score(DigestOf(fmt.Sprint(s)).sum(), name, weights[i])
			if math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
				t.Fatalf("score %v", v)
			}
			if v > most {
				best, most = i, v
			}
		}
		counts[best]++
	}
	for i, w := range weights {
		if got := float64(counts[i]) / n; math.Abs(got-float64(w)/10) > 0.015 {
			t.Errorf("weight %d of 10 has %.3f of the sessions", w, got)
		}
	}
}

// The page Explain of the dashboard passes on every field of a pasted command that names a
// session.
func TestDashboardKnowsSessionHeaders(t *testing.T) {
	const page = "../../worker/dashboard/src/pages/explain/curl.ts"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sessionHeaders {
		if !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("%s: the header %q is missing", page, name)
		}
	}
}
