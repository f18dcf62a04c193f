package quota

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/httpmsg"
)

// now is 2026-11-22 19:00:00 UTC, 11:00 in California.
var now = time.Date(2026, 11, 22, 19, 0, 0, 0, time.UTC).UnixMilli()

const sec = int64(1000)

// answers has an answer, or several, for each form, by its vendor and its fields.
// A header is written as "name: value" lines.
var answers = []struct {
	vendor, fields string // part of Fields
	header, body   string
	requests       int64 // Call.Requests
	want           []Window
}{
	{
		vendor: "Anthropic, API key", fields: "input-tokens",
		header: "anthropic-ratelimit-requests-limit: 1000\nanthropic-ratelimit-requests-remaining: 999\nanthropic-ratelimit-requests-reset: 2026-11-22T19:00:01Z\n" +
			"anthropic-ratelimit-input-tokens-limit: 40000\nanthropic-ratelimit-input-tokens-remaining: 39000\nanthropic-ratelimit-input-tokens-reset: 2026-11-22T19:00:12Z\n" +
			"anthropic-ratelimit-output-tokens-limit: 8000\nanthropic-ratelimit-output-tokens-remaining: 0\nanthropic-ratelimit-output-tokens-reset: 2026-11-22T19:00:30Z",
		want: []Window{
			{Name: "requests", Model: "m", Left: 0.999, Limit: 1000, Remaining: 999, ResetsAt: now + sec, Span: 60},
			{Name: "input-tokens", Model: "m", Left: 0.975, Limit: 40000, Remaining: 39000, ResetsAt: now + 12*sec, Span: 60},
			{Name: "output-tokens", Model: "m", Left: 0, Limit: 8000, Remaining: 0, ResetsAt: now + 30*sec, Span: 60},
		},
	},
	{
		vendor: "Anthropic, subscription", fields: "{5h,7d}",
		header: "anthropic-ratelimit-unified-status: allowed\nanthropic-ratelimit-unified-5h-status: allowed\nanthropic-ratelimit-unified-5h-utilization: 0.42\nanthropic-ratelimit-unified-5h-reset: 1795384800\n" +
			"anthropic-ratelimit-unified-7d-status: allowed_warning\nanthropic-ratelimit-unified-7d-utilization: 0.97\nanthropic-ratelimit-unified-7d-reset: 1795892400\n" +
			"anthropic-ratelimit-unified-representative-claim: five_hour\nanthropic-ratelimit-unified-fallback-percentage: 0.5\nanthropic-ratelimit-unified-reset: 1795384800\n" +
			"anthropic-ratelimit-unified-overage-status: rejected\nanthropic-ratelimit-unified-overage-disabled-reason: org_level_disabled\nanthropic-ratelimit-unified-overage-utilization: 1",
		want: []Window{
			{Name: "5h", Left: 0.58, ResetsAt: 1795384800000, Span: 5 * hour},
			{Name: "7d", Left: 0.03, ResetsAt: 1795892400000, Span: week},
		},
	},
	{
		vendor: "Anthropic, subscription", fields: "{5h,7d}",
		header: "anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-5h-status: rejected\nanthropic-ratelimit-unified-5h-reset: 2026-11-22T22:00:00Z",
		want:   []Window{{Name: "5h", Left: 0, ResetsAt: now + 3*hour*sec, Span: 5 * hour}},
	},
	{
		vendor: "Anthropic, subscription", fields: "7d_{family}",
		header: "anthropic-ratelimit-unified-7d_opus-utilization: 1.02\nanthropic-ratelimit-unified-7d_opus-reset: 1795892400",
		want:   []Window{{Name: "7d_opus", Model: "m", Left: 0, ResetsAt: 1795892400000, Span: week}},
	},
	{
		vendor: "OpenAI", fields: "{requests,tokens}",
		header: "x-ratelimit-limit-requests: 5000\nx-ratelimit-limit-tokens: 160000\nx-ratelimit-remaining-requests: 4999\nx-ratelimit-remaining-tokens: 40000\nx-ratelimit-reset-requests: 12ms\nx-ratelimit-reset-tokens: 6m0s",
		want: []Window{
			{Name: "requests", Model: "m", Left: 0.9998, Limit: 5000, Remaining: 4999, ResetsAt: now + 12},
			{Name: "tokens", Model: "m", Left: 0.25, Limit: 160000, Remaining: 40000, ResetsAt: now + 360*sec},
		},
	},
	{
		vendor: "OpenAI, ChatGPT subscription", fields: "reset-after-seconds",
		header: "x-codex-active-limit: premium\nx-codex-plan-type: plus\nx-codex-primary-used-percent: 42\nx-codex-primary-window-minutes: 300\nx-codex-primary-reset-after-seconds: 18000\n" +
			"x-codex-secondary-used-percent: 94\nx-codex-secondary-window-minutes: 10080\nx-codex-secondary-reset-at: 1795892400\nx-codex-secondary-reset-after-seconds: 7\n" +
			"x-codex-credits-has-credits: False\nx-codex-credits-balance: 0\nx-codex-bengalfox-primary-used-percent: 80\nx-codex-turn-state: abc",
		want: []Window{
			{Name: "primary", Left: 0.58, ResetsAt: now + 18000*sec, Span: 5 * hour},
			{Name: "secondary", Left: 0.06, ResetsAt: 1795892400000, Span: week},
		},
	},
	{
		vendor: "OpenAI, ChatGPT subscription", fields: "usage_limit_reached",
		body: `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":1795395600,"resets_in_seconds":10800}}`,
		want: []Window{{Name: "usage", Left: 0, ResetsAt: now + 10800*sec}},
	},
	{ // the header says it already
		vendor: "OpenAI, ChatGPT subscription", fields: "usage_limit_reached",
		header: "x-codex-primary-used-percent: 100\nx-codex-primary-reset-after-seconds: 18000",
		body:   `{"error":{"type":"usage_limit_reached","resets_in_seconds":18000}}`,
		want:   []Window{{Name: "primary", Left: 0, ResetsAt: now + 18000*sec}},
	},
	{
		vendor: "Azure OpenAI", fields: "-1",
		header: "x-ratelimit-limit-tokens: -1\nx-ratelimit-remaining-tokens: -1\nx-ratelimit-reset-tokens: 0\nx-ratelimit-limit-requests: 100\nx-ratelimit-remaining-requests: 50\nx-ratelimit-reset-requests: 10",
		want:   []Window{{Name: "requests", Model: "m", Left: 0.5, Limit: 100, Remaining: 50, ResetsAt: now + 10*sec}},
	},
	{
		vendor: "Groq", fields: "-requests", requests: day,
		header: "x-ratelimit-limit-requests: 14400\nx-ratelimit-remaining-requests: 14370\nx-ratelimit-reset-requests: 2m59.56s",
		want:   []Window{{Name: "requests", Model: "m", Left: 14370.0 / 14400, Limit: 14400, Remaining: 14370, ResetsAt: now + 179560, Span: day}},
	},
	{
		vendor: "Groq", fields: "-tokens", requests: day,
		header: "x-ratelimit-limit-tokens: 18000\nx-ratelimit-remaining-tokens: 17997\nx-ratelimit-reset-tokens: 7.66s",
		want:   []Window{{Name: "tokens", Model: "m", Left: 17997.0 / 18000, Limit: 18000, Remaining: 17997, ResetsAt: now + 7660}},
	},
	{
		vendor: "Cerebras", fields: "requests-day",
		header: "x-ratelimit-limit-requests-day: 1000\nx-ratelimit-limit-tokens-minute: 60000\nx-ratelimit-remaining-requests-day: 0\nx-ratelimit-remaining-tokens-minute: 60000\nx-ratelimit-reset-requests-day: 33011.382867\nx-ratelimit-reset-tokens-minute: 11.38",
		want: []Window{
			{Name: "requests-day", Model: "m", Left: 0, Limit: 1000, ResetsAt: now + 33011382, Span: day},
			{Name: "tokens-minute", Model: "m", Left: 1, Limit: 60000, Remaining: 60000, ResetsAt: now + 11380, Span: 60},
		},
	},
	{
		vendor: "SambaNova", fields: "requests-day",
		header: "x-ratelimit-limit-requests: 60\nx-ratelimit-remaining-requests: 30\nx-ratelimit-reset-requests: 1795374060\nx-ratelimit-limit-requests-day: 12000\nx-ratelimit-remaining-requests-day: 3000\nx-ratelimit-reset-requests-day: 1795392000",
		want: []Window{
			{Name: "requests", Model: "m", Left: 0.5, Limit: 60, Remaining: 30, ResetsAt: 1795374060000},
			{Name: "requests-day", Model: "m", Left: 0.25, Limit: 12000, Remaining: 3000, ResetsAt: 1795392000000, Span: day},
		},
	},
	{
		vendor: "Mistral", fields: "tokens-5-minute",
		header: "x-ratelimit-limit-req-minute: 60\nx-ratelimit-remaining-req-minute: 59\nx-ratelimit-limit-tokens-5-minute: 8000\nx-ratelimit-remaining-tokens-5-minute: 2000\nx-ratelimit-limit-tokens-month: 1000000000\nx-ratelimit-remaining-tokens-month: 500000000\nx-ratelimit-tokens-query-cost: 32",
		want: []Window{
			{Name: "req-minute", Model: "m", Left: 59.0 / 60, Limit: 60, Remaining: 59, Span: 60},
			{Name: "tokens-5-minute", Model: "m", Left: 0.25, Limit: 8000, Remaining: 2000, Span: 300},
			{Name: "tokens-month", Model: "m", Left: 0.5, Limit: 1e9, Remaining: 5e8, Span: month},
		},
	},
	{
		vendor: "Mistral", fields: "bysize",
		header: "x-ratelimitbysize-limit-minute: 500000\nx-ratelimitbysize-remaining-minute: 499000\nx-ratelimitbysize-limit-month: 1000000000\nx-ratelimitbysize-remaining-month: 999000000\nx-ratelimitbysize-query-cost: 32\nratelimitbysize-reset: 51",
		want: []Window{
			{Name: "tokens-minute", Model: "m", Left: 0.998, Limit: 500000, Remaining: 499000, Span: 60},
			{Name: "tokens-month", Model: "m", Left: 0.999, Limit: 1e9, Remaining: 999e6, Span: month},
		},
	},
	{
		vendor: "Together", fields: "x-tokenlimit",
		header: "x-ratelimit-limit: 10\nx-ratelimit-remaining: 9\nx-ratelimit-reset: 1\nx-tokenlimit-limit: 3000\nx-tokenlimit-remaining: 1500",
		want: []Window{
			{Name: "requests", Model: "m", Left: 0.9, Limit: 10, Remaining: 9, ResetsAt: now + sec},
			{Name: "tokens", Model: "m", Left: 0.5, Limit: 3000, Remaining: 1500},
		},
	},
	{
		vendor: "Fireworks", fields: "generated",
		header: "x-ratelimit-limit-tokens-prompt: 60000\nx-ratelimit-limit-tokens-generated: 6000\nx-ratelimit-remaining-tokens-generated: 3000\nx-ratelimit-over-limit: no",
		want:   []Window{{Name: "tokens-generated", Model: "m", Left: 0.5, Limit: 6000, Remaining: 3000}},
	},
	{
		vendor: "DigitalOcean", fields: "tokens-per-day",
		header: "x-ratelimit-limit-tokens-per-day: 1000000\nx-ratelimit-remaining-tokens-per-day: 250000\nx-ratelimit-reset-tokens-per-day: 1795392000\nx-ratelimit-limit-tokens-per-minute: 10\nx-ratelimit-remaining-tokens-per-minute: 10",
		want: []Window{
			{Name: "tokens-per-day", Model: "m", Left: 0.25, Limit: 1e6, Remaining: 250000, ResetsAt: 1795392000000, Span: day},
			{Name: "tokens-per-minute", Model: "m", Left: 1, Limit: 10, Remaining: 10, Span: 60},
		},
	},
	{
		vendor: "Brave Search", fields: "policy",
		header: "x-ratelimit-limit: 1, 15000\nx-ratelimit-policy: 1;w=1, 15000;w=2592000\nx-ratelimit-remaining: 1, 1500\nx-ratelimit-reset: 1, 1419704",
		want:   []Window{{Name: "requests", Model: "m", Left: 0.1, Limit: 15000, Remaining: 1500, ResetsAt: now + 1419704*sec, Span: month}},
	},
	{ // 0 means unlimited
		vendor: "Brave Search", fields: "policy",
		header: "x-ratelimit-limit: 50, 0\nx-ratelimit-policy: 50;w=1, 0;w=2592000\nx-ratelimit-remaining: 49, 0\nx-ratelimit-reset: 1, 1419704",
	},
	{
		vendor: "Hugging Face", fields: "ratelimit-policy",
		header: "ratelimit: \"api\";r=125;t=55\nratelimit-policy: \"fixed window\";\"api\";q=500;w=300",
		want:   []Window{{Name: "requests", Model: "m", Left: 0.25, Limit: 500, Remaining: 125, ResetsAt: now + 55*sec, Span: 300}},
	},
	{
		vendor: "others", fields: "ratelimit-{limit",
		header: "ratelimit-limit: 100\nratelimit-remaining: 9\nratelimit-reset: 6",
		want:   []Window{{Name: "requests", Model: "m", Left: 0.09, Limit: 100, Remaining: 9, ResetsAt: now + 6*sec}},
	},
	{
		vendor: "others", fields: "ratelimit-{limit",
		header: "ratelimit-limit: 100\nratelimit-remaining: 5000\nratelimit-reset: 6",
		want:   []Window{{Name: "requests", Model: "m", Left: 1, Limit: 100, Remaining: 100, ResetsAt: now + 6*sec}},
	},
	{
		vendor: "OpenRouter", fields: "error.metadata.headers",
		body: `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795392000000"},"provider_name":null}}}`,
		want: []Window{{Name: "requests", Model: "m", Left: 0, Limit: 50, ResetsAt: 1795392000000}},
	},
	{
		vendor: "Gemini", fields: "PerDay",
		body: `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaDimensions":{"location":"global","model":"m"},"quotaValue":"20"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38s"}]}}]`,
		want: []Window{{Name: "requests-day", Model: "m", Left: 0, Limit: 20, ResetsAt: now + 13*hour*sec, Span: day}},
	},
	{
		vendor: "Gemini", fields: "PerMinute",
		body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier","quotaValue":"250000"},{"quotaId":"SomethingElse"}]},{"retryDelay":"31.5s"}]}}`,
		want: []Window{{Name: "tokens-minute", Model: "m", Left: 0, Limit: 250000, ResetsAt: now + 31*sec, Span: 60}},
	},
	{
		vendor: "others", fields: "resets_in_seconds",
		body: `{"resets_in_seconds":"90","error":{"message":"no"}}`,
		want: []Window{{Name: "usage", Model: "m", Left: 0, ResetsAt: now + 90*sec}},
	},
}

