package ir

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// maxMessage is the maximum length of an upstream's error message, in bytes.
const maxMessage = 500

// StatusError returns the error for a status (docs/reference/api-shapes.md,
// 16).
func StatusError(status int) *apierr.Error {
	if status < 400 || status > 599 {
		status = 502
	}
	e := &apierr.Error{Status: status, Type: apierr.TypeOf(status)}
	switch status {
	case 401:
		e.Code, e.Message = "invalid_api_key", "The provider refused the credential."
	case 402:
		e.Code, e.Message = "insufficient_quota", "The provider's account has no credit left."
	case 403:
		e.Message = "The provider refused access."
	case 404:
		e.Code, e.Message = "model_not_found", "The provider does not know this model."
	case 413:
		e.Message = "The request is too large for the provider."
	case 429:
		e.Code, e.Message = "rate_limit_exceeded", "The provider's rate limit is reached."
	case 503, 529:
		e.Code, e.Message = "overloaded", "The provider is overloaded."
	case 408, 504:
		e.Code, e.Message = "timeout", "The provider took too long."
	default:
		e.Message = "The provider failed."
		if status < 500 {
			e.Message = "The provider refused the request."
		}
	}
	return e
}

// Describe reads the message, the code and the parameter of an error body into
// e.
func Describe(e *apierr.Error, root gjson.Result) {
	from := root
	if inside := root.Get("error"); inside.IsObject() {
		from = inside
	} else if inside.Type == gjson.String {
		from = gjson.Result{}
		e.Message = Truncate(inside.Str)
	}
	for _, path := range [...]string{
		"message", "detail.message", "detail.0.msg", "detail", "err_msg", "errors.0.message", "errors.0",
		"base_resp.status_msg", "error.message", "title",
	} {
		v := from.Get(path)
		if !v.Exists() && from.Raw != root.Raw {
			v = root.Get(path)
		}
		if v.Type == gjson.String && v.Str != "" {
			e.Message = Truncate(v.Str)
			break
		}
	}
	if code := from.Get("code"); code.Type == gjson.String && plainName(code.Str) {
		e.Code = code.Str
	}
	if t := Str(from.Get("type")); t == "insufficient_quota" {
		e.Code = t
	}
	if p := Str(from.Get("param")); len(p) <= 100 {
		e.Param = p
	}
}

// plainName reports whether a code is a name, not a sentence.
func plainName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !IsLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// Truncate returns at most 500 bytes of an upstream's text.
func Truncate(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// ErrorIn returns the error in a body or event with status 2xx, or nil.
func ErrorIn(root gjson.Result) *apierr.Error {
	inside := root.Get("error")
	switch {
	case inside.IsObject() && len(inside.Raw) > 2:
	case inside.Type == gjson.String && inside.Str != "":
	default:
		if code := root.Get("base_resp.status_code"); code.Exists() && code.Int() != 0 {
			status := 500
			switch code.Int() {
			case 1002:
				status = 429
			case 1004, 2049:
				status = 401
			case 1008:
				status = 402
			case 2013:
				status = 400
			}
			e := StatusError(status)
			Describe(e, root)
			return e
		}
		return nil
	}
	// A Responses answer has error beside status; null is handled above.
	e := StatusError(StatusIn(inside))
	Describe(e, root)
	return e
}

// StatusIn returns the HTTP status of an error object.
func StatusIn(e gjson.Result) int {
	for _, name := range [...]string{"status_code", "code", "status"} {
		if v := e.Get(name); v.Type == gjson.Number && v.Int() >= 400 && v.Int() <= 599 {
			return int(v.Int())
		}
	}
	for _, name := range [...]string{"type", "code", "status"} {
		s := e.Get(name).Str
		for i := range kinds {
			if kinds[i].name == s {
				return kinds[i].status
			}
		}
	}
	return 500
}

// kinds are the statuses by the type or code of an error in a stream.
var kinds = [...]struct {
	name   string
	status int
}{
	{"invalid_request_error", 400}, {"authentication_error", 401}, {"invalid_api_key", 401},
	{"billing_error", 402}, {"insufficient_quota", 402}, {"permission_error", 403},
	{"not_found_error", 404}, {"model_not_found", 404}, {"conflict_error", 409}, {"request_too_large", 413},
	{"rate_limit_error", 429}, {"rate_limit_exceeded", 429}, {"tokens", 429}, {"requests", 429},
	{"api_error", 500}, {"server_error", 500}, {"timeout_error", 504}, {"timeout", 504},
	{"overloaded_error", 529}, {"overloaded", 529}, {"server_is_overloaded", 529}, {"slow_down", 503},
	{"context_length_exceeded", 400}, {"invalid_prompt", 400},
	{"INVALID_ARGUMENT", 400}, {"FAILED_PRECONDITION", 400}, {"UNAUTHENTICATED", 401}, {"PERMISSION_DENIED", 403},
	{"NOT_FOUND", 404}, {"RESOURCE_EXHAUSTED", 429}, {"INTERNAL", 500}, {"UNAVAILABLE", 503}, {"DEADLINE_EXCEEDED", 504},
}

// WriteOpenAIError writes the fields of OpenAI's error object.
func WriteOpenAIError(d *Writer, e *apierr.Error) {
	d.Str("message", e.Message)
	t := e.Type
	if t == "" {
		t = apierr.TypeOf(e.Status)
	}
	d.Str("type", t)
	if e.Param != "" {
		d.Str("param", e.Param)
	} else {
		d.Null("param")
	}
	if e.Code != "" {
		d.Str("code", e.Code)
	} else {
		d.Null("code")
	}
}
