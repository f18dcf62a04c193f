package main

// intro says before a provider's table what holds for all of its rows.
var intro = map[string]string{
	"openrouter": `OpenRouter states the cost of each call, which counts; these prices serve for budgets and estimates. Its own list, which the build has, follows the providers that serve a model and changes daily; the copies in both lists are six weeks older.

`,
}

const (
	over272  = "OpenAI's [page](https://developers.openai.com/api/docs/models/gpt-5.6-sol): more for \">272K input tokens\", so not for exactly 272,000"
	aws272   = "OpenAI's words, \">272K\"; genai-prices reads AWS' as \"at 272K and above\". Calls of exactly 272,000 differ"
	sonnet55 = "cached reads cost half [since 2026-10-07](https://platform.claude.com/docs/en/about-claude/pricing), after both lists"
	oneUS    = "an id without `global.` is [a region's](https://platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock), 10% above the global price, which models.dev has"
	region   = "the price of this profile's regions; genai-prices has the US price for all"
	retail   = "[Azure's list of retail prices](https://prices.azure.com/api/retail/prices) has these digits; the other list is rounded"
	xai200   = "xAI's [page](https://docs.x.ai/developers/models): more for \"≥ 200k prompt tokens\", so for exactly 200,000 too"
	image    = "[Google's page](https://ai.google.dev/gemini-api/docs/pricing) has a rate for text and one for images, which is a clause of its own here; models.dev states that of images as the output's"
)

