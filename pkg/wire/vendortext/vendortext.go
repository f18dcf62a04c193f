// Package vendortext is the one table of vendors' errors that say more than
// their status. Everywhere else the status and the structured code decide. The
// table is published in docs/reference/upstream-errors.md, which its test
// writes.
package vendortext

import (
	"slices"
	"strings"
)

// Kind is the meaning of a row.
type Kind string

// The kinds.
const (
	// PlaceRefused: the vendor does not serve this country, region or egress
	// address.
	PlaceRefused Kind = "place refused"
	// KeyRefused: the credential of the account is wrong, expired or revoked. The
	// vendor states that with another status than 401 and 403.
	KeyRefused Kind = "key refused"
	// OutOfCredit: the account has used up its credit. The vendor states that with
	// another status than 402.
	OutOfCredit Kind = "out of credit"
	// ModelRefused: the account may not use the model, but may use others. The vendor
	// states that with 403.
	ModelRefused Kind = "model refused"
	// ContextLength: the request is too long for the model.
	ContextLength Kind = "context length"
	// ModelRetired: the model does not exist, or no longer.
	ModelRetired Kind = "model retired"
	// ContentFilter: a filter of the vendor refused the content.
	ContentFilter Kind = "content filtered"
	// RefusesField: the request field {field} is not accepted.
	RefusesField Kind = "field refused"
	// RefusesDeveloper: the message role developer is not accepted.
	RefusesDeveloper Kind = "role refused"
	// RefusesBeta: values of the header anthropic-beta are not accepted. A message
	// that quotes none of those that were sent means all of them.
	RefusesBeta Kind = "beta refused"
	// RefusesThoughts: the signature of a thought of the conversation is missing, or
	// not one of this provider's.
	RefusesThoughts Kind = "thoughts refused"
)

// Row is one error of one vendor. A row with a status is found by Find: it has
// either a code, or a text that error.message begins with. A row without one
// is found by Match and Named: it has a code, or a text that is contained in the
// message, where {field} stands for the name of a request field.
//
// A row of ContextLength has a text whose parts, separated by Gap, follow each
// other in the message, in letters of either case. Its status stands for 413
// and 422 too: servers written with FastAPI and proxies use those.
type Row struct {
	Kind   Kind
	Vendor string
	Status int
	Code   string
	Text   string
	Source string
}

// Gap separates the parts of a text of ContextLength, between which a message
// has others. A text that begins with it may stand anywhere.
const Gap = "…"

// overflows lists most messages of vendors for a request that is too long for
// the model, with examples.
const overflows = "https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/utils/overflow.ts"

