package vendorerror

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestErrorsOfEveryVendorAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       Error
	}{
		{"openai", `{"error":{"message":"No such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, Error{Message: "No such model", Code: "model_not_found", Type: "invalid_request_error", Param: "model"}},
		{"anthropic", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Error{Message: "Overloaded", Type: "overloaded_error"}},
		{"gemini", `{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}`, Error{Message: "Bad", Status: "INVALID_ARGUMENT"}},
		{"gemini with a reason", `{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`, Error{Message: "Bad", Status: "INVALID_ARGUMENT", Reason: "API_KEY_INVALID"}},
		{"vertex ai", `{"error":{"message":"Denied","details":[{"reason":"IAM_PERMISSION_DENIED","domain":"aiplatform.googleapis.com","metadata":{"resource":"projects/p/locations/l/endpoints/openapi"}}]}}`, Error{Message: "Denied", Reason: "IAM_PERMISSION_DENIED", Domain: "aiplatform.googleapis.com", Resource: "projects/p/locations/l/endpoints/openapi"}},
		{"gemini in an array", `[{"error":{"message":"Bad","status":"INVALID_ARGUMENT"}}]`, Error{Message: "Bad", Status: "INVALID_ARGUMENT"}},
		{"cohere", `{"message":"invalid api token"}`, Error{Message: "invalid api token"}},
		{"amazon", `{"Message":"Malformed"}`, Error{Message: "Malformed"}},
		{"mistral", `{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}`, Error{Message: "field required"}},
		{"list of messages", `{"detail":[{"message":"a"}]}`, Error{Message: "a"}},
		{"list of texts", `{"detail":["a","b"]}`, Error{Message: "a"}},
		{"elevenlabs", `{"detail":{"status":"x","message":"Bad key"}}`, Error{Message: "Bad key", Reason: "x"}},
		{"deepgram", `{"err_code":"X","err_msg":"bad audio"}`, Error{Message: "bad audio"}},
		{"xai", `{"code":"c","error":"Bad thing"}`, Error{Message: "Bad thing", Code: "c"}},
		{"fal", `{"detail":"nope"}`, Error{Message: "nope"}},
		{"stability", `{"name":"bad","errors":["too big"]}`, Error{Message: "too big"}},
		{"cloudflare", `{"errors":[{"code":7000,"message":"No route"}]}`, Error{Message: "No route"}},
		{"minimax", `{"base_resp":{"status_code":1000,"status_msg":"unknown"}}`, Error{Message: "unknown"}},
		{"oauth", `{"error":"invalid_grant","error_description":"Token expired"}`, Error{Message: "Token expired"}},
		{"problem document", `{"title":"Too long","status":400}`, Error{Message: "Too long"}},
		{"detail beside a short error", `{"error":"Bad Request","message":"name is missing"}`, Error{Message: "name is missing"}},
		{"message beside the object", `{"error":{"code":"c"},"message":"m"}`, Error{Message: "m", Code: "c"}},
		{"error in an error", `{"error":{"error":{"message":"m"}}}`, Error{Message: "m"}},
		{"numbers and blanks", `{"error":{"message":" ","code":7,"type":null,"param":["a"]}}`, Error{}},
		{"other shape", `{"reason":"hidden"}`, Error{}},
		{"null", `null`, Error{}},
	} {
		if got := Read(gjson.Parse(tt.body)); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestStatusOfAnErrorWithinAnAnswer(t *testing.T) {
	for body, want := range map[string]int{
		`{"code":429}`: 429, `{"status":503}`: 503, `{"status_code":401,"code":"timeout"}`: 401, `{"code":200,"type":"overloaded_error"}`: 529,
		`{"code":600}`: 500, `{"code":399}`: 500, `{"code":400}`: 400, `{"code":599}`: 599, `{"type":"tokens"}`: 429, `{"code":"RESOURCE_EXHAUSTED"}`: 429, `{"status":"INTERNAL"}`: 500, `{}`: 500,
	} {
		if got := Status(gjson.Parse(body)); got != want {
			t.Errorf("%s: got %d, want %d", body, got, want)
		}
	}
}

func TestStatusOfMiniMaxCodes(t *testing.T) {
	for code, want := range map[string]int{
		"0": 0, "1000": 502, "1001": 502, "1002": 429, "1004": 401, "1008": 402, "1013": 502, "1024": 502, "1026": 400, "1033": 502,
		"1039": 429, "1041": 429, "2013": 400, "2045": 429, "2049": 401,
	} {
		if got := MiniMax(gjson.Parse(`{"base_resp":{"status_code":` + code + `}}`)); got != want {
			t.Errorf("%s: got %d, want %d", code, got, want)
		}
	}
	if got := MiniMax(gjson.Parse(`{}`)); got != 0 {
		t.Errorf("without base_resp: got %d", got)
	}
}
