package vendortext

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

const page = "../../../docs/reference/upstream-errors.md"

// The published page has exactly the rows of the table.
func TestPageListsTheTable(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, found := strings.Cut(string(raw), "\n| ")
	if !found {
		t.Fatal("the page has no table")
	}
	var b strings.Builder
	b.WriteString(intro + "\n| Meaning | Vendor | Status | Code | Text | Source |\n|---|---|---|---|---|---|\n")
	for _, r := range table {
		status, code, text := "400, 422", "", ""
		if r.Status > 0 {
			status = strconv.Itoa(r.Status)
		}
		if r.Code != "" {
			code = "`" + r.Code + "`"
		}
		if r.Text != "" {
			text = "`` " + strings.ReplaceAll(strings.ReplaceAll(r.Text, "\n", "⏎"), "|", "\\|") + " ``"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Kind, r.Vendor, status, code, text, r.Source)
	}
	if b.String() == string(raw) {
		return
	}
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("docs/reference/upstream-errors.md differs from the table: run GOLDEN=update go test ./pkg/wire/vendortext")
}

func TestRowsAreComplete(t *testing.T) {
	for _, r := range table {
		byStatus := r.Kind == PlaceRefused || r.Kind == KeyRefused || r.Kind == OutOfCredit || r.Kind == ModelRefused || r.Kind == ContextLength || r.Kind == ModelRetired || r.Kind == ContentFilter
		switch {
		case r.Vendor == "" || r.Source == "":
			t.Errorf("no vendor or source: %+v", r)
		case byStatus && (r.Status < 400 || r.Status > 499 || (r.Code == "") == (r.Text == "")):
			t.Errorf("want a 4xx status and either a code or a text: %+v", r)
		case !byStatus && (r.Status != 0 || (r.Code == "") == (r.Text == "")):
			t.Errorf("want either a code or a text: %+v", r)
		case strings.Contains(r.Text, "{field}") != (r.Kind == RefusesField):
			t.Errorf("want {field} in a text of a refused field: %+v", r)
		}
	}
}

