package usage

import (
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

func TestCostDoesNotAllocate(t *testing.T) {
	u := llm.Usage{Input: 3000, Output: 200, CacheRead: 1000, Known: true}
	if n := testing.AllocsPerRun(100, func() { Cost(catalog.PriceOf("openai", "gpt-5.4"), &u, nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