// reasons say why the build's price or context stands, by the models whose reason it is.
var reasons = []struct{ models, why string }{
	{"azure/gpt-5-chat-latest", "OpenAI's [page of the model](https://developers.openai.com/api/docs/models/gpt-5-chat-latest): 128,000 tokens"},
	{"openai/gpt-5.4 openai/gpt-5.4-pro openai/gpt-5.5 openai/gpt-5.5-pro openai/gpt-5.6-luna openai/gpt-5.6-sol openai/gpt-5.6-terra openai/gpt-6-astra", over272},
	{"azure/gpt-5.4 azure/gpt-5.4-pro azure/gpt-5.5 azure/gpt-5.5-pro azure/gpt-5.6-luna azure/gpt-5.6-terra azure/gpt-6-astra", over272},
	{"azure/gpt-5.6-sol", "Azure asks OpenAI's price [since October 2026](https://prices.azure.com/api/retail/prices); models.dev has the new rates of input and output with the old ones of the cache and of long prompts. The step of genai-prices as with gpt-5.5"},
	{"bedrock/global.openai.gpt-5.6-luna bedrock/global.openai.gpt-5.6-sol bedrock/global.openai.gpt-5.6-terra bedrock/in.openai.gpt-5.6-luna bedrock/in.openai.gpt-5.6-terra bedrock/openai.gpt-5.6-luna bedrock/openai.gpt-5.6-sol bedrock/openai.gpt-5.6-terra bedrock/us.openai.gpt-5.6-luna bedrock/us.openai.gpt-5.6-sol bedrock/us.openai.gpt-5.6-terra", aws272},
	{"anthropic/claude-sonnet-4-5 anthropic/claude-sonnet-4-5-20250929", "Anthropic refuses prompts of over 200,000 tokens [since 2026-04-30](https://platform.claude.com/docs/en/release-notes), when the beta of a million ended: [200K](https://platform.claude.com/docs/en/models/sonnet-4-5/overview), and no step"},
	{"gemini/gemini-3.8-flash-tts gemini/gemini-3.8-flash-lite-tts", "LiteLLM's [note](https://github.com/BerriAI/litellm/discussions/42776) has the rate of audio; genai-prices states that of gemini-3.8-flash for all names that begin so"},
	{"vertex/claude-sonnet-4-5@20250929", "Google's [page](https://cloud.google.com/vertex-ai/generative-ai/pricing#claude-models) has the step, says genai-prices; models.dev has none"},
	{"vertex/claude-opus-4-6", "one price for the whole context [since 2026-03-13](https://claude.com/blog/1m-context-ga); genai-prices last checked it on 2026-02-05"},
	{"anthropic/claude-sonnet-5-5 vertex/claude-sonnet-5-5 bedrock/au.anthropic.claude-sonnet-5-5 bedrock/eu.anthropic.claude-sonnet-5-5 bedrock/global.anthropic.claude-sonnet-5-5 bedrock/us.anthropic.claude-sonnet-5-5", sonnet55},
	{"bedrock/anthropic.claude-sonnet-5-5", sonnet55 + "; " + oneUS},
	{"bedrock/anthropic.claude-fable-5 bedrock/anthropic.claude-fable-5-1 bedrock/anthropic.claude-haiku-4-5-20251001-v1:0 bedrock/anthropic.claude-opus-4-5-20251101-v1:0 bedrock/anthropic.claude-opus-4-7 bedrock/anthropic.claude-opus-4-8 bedrock/anthropic.claude-opus-5-5 bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0 bedrock/anthropic.claude-sonnet-5", oneUS},
	{"gemini/gemini-2.5-flash-image gemini/gemini-3-pro-image-preview gemini/gemini-3.1-flash-image-preview gemini/gemini-3-pro-image vertex/gemini-3-pro-image vertex/gemini-3.1-flash-image vertex/gemini-2.5-flash-image", image},
	{"bedrock/amazon.titan-embed-text-v2:0", "[AWS' page](https://aws.amazon.com/bedrock/pricing/): $0.00002 a thousand; 0.1 is the price of version 1"},
	{"bedrock/apac.amazon.nova-lite-v1:0 bedrock/apac.amazon.nova-micro-v1:0 bedrock/apac.amazon.nova-pro-v1:0 bedrock/ca.amazon.nova-lite-v1:0 bedrock/eu.amazon.nova-2-lite-v1:0 bedrock/eu.amazon.nova-lite-v1:0 bedrock/eu.amazon.nova-micro-v1:0 bedrock/eu.amazon.nova-pro-v1:0 bedrock/jp.amazon.nova-2-lite-v1:0", region},
	{"bedrock/us-gov.openai.gpt-oss-120b-1:0 bedrock/us-gov.openai.gpt-oss-20b-1:0", "the price of GovCloud; genai-prices has that of the other US regions"},
	{"bedrock/mistral.ministral-3-3b-instruct", "models.dev in both of its copies; the model itself reads [256K](https://huggingface.co/mistralai/Ministral-3-3B-Instruct-2512)"},
	{"bedrock/us.writer.palmyra-x5-v1:0 bedrock/writer.palmyra-x5-v1:0", "models.dev in both of its copies; Palmyra X5 is Writer's model for a million tokens, X4 that for 128,000"},
	{"azure/gpt-5 azure/gpt-5-mini azure/gpt-5-nano azure/o4-mini", retail},
	{"azure/gpt-image-1.5", "OpenAI's [page](https://developers.openai.com/api/docs/models/gpt-image-1.5): 10 for text and 32 for images, a clause of its own here; models.dev states that of images as the output's"},
	{"azure/gpt-5.2", "[Azure's list of retail prices](https://prices.azure.com/api/retail/prices) has 0.175, a tenth of the input; models.dev has the rate of gpt-5.1"},
	{"mistral/magistral-medium-latest", "models.dev of 2026-11-10, which is newer than the copy; Mistral's page of the name was not read"},
	{"mistral/ministral-3b-latest mistral/ministral-8b-latest", "the name stands for Ministral 3 [since 2025-12-02](https://mistral.ai/pricing/api); models.dev has its predecessor's price and context"},
	{"mistral/mistral-large-latest", "the name stands for Mistral Large 3, [0.5/1.5](https://mistral.ai/pricing/api); genai-prices has the price of version 2, and ours under mistral-large-2512"},
	{"mistral/mistral-small-latest", "the name stands for mistral-small-2603, which both lists price as ours; genai-prices has its predecessor's price"},
	{"mistral/voxtral-small-latest", "Mistral raised the output from 0.3 to 0.4 [on 2026-08-11](https://github.com/mistralai/platform-docs-public/commit/1996c3f1eca754d02436a37fcc899440794a18a5)"},
	{"groq/openai/gpt-oss-safeguard-20b", "[Groq's page of models](https://console.groq.com/docs/models): 0.075/0.3; genai-prices has the rates of gpt-oss-120b"},
	{"xai/grok-4.3 xai/grok-4.5 xai/grok-4.6 xai/grok-4.7", xai200},
	{"deepseek/deepseek-flash", "[DeepSeek's page](https://api-docs.deepseek.com/quick_start/pricing): the price of peak hours, 01:00 to 04:00 and 06:00 to 10:00 UTC from Monday to Friday; the list has that of other hours, half of it. A price here has no hours, and the higher one keeps budgets"},
	{"deepseek/deepseek-v4-pro", "[DeepSeek's page](https://api-docs.deepseek.com/quick_start/pricing): the price of peak hours, as with deepseek-flash; genai-prices has that of other hours, models.dev that before 2026-08-17"},
	{"together/Qwen/Qwen3.7-Max", "the usual price, with which [Together began](https://github.com/togethercomputer/skills/pull/14) and which the list of 2026-11-10 has again; the copy has an offer of half of it since June 2026"},
	{"fireworks/accounts/fireworks/models/deepseek-v4p1-flash fireworks/accounts/fireworks/routers/deepseek-flash-latest", "models.dev of 2026-11-10; the copy has the price of the launch on 2026-09-10, before DeepSeek's release 1017. The faster router's 2.4/9.6, which other lists have too, is eight times ours"},
	{"zai/glm-5.3-flash", "an offer of half the price ended on 2026-09-09, says genai-prices itself"},
	{"cf/@cf/qwen/qwen3-30b-a3b-fp8 cf/@cf/zai-org/glm-4.7-flash", "[Cloudflare](https://developers.cloudflare.com/workers-ai/platform/pricing/) bills neurons at $0.011 a thousand, 4,625 and 5,500 of them a million tokens of input; genai-prices has the rounded price"},
	{"openrouter/moonshotai/kimi-k2.5", "models.dev's copy of OpenRouter's list of 2026-09-30"},
}