var table = [...]Row{
	{PlaceRefused, "OpenAI", 403, "unsupported_country_region_territory", "",
		"https://platform.openai.com/docs/supported-countries"},
	{PlaceRefused, "Google Gemini", 400, "", "User location is not supported",
		"https://ai.google.dev/gemini-api/docs/available-regions"},
	{PlaceRefused, "Anthropic", 403, "", "Request not allowed", "https://www.anthropic.com/supported-countries"},
	{KeyRefused, "Google Gemini, Vertex AI", 400, "API_KEY_INVALID", "",
		"https://github.com/googleapis/googleapis/blob/master/google/api/error_reason.proto"},
	{KeyRefused, "xAI", 400, "", "Incorrect API key provided", "https://github.com/i-am-bee/beeai-framework/issues/447"},
	{KeyRefused, "xAI", 400, "", "Incorrect%20API%20key%20provided",
		"https://github.com/i-am-bee/beeai-framework/issues/447"},
	{KeyRefused, "Amazon Bedrock", 400, "IncompleteSignature", "",
		"https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html"},
	{KeyRefused, "Amazon Bedrock", 400, "NotAuthorized", "",
		"https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html"},
	{KeyRefused, "Brave Search", 422, "SUBSCRIPTION_TOKEN_INVALID", "", "https://github.com/nearai/ironclaw/issues/2780"},
	{KeyRefused, "Cloudflare", 400, "", "Invalid request headers",
		"https://github.com/cloudflare/cloudflare-typescript/issues/161"},
	{KeyRefused, "ElevenLabs", 400, "invalid_api_key", "",
		"https://help.elevenlabs.io/hc/en-us/articles/19572237925521-API-Error-Code-400-or-401"},
	{KeyRefused, "Hugging Face", 400, "", "Authorization header is correct, but the token seems invalid",
		"https://github.com/huggingface/huggingface_hub/issues/2507"},
	{OutOfCredit, "Anthropic", 400, "", "Your credit balance is too low",
		"https://github.com/anthropics/claude-code/issues/4684"},
	{OutOfCredit, "Alibaba Model Studio", 400, "Arrearage", "",
		"https://www.alibabacloud.com/help/en/model-studio/error-code"},
	{OutOfCredit, "Google Gemini, Vertex AI", 403, "BILLING_DISABLED", "",
		"https://github.com/googleapis/googleapis/blob/master/google/api/error_reason.proto"},
	{ModelRefused, "OpenAI", 403, "model_not_found", "", "https://github.com/Aider-AI/aider/issues/604"},
	{ModelRefused, "Amazon Bedrock", 403, "", "You don't have access to the model with the specified model ID",
		"https://www.repost.aws/knowledge-center/bedrock-invokemodel-api-error"},
	{ModelRefused, "Groq", 403, "model_permission_blocked_project", "", "https://console.groq.com/docs/model-permissions"},
	{ModelRefused, "Groq", 403, "model_permission_blocked_org", "", "https://console.groq.com/docs/model-permissions"},
	{ContextLength, "OpenAI", 400, "context_length_exceeded", "", "https://platform.openai.com/docs/guides/error-codes"},
	{ContextLength, "Anthropic", 400, "", "prompt is too long", "https://docs.anthropic.com/en/api/errors"},
	{ContextLength, "Google Gemini", 400, "", "The input token count",
		"https://ai.google.dev/gemini-api/docs/troubleshooting"},
	{ContextLength, "Anthropic", 400, "", "input length and `max_tokens` exceed context limit",
		"https://code.claude.com/docs/en/errors"},
	{ContextLength, "GitHub Models", 413, "tokens_limit_reached", "", "https://docs.github.com/en/github-models"},
	{ContextLength, "Fireworks", 400, "", "The prompt is too long", overflows},
	{ContextLength, "Amazon Bedrock", 400, "", "Input is too long for requested model", overflows},
	{ContextLength, "Amazon Bedrock", 400, "", "The model returned the following errors: … is too long", overflows},
	{ContextLength, "OpenAI", 400, "", "…exceeds the context window", overflows},
	{ContextLength, "xAI", 400, "", "…maximum prompt length is ", overflows},
	{ContextLength, "Groq", 400, "", "…reduce the length of the messages", overflows},
	{ContextLength, "DeepSeek, OpenRouter, vLLM", 400, "", "…maximum context length is ", overflows},
	{ContextLength, "vLLM", 400, "", "…context length is only ",
		"https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/provider/error.ts"},
	{ContextLength, "GitHub Copilot", 400, "", "…prompt token count of … exceeds the limit of ", overflows},
	{ContextLength, "llama.cpp", 400, "", "…exceeds the available context size",
		"https://github.com/ggml-org/llama.cpp/pull/15780"},
	{ContextLength, "LM Studio", 400, "", "…greater than the context length", overflows},
	{ContextLength, "MiniMax", 400, "", "…context window exceeds limit", overflows},
	{ContextLength, "Moonshot, Kimi", 400, "", "…exceeded model token limit", overflows},
	{ContextLength, "Mistral", 400, "", "…too large for model with … maximum context length", overflows},
	{ContextLength, "Ollama", 400, "", "prompt too long; exceeded … context length",
		"https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/provider/error.ts"},
	{ContextLength, "Together AI, Text Generation Inference", 400, "", "…`inputs` tokens + `max_new_tokens` must be <= ",
		"https://github.com/BerriAI/litellm/issues/4934"},
	{ContextLength, "Cohere", 400, "", "too many tokens: ", "https://github.com/cohere-ai/sandbox-topically/issues/4"},
	{ModelRetired, "OpenAI", 404, "model_not_found", "", "https://platform.openai.com/docs/guides/error-codes"},
	{ModelRetired, "Anthropic", 404, "", "model: ", "https://docs.anthropic.com/en/api/errors"},
	{ModelRetired, "Azure OpenAI", 404, "DeploymentNotFound", "",
		"https://learn.microsoft.com/en-us/azure/ai-foundry/openai/reference"},
	{ModelRetired, "Amazon Bedrock", 404, "ResourceNotFoundException", "",
		"https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"},
	{ModelRetired, "Alibaba Model Studio", 404, "ModelNotFound", "",
		"https://help.aliyun.com/en/model-studio/error-code-start"},
	{ModelRetired, "Groq", 400, "model_decommissioned", "", "https://console.groq.com/docs/deprecations"},
	{ModelRetired, "Google Gemini", 404, "", "models/", "https://github.com/openclaw/openclaw/issues/14036"},
	{ModelRetired, "Vertex AI", 404, "", "Publisher Model `", "https://github.com/genkit-ai/genkit/issues/4688"},
	{ContentFilter, "Azure OpenAI", 400, "content_filter", "", "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter"},
	{ContentFilter, "OpenAI", 400, "content_policy_violation", "", "https://platform.openai.com/docs/guides/error-codes"},
	{ContentFilter, "OpenAI", 400, "moderation_blocked", "", "https://platform.openai.com/docs/guides/image-generation"},
	{ContentFilter, "OpenAI", 400, "invalid_prompt", "", "https://platform.openai.com/docs/guides/reasoning"},
	{ContentFilter, "OpenRouter", 403, "content_policy_violation", "", "https://openrouter.ai/docs/api/reference/errors-and-debugging"},
	{ContentFilter, "Alibaba Model Studio", 400, "data_inspection_failed", "", "https://help.aliyun.com/en/model-studio/error-code-start"},
	{ContentFilter, "Alibaba Model Studio", 400, "DataInspectionFailed", "", "https://help.aliyun.com/en/model-studio/error-code-start"},
	{ContentFilter, "Anthropic", 400, "", "Output blocked by content filtering policy", "https://github.com/anthropics/claude-code/issues/58367"},
	{ContentFilter, "DeepSeek", 400, "", "Content Exists Risk", "https://github.com/deepseek-ai/awesome-deepseek-integration/issues/13"},
	{ContentFilter, "Moonshot, Kimi", 400, "", "The request was rejected because it was considered high risk", "https://platform.kimi.com/docs/api/errors"},
	{RefusesField, "OpenAI, Azure OpenAI", 0, "", "Unrecognized request argument supplied: {field}", "https://github.com/openai/openai-python/issues/1724"},
	{RefusesField, "OpenAI, Azure OpenAI", 0, "", "Unsupported parameter: '{field}' is not supported with this model", "https://github.com/OpenHands/OpenHands/issues/11662"},
	{RefusesField, "vLLM before 0.6.5", 0, "", "'loc': ('body', '{field}'), 'msg': 'Extra inputs are not permitted'", "https://github.com/voideditor/void/issues/128"},
	{RefusesField, "NVIDIA NIM", 0, "", "body -> {field}\n  Extra inputs are not permitted", "https://github.com/NVIDIA/garak/issues/748"},
	{RefusesField, "Anthropic, LiteLLM and servers behind them", 0, "", "{field}: Extra inputs are not permitted", "https://github.com/decolua/9router/issues/1468"},
	{RefusesField, "OpenAI", 0, "", "Unknown parameter: '{field}'", "https://github.com/pydantic/pydantic-ai/issues/3653"},
	{RefusesField, "Groq", 0, "", "property '{field}' is unsupported", "https://github.com/fanenr/chatbot/issues/21"},
	{RefusesField, "Groq (Responses)", 0, "", "unknown field `{field}` in request body", "https://github.com/mozilla-ai/any-llm/issues/186"},
	{RefusesField, "xAI", 0, "", "does not support parameter {field}", "https://github.com/miaoxworld/NativeTavern/issues/83"},
	{RefusesField, "xAI", 0, "", "Argument not supported on this model: {field}", "https://github.com/BerriAI/litellm/issues/14056"},
	{RefusesField, "Google Gemini (OpenAI endpoint)", 0, "", "Unknown name \"{field}\": Cannot find field", "https://github.com/Routstr/routstr-core/issues/505"},
	{RefusesDeveloper, "DeepSeek and servers written with serde", 0, "", "unknown variant `developer`", "https://github.com/num-scope/pix/issues/34"},
	{RefusesDeveloper, "OpenAI", 0, "", "does not support 'developer' with this model", "https://github.com/langchain-ai/langchain/issues/28895"},
	{RefusesDeveloper, "vLLM with Qwen's chat template", 0, "", "Unexpected message role.", "https://github.com/ogx-ai/ogx/issues/6069"},
	{RefusesDeveloper, "Z.ai (GLM)", 0, "", "Incorrect role information", "https://github.com/vastsa/PI-Desktop/issues/30"},
	{RefusesBeta, "Anthropic, Vertex AI", 0, "", "for the `anthropic-beta` header", "https://github.com/QuantumNous/new-api/issues/2975"},
	{RefusesBeta, "Amazon Bedrock", 0, "", "invalid beta flag", "https://github.com/quarkiverse/quarkus-langchain4j/issues/2132"},
	{RefusesThoughts, "Anthropic", 0, "", "Invalid `signature` in `thinking` block", "https://github.com/anthropics/claude-code/issues/10627"},
	{RefusesThoughts, "Anthropic", 0, "", ".thinking.signature: Field required", "https://github.com/lbjlaq/Antigravity-Manager/issues/270"},
	{RefusesThoughts, "GitHub Copilot", 0, "", "Invalid signature in thinking block", "https://github.com/arojunior/handle-failed-requests-js/issues/8"},
	{RefusesThoughts, "OpenAI", 0, "invalid_encrypted_content", "", "https://github.com/openai/codex/issues/8145"},
	{RefusesThoughts, "Google Gemini", 0, "", "Corrupted thought signature", "https://github.com/google-gemini/gemini-cli/issues/13467"},
	{RefusesThoughts, "Google Gemini", 0, "", "Thought signature is not valid", "https://github.com/decolua/9router/issues/301"},
	{RefusesThoughts, "Google Gemini", 0, "", "Invalid thought signature", "https://github.com/lbjlaq/Antigravity-Manager/pull/3342"},
	{RefusesThoughts, "Google Gemini", 0, "", "Function call is missing a thought_signature", "https://ai.google.dev/gemini-api/docs/thought-signatures"},
}

