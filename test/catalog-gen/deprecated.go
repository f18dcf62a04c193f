package main

import "strings"

// ends are the days on which models end, and their successors, of the vendors' pages.
var ends = []struct{ alias, ids, end string }{
	// https://developers.openai.com/api/docs/deprecations, and the types of npm openai 7.55.0
	{"openai", "gpt-image-1-mini gpt-image-1.5 chatgpt-image-latest", "2026-12-01 gpt-image-2.6-sunburst"},
	{"openai", "gpt-5", "2026-12-11 gpt-6.1-sol"},
	{"openai", "gpt-5-mini", "2026-12-11 gpt-6.1-terra"},
	{"openai", "gpt-5-nano gpt-5-pro o3 o3-pro", "2026-12-11"},
	{"openai", "tts-1 tts-1-hd gpt-4o-mini-tts gpt-4o-mini-tts-2025-12-15", "2027-01-06"},
	{"openai", "gpt-4o gpt-4o-2024-08-06 gpt-4o-2024-11-20 gpt-4o-mini gpt-4.1 gpt-4.1-mini", "2027-01-14 gpt-6-luna"},
	{"openai", "gpt-realtime gpt-realtime-2025-08-28", "2027-01-20 gpt-realtime-2.1"},
	{"openai", "gpt-realtime-mini gpt-realtime-mini-2025-12-15", "2027-01-20 gpt-realtime-2.1-mini"},
	{"openai", "gpt-4o-mini-transcribe-2025-03-20", "2027-01-20 gpt-4o-mini-transcribe-2025-12-15"},
	{"openai", "whisper-1 gpt-4o-transcribe gpt-4o-transcribe-diarize gpt-4o-mini-transcribe gpt-4o-mini-transcribe-2025-12-15", "2027-02-26 gpt-transcribe"},
	{"openai", "gpt-5.1 gpt-5.3-codex gpt-5.4-nano", "2027-04-01"},
	// the models of npm @anthropic-ai/sdk 1.12.0 that it warns of;
	// https://platform.claude.com/docs/en/about-claude/model-deprecations
	{"anthropic", "claude-sonnet-4-5 claude-sonnet-4-5-20250929", "2026-11-30 claude-sonnet-5-5"},
	// https://ai.google.dev/gemini-api/docs/deprecations, as of 2026-11-10: from that day they are
	// answered by their successors. Days before which a model does not end are left out.
	{"gemini", "gemini-2.5-pro", "2026-12-01 gemini-3.8-flash"},
	{"gemini", "gemini-2.5-flash", "2026-12-01 gemini-3.5-flash-lite"},
	{"gemini", "gemini-3-pro-image-preview", "2026-06-25 gemini-3-pro-image"},
	// gemini-3.1-flash-image followed and ended on 2026-10-29: https://github.com/BerriAI/litellm/discussions/44983
	{"gemini", "gemini-3.1-flash-image-preview", "2026-06-25 gemini-nano-banana-2.1"},
	{"gemini", "veo-2.0-generate-001 veo-3.0-generate-001", "2026-06-30 veo-3.1-generate-preview"},
	{"gemini", "veo-3.0-fast-generate-001", "2026-06-30 veo-3.1-fast-generate-preview"},
	// https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/model-versions, as of 2026-08-21
	{"vertex", "gemini-2.5-pro", "2026-10-20 gemini-3.5-flash"},
	{"vertex", "gemini-2.5-flash", "2026-10-20 gemini-3.5-flash-lite"},
	{"vertex", "gemini-2.5-flash-lite", "2026-10-20 gemini-3.1-flash-lite"},
	// https://docs.aws.amazon.com/bedrock/latest/userguide/model-lifecycle.html, as of 2026-08-03
	{"bedrock", "anthropic.claude-opus-4-1-20250805-v1:0 us.anthropic.claude-opus-4-1-20250805-v1:0", "2027-01-08"},
	{"bedrock", "amazon.nova-canvas-v1:0", "2026-09-30"},
	{"bedrock", "us.amazon.nova-premier-v1:0", "2026-09-14 us.amazon.nova-pro-v1:0"},
	// https://docs.mistral.ai/getting-started/models/models_overview/, as of 2026-08-03
	{"mistral", "mistral-medium-2505 mistral-medium-2508", "2026-08-31 mistral-medium-2604"},
	// https://www.alibabacloud.com/help/en/model-studio/model-depreciation, as of 2026-08-03
	{"qwen", "qwen3-14b qwen3-32b", "2026-10-10 qwen3.6-flash"},
	{"qwen", "qwen3-30b-a3b qwen3-coder-plus", "2026-10-10 qwen3.7-plus"},
	{"qwen", "qwen3-max-preview", "2026-10-10 qwen3-max"},
}

// deprecate marks the models that models.dev calls deprecated, and those of ends.
func deprecate(all map[string]list) {
	list := readList(modelsDev)
	for alias, l := range all {
		for key, r := range l {
			if list[alias+"/"+r.id].status == "deprecated" {
				r.deprecated = "-"
			}
			for _, e := range ends {
				for id := range strings.FieldsSeq(e.ids) {
					if e.alias == alias && id == r.id {
						r.deprecated = e.end
					}
				}
			}
			l[key] = r
		}
	}
}
