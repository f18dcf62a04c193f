package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// members calls f for each member of an object that is not null, until it returns
// false. Names arrive in camelCase: the JSON of protobuf accepts both
// inlineData and inline_data.
func members(v gjson.Result, f func(name string, v gjson.Result) bool) {
	if !v.IsObject() {
		return
	}
	v.ForEach(func(k, x gjson.Result) bool {
		return x.Type == gjson.Null || f(camel(k.Str), x)
	})
}

// camel returns a name in snake_case as camelCase, and any other unchanged.
func camel(name string) string {
	if strings.IndexByte(name, '_') < 1 {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] == '_' && i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z' {
			i++
			b = append(b, name[i]-'a'+'A')
			continue
		}
		b = append(b, name[i])
	}
	return string(b)
}

// elements calls f for each element of an array, until it returns false. Google
// reads a single object as an array of one.
func elements(v gjson.Result, f func(v gjson.Result) bool) {
	if v.IsObject() {
		f(v)
		return
	}
	ir.Each(v, func(_, x gjson.Result) bool { return f(x) })
}

// number returns the JSON text of a number, which protobuf also reads from a
// string.
func number(param string, v gjson.Result) (string, error) {
	raw := v.Raw
	if v.Type == gjson.String {
		raw = v.Str
	}
	if n := gjson.Parse(raw); n.Type != gjson.Number || ir.Check([]byte(raw)) != nil {
		return "", apierr.Invalid(param, "%s must be a number.", param)
	}
	return raw, nil
}

// wholeNumber reads a limit: a whole number that is not negative.
func wholeNumber(param string, v gjson.Result) (int64, error) {
	raw, err := number(param, v)
	if err != nil {
		return 0, err
	}
	return ir.WholeNumber(param, gjson.Result{Type: gjson.Number, Raw: raw})
}

// standardBase64 returns base64 in the standard alphabet. Google's Python client
// writes the one of URLs.
func standardBase64(s string) string {
	if strings.ContainsAny(s, "-_") {
		return strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	return s
}

// decodeBase64 decodes base64 of either alphabet, with or without padding.
func decodeBase64(s string) (string, bool) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(standardBase64(s), "="))
	return string(b), err == nil
}