// Find returns the kind of an error by its status, code and message, "" when
// the table has no such row. The code of a refused place counts with status 400
// and 451 too.
func Find(status int, code, message string) Kind {
	for i := range table {
		r := &table[i]
		if r.Status == 0 || r.Status != status && !r.holdsFor(status) {
			continue
		}
		if r.Code != "" && r.Code == code || r.Text != "" && r.matches(message) {
			return r.Kind
		}
	}
	return ""
}

// holdsFor reports whether a row applies to a status that is not its own.
func (r *Row) holdsFor(status int) bool {
	switch r.Kind {
	case PlaceRefused:
		return r.Code != "" && (status == 400 || status == 451)
	case ContextLength:
		return status == 400 || status == 413 || status == 422
	}
	return false
}

func (r *Row) matches(message string) bool {
	if r.Kind != ContextLength {
		return strings.HasPrefix(message, r.Text)
	}
	for i, part := range strings.Split(r.Text, Gap) {
		at := indexFold(message, strings.Trim(part, " "))
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		message = message[at+len(strings.Trim(part, " ")):]
	}
	return true
}

// indexFold returns the place of part in s, whose ASCII letters may be of either
// case, or -1.
func indexFold(s, part string) int {
	for i := 0; i+len(part) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// Match reports whether the message contains a text of the kind, or the code is one
// of it.
func Match(kind Kind, code, message string) bool {
	for i := range table {
		r := &table[i]
		if r.Kind == kind && (r.Code != "" && r.Code == code || r.Text != "" && strings.Contains(message, r.Text)) {
			return true
		}
	}
	return false
}

// maxNamed is the number of names that Named returns.
const maxNamed = 16

// Named returns the names, or dotted paths, that stand for {field} where the
// message contains a text of the kind, each once.
func Named(kind Kind, message string) (names []string) {
	for i := range table {
		r := &table[i]
		before, after, ok := strings.Cut(r.Text, "{field}")
		if r.Kind != kind || !ok {
			continue
		}
		for rest := message; len(names) < maxNamed; {
			var name string
			if name, rest, ok = cutNamed(rest, before, after); !ok {
				break
			}
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// cutNamed returns the name between before and after where both are found first, ""
// if there is none, and the text behind it. after follows the name at once.
func cutNamed(text, before, after string) (name, rest string, ok bool) {
	if before == "" {
		at := strings.Index(text, after)
		if at < 0 {
			return "", "", false
		}
		from := at
		for from > 0 && inPath(text[from-1]) {
			from--
		}
		return text[from:at], text[at+len(after):], true
	}
	at := strings.Index(text, before)
	if at < 0 {
		return "", "", false
	}
	text = text[at+len(before):]
	n := 0
	for n < len(text) && inPath(text[n]) {
		n++
	}
	name, rest = text[:n], text[n:]
	if !strings.HasPrefix(rest, after) {
		return "", rest, true
	}
	if after == "" {
		name = strings.TrimRight(name, ".") // of the sentence
	}
	return name, rest, true
}

// inPath reports whether a path of names and numbers has this character.
func inPath(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' ||
		c == '-' || c == '.' || c == '[' || c == ']'
}