func header(lines string) (h httpmsg.Header) {
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		h = append(h, httpmsg.Field{Name: name, Value: value})
	}
	return h
}

func TestEveryForm(t *testing.T) {
	shown := map[Form]bool{}
	for _, tt := range answers {
		t.Run(tt.vendor+" "+tt.fields, func(t *testing.T) {
			for _, f := range Forms() {
				if f.Vendor == tt.vendor && strings.Contains(f.Fields, tt.fields) {
					shown[f] = true
				}
			}
			c := Call{Model: "m", Requests: tt.requests, Now: now}
			if tt.header != "" && !Stated(header(tt.header)) {
				t.Error("the header is not looked at")
			}
			got := ReadBody(Read(nil, header(tt.header), c), []byte(tt.body), c)
			for i := range tt.want {
				tt.want[i].At = now
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, tt.want)
			}
		})
	}
	for _, f := range Forms() {
		if !shown[f] {
			t.Errorf("no answer for %s: %s", f.Vendor, f.Fields)
		}
		if !strings.HasPrefix(f.Page, "https://") || f.Window == "" {
			t.Errorf("%s has no page or window", f.Vendor)
		}
	}
}

func TestStated(t *testing.T) {
	if h := header("content-type: application/json\nx-request-id: 7\nretry-after: 3\nrequest-id: r\nopenai-processing-ms: 5"); Stated(h) {
		t.Error("an answer without limits is read")
	}
}

