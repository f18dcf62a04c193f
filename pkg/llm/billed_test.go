package llm

import (
	"strings"
	"testing"
)

// Parts of an answer that have prices of their own are read where vendors state them.
func TestUsageThatIsBilledApart(t *testing.T) {
	tests := []struct {
		name    string
		dialect Dialect
		body    string
		want    Usage
	}{
		{"audio_tokens", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8,"prompt_tokens_details":{"audio_tokens":5},"completion_tokens_details":{"audio_tokens":4,"image_tokens":3}}}`,
			Usage{Input: 9, Output: 8, AudioInput: 5, AudioOutput: 4, ImageOutput: 3}},
		{"reasoning_beside_the_output", Chat, `{"usage":{"prompt_tokens":37,"completion_tokens":530,"total_tokens":800,"completion_tokens_details":{"reasoning_tokens":233}}}`,
			Usage{Input: 37, Output: 763, Reasoning: 233}},
		{"reasoning_in_the_output", Chat, `{"usage":{"prompt_tokens":37,"completion_tokens":530,"total_tokens":567,"completion_tokens_details":{"reasoning_tokens":233}}}`,
			Usage{Input: 37, Output: 530, Reasoning: 233}},
		{"service_tier", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8},"service_tier":"flex"}`, Usage{Input: 9, Output: 8, Service: "flex"}},
		{"standard_tier", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8},"service_tier":"default"}`, Usage{Input: 9, Output: 8}},
		{"cost", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8,"cost":0.5,"is_byok":false,"cost_details":{"upstream_inference_cost":0.5}}}`,
			Usage{Input: 9, Output: 8, Cost: 0.5, Charged: true}},
		{"cost_of_an_own_key", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8,"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":0.25}}}`,
			Usage{Input: 9, Output: 8, Cost: 0.75, Charged: true}},
		{"cost_object", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8,"cost":{"total_cost":0}}}`, Usage{Input: 9, Output: 8, Charged: true}},
		{"cost_in_ticks", Responses, `{"usage":{"input_tokens":9,"output_tokens":8,"cost_in_usd_ticks":37756000}}`, Usage{Input: 9, Output: 8, Cost: 0.0037756, Charged: true}},
		{"negative_cost", Chat, `{"usage":{"prompt_tokens":9,"completion_tokens":8,"cost":-1}}`, Usage{Input: 9, Output: 8}},
		{"tier_of_responses", Responses, `{"service_tier":"priority","usage":{"input_tokens":9,"output_tokens":8}}`, Usage{Input: 9, Output: 8, Service: "priority"}},
		{"cache_of_an_hour", Messages, `{"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"service_tier":"standard"}}`,
			Usage{Input: 31, Output: 2, CacheWrite: 30, CacheWriteHour: 20}},
		{"searches", Messages, `{"usage":{"input_tokens":1,"output_tokens":2,"server_tool_use":{"web_search_requests":3}}}`, Usage{Input: 1, Output: 2, Searches: 3}},
		{"tier_speed_and_place", Messages, `{"usage":{"input_tokens":1,"output_tokens":2,"service_tier":"priority","speed":"fast","inference_geo":"us"}}`,
			Usage{Input: 1, Output: 2, Service: "priority+fast+us"}},
		{"modalities", Gemini, `{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":8,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4},{"modality":"AUDIO","tokenCount":5}],"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":7}],"trafficType":"ON_DEMAND"}}`,
			Usage{Input: 9, Output: 8, AudioInput: 5, ImageOutput: 7}},
		{"details_of_the_cache", Converse, `{"serviceTier":{"type":"flex"},"usage":{"inputTokens":1,"outputTokens":2,"cacheWriteInputTokens":30,"cacheDetails":[{"ttl":"5m","inputTokens":10},{"ttl":"1h","inputTokens":20}]}}`,
			Usage{Input: 31, Output: 2, CacheWrite: 30, CacheWriteHour: 20, Service: "flex"}},
		{"traffic_type", Gemini, `{"usageMetadata":{"promptTokenCount":9,"trafficType":"ON_DEMAND_FLEX","serviceTier":"flex"}}`, Usage{Input: 9, Service: "flex"}},
		{"provisioned", Gemini, `{"usageMetadata":{"promptTokenCount":9,"trafficType":"PROVISIONED_THROUGHPUT"}}`, Usage{Input: 9, Service: "provisioned_throughput"}},
		{"cached_audio", Gemini, `{"usageMetadata":{"promptTokenCount":90,"cachedContentTokenCount":50,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":60}],"cacheTokensDetails":[{"modality":"TEXT","tokenCount":10},{"modality":"AUDIO","tokenCount":40}]}}`,
			Usage{Input: 90, CacheRead: 50, AudioInput: 60, AudioCacheRead: 40, CacheByKind: true}},
		{"batch", Messages, `{"usage":{"input_tokens":1,"output_tokens":2,"service_tier":"batch"}}`, Usage{Input: 1, Output: 2, Service: "batch"}},
		{"searches_of_pages", Responses, `{"output":[{"type":"web_search_call","action":{"type":"search"}},{"type":"web_search_call","action":{"type":"open_page"}},{"type":"web_search_call"}],"usage":{"input_tokens":9,"output_tokens":8}}`,
			Usage{Input: 9, Output: 8, Searches: 2}},
		{"searches_that_are_stated", Responses, `{"output":[{"type":"web_search_call"},{"type":"web_search_call"}],"tool_usage":{"web_search":{"num_requests":1}},"usage":{"input_tokens":9,"output_tokens":8}}`,
			Usage{Input: 9, Output: 8, Searches: 1}},
		{"search_by_the_preview", Responses, `{"tools":[{"type":"web_search_preview_2025_03_11"}],"output":[{"type":"web_search_call"}],"usage":{"input_tokens":9,"output_tokens":8}}`,
			Usage{Input: 9, Output: 8, Searches: 1, ToolOptions: "preview"}},
		{"files_code_and_images", Responses, `{"tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g"}}],"output":[{"type":"file_search_call"},{"type":"file_search_call"},{"type":"code_interpreter_call","container_id":"c1"},{"type":"code_interpreter_call","container_id":"c1"},{"type":"image_generation_call","result":"iVBO"}],"usage":{"input_tokens":9,"output_tokens":8}}`,
			Usage{Input: 9, Output: 8, FileSearches: 2, Code: 1, ToolOptions: "4g", Unrated: "image_generation"}},
		{"usual_container", Responses, `{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"output":[{"type":"code_interpreter_call","container_id":"c1"}],"usage":{"input_tokens":9,"output_tokens":8}}`,
			Usage{Input: 9, Output: 8, Code: 1, ToolOptions: "1g"}},
		{"tools_that_are_not_used", Responses, `{"tools":[{"type":"web_search"}],"output":[{"type":"function_call","name":"web_search_call"}],"tool_usage":{"web_search":{"num_requests":0}},"usage":{"input_tokens":9,"output_tokens":8}}`,
			Usage{Input: 9, Output: 8}},
		{"tools_of_xai", Responses, `{"output":[{"type":"web_search_call"}],"usage":{"input_tokens":9,"output_tokens":8,"num_server_side_tools_used":6,"server_side_tool_usage_details":{"web_search_calls":2,"x_search_calls":3,"code_interpreter_calls":1,"file_search_calls":1,"mcp_calls":4,"document_search_calls":1}}}`,
			Usage{Input: 9, Output: 8, Searches: 5, FileSearches: 1, Code: 1, Unrated: "document_search"}},
		{"tools_of_xai_in_chat", Chat, `{"model":"grok-4.3","usage":{"prompt_tokens":9,"completion_tokens":8,"server_side_tool_usage_details":{"x_search_calls":3}}}`,
			Usage{Input: 9, Output: 8, Searches: 3}},
		{"model_that_searches", Chat, `{"model":"gpt-5-search-api-2025-10-14","usage":{"prompt_tokens":9,"completion_tokens":8}}`, Usage{Input: 9, Output: 8, Searches: 1}},
		{"preview_that_searches", Chat, `{"model":"gpt-4o-search-preview","usage":{"prompt_tokens":9,"completion_tokens":8}}`, Usage{Input: 9, Output: 8, Searches: 1, ToolOptions: "preview"}},
		{"grounding", Gemini, `{"candidates":[{"groundingMetadata":{"webSearchQueries":["a","","b"],"groundingChunks":[{"web":{"uri":"u"}}]}}],"usageMetadata":{"promptTokenCount":9}}`, Usage{Input: 9, Searches: 2}},
		{"grounding_by_maps", Gemini, `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}},{"maps":{"uri":"m"}}]}}],"usageMetadata":{"promptTokenCount":9}}`, Usage{Input: 9, Maps: 1}},
		{"grounding_by_own_data", Gemini, `{"candidates":[{"groundingMetadata":{"retrievalQueries":["a"]}}],"usageMetadata":{"promptTokenCount":9}}`, Usage{Input: 9, Unrated: "retrieval"}},
		{"grounding_without_a_search", Gemini, `{"candidates":[{"groundingMetadata":{}}],"usageMetadata":{"promptTokenCount":9}}`, Usage{Input: 9}},
		// the example of https://platform.claude.com/docs/en/build-with-claude/compaction
		{"compaction", Messages, `{"usage":{"input_tokens":23000,"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}}`,
			Usage{Input: 203_000, Output: 4500, Apart: 180_000}},
		{"compaction_from_the_cache", Messages, `{"usage":{"input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1,"iterations":[{"type":"compaction","input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":10,"output_tokens":7},{"type":"message","input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1}]}}`,
			Usage{Input: 138, CacheRead: 120, CacheWrite: 10, Output: 8, Apart: 115}},
		{"models_of_others", Messages, `{"usage":{"input_tokens":3,"output_tokens":1,"iterations":[{"type":"message","input_tokens":3,"output_tokens":1},{"type":"advisor_message","model":"claude-opus-4-8","input_tokens":50,"output_tokens":9}]}}`,
			Usage{Input: 3, Output: 1, Unrated: "advisor"}},
		{"container", Messages, `{"container":{"id":"container_1","expires_at":"2026-11-23T00:00:00Z"},"usage":{"input_tokens":3,"output_tokens":1}}`, Usage{Input: 3, Output: 1, Code: 1}},
		{"container_of_a_search", Messages, `{"container":{"id":"container_1"},"usage":{"input_tokens":3,"output_tokens":1,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":1}}}`, Usage{Input: 3, Output: 1}},
		{"no_container", Messages, `{"container":null,"usage":{"input_tokens":3,"output_tokens":1}}`, Usage{Input: 3, Output: 1}},
	}
	for _, tt := range tests {
		tt.want.Known = true
		got := UsageOf(tt.dialect, []byte(tt.body))
		if got.ToolsFinal = false; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// A stream states them in several events.
func TestUsageThatIsBilledApartInStreams(t *testing.T) {
	item := func(item string) string {
		return `data: {"type":"response.output_item.done","output_index":0,"item":` + item + "}\n\n"
	}
	completed := func(members string) string {
		return `data: {"type":"response.completed","response":{` + members + "}}\n\n"
	}
	tests := []struct {
		name    string
		dialect Dialect
		stream  string
		want    Usage
	}{
		{"messages", Messages, `event: message_start
data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":1,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":20},"service_tier":"priority","output_tokens":1}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

`, Usage{Input: 31, Output: 7, CacheWrite: 30, CacheWriteHour: 20, Service: "priority", Final: true}},
		{"chat", Chat, `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}

data: {"choices":[],"service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":8,"cost":0.5}}

data: [DONE]

`, Usage{Input: 9, Output: 8, Service: "flex", Cost: 0.5, Charged: true}},
		{"responses", Responses, `event: response.completed
data: {"type":"response.completed","response":{"service_tier":"priority","output":[],"usage":{"input_tokens":9,"output_tokens":8,"cost_in_usd_ticks":5000000000}}}

`, Usage{Input: 9, Output: 8, Service: "priority", Cost: 0.5, Charged: true}},
		{"tools_of_responses", Responses, item(`{"type":"web_search_call","action":{"type":"search"}}`) + item(`{"type":"web_search_call","action":{"type":"find_in_page"}}`) +
			item(`{"type":"file_search_call"}`) + item(`{"type":"code_interpreter_call","container_id":"c1"}`) + item(`{"type":"code_interpreter_call","container_id":"c1"}`) +
			completed(`"output":[],"usage":{"input_tokens":9,"output_tokens":8}`),
			Usage{Input: 9, Output: 8, Searches: 1, FileSearches: 1, Code: 1}},
		{"tools_that_the_last_event_repeats", Responses, item(`{"type":"web_search_call"}`) + item(`{"type":"web_search_call"}`) +
			completed(`"tools":[{"type":"web_search_preview"}],"output":[{"type":"web_search_call"},{"type":"web_search_call"}],"tool_usage":{"web_search":{"num_requests":1}},"usage":{"input_tokens":9,"output_tokens":8}`),
			Usage{Input: 9, Output: 8, Searches: 1, ToolOptions: "preview"}},
		{"tools_of_a_long_answer", Responses, `data: {"type":"response.created","response":{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}}` + "\n\n" +
			item(`{"type":"code_interpreter_call","container_id":"c1"}`) +
			completed(`"output":[{"type":"message","content":[{"type":"output_text","text":"`+strings.Repeat("long ", 30_000)+`"}]}],"service_tier":"priority","usage":{"input_tokens":9,"output_tokens":8}`),
			Usage{Input: 9, Output: 8, Code: 1, ToolOptions: "1g", Service: "priority"}},
		{"image_of_a_tool", Responses, `data: {"type":"response.image_generation_call.completed","output_index":0}` + "\n\n" +
			item(`{"id":"ig_1","result":"`+strings.Repeat("iVBO", 30_000)+`","type":"image_generation_call"}`) + completed(`"output":[],"usage":{"input_tokens":9,"output_tokens":8}`),
			Usage{Input: 9, Output: 8, Unrated: "image_generation"}},
		{"tools_of_xai", Responses, item(`{"type":"web_search_call"}`) + item(`{"type":"web_search_call"}`) +
			completed(`"output":[],"usage":{"input_tokens":9,"output_tokens":8,"server_side_tool_usage_details":{"web_search_calls":1,"code_interpreter_calls":2}}`),
			Usage{Input: 9, Output: 8, Searches: 1, Code: 2}},
		{"grounding", Gemini, `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":9,"serviceTier":"flex"}}

data: {"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":8}}

`, Usage{Input: 9, Output: 8, Searches: 2, Service: "flex"}},
		{"grounding_of_a_long_answer", Gemini, `data: {"candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("long ", 30_000) + `"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"],"groundingChunks":[{"maps":{"uri":"u"}}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":8}}

`, Usage{Input: 9, Output: 8, Searches: 2, Maps: 1}},
		{"compaction", Messages, `data: {"type":"message_start","message":{"usage":{"input_tokens":23000,"output_tokens":1}}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":23000,"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}}

data: {"type":"message_stop"}

`, Usage{Input: 203_000, Output: 4500, Apart: 180_000, Final: true}},
		{"compaction_without_the_input", Messages, `data: {"type":"message_start","message":{"usage":{"input_tokens":23000,"output_tokens":1}}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c"}},"usage":{"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}}

data: {"type":"message_stop"}

`, Usage{Input: 203_000, Output: 4500, Apart: 180_000, Code: 1, Final: true}},
		{"model_that_searches", Chat, `data: {"model":"gpt-5-search-api","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}

data: {"model":"gpt-5-search-api","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":8}}

data: [DONE]

`, Usage{Input: 9, Output: 8, Searches: 1}},
	}
	for _, tt := range tests {
		tt.want.Known = true
		o := Observe(tt.dialect)
		o.Sample([]byte(tt.stream))
		to := Chat
		if tt.dialect == Chat {
			to = Messages
		}
		opt := Options{Tools: &Tools{}}
		translated := Stream(tt.dialect, to, opt)
		translated.Push([]byte(tt.stream), nil)
		for path, got := range map[string]Usage{"same dialect": o.Usage(), "translated": translated.Usage()} {
			if got.Final, got.ToolsFinal = tt.want.Final, false; got != tt.want {
				t.Errorf("%s, %s: got %+v, want %+v", tt.name, path, got, tt.want)
			}
		}
	}
}
