package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// A key that Google or xAI refuses with 400 is refused in every dialect: the next account
// answers, and the first is out, with the reason in words.
func TestKeyRefusedWith400GoesToTheNextAccount(t *testing.T) {
	const google = `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`
	const xai = `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: re***ed."}`
	answers := map[string]string{
		":generateContent":    `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`,
		":batchEmbedContents": `{"embeddings":[{"values":[1,0]}]}`,
		":embedContent":       `{"embedding":{"values":[1,0]}}`,
		"/chat/completions":   `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		"/responses":          `{"id":"r","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
		"/videos/generations": `{"request_id":"v"}`,
	}
	chat := `"messages":[{"role":"user","content":"hi"}]}`
	for _, tt := range []struct{ provider, refusal, path, body string }{
		{"gemini", google, "/v1/chat/completions", `{"model":"gemini/gemini-2.5-flash",` + chat},
		{"gemini", "[" + google + "]", "/v1/chat/completions", `{"model":"gemini/gemini-2.5-flash",` + chat},
		{"gemini", google, "/v1/messages", `{"model":"gemini/gemini-2.5-flash","max_tokens":9,` + chat},
		{"gemini", google, "/v1/responses", `{"model":"gemini/gemini-2.5-flash","input":"hi"}`},
		{"gemini", google, "/v1beta/models/gemini%2Fgemini-2.5-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
		{"gemini", google, "/v1/embeddings", `{"model":"gemini/gemini-embedding-001","input":"a"}`},
		{"xai", xai, "/v1/chat/completions", `{"model":"xai/grok-4.3",` + chat},
		{"xai", xai, "/v1/responses", `{"model":"xai/grok-4.3","input":"hi"}`},
		{"xai", xai, "/v1/videos/generations", `{"model":"xai/grok-imagine-video","prompt":"p"}`},
	} {
		w := newWorld(t)
		id, key := w.tenant(0)
		for i, secret := range []string{"revoked-0123456789", "working-0123456789"} {
			body := `{"provider":"` + tt.provider + `","apiKey":"` + secret + `","priority":` + string(rune('1'+i)) + `}`
			w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, body), nil)
		}
		w.Answer = func(s *fake.Seen) fake.Answer {
			if strings.HasSuffix(s.Header.Get("x-goog-api-key")+s.Header.Get("authorization"), "revoked-0123456789") {
				return fake.Reply(400, tt.refusal)
			}
			for part, answer := range answers {
				if strings.Contains(s.URL, part) {
					return fake.JSON(answer)
				}
			}
			return fake.Answer{Status: 404}
		}
		for call, attempts := range []string{"2", "1"} {
			r := w.do("POST", tt.path, key, tt.body)
			if r.status != 200 || r.header.Get("x-weir-attempts") != attempts {
				t.Errorf("%s %s, call %d: %d after %s attempts: %s", tt.provider, tt.path, call, r.status, r.header.Get("x-weir-attempts"), r.body)
			}
		}
		out := w.do("GET", "/"+id+"/api/providers", adminToken, "").body
		if health := gjson.Get(out, "data.#.health").Raw; !strings.Contains(health, "key_refused") {
			t.Errorf("%s %s: health %s", tt.provider, tt.path, health)
		}
	}
}