func TestUnusableFieldsStateNothing(t *testing.T) {
	for _, h := range []string{
		"", "x-request-id: 7", "x-ratelimit-limit-requests: 60", "x-ratelimit-remaining-requests: 60", "x-ratelimit-limit-requests: many\nx-ratelimit-remaining-requests: 1",
		"x-ratelimit-limit-requests: 0\nx-ratelimit-remaining-requests: 0", "x-ratelimit-limit-requests: NaN\nx-ratelimit-remaining-requests: 1",
		"x-ratelimit-limit-requests: Inf\nx-ratelimit-remaining-requests: 1", "x-ratelimit-limit-requests: 1e400\nx-ratelimit-remaining-requests: 1",
		"anthropic-ratelimit-unified-5h-utilization: -1", "anthropic-ratelimit-unified-5h-utilization: some", "anthropic-ratelimit-unified-: 1", "anthropic-ratelimit-: 1", "x-codex-primary-used-percent: -3",
		"x-ratelimit-limit-" + strings.Repeat("a", 100) + ": 5\nx-ratelimit-remaining-" + strings.Repeat("a", 100) + ": 5", "ratelimit: ,;=", "ratelimit-policy: ;;;w=",
	} {
		if got := Read(nil, header(h), Call{Now: now}); len(got) > 0 {
			t.Errorf("%q: got %+v", h, got)
		}
	}
	for _, b := range []string{"", "<html>", "null", "[]", "[[]]", `{"error":"no"}`, `{"error":{"details":{}}}`, `{"error":{"details":[{"violations":7},{"violations":[7,{"quotaId":5}]}]}}`, strings.Repeat("[", 1<<20)} {
		if got := ReadBody(nil, []byte(b), Call{Now: now}); len(got) > 0 {
			t.Errorf("%.40q: got %+v", b, got)
		}
	}
}

