package ir

import (
	"strconv"
	"unsafe"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// Check returns an error unless b is one JSON value, strictly
// (pkg/wire/jsonscan).
func Check(b []byte) error {
	var c jsonscan.Cursor
	c.Reset(b)
	c.Skip()
	return c.End()
}

// View returns bytes as a string without a copy, valid while they do not
// change.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// EscapedText returns a JSON string without its quotes, with its escapes.
func EscapedText(v gjson.Result) string {
	if v.Type != gjson.String || len(v.Raw) < 2 {
		return ""
	}
	return v.Raw[1 : len(v.Raw)-1]
}

// Escape returns a text as between the quotes of a JSON string.
func Escape(text string) string {
	b := jsonscan.Quote(nil, text)
	return View(b[1 : len(b)-1])
}

// Unescape reverses Escape.
func Unescape(text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			return gjson.Parse(`"` + text + `"`).Str
		}
	}
	return text
}

// Raw returns the JSON of a value, "" if it is null or absent.
func Raw(v gjson.Result) string {
	if v.Type == gjson.Null {
		return ""
	}
	return v.Raw
}

// Str returns the value of a string, and "" for anything else.
func Str(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// Object returns text and whether it is a JSON object. An empty text is {}.
func Object(text string) (string, bool) {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	if i == len(text) {
		return "{}", true
	}
	if text[i] != '{' || Check([]byte(text)) != nil {
		return "", false
	}
	return text, true
}

// ObjectArguments returns the arguments of a call as a JSON object: {"_raw": text} for another text.
func ObjectArguments(text string) string {
	if args, ok := Object(text); ok {
		return args
	}
	return `{"_raw":` + Quote(text) + `}`
}

// maxCount bounds a count, so that sums of what a server states cannot overflow.
const maxCount = 1 << 40

// Count reads a whole number that is not negative, up to maxCount; anything else is 0.
func Count(v gjson.Result) int64 {
	if v.Type != gjson.Number || !(v.Num > 0) {
		return 0
	}
	if v.Num >= maxCount {
		return maxCount
	}
	return max(v.Int(), 0)
}

// Number returns the JSON text of a number.
func Number(param string, v gjson.Result) (string, error) {
	if v.Type != gjson.Number {
		return "", apierr.Invalid(param, "%s must be a number.", param)
	}
	return v.Raw, nil
}

// WholeNumber reads a limit: a whole number that is not negative.
func WholeNumber(param string, v gjson.Result) (int64, error) {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if err != nil || n < 0 {
		return 0, apierr.Invalid(param, "%s must be a whole number.", param)
	}
	return n, nil
}

// Strings reads a string or an array of strings.
func Strings(param string, v gjson.Result) (list []string, err error) {
	if v.Type == gjson.String {
		return []string{v.Str}, nil
	}
	if !v.IsArray() {
		return nil, apierr.Invalid(param, "%s must be a string or an array of strings.", param)
	}
	Each(v, func(_, s gjson.Result) bool {
		if s.Type != gjson.String {
			err = apierr.Invalid(param, "%s must be a string or an array of strings.", param)
		}
		list = append(list, s.Str)
		return err == nil
	})
	return list, err
}

// Boolean returns "true", "false", or "" for anything else.
func Boolean(v gjson.Result) string {
	if v.Type == gjson.True || v.Type == gjson.False {
		return v.Raw
	}
	return ""
}

// CacheBreakpoint reads a prompt_cache_breakpoint of OpenAI's dialects: {mode, ttl?}.
// See CacheControl.
func CacheBreakpoint(v gjson.Result) string {
	if !v.IsObject() {
		return ""
	}
	if ttl := Str(v.Get("ttl")); ttl != "" && ttl != "5m" {
		return "1h"
	}
	return "5m"
}

// CacheControl reads Anthropic's cache_control.
func CacheControl(v gjson.Result) string {
	if !v.IsObject() {
		return ""
	}
	if Str(v.Get("ttl")) == "1h" {
		return "1h"
	}
	return "5m"
}

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// Each calls f for each member of an object or element of an array, until it
// returns false. For any other value, such as null, it does nothing.
func Each(v gjson.Result, f func(k, v gjson.Result) bool) {
	if v.Type == gjson.JSON {
		v.ForEach(f)
	}
}
