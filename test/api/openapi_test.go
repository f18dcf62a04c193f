package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/openapi"
	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// call is a request and the status that its answer must have. MACHINE, CONN, COMBO,
// KEY, RESPONSE and VIDEO in the path stand for ids.
type call struct {
	method, path, body string
	status             int
}

// calls has each operation that answers without a WebSocket or another site.
var calls = []call{
	{"GET", "/health", "", 200},
	{"GET", "/api/version", "", 200},
	{"GET", "/metrics", "", 200},
	{"HEAD", "/metrics", "", 200},
	{"GET", "/metrics?machine=x", "", 400},
	{"POST", "/api/session", `{"token":"ADMIN"}`, 200},
	{"GET", "/api/session", "", 200},
	{"DELETE", "/api/session", "", 204},
	{"GET", "/api/machines", "", 200},
	{"GET", "/api/machines?limit=x", "", 400},
	{"POST", "/api/machines", `{"name":"second"}`, 201},
	{"GET", "/api/auth", "", 200},
	{"GET", "/api/identity-providers", "", 200},
	{"GET", "/api/sign-ins", "", 200},
	{"DELETE", "/api/sessions", "", 204},
	{"GET", "/MACHINE/api/catalog/providers", "", 200},
	{"POST", "/MACHINE/api/providers", `{"provider":"openai","apiKey":"key-0123456789abcdef"}`, 201},
	{"POST", "/MACHINE/api/providers", `{"provider":"xai","apiKey":"key-0123456789abcdef"}`, 201},
	{"POST", "/MACHINE/api/providers", `{"provider":"tavily","apiKey":"key-0123456789abcdef"}`, 201},
	{"POST", "/MACHINE/api/providers", `{"provider":"elevenlabs","apiKey":"key-0123456789abcdef"}`, 201},
	{"POST", "/MACHINE/api/providers", `{"provider":"jina","apiKey":"key-0123456789abcdef"}`, 201},
	{"GET", "/MACHINE/api/providers", "", 200},
	{"GET", "/MACHINE/api/providers/CONN", "", 200},
	{"GET", "/MACHINE/api/providers/none", "", 404},
	{"PUT", "/MACHINE/api/providers/CONN", `{"name":"renamed"}`, 200},
	{"PUT", "/MACHINE/api/providers/CONN", `{"nam":"renamed"}`, 400},
	{"GET", "/MACHINE/api/providers/CONN/models", "", 200},
	{"POST", "/MACHINE/api/providers/CONN/test", "{}", 200},
	{"DELETE", "/MACHINE/api/providers/CONN", "", 204},
	{"POST", "/MACHINE/api/providers/CONN/restore", "", 200},
	{"POST", "/MACHINE/api/providers/CONN/restore", "", 404},
	{"GET", "/MACHINE/api/combos", "", 200},
	{"POST", "/MACHINE/api/combos", `{"name":"both","models":["up/m","up/n"],"strategy":"fallback"}`, 201},
	{"GET", "/MACHINE/api/combos", "", 200},
	{"GET", "/MACHINE/api/combos/COMBO", "", 200},
	{"PUT", "/MACHINE/api/combos/COMBO", `{"models":["up/n"]}`, 200},
	{"DELETE", "/MACHINE/api/combos/COMBO", "", 204},
	{"POST", "/MACHINE/api/budgets", `{"name":"team","unit":"usd","limit":1000,"window":"year"}`, 400},
	{"POST", "/MACHINE/api/budgets", `{"name":"team","unit":"usd","limit":1000,"window":"month","models":["up/m"],"webhookUrl":"https://hooks.example.com/x"}`, 201},
	{"GET", "/MACHINE/api/budgets", "", 200},
	{"GET", "/MACHINE/api/budgets/BUDGET", "", 200},
	{"PUT", "/MACHINE/api/budgets/BUDGET", `{"limit":2000.5}`, 200},
	{"DELETE", "/MACHINE/api/budgets/BUDGET", "", 204},
	{"POST", "/MACHINE/api/destinations", `{"kind":"webhook"}`, 400},
	{"POST", "/MACHINE/api/destinations", `{"kind":"webhook","name":"ours","settings":{"url":"https://hooks.example.com/x?token=0123456789abcdef"}}`, 201},
	{"GET", "/MACHINE/api/destinations", "", 200},
	{"GET", "/MACHINE/api/destinations/DESTINATION", "", 200},
	{"PUT", "/MACHINE/api/destinations/DESTINATION", `{"enabled":false,"events":["budget.reached"]}`, 200},
	{"POST", "/MACHINE/api/destinations/DESTINATION/test", "", 200},
	{"GET", "/MACHINE/api/destinations/DESTINATION/deliveries", "", 200},
	{"POST", "/MACHINE/api/compare", `{"destinations":{"DESTINATION":{"url":"https://hooks.example.com/x?token=0123456789abcdef"}},"accounts":{"none":{"apiKey":"x"}}}`, 200},
	{"POST", "/MACHINE/api/compare", `{"identityProviders":{"none":{"clientSecret":"x"}}}`, 200},
	{"POST", "/MACHINE/api/compare", `{"keys":{}}`, 400},
	{"DELETE", "/MACHINE/api/destinations/DESTINATION", "", 204},
	{"DELETE", "/MACHINE/api/destinations/DESTINATION", "", 404},
	{"GET", "/MACHINE/api/models/list/llm", "", 200},
	{"GET", "/MACHINE/api/models/list/all", "", 200},
	{"GET", "/MACHINE/api/models/info?id=openai/gpt-4.1", "", 200},
	{"PUT", "/MACHINE/api/models/alias", `{"alias":"fast","model":"up/m"}`, 200},
	{"GET", "/MACHINE/api/models/alias", "", 200},
	{"DELETE", "/MACHINE/api/models/alias?alias=fast", "", 204},
	{"POST", "/MACHINE/api/models/custom", `{"id":"mine","providerAlias":"up","contextLength":1000}`, 201},
	{"GET", "/MACHINE/api/models/custom", "", 200},
	{"DELETE", "/MACHINE/api/models/custom?providerAlias=up&id=mine", "", 204},
	{"POST", "/MACHINE/api/models/disabled", `{"providerAlias":"up","ids":["x"]}`, 200},
	{"GET", "/MACHINE/api/models/disabled", "", 200},
	{"DELETE", "/MACHINE/api/models/disabled?providerAlias=up&id=x", "", 204},
	{"GET", "/MACHINE/api/models/availability", "", 200},
	{"GET", "/MACHINE/api/quota", "", 200},
	{"POST", "/MACHINE/api/keys", `{"name":"second","rpm":1000,"models":["up/*"],"allowUnknown":true}`, 201},
	{"GET", "/MACHINE/api/keys", "", 200},
	{"GET", "/MACHINE/api/keys/KEY", "", 200},
	{"PUT", "/MACHINE/api/keys/KEY", `{"name":"renamed","paused":true,"expiresAt":null}`, 200},
	{"POST", "/MACHINE/api/keys/KEY/rotate", `{"overlapSeconds":60}`, 200},
	{"GET", "/MACHINE/api/keys/KEY/usage?groupBy=hour,model", "", 200},
	{"GET", "/MACHINE/api/keys/KEY/usage?groupBy=day,tool", "", 200},
	{"GET", "/MACHINE/api/usage?groupBy=month,tag:project", "", 200},
	{"GET", "/MACHINE/api/keys/KEY/networks", "", 200},
	{"GET", "/v1/usage", "", 200},
	{"DELETE", "/MACHINE/api/keys/KEY", "", 204},
	{"POST", "/MACHINE/api/invitations", `{"role":"member","template":{"keys":1,"budgetUsd":5}}`, 201},
	{"GET", "/MACHINE/api/people", "", 200},
	{"DELETE", "/MACHINE/api/invitations/INVITATION", "", 204},
	{"GET", "/MACHINE/api/setup", "", 200},
	{"POST", "/MACHINE/api/setup", `{"tool":"codex","model":"up/m","allowUnknown":true}`, 201},
	{"GET", "/setup/codex.sh", "", 200},
	{"POST", "/setup/claim", `{"lease":"LEASE","tool":"codex"}`, 200},
	{"POST", "/api/device", `{"name":"laptop"}`, 200},
	{"POST", "/api/device/token", `{"device_code":"DEVICE"}`, 400},
	{"GET", "/MACHINE/api/device/USERCODE", "", 200},
	{"POST", "/MACHINE/api/device/USERCODE", `{"approve":true}`, 204},
	{"POST", "/api/device/token", `{"device_code":"DEVICE"}`, 200},
	{"POST", "/api/device/token", `{"device_code":"DEVICE"}`, 400},
	{"POST", "/setup/claim", `{"lease":"LEASE","tool":"codex"}`, 403},
	{"GET", "/MACHINE/api/settings", "", 200},
	{"PATCH", "/MACHINE/api/settings", `{"idleSeconds":30,"defaultModel":"up/m","allowUnknown":true}`, 200},
	{"POST", "/MACHINE/api/explain", `{"path":"/v1/embeddings","body":{"model":"up/m","input":"x"}}`, 200},
	{"GET", "/MACHINE/api/export", "", 200},
	{"POST", "/MACHINE/api/export", `{"passphrase":"correct horse battery staple"}`, 200},
	{"POST", "/MACHINE/api/import", `{"document":{"combos":[{"name":"added","models":["up/m"]}]},"preview":true}`, 200},
	{"POST", "/MACHINE/api/import", `{"document":{"combos":[{"name":"added","models":["up/m"]}]}}`, 200},

	{"GET", "/v1/models", "", 200},
	{"GET", "/v1/models?limit=1000", "", 200},
	{"GET", "/v1/models/embedding", "", 200},
	{"GET", "/v1/models/none", "", 404},
	{"GET", "/v1/models/up/m", "", 200},
	{"GET", "/v1/models/info?id=openai/gpt-4.1", "", 200},
	{"GET", "/v1beta/models", "", 200},
	{"GET", "/v1beta/models/up/m", "", 200},
	{"POST", "/v1beta/models/up/m:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`, 200},
	{"POST", "/v1beta/models/up/none:nothing", `{}`, 501},
	{"POST", "/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"x"}]}`, 200},
	{"POST", "/v1/chat/completions", `{"model":"nothing","messages":[{"role":"user","content":"x"}]}`, 400},
	{"POST", "/v1/completions", `{"model":"up/m","prompt":"x"}`, 200},
	{"POST", "/v1/messages", `{"model":"up/m","max_tokens":10,"messages":[{"role":"user","content":"x"}]}`, 200},
	{"POST", "/v1/messages", `{"model":"nothing","max_tokens":10,"messages":[{"role":"user","content":"x"}]}`, 404},
	{"POST", "/v1/messages/count_tokens", `{"model":"up/m","messages":[{"role":"user","content":"x"}]}`, 200},
	{"POST", "/v1/responses", `{"model":"up/m","input":"x","store":false}`, 200},
	{"POST", "/v1/responses/compact", `{"model":"up/m","input":"x"}`, 200},
	{"POST", "/v1/responses/input_tokens", `{"model":"up/m","input":"x"}`, 200},
	{"POST", "/v1/responses", `{"model":"openai/gpt-4.1","input":"x"}`, 200},
	{"GET", "/v1/responses/RESPONSE", "", 200},
	{"GET", "/v1/responses/RESPONSE/input_items", "", 200},
	{"POST", "/v1/responses/RESPONSE/cancel", "", 200},
	{"DELETE", "/v1/responses/RESPONSE", "", 200},
	{"GET", "/v1/responses/resp_none", "", 404},
	{"POST", "/v1/embeddings", `{"model":"up/m","input":"x"}`, 200},
	{"POST", "/v1/embeddings", `{"model":"up/m"}`, 400},
	{"POST", "/v1/rerank", `{"model":"jina/jina-reranker-v3","query":"x","documents":["a"]}`, 200},
	{"POST", "/v1/moderations", `{"model":"openai/omni-moderation-latest","input":"x"}`, 200},
	{"POST", "/v1/audio/speech", `{"model":"up/m","input":"x","voice":"alloy"}`, 200},
	{"POST", "/v1/audio/speech?response_format=json", `{"model":"up/m","input":"x","voice":"alloy"}`, 200},
	{"GET", "/v1/audio/voices?provider=el", "", 200},
	{"POST", "/v1/audio/transcriptions", "form", 200},
	{"POST", "/v1/audio/translations", "form", 200},
	{"POST", "/v1/images/generations", `{"model":"up/m","prompt":"x"}`, 200},
	{"POST", "/v1/images/edits", "form", 200},
	{"POST", "/v1/images/variations", "form", 200},
	{"POST", "/v1/videos/generations", `{"model":"xai/grok-imagine-video","prompt":"x"}`, 200},
	{"POST", "/v1/videos/edits", `{"model":"xai/grok-imagine-video","prompt":"x"}`, 200},
	{"POST", "/v1/videos/extensions", `{"model":"xai/grok-imagine-video","prompt":"x"}`, 200},
	{"GET", "/v1/videos/VIDEO", "", 200},
	{"GET", "/v1/videos/VIDEO/content", "", 200},
	{"POST", "/v1/search", `{"model":"tavily/search","query":"x"}`, 200},
	{"POST", "/v1/search", `{"model":"nothing","query":"x"}`, 400},
	{"POST", "/v1/web/fetch", `{"model":"tavily/fetch","url":"https://example.com"}`, 200},
	{"POST", "/v1/realtime/client_secrets", `{"session":{"type":"realtime","model":"openai/gpt-realtime"}}`, 200},
	{"GET", "/v1/realtime?model=up/m", "", 426},

	{"GET", "/MACHINE/api/usage", "", 200},
	{"GET", "/MACHINE/api/usage?groupBy=day,model", "", 200},
	{"GET", "/MACHINE/api/usage?groupBy=hour,model", "", 200},
	{"GET", "/MACHINE/api/usage/recent", "", 200},
	{"GET", "/MACHINE/api/health/providers", "", 200},
	{"PATCH", "/MACHINE/api/settings", `{"publicStatus":"models"}`, 200},
	{"GET", "/MACHINE/status", "", 200},
	{"GET", "/MACHINE/status.json", "", 200},
	{"GET", "/MACHINE/api/health/timeline?groupBy=connection,model", "", 200},
	{"GET", "/MACHINE/api/requests", "", 200},
	{"GET", "/MACHINE/api/requests.csv", "", 200},
	{"GET", "/MACHINE/api/usage.csv?groupBy=day,model", "", 200},
	{"GET", "/MACHINE/api/requests/REQUEST", "", 200},
	{"GET", "/v1/usage/requests/CAPTURE", "", 200},
	{"PATCH", "/MACHINE/api/settings", `{"capturePercent":100}`, 200},
	{"POST", "/v1/embeddings", `{"model":"up/m","input":"x"}`, 200},
	{"GET", "/MACHINE/api/captures", "", 200},
	{"GET", "/MACHINE/api/captures/CAPTURE", "", 200},
	{"DELETE", "/MACHINE/api/captures/CAPTURE", "", 204},
	{"GET", "/MACHINE/api/captures/CAPTURE", "", 404},
	{"DELETE", "/MACHINE/api/captures", "", 204},
	{"GET", "/MACHINE/api/audit?verify=true", "", 200},
	{"GET", "/MACHINE/api/audit?actor=operator&kind=keys&limit=1", "", 200},
	{"GET", "/MACHINE/api/health", "", 200},
	{"DELETE", "/MACHINE/api/providers/CONN", "", 204},
	{"PATCH", "/api/machines/MACHINE", `{"name":"renamed"}`, 200},
	{"PATCH", "/api/machines/MACHINE", `{}`, 400},
	{"DELETE", "/api/machines/MACHINE", "", 204},
	{"GET", "/api/machines?deleted=true", "", 200},
	{"POST", "/api/machines/MACHINE/restore", "", 200},
	{"POST", "/api/machines/MACHINE/restore", "", 404},
	{"DELETE", "/api/machines/MACHINE?now=true", "", 204},
}

// elsewhere are the operations that need another site, a browser or a socket; their
// own tests check them.
var elsewhere = []string{"updatePerson", "removePerson", "beginSignIn", "beginDeviceSignIn", "pollSignIn", "cancelSignIn", "endSignIn", "connectRealtime",
	// server/program/ready_test.go; files of the dashboard
	"ready", "headReady", "getOpenAPI", "getLLMsTxt",
	// signin_test.go
	"beginPersonSignIn", "endPersonSignIn", "createIdentityProvider", "updateIdentityProvider", "deleteIdentityProvider",
	// bearer_test.go
	"testIdentityProvider", "exchangeToken", "backChannelLogout", "endPersonSessions",
	// passkeys_test.go
	"beginPasskeySignIn", "createPasskeySession", "listPasskeys", "addPasskey", "beginPasskey", "renamePasskey", "deletePasskey"}

// The answers of the gateway are those of the OpenAPI document, and each operation
// that can be called here was answered with success.
func TestAnswersMatchTheDescription(t *testing.T) {
	page := httpmsg.Header{{Name: "origin", Value: "http://gateway.example"}, {Name: "sec-fetch-site", Value: "same-origin"}}
	check, err := openapi.NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.Answer = described
	machine, key := w.tenant(1)
	ids := map[string]string{"MACHINE": machine, "ADMIN": adminToken}
	var conns struct{ Data []struct{ ID string } }
	w.get(200, w.do("GET", "/"+machine+"/api/providers", adminToken, ""), &conns)
	ids["CONN"] = conns.Data[0].ID
	for _, c := range calls {
		path := c.path
		for name, id := range ids {
			path = strings.ReplaceAll(path, name, id)
		}
		token := adminToken
		if strings.HasPrefix(path, "/v1") {
			token = key
		}
		body := c.body
		for name, id := range ids {
			body = strings.ReplaceAll(body, name, id)
		}
		var r reply
		if body == "form" {
			r = w.form(path, token)
		} else {
			r = w.do(c.method, path, token, body, page...)
		}
		if r.status != c.status {
			t.Errorf("%s %s: status %d, want %d: %s", c.method, path, r.status, c.status, r.body)
			continue
		}
		if path == "/v1/embeddings" {
			ids["CAPTURE"] = r.header.Get("x-request-id")
		}
		plain, _, _ := strings.Cut(strings.TrimPrefix(path, "/"+machine), "?")
		if err := check.Answer(c.method, plain, r.status, r.header.Get("content-type"), r.body); err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(c.path, "/api/requests") {
			ids["REQUEST"] = gjson.Get(r.body, "data.0.id").Str
		}
		for name, of := range map[string][2]string{
			"COMBO": {"/api/combos", "id"}, "INVITATION": {"/api/invitations", "id"}, "BUDGET": {"/api/budgets", "id"}, "DESTINATION": {"/api/destinations", "id"}, "KEY": {"/api/keys", "id"}, "LEASE": {"/api/setup", "lease"}, "DEVICE": {"/api/device", "device_code"}, "USERCODE": {"/api/device", "user_code"},
			"RESPONSE": {"/v1/responses", "id"}, "VIDEO": {"/v1/videos/generations", "request_id"},
		} {
			if c.method == "POST" && strings.HasSuffix(c.path, of[0]) {
				ids[name] = gjson.Get(r.body, of[1]).Str
			}
		}
	}
	for _, id := range check.Operations() {
		if !slices.Contains(elsewhere, id) && !check.Answered[id] {
			t.Errorf("no success of %s was checked", id)
		}
	}
}

// form sends a form with a file.
func (w *world) form(path, key string) reply {
	body := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nup/m\r\n--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\nPNG\r\n--b--\r\n"
	return w.send("POST", path, key, "multipart/form-data; boundary=b", body)
}

// described answers as an OpenAI-compatible server.
func described(s *fake.Seen) fake.Answer {
	switch {
	case strings.HasSuffix(s.URL, "/models"):
		return fake.JSON(`{"object":"list","data":[{"id":"m","object":"model"},{"id":"gpt-4.1","object":"model"}]}`)
	case strings.HasSuffix(s.URL, "/chat/completions"):
		return fake.JSON(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	case strings.HasSuffix(s.URL, "/embeddings"):
		return fake.JSON(embedding)
	case strings.HasSuffix(s.URL, "/audio/speech"):
		return fake.OK("audio/mpeg", "ID3")
	}
	for part, answer := range map[string]string{
		"/rerank":         `{"model":"m","results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":3}}`,
		"/moderations":    `{"id":"m","model":"m","results":[{"flagged":false,"categories":{},"category_scores":{}}]}`,
		"/audio/tra":      `{"text":"spoken"}`,
		"/extract":        `{"results":[{"url":"https://example.com","raw_content":"page"}],"failed_results":[]}`,
		"/search":         `{"query":"x","results":[{"title":"t","url":"https://example.com","content":"c","score":0.5}]}`,
		"/client_secrets": `{"value":"ek_0123456789","expires_at":1750000600,"session":{"type":"realtime","model":"gpt-realtime"}}`,
		"/voices":         `{"voices":[{"voice_id":"v","name":"Voice","labels":{}}],"has_more":false}`,
		"/images/":        `{"created":1,"data":[{"b64_json":"AA=="}]}`,
		"/videos/gen":     `{"request_id":"v"}`,
		"/videos/edits":   `{"request_id":"v"}`,
		"/videos/ext":     `{"request_id":"v"}`,
		"/videos/v":       `{"status":"done","video":{"url":"https://vidgen.x.ai/v.mp4","duration":1}}`,
	} {
		if strings.Contains(s.URL, part) {
			return fake.JSON(answer)
		}
	}
	if strings.HasSuffix(s.URL, ".mp4") {
		return fake.OK("video/mp4", "ftyp")
	}
	return fake.JSON(`{"id":"resp_x","object":"response","status":"completed","model":"m","output":[],"input_tokens":3,"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
}