func TestAt(t *testing.T) {
	for v, want := range map[string]int64{
		"6m0s": 360 * sec, "120ms": 120, "1d2h": 26 * hour * sec, "3d": 3 * day * sec, "33.5": 33500, "1795374060": 60 * sec, "1795374005000": 5 * sec, " 7 ": 7 * sec, "0": 0,
		"2026-11-22T19:00:12Z": 12 * sec, "2026-11-22T20:01:00+01:00": 60 * sec, "2026-11-22T19:00:12.5Z": 12500, "Sun, 22 Nov 2026 19:00:30 GMT": 30 * sec,
	} {
		if at, ok := At(v, now); !ok || at-now != want {
			t.Errorf("%q: got %d, %v, want %d", v, at-now, ok, want)
		}
	}
	for _, v := range []string{"", "soon", "-1", "1e99", "NaN", "d", "5dd", "2026-13-45T99:00:00Z", strings.Repeat("9", 100), "2026-11-22 19:00"} {
		if at, ok := At(v, now); ok {
			t.Errorf("%q: got %d", v, at)
		}
	}
}

func TestPacificMidnight(t *testing.T) {
	for _, tt := range [][2]string{
		{"2026-11-22T19:00:00Z", "2026-11-23T08:00:00Z"}, {"2026-07-01T06:59:59Z", "2026-07-01T07:00:00Z"}, {"2026-07-01T07:00:00Z", "2026-07-02T07:00:00Z"},
		{"2026-03-08T07:59:59Z", "2026-03-08T08:00:00Z"}, {"2026-03-08T08:00:00Z", "2026-03-09T07:00:00Z"}, {"2026-03-08T12:00:00Z", "2026-03-09T07:00:00Z"},
		{"2026-11-01T06:59:00Z", "2026-11-01T07:00:00Z"}, {"2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z"}, {"2026-12-31T20:00:00Z", "2027-01-01T08:00:00Z"},
	} {
		at, _ := time.Parse(time.RFC3339, tt[0])
		if got := time.UnixMilli(pacificMidnight(at.UnixMilli())).UTC().Format(time.RFC3339); got != tt[1] {
			t.Errorf("%s: got %s, want %s", tt[0], got, tt[1])
		}
	}
}

