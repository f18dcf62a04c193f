// Package webapi has the functions of the web platform that the program in pkg
// takes from its host: the URL parser, text encodings, signatures.
package webapi

import (
	whatwg "github.com/nlnwa/whatwg-url/url"
)

// CanonicalURL returns new URL(raw).href of the WHATWG URL Standard, or false for
// an invalid URL.
func CanonicalURL(raw string) (string, bool) {
	u, err := whatwg.Parse(decodeUTF8([]byte(raw)))
	if err != nil {
		return "", false
	}
	return u.Href(false), true
}
