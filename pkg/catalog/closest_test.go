package catalog

import "testing"

func TestClosest(t *testing.T) {
	known := []string{"gpt-5-mini", "gpt-5.4", "apiKey", "openai", "anthropic", "baseUrl"}
	for typed, want := range map[string]string{
		"gpt-5-mni": "gpt-5-mini", "GPT-5-Mini": "gpt-5-mini", "gpt5mini": "gpt-5-mini", "gpt-5-miin": "gpt-5-mini",
		"gpt-5.9": "", // another version
		"api_key": "apiKey", "open-ai": "openai", "antrhopic": "anthropic", "base_url": "baseUrl", "whatever": "", "": "", "gpt-5.4": "",
	} {
		if got := Closest(typed, known); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}
