package quota

// Form is one way in which a vendor states a limit.
type Form struct {
	Vendor string
	Fields string // of the header, or of the body
	Window string // what the limit counts, and for whom
	Page   string // of the vendor
}

// Forms returns what Read and ReadBody know. The test has an answer for each, and
// docs/reference/quotas.md is made from it.
func Forms() []Form {
	return []Form{
		{"Anthropic, API key", "`anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens,…}-{limit,remaining,reset}`", "a minute, family of models", "https://platform.claude.com/docs/en/api/rate-limits"},
		{"Anthropic, subscription", "`anthropic-ratelimit-unified-{5h,7d}-{utilization,status,reset}`", "5 hours, 7 days; account", "https://github.com/anthropics/claude-code/issues/12829"},
		{"Anthropic, subscription", "`anthropic-ratelimit-unified-7d_{family}-{utilization,status,reset}`", "7 days, family of models", "https://github.com/anthropics/claude-code/issues/12829"},
		{"OpenAI", "`x-ratelimit-{limit,remaining,reset}-{requests,tokens}`", "not stated; model", "https://platform.openai.com/docs/guides/rate-limits"},
		{"OpenAI, ChatGPT subscription", "`x-codex-{primary,secondary}-{used-percent,window-minutes,reset-at,reset-after-seconds}`", "as stated; account", "https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/rate_limits.rs"},
		{"OpenAI, ChatGPT subscription", "body `error.type` `usage_limit_reached`, `error.{resets_in_seconds,resets_at}`", "not stated; account", "https://github.com/openai/codex/tree/main/codex-rs"},
		{"Azure OpenAI", "`x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, -1 where there is no limit", "not stated; deployment", "https://learn.microsoft.com/en-us/answers/questions/5625878/azure-openai-responses-api-x-ratelimit-headers-val"},
		{"Groq", "`x-ratelimit-{limit,remaining,reset}-requests`", "a day, model", "https://console.groq.com/docs/rate-limits"},
		{"Groq", "`x-ratelimit-{limit,remaining,reset}-tokens`", "a minute, not stated; model", "https://console.groq.com/docs/rate-limits"},
		{"Cerebras", "`x-ratelimit-{limit,remaining,reset}-{requests-day,tokens-minute,…}`", "as the name says; model", "https://inference-docs.cerebras.ai/support/rate-limits"},
		{"SambaNova", "`x-ratelimit-{limit,remaining,reset}-{requests,requests-day}`", "as the name says; model", "https://docs.sambanova.ai/docs/en/models/rate-limits"},
		{"Mistral", "`x-ratelimit-{limit,remaining}-{req-minute,tokens-minute,tokens-5-minute,tokens-month}`", "as the name says; model", "https://docs.mistral.ai/admin/user-management-finops/tier"},
		{"Mistral", "`x-ratelimitbysize-{limit,remaining}-{minute,month}`", "as the name says; model", "https://docs.mistral.ai/admin/user-management-finops/tier"},
		{"Together", "`x-ratelimit-{limit,remaining,reset}`, `x-tokenlimit-{limit,remaining,reset}`", "not stated; model", "https://docs.together.ai/docs/rate-limits"},
		{"Fireworks", "`x-ratelimit-{limit,remaining}-tokens-{prompt,generated}`", "not stated; model", "https://docs.fireworks.ai/serverless/rate-limits"},
		{"DigitalOcean", "`x-ratelimit-{limit,remaining,reset}-{requests,tokens-per-minute,tokens-per-day}`", "as the name says; model", "https://docs.digitalocean.com/products/inference/reference/quota-specific-response-headers/"},
		{"Brave Search", "`x-ratelimit-{limit,remaining,reset,policy}`, lists of which the last entry is read", "as the policy says (`w`); model", "https://api-dashboard.search.brave.com/documentation/guides/rate-limiting"},
		{"Hugging Face", "`ratelimit`: `r`, `t`; `ratelimit-policy`: `q`, `w`", "as the policy says; model", "https://huggingface.co/docs/hub/rate-limits"},
		{"others", "`ratelimit-{limit,remaining,reset}`", "not stated; model", "https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/06/"},
		{"OpenRouter", "body `error.metadata.headers`: `X-RateLimit-{Limit,Remaining,Reset}`", "not stated; model", "https://openrouter.ai/docs/api_reference/limits"},
		{"Gemini", "body `error.details[].violations[]`: `quotaId` with `PerDay`, `quotaValue`", "a day, to midnight Pacific time; model", "https://ai.google.dev/gemini-api/docs/rate-limits"},
		{"Gemini", "body `error.details[].violations[]`: `quotaId` with `PerMinute`; `retryDelay`", "a minute, model", "https://ai.google.dev/gemini-api/docs/rate-limits"},
		{"others", "body `{error.,}{resets_in_seconds,resets_at}`", "not stated; model", "https://github.com/openai/codex/tree/main/codex-rs"},
	}
}
