package ir

import "testing"

func TestParseVersion(t *testing.T) {
	for id, want := range map[string]Version{
		"claude-3-haiku-20240307": {3, 0}, "claude-3-5-sonnet-20241022": {3, 5}, "claude-3-7-sonnet-latest": {3, 7},
		"claude-sonnet-4-20250514": {4, 0}, "claude-opus-4-1-20250805": {4, 1}, "claude-opus-4.5": {4, 5},
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": {4, 5}, "claude-haiku-4-5@20251001": {4, 5},
		"claude-opus-5-5": {5, 5}, "claude-fable-5": {5, 0}, "claude-fable-5-2": {5, 2}, "claude-v2": {0, 0},
		"gemini-2.5-flash": {2, 5}, "gemini-3-pro-preview": {3, 0}, "gemini-3.1-pro": {3, 1},
	} {
		if got, _ := ParseVersion(id); got != want {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
}

func TestClaudeGenerations(t *testing.T) {
	tests := []struct {
		id                       string
		high, none               string // what high and none become
		sampling, forced, schema bool
		max                      int64
	}{
		{"claude-3-haiku-20240307", "|", `{"type":"disabled"}|`, true, true, false, 4096},
		{"claude-3-7-sonnet-20250219", `{"type":"enabled","budget_tokens":24576}|`, `{"type":"disabled"}|`, true, true, false, 64000},
		{"claude-sonnet-4-20250514", `{"type":"enabled","budget_tokens":24576}|`, `{"type":"disabled"}|`, true, true, false, 64000},
		{"claude-opus-4-1", `{"type":"enabled","budget_tokens":24576}|`, `{"type":"disabled"}|`, true, true, true, 32000},
		{"claude-haiku-4-5", `{"type":"enabled","budget_tokens":24576}|`, `{"type":"disabled"}|`, true, true, true, 64000},
		{"claude-opus-4-5", `{"type":"enabled","budget_tokens":24576}|`, `{"type":"disabled"}|`, true, true, true, 64000},
		{"claude-sonnet-4-6", `{"type":"adaptive"}|high`, `{"type":"disabled"}|`, true, true, true, 128000},
		{"claude-opus-4-8", `{"type":"adaptive"}|high`, `{"type":"disabled"}|`, false, true, true, 128000},
		{"claude-sonnet-5", `{"type":"adaptive"}|high`, `{"type":"disabled"}|`, false, true, true, 128000},
		{"claude-opus-5", `{"type":"adaptive"}|high`, `{"type":"disabled"}|`, false, true, true, 128000},
		{"claude-fable-5", `{"type":"adaptive"}|high`, "|low", false, true, true, 128000},
		{"claude-fable-5-2", `{"type":"adaptive"}|high`, "|low", false, false, true, 128000},
		{"claude-opus-5-5", `{"type":"adaptive"}|high`, "|low", false, false, true, 128000},
		{"claude-sonnet-5-5", `{"type":"adaptive"}|high`, `{"type":"between_tools"}|`, false, false, true, 128000},
		{"claude-haiku-5-5", `{"type":"adaptive"}|high`, `{"type":"disabled"}|`, false, true, true, 128000},
		{"claude-sonnet-7", `{"type":"adaptive"}|high`, `{"type":"between_tools"}|`, false, false, true, 128000},
		{"MiniMax-M3", `{"type":"enabled","budget_tokens":24576}|`, `{"type":"disabled"}|`, true, true, false, 0},
	}
	for _, tt := range tests {
		c := ClaudeNamed(tt.id)
		if c.Sampling != tt.sampling || c.Forced != tt.forced || c.Schema != tt.schema || c.MaxOutput != tt.max {
			t.Errorf("%s: %+v", tt.id, *c)
		}
		for effort, want := range map[string]string{"high": tt.high, "none": tt.none} {
			q := &Request{Fields: &FieldNames{}, Effort: effort, Think: ThinkOn}
			got := q.ClaudeThinking(c, 100000, 0, false)
			if got.JSON+"|"+got.Effort != want {
				t.Errorf("%s %s: got %s|%s, want %s", tt.id, effort, got.JSON, got.Effort, want)
			}
		}
	}
}

func TestThinkingBudgetIsBelowMaxTokens(t *testing.T) {
	tests := []struct {
		effort                string
		budget, max, limit    int64
		wantBudget, wantTotal string
	}{
		{"", 2048, 4000, 64000, "2048", "4000"},
		{"", 2048, 1000, 64000, "2048", "3048"},
		{"", 50000, 4096, 32000, "31999", "32000"},
		{"", 100, 4096, 0, "1024", "4096"},
		{"max", 0, 40000, 64000, "39999", "40000"},
		{"high", 0, 500, 1000, "", "1000"},
	}
	for _, tt := range tests {
		q := &Request{Fields: &FieldNames{}, Effort: tt.effort, Think: ThinkOn}
		if tt.budget > 0 {
			q.Think, q.ThinkBudget = ThinkBudget, tt.budget
		}
		got := q.ClaudeThinking(&ClaudeModel{budget: true}, tt.max, tt.limit, false)
		want := ""
		if tt.wantBudget != "" {
			want = `{"type":"enabled","budget_tokens":` + tt.wantBudget + `}`
		}
		if got.JSON != want || got.Budget != (want != "") {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
}

func TestOpenAIEffort(t *testing.T) {
	tests := []struct{ id, effort, want string }{
		{"o3", "none", "low"}, {"o4-mini", "xhigh", "high"}, {"gpt-5", "none", "minimal"}, {"gpt-5-mini", "max", "high"},
		{"gpt-5.1", "none", "none"}, {"gpt-5.1", "minimal", "low"}, {"gpt-5.4", "xhigh", "xhigh"}, {"openai/o3", "minimal", "low"},
	}
	for _, tt := range tests {
		if got := (&Request{Fields: &FieldNames{}}).OpenAIEffort(tt.id, tt.effort); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.id, tt.effort, got, tt.want)
		}
	}
	for id, want := range map[string]bool{"o1": true, "o3-mini": true, "gpt-5": true, "gpt-5.4-codex": true, "gpt-5-chat-latest": false, "gpt-4o": false, "gpt-4.1": false, "omni-moderation": false} {
		if OpenAIReasons(id) != want {
			t.Errorf("%s reasons: %v", id, !want)
		}
	}
}
