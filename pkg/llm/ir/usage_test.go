package ir

import "testing"

type fixed struct{ input, output int64 }

func (f fixed) InputTokens() int64  { return f.input }
func (f fixed) OutputTokens() int64 { return f.output }

func TestSettleReplacesWhatIsNotStated(t *testing.T) {
	const context, longest = 200_000, 64_000
	e := fixed{1000, 50}
	for _, tt := range []struct {
		name         string
		stated, want Usage
	}{
		{"stated", Usage{Known: true, Input: 900, Output: 40, CacheRead: 800, Reasoning: 9}, Usage{Known: true, Input: 900, Output: 40, CacheRead: 800, Reasoning: 9}},
		{"nothing", Usage{}, Usage{Known: true, Input: 1000, Output: 50, Estimated: true}},
		{"empty, zeros, texts, null, negative", Usage{Known: true}, Usage{Known: true, Input: 1000, Output: 50, Estimated: true}},
		{"zero beside a text", Usage{Known: true, Input: 900}, Usage{Known: true, Input: 900, Output: 50, Estimated: true}},
		{"no input", Usage{Known: true, Output: 40}, Usage{Known: true, Input: 1000, Output: 40, Estimated: true}},
		{"at the beginning", Usage{Known: true, Input: 900, CacheRead: 90, Output: 1, Begun: true}, Usage{Known: true, Input: 900, CacheRead: 90, Output: 50, Begun: true, Estimated: true}},
		{"more than was estimated at the beginning", Usage{Known: true, Input: 900, Output: 60, Begun: true}, Usage{Known: true, Input: 900, Output: 60, Begun: true, Estimated: true}},
		{"absurd", Usage{Known: true, Input: 1 << 40, Output: 1 << 40, Reasoning: 1 << 40, CacheRead: 5}, Usage{Known: true, Input: 1000, Output: 50, Estimated: true}},
		{"over the context", Usage{Known: true, Input: 2*context + 1, Output: 40}, Usage{Known: true, Input: 1000, Output: 40, Estimated: true}},
		{"a list that lags behind", Usage{Known: true, Input: 2 * context, Output: 2 * longest}, Usage{Known: true, Input: 2 * context, Output: 2 * longest}},
		{"over the longest answer", Usage{Known: true, Input: 900, Output: 2*longest + 1}, Usage{Known: true, Input: 900, Output: 50, Estimated: true}},
		{"tools read the prompt again", Usage{Known: true, Input: 8 * context, Output: 40, Searches: 9}, Usage{Known: true, Input: 8 * context, Output: 40, Searches: 9}},
		{"more from the cache than was read", Usage{Known: true, Input: 100, Output: 40, CacheRead: 5000}, Usage{Known: true, Input: 1000, Output: 40, Estimated: true}},
		{"more audio than was read", Usage{Known: true, Input: 100, Output: 40, AudioInput: 1 << 30}, Usage{Known: true, Input: 1000, Output: 40, Estimated: true}},
		{"more audio from the cache than was", Usage{Known: true, Input: 100, Output: 40, CacheRead: 50, AudioCacheRead: 51}, Usage{Known: true, Input: 1000, Output: 40, Estimated: true}},
		{"more images than was written", Usage{Known: true, Input: 900, Output: 40, ImageOutput: 1 << 30}, Usage{Known: true, Input: 900, Output: 50, Estimated: true}},
		{"more reasoning than output", Usage{Known: true, Input: 900, Output: 40, Reasoning: 1 << 40}, Usage{Known: true, Input: 900, Output: 40, Reasoning: 40}},
		{"absurd searches", Usage{Known: true, Input: 900, Output: 40, Searches: 1 << 30}, Usage{Known: true, Input: 900, Output: 40, Unrated: "web_search"}},
		{"a cost", Usage{Known: true, Cost: 0.5, Charged: true}, Usage{Known: true, Input: 1000, Output: 50, Cost: 0.5, Charged: true, Estimated: true}},
	} {
		got := tt.stated
		got.Settle(e, context, longest)
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		again := got
		if again.Settle(e, context, longest); again != got {
			t.Errorf("%s, settled twice: %+v", tt.name, again)
		}
	}
	silent := Usage{Known: true, Input: 900}
	if silent.Settle(fixed{1000, 0}, context, longest); silent.Output != 0 || silent.Estimated {
		t.Errorf("an answer without a text: %+v", silent)
	}
	own := Usage{Known: true, Input: 9_999_999, Output: 1 << 40}
	if own.Settle(e, 0, 0); own.Input != 9_999_999 || own.Output != 50 {
		t.Errorf("a model without known limits: %+v", own)
	}
	small := Usage{Known: true, Input: SureTokens, Output: 9}
	if small.Settle(e, 2048, 2048); small.Input != SureTokens || small.Estimated {
		t.Errorf("below what is believed of any model: %+v", small)
	}
}

func TestSettleWithoutAnEstimator(t *testing.T) {
	for _, tt := range []struct {
		stated Usage
		known  bool
	}{
		{Usage{Known: true, Input: 5}, true},
		{Usage{Known: true, Output: 5, ImageOutput: 5}, true},
		{Usage{Known: true}, false},
		{Usage{Known: true, Final: true}, true}, // an answer that was canceled
		{Usage{Known: true, Input: 1 << 40, AudioInput: 3}, false},
	} {
		got := tt.stated
		got.Settle(nil, 0, 0)
		if want := tt.stated; tt.known && got != want || !tt.known && got != (Usage{}) {
			t.Errorf("%+v: got %+v", tt.stated, got)
		}
	}
}

func TestSettleReportsCountsThatCannotBeTrue(t *testing.T) {
	for _, tt := range []struct {
		stated Usage
		absurd bool
	}{
		{Usage{}, false},
		{Usage{Known: true}, false},
		{Usage{Known: true, Input: 900, Output: 40}, false},
		{Usage{Known: true, Input: 1 << 40}, true},
		{Usage{Known: true, Input: 900, Output: 1 << 40}, true},
		{Usage{Known: true, Input: 100, Output: 40, CacheRead: 5000}, true},
		{Usage{Known: true, Input: 900, Output: 40, Searches: 1 << 30}, true},
	} {
		for _, e := range []Estimator{nil, fixed{1000, 50}} {
			u := tt.stated
			if got := u.Settle(e, 0, 0); got != tt.absurd {
				t.Errorf("%+v: absurd is %v", tt.stated, got)
			}
		}
	}
}
