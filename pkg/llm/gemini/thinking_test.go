package gemini

import (
	"testing"

	"weir/pkg/llm/ir"
)

func TestThinkingConfig(t *testing.T) {
	tests := []struct{ id, effort, want string }{
		{"gemini-2.0-flash", "high", ""},
		{"gemini-2.5-flash", "none", `{"includeThoughts":false,"thinkingBudget":0}`},
		{"gemini-2.5-flash", "xhigh", `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-2.5-pro", "none", `{"includeThoughts":false,"thinkingBudget":128}`},
		{"gemini-2.5-pro", "max", `{"includeThoughts":true,"thinkingBudget":32768}`},
		{"gemini-3-flash", "minimal", `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-pro", "none", `{"includeThoughts":false,"thinkingLevel":"LOW"}`},
		{"gemini-flash-latest", "medium", `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
	}
	for _, tt := range tests {
		q := &ir.Request{Fields: &ir.FieldNames{}, Effort: tt.effort, Think: ir.ThinkOn}
		if tt.effort == "none" {
			q.Think = ir.ThinkOff
		}
		if got := thinkingConfig(q, tt.id); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.id, tt.effort, got, tt.want)
		}
	}
}
