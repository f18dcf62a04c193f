package apierr

import (
	"encoding/json"
	"testing"
	"time"
)

func TestAppendGemini(t *testing.T) {
	day := New(429, "rate_limit_exceeded", "Spent.")
	day.RetryIn(2 * time.Hour)
	minute := New(429, "rate_limit_exceeded", "Wait.")
	minute.RetryIn(1500 * time.Millisecond)
	helped := New(404, "not_found", "No.")
	helped.DocURL = "https://weir.example.com/docs/reference/errors#not_found"
	for _, tt := range []struct {
		e    *Error
		want string
	}{
		{helped, `{"error":{"code":404,"message":"No.","status":"NOT_FOUND","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"NOT_FOUND","domain":"weir"},` +
			`{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"What the code means","url":"https://weir.example.com/docs/reference/errors#not_found"}]}]}}`},
		{New(404, "", "a <b> & \"c\"\n"), `{"error":{"code":404,"message":"a <b> & \"c\"\n","status":"NOT_FOUND"}}`},
		{New(401, "invalid_api_key", "no"), `{"error":{"code":401,"message":"no","status":"UNAUTHENTICATED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"weir"}]}}`},
		{Invalid("contents", "bad"), `{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"contents","description":"bad"}]}]}}`},
		{minute, `{"error":{"code":429,"message":"Wait.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","domain":"weir"},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}`},
		{day, `{"error":{"code":429,"message":"Spent.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","domain":"weir"},` +
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerDay"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7200s"}]}}`},
		{&Error{Status: 400, Code: "voice", VendorCode: "voice", Provider: "groq", Message: "x"}, `{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"VOICE","domain":"groq"}]}}`},
		{&Error{Status: 503, Code: "upstream_overloaded", VendorCode: "overloaded", Provider: "groq", Message: "x"}, `{"error":{"code":503,"message":"x","status":"UNAVAILABLE","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UPSTREAM_OVERLOADED","domain":"weir"}]}}`},
		{New(500, "a-b \"é", "x"), `{"error":{"code":500,"message":"x","status":"INTERNAL","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"A_B___","domain":"weir"}]}}`},
	} {
		got := string(tt.e.AppendGemini(nil))
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestGeminiStatus(t *testing.T) {
	for status, want := range map[int]string{
		400: "INVALID_ARGUMENT", 402: "FAILED_PRECONDITION", 403: "PERMISSION_DENIED", 405: "INVALID_ARGUMENT", 408: "DEADLINE_EXCEEDED",
		409: "ABORTED", 413: "INVALID_ARGUMENT", 415: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL",
		501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 508: "INTERNAL", 529: "UNAVAILABLE",
	} {
		if got := GeminiStatus(status); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}
