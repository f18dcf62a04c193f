package accounts

import (
	"strings"
	"testing"

	"weir/pkg/provider"
	"weir/pkg/wire/secret"
)

func TestUpstreamMessages(t *testing.T) {
	cred := provider.Credential{APIKey: secret.New("live-key-0123456789"), AccessToken: secret.New("live-token-0123456789")}
	const status = "The provider answered with status 400."
	for _, tt := range []struct{ name, body, message, code, param string }{
		{"openai", `{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, "no such model", "model_not_found", "model"},
		{"openai without code", `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}`, "m", "", ""},
		{"anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: required"}}`, "max_tokens: required", "", ""},
		{"gemini", `{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}`, "bad", "INVALID_ARGUMENT", ""},
		{"gemini in an array", `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, "bad", "INVALID_ARGUMENT", ""},
		{"cohere", `{"message":"invalid"}`, "invalid", "", ""},
		{"mistral", `{"detail":[{"msg":"field required"}]}`, "field required", "", ""},
		{"elevenlabs", `{"detail":{"status":"voice_not_found","message":"no voice"}}`, "no voice", "", ""},
		{"deepgram", `{"err_code":"X","err_msg":"bad audio"}`, "bad audio", "", ""},
		{"xai", `{"code":"invalid-argument","error":"wrong"}`, "wrong", "invalid-argument", ""},
		{"fal", `{"detail":"not found"}`, "not found", "", ""},
		{"stability", `{"errors":["too big"],"name":"bad_request"}`, "too big", "", ""},
		{"cloudflare", `{"errors":[{"code":7003,"message":"no route"}]}`, "no route", "", ""},
		{"minimax", `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, "login fail", "", ""},
		{"html", `<html><body>secret</body></html>`, status, "", ""},
		{"html in json", `{"error":{"message":"<!DOCTYPE html><html>x"}}`, status, "", ""},
		{"text", "model not loaded:\nplease pull it\n", "model not loaded: please pull it", "", ""},
		{"text with a key", "bad key live-key-0123456789", "bad key ***", "", ""},
		{"a json string", `"model not \u006coaded"`, "model not loaded", "", ""},
		{"a json string with a key", `"bad key live-key-0123456789"`, "bad key ***", "", ""},
		{"xml", `<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`, status, "", ""},
		{"no text", "\x1f\x8b\x08\x00\x00", status, "", ""},
		{"broken json", `{"error":{"message":"hidden"`, status, "", ""},
		{"a number", `400`, status, "", ""},
		{"empty", ``, status, "", ""},
		{"other shape", `{"reason":"hidden"}`, status, "", ""},
		{"key echoed", `{"error":{"message":"bad key live-key-0123456789 and %6cive-token-0123456789"}}`, "bad key *** and ***", "", ""},
		{"key of another", `{"error":{"message":"Incorrect API key provided: sk-proj-0123456789abcdef."}}`, "Incorrect API key provided: ***", "", ""},
		{"control characters", "{\"error\":{\"message\":\"a\\u0000b\\u001bc\\nd\"}}", "abc d", "", ""},
		{"code that is no name", `{"error":{"message":"m","code":"a b <c>","param":"../x y"}}`, "m", "", ""},
		{"names that are the key", `{"error":{"message":"m","code":"live-key-0123456789","param":"live-token-0123456789","status":"live-key-0123456789"}}`, "m", "", ""},
		{"code with a key", `{"error":{"message":"m","code":"sk-0123456789abcdefghij"}}`, "m", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := upstreamError(400, nil, []byte(tt.body), cred)
			if e.Message != tt.message || e.Code != tt.code || e.Param != tt.param || e.Status != 400 {
				t.Errorf("got %q, code %q, param %q; want %q, %q, %q", e.Message, e.Code, e.Param, tt.message, tt.code, tt.param)
			}
		})
	}
}

func TestMessageIsCutBetweenCharacters(t *testing.T) {
	e := upstreamError(400, nil, []byte(`{"message":"`+strings.Repeat("é", 400)+`"}`), provider.Credential{})
	if len(e.Message) != 500 || strings.ContainsRune(e.Message, '\ufffd') {
		t.Errorf("%d bytes", len(e.Message))
	}
	e = upstreamError(400, nil, []byte(`{"message":"`+strings.Repeat("é", 249)+`xé"}`), provider.Credential{})
	if len(e.Message) != 499 {
		t.Errorf("%d bytes, want 499", len(e.Message))
	}
}
