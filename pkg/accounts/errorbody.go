package accounts

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/vendorerror"
)

// maxMessage is the length of an upstream's message that is shown, in bytes.
const maxMessage = 500

// upstreamError returns the failure of an upstream's answer with the upstream's
// status. Its message is that of a JSON body, or a plain text, without what could be
// a credential; markup is never shown.
func upstreamError(status int, h httpmsg.Header, raw []byte, cred provider.Credential) *apierr.Error {
	e := apierr.New(status, codeOf(status), "")
	e.Header = notes(h, live(cred))
	// Anthropic and OpenAI state that the same call will fail again, such as over a
	// spending limit.
	e.NoRetry = status < 500 && h.Get("x-should-retry") == "false"
	if len(raw) > 0 && jsonscan.Valid(raw) {
		read(e, raw, cred)
	} else if isText(raw) {
		e.Message, e.Said = shownText(string(raw), cred), true
	}
	stated(e)
	// Amazon names the error in a field: "ThrottlingException:http://…"
	if name, _, _ := strings.Cut(h.Get("x-amzn-errortype"), ":"); e.VendorCode == "" && e.Code != quotaCode && identifier(name) {
		e.SetVendorCode(name)
	}
	return e
}

// ErrorForm is the dialect of an upstream's errors, relative to the client's.
type ErrorForm uint8

// The forms.
const (
	ErrorsByShape ErrorForm = iota // the client's dialect if they look like OpenAI's
	ErrorsSame                     // the client's own dialect
	ErrorsForeign                  // another dialect
)

// pass fills e, for which no other account is tried, with the upstream's own
// error (docs/reference/spec.md, 7). A JSON body in the client's dialect passes
// unchanged, with possible credentials masked; of any other the type, code,
// parameter and message are kept.
func pass(e *apierr.Error, raw []byte, cred provider.Credential, form ErrorForm) {
	if len(raw) == 0 || !jsonscan.Valid(raw) {
		return
	}
	body := gjson.ParseBytes(raw)
	if body.IsArray() {
		body = body.Get("0")
	}
	inner := body.Get("error")
	if t := inner.Get("type"); t.Type == gjson.String && identifier(t.Str) && live(cred).String(t.Str) == t.Str {
		e.Type, e.Own = t.Str, true
	}
	if raw = bytes.TrimSpace(raw); raw[0] != '{' || form == ErrorsForeign || form == ErrorsByShape && !openAIs(inner) {
		return
	}
	masked := redact.Patterns(live(cred).String(string(raw)))
	if b := []byte(masked); jsonscan.Valid(b) {
		e.Body = b
	}
}

// openAIs reports whether an error object is OpenAI's: Google's has a message
// too, but a number for its code and neither type nor param.
func openAIs(e gjson.Result) bool {
	return e.Get("message").Type == gjson.String && (e.Get("type").Exists() || e.Get("param").Exists() ||
		e.Get("code").Type == gjson.String)
}

// MessageOf returns the message of an upstream's error body as it was sent, or
// "". It may contain credentials and must not be shown.
func MessageOf(raw []byte) string {
	if !jsonscan.Valid(raw) {
		return ""
	}
	return vendorerror.Read(gjson.ParseBytes(raw)).Message
}

func read(e *apierr.Error, raw []byte, cred provider.Credential) {
	// A name may be a credential too: many are of letters and digits alone.
	name := func(s string) bool { return identifier(s) && live(cred).String(s) == s }
	v := vendorerror.Read(gjson.ParseBytes(raw))
	if v.Message != "" {
		e.Message, e.Said = shownText(v.Message, cred), true
	}
	switch {
	case v.Code == quotaCode, v.Type == quotaCode, v.Status == quotaCode:
		e.Code = quotaCode
	case name(v.Code):
		e.SetVendorCode(v.Code)
	case name(v.Status):
		e.SetVendorCode(v.Status)
	}
	if name(v.Param) {
		e.Param = v.Param
	}
}

// stated sets the message of an error without a text of the upstream: its status.
func stated(e *apierr.Error) {
	if e.Message == "" {
		e.Message, e.Said = "The provider answered with status "+strconv.Itoa(e.Status)+".", false
	}
}

// live returns the redaction of the credentials in use.
func live(cred provider.Credential) *redact.R {
	return redact.Secrets(cred.APIKey, cred.AccessToken, cred.AccessKeyID, cred.SecretAccessKey, cred.SessionToken,
		cred.ServiceAccount)
}

// clean makes a failure that was read from an answer fit to be shown: every part of
// it may contain the credential in use.
func clean(e *apierr.Error, cred provider.Credential) {
	if e == nil {
		return
	}
	secrets := live(cred)
	e.Message = shownText(e.Message, cred)
	stated(e)
	for _, s := range [...]*string{&e.Code, &e.Param} {
		if *s != "" && secrets.String(*s) != *s {
			*s = ""
		}
	}
	if e.Err != nil {
		if text := e.Err.Error(); secrets.String(text) != text {
			e.Err = nil
		}
	}
}

// notes returns the fields of an answer that go to the client with an error. The
// waits are set again by the gateway.
func notes(h httpmsg.Header, secrets *redact.R) httpmsg.Header {
	out := provider.ResponseNotes(h)
	out.Del("retry-after")
	out.Del("retry-after-ms")
	for i := range out {
		out[i].Value = redact.Patterns(secrets.String(out[i].Value))
	}
	return out
}

// shownText makes a message fit to be shown: no credential in any encoding, no
// HTML, no control characters, at most 500 bytes.
func shownText(s string, cred provider.Credential) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) > 8*maxMessage {
		s = apierr.Shorten(s, 8*maxMessage)
	}
	s = redact.Patterns(live(cred).String(s))
	if looksHTML(s) {
		return ""
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < 0x20 || r == 0x7f || r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return apierr.Shorten(strings.TrimSpace(s), maxMessage)
}

// isText reports whether a body is a text for people: neither markup nor cut JSON nor
// binary.
func isText(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && bytes.IndexByte([]byte("<{["), raw[0]) < 0 &&
		bytes.IndexFunc(raw, func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) }) < 0
}

func looksHTML(s string) bool {
	low := strings.ToLower(s[:min(len(s), 512)])
	return slices.ContainsFunc([]string{"<!doctype", "<html", "<head", "<body", "<script"},
		func(tag string) bool { return strings.Contains(low, tag) })
}

// identifier reports whether s is a name like those of codes and parameters.
func identifier(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-' ||
			c == '[' || c == ']') {
			return false
		}
	}
	return redact.Patterns(s) == s
}

// codeOf returns the code of a status without one (docs/reference/api-shapes.md,
// 16).
func codeOf(status int) string {
	switch status {
	case 401:
		return "invalid_api_key"
	case 402:
		return quotaCode
	case 429:
		return "rate_limit_exceeded"
	case 503, 529:
		return "upstream_overloaded"
	case 408, 504:
		return "timeout"
	}
	if status >= 500 {
		return "upstream_failed"
	}
	return ""
}
