package usage

import (
	"fmt"
	"math"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/llm"
)

func TestCost(t *testing.T) {
	tokens := func(u llm.Usage) llm.Usage { u.Known = true; return u }
	tests := []struct {
		name  string
		price catalog.Price
		u     llm.Usage
		m     *Media
		want  float64
		known bool
	}{
		{"every_part_has_its_rate", "4/20/0.4/5", tokens(llm.Usage{Input: 3000, Output: 200, CacheRead: 1000, CacheWrite: 500}), nil, 0.0129, true},
		{"cache_of_an_hour", "4/20/0.4/5/8", tokens(llm.Usage{Input: 3000, CacheWrite: 500, CacheWriteHour: 200}), nil, 0.0131, true},
		{"reasoning_is_part_of_the_output", "4/20", tokens(llm.Usage{Output: 200, Reasoning: 150}), nil, 0.004, true},
		{"nothing_used_costs_nothing", "4/20", tokens(llm.Usage{}), nil, 0, true},
		{"usage_that_is_not_known", "4/20", llm.Usage{Input: 1}, nil, 0, false},
		{"no_price", "", tokens(llm.Usage{Input: 1}), nil, 0, false},
		{"a_rate_that_is_not_known_is_not_guessed", "4/20/0.4", tokens(llm.Usage{Input: 10, CacheRead: 5, CacheWrite: 5}), nil, 0, false},
		{"long_prompts_cost_more", "1/10 >1000=2/15", tokens(llm.Usage{Input: 2000, Output: 100}), nil, 0.0055, true},
		{"service_tier_without_a_price", "1/10", tokens(llm.Usage{Input: 10, Service: "priority"}), nil, 0, false},
		{"audio_has_its_rate", "1/10 audioInput=30 audioOutput=60", tokens(llm.Usage{Input: 30, Output: 20, AudioInput: 20, AudioOutput: 10}), nil, 0.00131, true},
		{"audio_without_a_rate", "1/10", tokens(llm.Usage{Input: 30, AudioInput: 20}), nil, 0, false},
		{"audio_that_may_be_cached", "1/10/0.1 audioInput=30", tokens(llm.Usage{Input: 30, AudioInput: 20, CacheRead: 10}), nil, 0, false},
		{"images_are_read_as_text", "1/10", tokens(llm.Usage{Input: 30, ImageInput: 20}), nil, 0.00003, true},
		{"images_are_not_written_as_text", "1/10", tokens(llm.Usage{Output: 30, ImageOutput: 20}), nil, 0, false},
		{"image_tokens", "5/ imageInput=10 imageOutput=40", tokens(llm.Usage{Input: 300, ImageInput: 200, Output: 1000, ImageOutput: 1000}), nil, 0.0425, true},
		{"images", "image@hd=0.08 image=0.04", llm.Usage{}, &Media{Images: 3}, 0.12, true},
		{"images_of_an_option", "image@hd=0.08 image=0.04", llm.Usage{}, &Media{Images: 3, Options: []string{"hd"}}, 0.24, true},
		{"images_that_are_not_counted", "image=0.04", llm.Usage{}, nil, 0, false},
		{"tokens_of_an_image_with_a_price_of_its_own", "image=0.04", tokens(llm.Usage{Input: 20, Output: 100}), &Media{Images: 1}, 0.04, true},
		{"minutes", "minute=0.006", llm.Usage{}, &Media{Seconds: 90}, 0.009, true},
		{"seconds", "second=0.3", llm.Usage{}, &Media{Seconds: 8}, 2.4, true},
		{"characters", "character=15", llm.Usage{}, &Media{Characters: 1000}, 0.015, true},
		{"request", "request=0.002", llm.Usage{}, nil, 0.002, true},
		{"requests_of_a_call", "request=0.002", llm.Usage{}, &Media{Requests: 3}, 0.006, true},
		{"searches_of_the_vendor", "1/1 search=0.01", tokens(llm.Usage{Input: 1000, Searches: 2}), nil, 0.021, true},
		{"audio_that_was_cached", "4/24/0.4 audioInput=32 audioCacheRead=0.4", tokens(llm.Usage{Input: 3000, CacheRead: 1500, AudioInput: 2000, AudioCacheRead: 1000, CacheByKind: true}), nil, 0.0346, true},
		{"audio_of_which_none_was_cached", "4/24/0.4 audioInput=32", tokens(llm.Usage{Input: 3000, CacheRead: 500, AudioInput: 2000, CacheByKind: true}), nil, 0.0662, true},
		{"as_much_read_as_written_and_heard_as_seen", "4/24/0.4/5 audioInput=32 imageInput=5", tokens(llm.Usage{Input: 3000, CacheRead: 500, CacheWrite: 500, AudioInput: 200, ImageInput: 200}), nil, 0, false},
		{"cached_audio_without_a_rate", "4/24/0.4 audioInput=32", tokens(llm.Usage{Input: 3000, CacheRead: 1500, AudioInput: 2000, AudioCacheRead: 1000, CacheByKind: true}), nil, 0, false},
		{"images_that_were_cached", "4/24/0.4 imageInput=5 imageCacheRead=0.5", tokens(llm.Usage{Input: 3000, CacheRead: 1500, ImageInput: 2000, ImageCacheRead: 1000, CacheByKind: true}), nil, 0.0077, true},
		{"cached_images_are_text_without_a_rate", "4/24/0.4", tokens(llm.Usage{Input: 3000, CacheRead: 1500, ImageInput: 2000, ImageCacheRead: 1000, CacheByKind: true}), nil, 0.0066, true},
		{"audio_of_a_service_tier", "1/10 @flex=0.5/5 audioInput@flex=2 audioInput=4", tokens(llm.Usage{Input: 1000, AudioInput: 1000, Service: "flex"}), nil, 0.002, true},
		{"a_compaction_is_no_long_prompt", "1/10 >200000=2/20", tokens(llm.Usage{Input: 203_000, Output: 4500, Apart: 180_000}), nil, 0.248, true},
		{"searches_that_are_billed_once", "1/1 grounded=0.035", tokens(llm.Usage{Input: 1000, Searches: 3}), nil, 0.036, true},
		{"tools", "1/1 fileSearch=0.0025 maps=0.025 code@1g=0.03 code@4g=0.12", tokens(llm.Usage{FileSearches: 2, Maps: 1, Code: 2, ToolOptions: "4g"}), nil, 0.27, true},
		{"tool_with_an_option_without_a_rate", "1/1 code@1g=0.03", tokens(llm.Usage{Code: 1, ToolOptions: "128g"}), nil, 0, false},
		{"options_of_tools_that_are_not_used", "1/1 code@1g=0.03", tokens(llm.Usage{Input: 1000}), nil, 0.001, true},
		{"part_that_no_price_has", "1/1", tokens(llm.Usage{Input: 1000, Unrated: "image_generation"}), nil, 0, false},
		{"part_that_no_price_has_of_a_free_model", "0/0", tokens(llm.Usage{Input: 1000, Unrated: "image_generation"}), nil, 0, true},
		{"searches_without_a_rate", "1/1", tokens(llm.Usage{Input: 1000, Searches: 2}), nil, 0, false},
		{"request_and_tokens", "1/1 request=0.005", tokens(llm.Usage{Input: 1000, Output: 1000}), nil, 0.007, true},
		{"stated_by_the_vendor", "1/1", tokens(llm.Usage{Input: 1000, Output: 1000, Cost: 0.25, Charged: true}), nil, 0.25, true},
		{"a_duration_that_cannot_be", "second=0.3", llm.Usage{}, &Media{Seconds: 1e308}, 0, false},
		{"free_however_it_is_used", "0/0", llm.Usage{Input: 5, CacheRead: 5, Service: "priority"}, nil, 0, true},
	}
	for _, tt := range tests {
		got, known := Cost(tt.price, &tt.u, tt.m)
		if known != tt.known || math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: got %v %v, want %v %v", tt.name, got, known, tt.want, tt.known)
		}
	}
}

