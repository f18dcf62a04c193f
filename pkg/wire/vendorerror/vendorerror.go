// Package vendorerror reads the errors of vendors' APIs. It is the one list of
// where vendors put what: docs/reference/api-shapes.md, 16.
package vendorerror

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Error is what an error body says. A field that is missing or not a string is "".
// It may contain credentials and must be redacted before it is shown.
type Error struct {
	Message string
	Code    string // a name, such as OpenAI's "model_not_found"
	Type    string // such as "invalid_request_error"
	Status  string // such as Google's "INVALID_ARGUMENT"
	Reason  string // Google's ErrorInfo.reason, such as "API_KEY_INVALID", or ElevenLabs' detail.status
	Param   string
	// Domain and Resource are those of Google's ErrorInfo: whose reason it is, such as
	// "googleapis.com", and what a permission is missing for.
	Domain, Resource string
}

// paths are where the message is, in the error object or else beside it, the
// commonest first.
var paths = [...]string{
	"message", "detail.message", "detail.0.msg", "detail.0.message", "detail.0", "detail", "err_msg", "errors.0.message",
	"errors.0",
	"base_resp.status_msg", "error_description", "Message", "error.message", "title",
}

// Read reads an error body, or an error within an answer or an event:
//
//	{"error":{"message","code","type","param","status"}}, [{"error":{…}}], {"error":"…"}, "…", {"message"}, {"detail":[{"msg"}]}, …
func Read(root gjson.Result) Error {
	if root.IsArray() {
		root = root.Get("0")
	}
	if root.Type == gjson.String && strings.TrimSpace(root.Str) != "" {
		return Error{Message: root.Str}
	}
	named := root.Get("error")
	in := root
	if named.IsObject() {
		in = named
	}
	e := Error{Code: codeIn(in), Type: text(in, "type"), Status: text(in, "status"), Param: text(in, "param")}
	if info := in.Get("details.#(reason)"); info.Exists() {
		e.Reason, e.Domain, e.Resource = text(info, "reason"), text(info, "domain"), text(info, "metadata.resource")
	} else {
		e.Reason = text(in, "detail.status")
	}
	for _, path := range paths {
		if e.Message = text(in, path); e.Message == "" && named.IsObject() {
			e.Message = text(root, path)
		}
		if e.Message != "" {
			return e
		}
	}
	if named.Type == gjson.String && strings.TrimSpace(named.Str) != "" {
		e.Message = named.Str
	}
	return e
}

// codeIn returns the code of an error object. OpenRouter's is the status; what its
// moderation refuses has the details beside it:
//
//	{"code":403,"message":"…","metadata":{"reasons":[…],"flagged_input":"…","provider_name":"…"}}
func codeIn(in gjson.Result) string {
	code := text(in, "code")
	if code == "" && in.Get("metadata.flagged_input").Exists() {
		return "content_policy_violation"
	}
	return code
}

// text returns a string that is not blank, or "".
func text(v gjson.Result, path string) string {
	if s := v.Get(path); s.Type == gjson.String && strings.TrimSpace(s.Str) != "" {
		return s.Str
	}
	return ""
}

// Status returns the HTTP status that an error object within an answer of 2xx
// stands for: a number from 400 to 599, or a known name; else 500.
func Status(in gjson.Result) int {
	for _, field := range [...]string{"status_code", "code", "status"} {
		if v := in.Get(field); v.Type == gjson.Number && v.Int() >= 400 && v.Int() <= 599 {
			return int(v.Int())
		}
	}
	for _, field := range [...]string{"type", "code", "status"} {
		s := in.Get(field).Str
		for i := range names {
			if names[i].name == s {
				return names[i].status
			}
		}
	}
	return 500
}

// names are the names by which errors within answers state their status.
var names = [...]struct {
	name   string
	status int
}{
	{"invalid_request_error", 400}, {"authentication_error", 401}, {"invalid_api_key", 401},
	{"billing_error", 402}, {"insufficient_quota", 402}, {"permission_error", 403},
	{"not_found_error", 404}, {"model_not_found", 404}, {"conflict_error", 409}, {"request_too_large", 413},
	{"rate_limit_error", 429}, {"rate_limit_exceeded", 429}, {"tokens", 429}, {"requests", 429},
	{"api_error", 500}, {"server_error", 500}, {"timeout_error", 504}, {"timeout", 504},
	{"overloaded_error", 529}, {"overloaded", 529}, {"server_is_overloaded", 529}, {"slow_down", 503},
	{"upstream_overloaded", 529},
	{"context_length_exceeded", 400}, {"invalid_prompt", 400}, {"invalid_encrypted_content", 400},
	{"INVALID_ARGUMENT", 400}, {"FAILED_PRECONDITION", 400}, {"UNAUTHENTICATED", 401}, {"PERMISSION_DENIED", 403},
	{"NOT_FOUND", 404}, {"RESOURCE_EXHAUSTED", 429}, {"INTERNAL", 500}, {"UNAVAILABLE", 503}, {"DEADLINE_EXCEEDED", 504},
}

// MiniMax returns the status of the error in an answer of MiniMax's own APIs, which
// has the HTTP status 200, or 0. See
// https://platform.minimax.io/docs/api-reference/errorcode.
//
//	{"base_resp":{"status_code":1004,"status_msg":"login fail"}}   0 means success
func MiniMax(root gjson.Result) int {
	switch root.Get("base_resp.status_code").Int() {
	case 0:
		return 0
	case 1002, 1039, 1041, 2045:
		return 429
	case 1004, 2049:
		return 401
	case 1008:
		return 402
	case 1000, 1001, 1013, 1024, 1033:
		return 502
	}
	return 400
}
