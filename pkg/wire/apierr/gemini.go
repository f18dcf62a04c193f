package apierr

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// GeminiStatus returns the status name of Google's APIs for an HTTP status
// (docs/reference/dialects.md, a.7).
func GeminiStatus(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 402:
		return "FAILED_PRECONDITION" // as Google answers where billing is missing
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 409:
		return "ABORTED"
	case 408, 504:
		return "DEADLINE_EXCEEDED"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case 501:
		return "UNIMPLEMENTED"
	case 502, 503, 529:
		return "UNAVAILABLE"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// AppendGemini appends the error as Gemini's clients read it:
//
//	{"error":{"code": HTTP status,"message","status","details":[…]}}
//
// The details are the page that explains the code (Help), and those that clients act
// on: the wait (RetryInfo), the code and whose it is (ErrorInfo), the field (BadRequest), and for a 429
// after which a client must not retry by itself a quota of a day (QuotaFailure), which
// Gemini CLI takes as final.
// See docs/reference/dialects.md, a.7.
func (e *Error) AppendGemini(b []byte) []byte {
	b = append(b, `{"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	b = append(b, `,"message":`...)
	b = appendText(b, e.Message)
	b = append(b, `,"status":"`...)
	b = append(b, GeminiStatus(e.Status)...)
	b = append(b, '"')
	details := `,"details":[`
	detail := func(kind string) {
		b = append(b, details...)
		b = append(b, `{"@type":"type.googleapis.com/google.rpc.`...)
		b = append(b, kind...)
		b = append(b, `",`...)
		details = ","
	}
	if code, vendors := e.ShownCode(); code != "" {
		domain := "weir"
		if vendors && e.Provider != "" {
			domain = e.Provider
		}
		detail("ErrorInfo")
		b = append(b, `"reason":"`...)
		b = append(b, reasonOf(e.Status, code)...)
		b = append(b, `","domain":`...)
		b = append(appendText(b, domain), '}')
	}
	if e.Param != "" && e.Status == 400 {
		detail("BadRequest")
		b = append(b, `"fieldViolations":[{"field":`...)
		b = appendText(b, e.Param)
		b = append(b, `,"description":`...)
		b = appendText(b, e.Message)
		b = append(b, `}]}`...)
	}
	if e.Status == 429 && e.NoRetry {
		detail("QuotaFailure")
		b = append(b, `"violations":[{"quotaId":"RequestsPerDay"}]}`...)
	}
	if e.DocURL != "" {
		detail("Help")
		b = append(b, `"links":[{"description":"What the code means","url":`...)
		b = appendText(b, e.DocURL)
		b = append(b, `}]}`...)
	}
	if e.RetryAfter > 0 {
		detail("RetryInfo")
		b = append(b, `"retryDelay":"`...)
		b = strconv.AppendFloat(b, e.RetryAfter.Round(time.Millisecond).Seconds(), 'f', -1, 64)
		b = append(b, `s"}`...)
	}
	if details == "," {
		b = append(b, ']')
	}
	return append(b, `}}`...)
}

// reasonOf returns the code of an error as ErrorInfo has it: capitals, digits and
// underscores. A wrong key has Google's own reason, which tools look for.
func reasonOf(status int, code string) string {
	if status == 401 && code == "invalid_api_key" {
		return "API_KEY_INVALID"
	}
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, code)
}

// appendText appends a JSON string in which <, > and & are as they are written.
func appendText(b []byte, s string) []byte {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // of a string: cannot fail
	return append(b, strings.TrimSuffix(out.String(), "\n")...)
}
