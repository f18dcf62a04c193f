package llm

import (
	"strconv"
	"unsafe"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// check tells whether b is one JSON value, strictly (pkg/wire/jsonscan).
func check(b []byte) error {
	var c jsonscan.Cursor
	c.Reset(b)
	c.Skip()
	return c.End()
}

// view lends bytes as a string, for as long as they do not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// inner gives a JSON string without its quotes, escapes kept.
func inner(v gjson.Result) string {
	if v.Type != gjson.String || len(v.Raw) < 2 {
		return ""
	}
	return v.Raw[1 : len(v.Raw)-1]
}

// escape gives text as it stands between the quotes of a JSON string.
func escape(text string) string {
	b := jsonscan.Quote(nil, text)
	return view(b[1 : len(b)-1])
}

// unescape undoes escape.
func unescape(text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			return gjson.Parse(`"` + text + `"`).Str
		}
	}
	return text
}

// rawOf returns the JSON of a value, "" if it is null or absent.
func rawOf(v gjson.Result) string {
	if v.Type == gjson.Null {
		return ""
	}
	return v.Raw
}

// str gives the value of a string, and "" for anything else.
func str(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// object tells whether text is a JSON object. An empty text is {}.
func object(text string) (string, bool) {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	if i == len(text) {
		return "{}", true
	}
	if text[i] != '{' || check([]byte(text)) != nil {
		return "", false
	}
	return text, true
}

// count reads a whole number that is not negative; anything else is 0.
func count(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	if n := v.Int(); n > 0 {
		return n
	}
	return 0
}

// number gives the text of a number.
func number(param string, v gjson.Result) (string, error) {
	if v.Type != gjson.Number {
		return "", apierr.Invalid(param, "%s must be a number.", param)
	}
	return v.Raw, nil
}

// whole reads a limit: a whole number from 1 on.
func whole(param string, v gjson.Result) (int64, error) {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if err != nil || n < 0 {
		return 0, apierr.Invalid(param, "%s must be a whole number.", param)
	}
	return n, nil
}

// texts reads a string or an array of strings.
func texts(param string, v gjson.Result) (list []string, err error) {
	if v.Type == gjson.String {
		return []string{v.Str}, nil
	}
	if !v.IsArray() {
		return nil, apierr.Invalid(param, "%s must be a string or an array of strings.", param)
	}
	forEach(v, func(_, s gjson.Result) bool {
		if s.Type != gjson.String {
			err = apierr.Invalid(param, "%s must be a string or an array of strings.", param)
		}
		list = append(list, s.Str)
		return err == nil
	})
	return list, err
}

// boolean gives "true", "false", or "" for anything else.
func boolean(v gjson.Result) string {
	if v.Type == gjson.True || v.Type == gjson.False {
		return v.Raw
	}
	return ""
}

// cacheOf reads Anthropic's cache_control.
func cacheOf(v gjson.Result) string {
	if !v.IsObject() {
		return ""
	}
	if str(v.Get("ttl")) == "1h" {
		return "1h"
	}
	return "5m"
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// forEach calls f for each member of an object or element of an array, until it
// returns false. For any other value, such as null, it does nothing.
func forEach(v gjson.Result, f func(k, v gjson.Result) bool) {
	if v.Type == gjson.JSON {
		v.ForEach(f)
	}
}