func TestMissingPartsAreNamed(t *testing.T) {
	tokens := func(u llm.Usage) llm.Usage { u.Known = true; return u }
	tests := []struct {
		price catalog.Price
		u     llm.Usage
		m     *Media
		want  string
	}{
		{"1/1", tokens(llm.Usage{Input: 5, Searches: 1, FileSearches: 2, Maps: 1, Code: 1}), nil, "[web_search maps file_search code_execution]"},
		{"1/1", tokens(llm.Usage{Input: 9, AudioInput: 5, CacheRead: 4}), nil, "[cached_audio]"},
		{"1/1/1 audioInput=2", tokens(llm.Usage{Input: 9, AudioInput: 5, CacheRead: 4, AudioCacheRead: 4, CacheByKind: true}), nil, "[cached_audio]"},
		{"1/1", tokens(llm.Usage{Service: "flex"}), nil, "[service_tier]"},
		{"1/1", llm.Usage{}, nil, "[tokens]"},
		{"1/1", tokens(llm.Usage{Searches: 1, Unrated: "image_generation advisor"}), nil, "[image_generation advisor web_search]"},
		{"image@hd=1", llm.Usage{}, &Media{Images: 1, Options: []string{"low"}}, "[options]"},
		{"image=1", llm.Usage{}, nil, "[images]"},
		{"", tokens(llm.Usage{Searches: 1}), nil, "[]"},
		{"", llm.Usage{Unrated: "transcription"}, nil, "[transcription]"},
		{"1/1", tokens(llm.Usage{Input: 5}), nil, "[]"},
		{"0/0", tokens(llm.Usage{Searches: 5}), nil, "[]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(Missing(tt.price, &tt.u, tt.m)); got != tt.want {
			t.Errorf("Missing(%q, %+v) = %s, want %s", tt.price, tt.u, got, tt.want)
		}
	}
}

func TestCostDoesNotAllocate(t *testing.T) {
	u := llm.Usage{Input: 3000, Output: 200, CacheRead: 1000, Known: true}
	if n := testing.AllocsPerRun(100, func() { Cost(catalog.PriceOf("openai", "gpt-5.4"), &u, nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
