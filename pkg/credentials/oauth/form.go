package oauth

import (
	"net/url"
	"strings"
)

// form writes application/x-www-form-urlencoded.
type form []byte

func (f *form) add(name, value string) {
	if len(*f) > 0 {
		*f = append(*f, '&')
	}
	*f = append(append(append(*f, formEscape(name)...), '='), formEscape(value)...)
}

// formEscape percent-encodes all but the unreserved characters, so what it
// writes reads the same in a query and in a form.
func formEscape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// params reads a query. A name that comes twice, a broken escape and more than
// 16 KiB give false: RFC 6749 3.1 forbids the first.
func params(query string) (map[string]string, bool) {
	if len(query) > 16<<10 {
		return nil, false
	}
	out := map[string]string{}
	for _, p := range strings.Split(query, "&") {
		if p == "" {
			continue
		}
		name, value, _ := strings.Cut(p, "=")
		n, err := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if _, twice := out[n]; twice || err != nil || err2 != nil {
			return nil, false
		}
		out[n] = v
	}
	return out, true
}
