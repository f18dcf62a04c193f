package ir

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/vendorerror"
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
		e.Code, e.Message = "upstream_overloaded", "The provider is overloaded."
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
// e, as copies: an event is valid only while it is read, e until the log line is
// written.
func Describe(e *apierr.Error, root gjson.Result) {
	v := vendorerror.Read(root)
	if v.Message != "" {
		e.Message, e.Said = strings.Clone(Truncate(v.Message)), true
	}
	switch {
	case v.Type == "insufficient_quota":
		e.Code = "insufficient_quota"
	case plainName(v.Code):
		e.SetVendorCode(strings.Clone(v.Code))
	}
	if len(v.Param) <= 100 {
		e.Param = strings.Clone(v.Param)
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
		if status := vendorerror.MiniMax(root); status != 0 {
			e := StatusError(status)
			Describe(e, root)
			return e
		}
		return nil
	}
	// A Responses answer has error beside status; null is handled above.
	e := StatusError(vendorerror.Status(inside))
	Describe(e, root)
	return e
}

// WriteOpenAIError writes the fields of OpenAI's error object.
func WriteOpenAIError(d *Writer, e *apierr.Error) {
	d.Str("message", OpenAIText(e))
	d.Str("type", cmp.Or(e.Type, apierr.TypeOf(e.Status)))
	d.StrOrNull("param", e.Param)
	d.StrOrNull("code", e.Code)
}

// AppendOpenAIFailure ends a stream of chat or completions with an error, followed by [DONE].
func AppendOpenAIFailure(out []byte, e *apierr.Error) []byte {
	d := Writer{Buf: append(out, "data: "...)}
	d.Open("", '{')
	d.Open("error", '{')
	WriteOpenAIError(&d, e)
	d.Close('}')
	d.Close('}')
	return sse.Done(append(d.Buf, "\n\n"...))
}