func TestFind(t *testing.T) {
	tests := []struct {
		status        int
		code, message string
		want          Kind
	}{
		{403, "unsupported_country_region_territory", "", PlaceRefused},
		{451, "unsupported_country_region_territory", "", PlaceRefused},
		{404, "unsupported_country_region_territory", "", ""},
		{400, "", "User location is not supported for the API use.", PlaceRefused},
		{451, "", "User location is not supported for the API use.", ""},
		{400, "", "the prompt says: User location is not supported", ""},
		{400, "API_KEY_INVALID", "", KeyRefused},
		{400, "", "Incorrect API key provided: xa***ab. You can obtain an API key from https://console.x.ai.", KeyRefused},
		{422, "", "Incorrect API key provided", ""},
		{400, "", "the prompt says: Incorrect API key provided", ""},
		{400, "Arrearage", "", OutOfCredit},
		{403, "model_not_found", "", ModelRefused},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", ModelRefused},
		{403, "AccessDeniedException", "they said: You don't have access to the model with the specified model ID.", ""},
		{400, "context_length_exceeded", "", ContextLength},
		{404, "", "model: claude-2.0", ModelRetired},
		{404, "", "models/gemini-1.0-pro is not found for API version v1beta, or is not supported for generateContent.", ModelRetired},
		{404, "", "Publisher Model `projects/p/locations/l/publishers/google/models/m` was not found", ModelRetired},
		{404, "ResourceNotFoundException", "This model version has reached the end of its life.", ModelRetired},
		{400, "model_decommissioned", "The model `m` has been decommissioned and is no longer supported.", ModelRetired},
		{404, "NOT_FOUND", "cachedContents/1 was not found", ""},
		{400, "content_filter", "The response was filtered", ContentFilter},
		{403, "content_policy_violation", "", ContentFilter},
		{403, "content_filter", "", ""},
		{400, "", "Output blocked by content filtering policy", ContentFilter},
		{400, "", "they said: Content Exists Risk", ""},
		{400, "", "max_tokens: Extra inputs are not permitted", ""},
		{500, "model_not_found", "", ""},
		{413, "context_length_exceeded", "", ContextLength},
		{429, "context_length_exceeded", "", ""},
		{400, "", "prompt is too long: 210000 tokens > 200000 maximum", ContextLength},
		{400, "", "The prompt is too long: 9000, model maximum context length: 8192", ContextLength},
		{400, "", "Input is too long for requested model.", ContextLength},
		{400, "", "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", ContextLength},
		{400, "", "my secret prompt is too long", ""},
		{400, "", "Your input exceeds the context window of this model.", ContextLength},
		{400, "", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", ContextLength},
		{400, "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", ContextLength},
		{400, "", "Please reduce the length of the messages or completion.", ContextLength},
		{422, "", "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens.", ContextLength},
		{400, "", "prompt token count of 130000 exceeds the limit of 128000", ContextLength},
		{400, "", "exceeds the limit of 128000, prompt token count of 130000", ""},
		{400, "", "the request exceeds the available context size, try increasing it", ContextLength},
		{400, "", "invalid params, context window exceeds limit (2013)", ContextLength},
		{400, "", "Your request exceeded model token limit: 262144 (requested: 270000)", ContextLength},
		{400, "", "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", ContextLength},
		{400, "", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length", ContextLength},
		{413, "rate_limit_exceeded", "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000", ""},
		{400, "", "max_tokens is too large: 99999", ""},
	}
	for _, tt := range tests {
		if got := Find(tt.status, tt.code, tt.message); got != tt.want {
			t.Errorf("Find(%d, %q, %q) = %q, want %q", tt.status, tt.code, tt.message, got, tt.want)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		kind          Kind
		code, message string
		want          bool
	}{
		{RefusesDeveloper, "", "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`", true},
		{RefusesDeveloper, "", "ask your developer", false},
		{RefusesBeta, "", "Unexpected value(s) `a-2026-01-05` for the `anthropic-beta` header. Please consult our documentation at docs.anthropic.com or try again without the header.", true},
		{RefusesBeta, "", `{"message":"invalid beta flag"}`, true},
		{RefusesThoughts, "", "messages.1.content.0: Invalid `signature` in `thinking` block", true},
		{RefusesThoughts, "invalid_encrypted_content", "The encrypted content gAAA...DQ== could not be verified.", true},
		{RefusesThoughts, "invalid_value", "The encrypted content is nice.", false},
		{RefusesThoughts, "", "", false},
	}
	for _, tt := range tests {
		if got := Match(tt.kind, tt.code, tt.message); got != tt.want {
			t.Errorf("Match(%s, %q, %q) = %v", tt.kind, tt.code, tt.message, got)
		}
	}
}

func TestNamed(t *testing.T) {
	tests := []struct{ message, want string }{
		{"Unrecognized request argument supplied: max_completion_tokens", "max_completion_tokens"},
		{"[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 8192}]", "max_completion_tokens"},
		{"max_completion_tokens is too large: 99999999", ""},
		{"Extra inputs are not permitted", ""},
		{"context_management: Extra inputs are not permitted", "context_management"},
		{"tools.0.custom.defer_loading: Extra inputs are not permitted, tools.1.custom.defer_loading: Extra inputs are not permitted", "tools.0.custom.defer_loading tools.1.custom.defer_loading"},
		{"Unknown parameter: 'input[4].action.query'.", "input[4].action.query"},
		{"property 'store' is unsupported, did you mean 'stop'?", "store"},
		{"Model grok-4.6 does not support parameter presencePenalty.", "presencePenalty"},
		{"Invalid JSON payload received. Unknown name \"metadata\": Cannot find field.\nInvalid JSON payload received. Unknown name \"store\": Cannot find field.", "metadata store"},
		{"Unknown name \"const\" at 'tools[0].function_declarations[5]': Cannot find field.", ""},
		{"Unknown parameter: 'a' and property 'a' is unsupported", "a"},
	}
	for _, tt := range tests {
		if got := strings.Join(Named(RefusesField, tt.message), " "); got != tt.want {
			t.Errorf("Named(%q) = %q, want %q", tt.message, got, tt.want)
		}
	}
}

// The message of an upstream is read in linear time, and names few fields.
func TestNamedReadsLongMessages(t *testing.T) {
	for _, piece := range []string{"a: Extra inputs are not permitted ", "property 'b' is unsupported", "aaaaaaaaaaaaaaaa"} {
		if got := Named(RefusesField, strings.Repeat(piece, 1<<16)); len(got) > maxNamed {
			t.Errorf("%d names", len(got))
		}
	}
}