// Reading the header of an answer is part of every call.
func TestReadDoesNotAllocate(t *testing.T) {
	for _, tt := range answers {
		h := header(tt.header)
		if n := testing.AllocsPerRun(100, func() {
			var few [MaxWindows]Window
			Read(few[:0], h, Call{Model: "m", Now: now})
		}); n > 0 && tt.vendor != "Mistral" { // its names are put together
			t.Errorf("%s: %v allocations", tt.vendor, n)
		}
	}
}

// An answer of many fields costs in proportion to its size.
func TestReadIsBounded(t *testing.T) {
	var h httpmsg.Header
	for i := range 5000 {
		name := fmt.Sprintf("x-ratelimit-limit-w%d", i)
		h = append(h, httpmsg.Field{Name: name, Value: "5"}, httpmsg.Field{Name: strings.Replace(name, "limit-w", "remaining-w", 1), Value: "5"})
	}
	if got := Read(nil, h, Call{Now: now}); len(got) != MaxWindows {
		t.Errorf("got %d windows, want %d", len(got), MaxWindows)
	}
	body := []byte(`{"error":{"details":[{"violations":[` + strings.TrimSuffix(strings.Repeat(`{"quotaId":"PerDay"},`, 5000), ",") + `]}]}}`)
	if got := ReadBody(nil, body, Call{Now: now}); len(got) != MaxWindows {
		t.Errorf("got %d windows, want %d", len(got), MaxWindows)
	}
}

