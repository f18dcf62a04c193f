package llm

import "testing"

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
	}
	for _, tt := range tests {
		tt.want.Known = true
		if got := UsageOf(tt.dialect, []byte(tt.body)); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// A stream states them in several events.
func TestUsageThatIsBilledApartInStreams(t *testing.T) {
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
	}
	for _, tt := range tests {
		tt.want.Known = true
		o := Observe(tt.dialect)
		o.Sample([]byte(tt.stream))
		got := o.Usage()
		if got.Final = tt.want.Final; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
