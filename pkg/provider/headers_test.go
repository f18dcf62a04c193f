package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
)

func text(h httpmsg.Header) string {
	var b strings.Builder
	for _, f := range h {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func TestRequestHeaderSendsTheListOnly(t *testing.T) {
	h := httpmsg.Header{
		{Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "a, b"}, {Name: "accept", Value: "c"},
		{Name: "idempotency-key", Value: "i1"}, {Name: "content-encoding", Value: "gzip"}, {Name: "anthropic-beta", Value: "x,y"}, {Name: "x-codex-turn", Value: "1"},
		{Name: "connection", Value: "close, Anthropic-Version"}, {Name: "anthropic-version", Value: "2023-06-01"},
	}
	canary := "canary-key"
	for _, n := range strings.Fields("authorization x-api-key api-key x-goog-api-key cookie proxy-authorization proxy-connection forwarded " +
		"x-forwarded-for x-forwarded-host x-real-ip cf-connecting-ip via te trailer transfer-encoding upgrade expect host keep-alive " +
		"content-length accept-encoding origin referer x-weir-hop x-stainless-os user-agent x-appx") {
		h.Add(n, canary)
	}
	for i := range 150 {
		h.Add(fmt.Sprintf("x-custom-%d", i), canary)
	}
	shape := "content-type: application/json\naccept: a, b\naccept: c\n"
	for to, want := range map[clientheader.Upstreams]string{
		0:                             "",
		clientheader.ToMessages:       "anthropic-beta: x,y\n",
		clientheader.ToResponses:      "x-codex-turn: 1\n",
		clientheader.ToSpeech:         shape + "idempotency-key: i1\n",
		clientheader.ToTranscriptions: shape,
		clientheader.ToImages:         shape + "idempotency-key: i1\n",
		clientheader.ToVideos:         shape + "idempotency-key: i1\ncontent-encoding: gzip\n",
		^clientheader.Upstreams(0):    shape + "idempotency-key: i1\ncontent-encoding: gzip\nanthropic-beta: x,y\nx-codex-turn: 1\n",
	} {
		if got := text(RequestHeader(h, to)); got != want {
			t.Errorf("upstreams %b: got\n%swant\n%s", to, got, want)
		}
	}
	if got := text(RequestHeader(httpmsg.Header{{Name: "accept", Value: "a\x01"}, {Name: "idempotency-key", Value: "x"}}, clientheader.ToTranscriptions)); got != "" {
		t.Errorf("unsafe or unlisted fields went out:\n%s", got)
	}
}

func TestResponseHeaderSendsTheListOnly(t *testing.T) {
	var h httpmsg.Header
	for _, n := range strings.Fields("retry-after retry-after-ms request-id x-request-id x-ratelimit-remaining-tokens " +
		"anthropic-ratelimit-requests-reset openai-processing-ms set-cookie access-control-allow-origin clear-site-data " +
		"strict-transport-security content-security-policy location link refresh alt-svc www-authenticate server via " +
		"content-encoding content-length transfer-encoding connection x-powered-by") {
		h.Add(n, "v")
	}
	h.Add("content-type", "application/json; charset=utf-8")
	h.Add("content-type", "text/html")
	want := "retry-after: v\nretry-after-ms: v\nrequest-id: v\nx-request-id: v\nx-ratelimit-remaining-tokens: v\n" +
		"anthropic-ratelimit-requests-reset: v\nopenai-processing-ms: v\ncontent-type: application/json; charset=utf-8\n" +
		"x-content-type-options: nosniff\ncontent-security-policy: sandbox\n"
	if got := text(ResponseHeader(h)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := text(ResponseNotes(httpmsg.Header{{Name: "content-type", Value: "text/html"}, {Name: "retry-after", Value: "7"}, {Name: "request-id", Value: "a\x00"}})); got != "retry-after: 7\n" {
		t.Errorf("got\n%s", got)
	}
	if got := ResponseHeader(nil).Get("content-type"); got != "application/octet-stream" {
		t.Errorf("an answer without a type is %q", got)
	}
}

func TestContentTypeOfAPage(t *testing.T) {
	for in, want := range map[string]string{
		"application/json": "application/json", "text/event-stream": "text/event-stream", "audio/mpeg": "audio/mpeg",
		"Image/PNG": "Image/PNG", "video/mp4; codecs=avc1": "video/mp4; codecs=avc1", "text/plain; charset=utf-8": "text/plain; charset=utf-8",
		"text/html": "", "text/html; x=application/json": "", "application/xhtml+xml": "", "application/javascript": "",
		"audio/": "", "audio/x y": "", "x/mpeg": "", "mpeg": "", "": "", "image/png\x01": "", "text/xml": "",
	} {
		if want == "" {
			want = "application/octet-stream"
		}
		if got := ContentType(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSafeValue(t *testing.T) {
	for v, want := range map[string]bool{
		"": true, "Bearer abc": true, "a\tb": true, strings.Repeat("a", 8192): true,
		" a": false, "a ": false, "a\t": false, "sk-a\r\nX: 1": false, "\x00": false, "\x01": false, "\x7f": false,
		"é": false, "☃": false, "\u2028": false, strings.Repeat("a", 8193): false,
	} {
		if got := SafeValue(v); got != want {
			t.Errorf("%.20q: got %v, want %v", v, got, want)
		}
	}
}

func TestHopCountsAndEndsALoop(t *testing.T) {
	hop := func(values ...string) (string, error) {
		var h httpmsg.Header
		for _, v := range values {
			h.Add("x-weir-hop", v)
		}
		f, err := Hop(h)
		return f.Value, err
	}
	for _, tt := range []struct {
		in   []string
		want string
	}{{nil, "1"}, {[]string{"1"}, "2"}, {[]string{"2"}, "3"}, {[]string{"3"}, ""}, {[]string{"99"}, ""},
		{[]string{"1", "3"}, ""}, {[]string{"x"}, "1"}, {[]string{"-5"}, "1"}, {[]string{""}, "1"}} {
		got, err := hop(tt.in...)
		if got != tt.want || (tt.want == "") != errors.Is(err, ErrLoop) {
			t.Errorf("%v: got %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestIdempotencyKeyPerCall(t *testing.T) {
	for _, tt := range []struct {
		client httpmsg.Header
		part   int
		want   string
	}{
		{httpmsg.Header{{Name: "idempotency-key", Value: "k"}}, 0, "k"},
		{httpmsg.Header{{Name: "idempotency-key", Value: "k"}}, 2, "k-2"},
		{httpmsg.Header{{Name: "x-key", Value: "k"}}, 0, ""},
		{httpmsg.Header{{Name: "idempotency-key", Value: "k\x7f"}}, 0, ""},
		{httpmsg.Header{{Name: "idempotency-key", Value: "k"}, {Name: "connection", Value: "idempotency-key"}}, 0, ""},
	} {
		if got := IdempotencyKey(tt.client, tt.part).Get("idempotency-key"); got != tt.want {
			t.Errorf("%v, call %d: %q, want %q", tt.client, tt.part, got, tt.want)
		}
	}
}

func TestFieldsOfAnAnswerAreBounded(t *testing.T) {
	up := httpmsg.Header{{Name: "x-request-id", Value: "req_1"}}
	for i := range 100 {
		up = append(up, httpmsg.Field{Name: fmt.Sprintf("x-ratelimit-limit-%d", i), Value: strings.Repeat("1", 1000)})
	}
	for name, got := range map[string]httpmsg.Header{"ResponseHeader": ResponseHeader(up), "ResponseNotes": ResponseNotes(up)} {
		if n := len(text(got)); n > 12<<10 || got.Get("x-request-id") != "req_1" || got.Get("x-ratelimit-limit-0") == "" {
			t.Errorf("%s: %d bytes, x-request-id %q", name, n, got.Get("x-request-id"))
		}
	}
}

func TestFieldsOfExactLimitAreForwarded(t *testing.T) {
	for extra, want := range []string{"sent", ""} {
		up := httpmsg.Header{{Name: "request-id"}, {Name: "x-request-id", Value: "sent"}}
		rest := maxNotes + extra - len("request-id") - len("x-request-id") - len("sent")
		up[0].Value = strings.Repeat("1", maxValueBytes)
		up = append(httpmsg.Header{{Name: "retry-after", Value: strings.Repeat("1", rest-maxValueBytes-len("retry-after"))}}, up...)
		up = append(up, httpmsg.Field{Name: "server", Value: "not counted"})
		for name, got := range map[string]httpmsg.Header{"ResponseHeader": ResponseHeader(up), "ResponseNotes": ResponseNotes(up)} {
			if got.Get("x-request-id") != want || got.Get("request-id") == "" || got.Get("retry-after") == "" {
				t.Errorf("%s, %d bytes over the limit: got %q, want %q", name, extra, got.Get("x-request-id"), want)
			}
		}
	}
}

func TestHopIsReadAfterOtherFields(t *testing.T) {
	f, err := Hop(httpmsg.Header{{Name: "accept", Value: "9"}, {Name: "x-weir-hop", Value: "2"}, {Name: "x-weir-hop", Value: "1"}})
	if f.Name != "x-weir-hop" || f.Value != "3" || err != nil {
		t.Errorf("got %v, %v", f, err)
	}
}