func FuzzRead(f *testing.F) {
	for _, tt := range answers {
		f.Add(tt.header, []byte(tt.body))
	}
	f.Fuzz(func(t *testing.T, lines string, body []byte) {
		c := Call{Model: "m", Now: now}
		list := ReadBody(Read(nil, header(lines), c), body, c)
		if len(list) > 4*MaxWindows {
			t.Fatalf("%d windows", len(list))
		}
		for _, w := range list {
			if !(w.Left >= 0 && w.Left <= 1) || w.Limit < 0 || w.Remaining < 0 || w.Span < 0 || w.ResetsAt < 0 || w.Name == "" || len(w.Name) > 2*maxName || w.At != now {
				t.Fatalf("%+v", w)
			}
		}
	})
}

const page = "../../../docs/reference/quotas.md"

// The published page has exactly the rows of the table.
func TestPageListsTheForms(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, ok := bytes.Cut(raw, []byte("\n| "))
	if !ok {
		t.Fatal("the page has no table")
	}
	var b strings.Builder
	b.WriteString(string(intro) + "\n| Vendor | Fields | Window | Page |\n|---|---|---|---|\n")
	for _, f := range Forms() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Vendor, f.Fields, f.Window, f.Page)
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
	t.Error("docs/reference/quotas.md differs from the table: run GOLDEN=update go test ./pkg/wire/quota")
}

// In any body of an error each limit has a name, and a time that JSON can carry.
func FuzzReadBody(f *testing.F) {
	f.Add([]byte(`{"error":{"type":"usage_limit_reached","resets_at":1795244460,"resets_in_seconds":"1e300"}}`))
	f.Add([]byte(`[{"error":{"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject","quotaValue":"-1"}]},{"retryDelay":"9e99s"}]}}]`))
	f.Add([]byte(`{"error":{"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795392000000"}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := Call{Model: "m", Requests: 60, Now: 1_750_000_000_000}
		list := ReadBody(nil, body, c)
		if len(list) > 64 {
			t.Errorf("%d limits", len(list))
		}
		for _, w := range list {
			if w.Name == "" || w.ResetsAt < 0 {
				t.Errorf("%+v of %s", w, body)
			}
		}
		if at, ok := At(string(body), c.Now); ok && at < 0 {
			t.Errorf("%s is %d", body, at)
		}
	})
}
