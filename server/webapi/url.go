// Package webapi has the functions of the web platform that the program in pkg
// takes from its host: the URL parser, text encodings, signatures.
package webapi

import (
	"net/url"
	"strings"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
)

// maxURL is the longest URL parsed, in bytes without tabs and line ends. The parser
// takes quadratic time for some texts, and no caller accepts a longer URL.
const maxURL = 16 << 10

// Bounds of what the parser takes quadratic time for. No caller accepts a user with @
// in it, or another scheme than http and https.
const (
	maxAt         = 16  // in the authority
	maxOpaqueHost = 256 // bytes of a host of another scheme
)

// CanonicalURL returns new URL(raw).href of the WHATWG URL Standard, as workerd
// does, or false for an invalid URL. See docs/decisions/0064-native-upstream-calls.md.
//
// It refuses a few URLs that are valid for workerd: those longer than 16 KiB, names
// outside ASCII that have an empty label, a user with many @, and long hosts of other
// schemes than http and https.
func CanonicalURL(raw string) (string, bool) {
	text := trim(decodeUTF8([]byte(raw)))
	if len(text) > maxURL || strings.Count(authority(text), "@") > maxAt {
		return "", false
	}
	var h hostReader
	u, err := whatwg.NewParser(
		whatwg.WithPathPercentEncodeSet(whatwg.PathPercentEncodeSet.Set('^')),
		whatwg.WithPreParseHostFunc(h.read),
	).Parse(text)
	if err != nil || u == nil || h.failed {
		return "", false
	}
	href := u.Href(false)
	switch {
	case h.name != "":
		return h.restore(href)
	case u.OpaquePath():
		href = escapeLastSpace(href)
	}
	return href, true
}

// authority returns what can be user, host and port in a text, of any scheme.
func authority(s string) string {
	if i := strings.IndexByte(s, ':'); i >= 0 {
		s = s[i+1:]
	}
	s = strings.TrimLeft(s, "/\\")
	if end := strings.IndexAny(s, "/?#"); end >= 0 {
		s = s[:end]
	}
	return s
}

// trim removes what the standard removes before it parses.
func trim(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(s, "\t\n\r") {
		s = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
	}
	return s
}

// escapeLastSpace escapes a space before the query or fragment of a URL with an
// opaque path.
func escapeLastSpace(href string) string {
	end := strings.IndexAny(href, "?#")
	if end < 1 || href[end-1] != ' ' {
		return href
	}
	return href[:end-1] + "%20" + href[end:]
}

// hostReader reads a name in place of the parser, which refuses some that are valid,
// changes others, and takes "-1" for an IPv4 address. The parser sees standIn for it.
// IP addresses are left to the parser.
type hostReader struct {
	failed bool
	name   string // "" if the parser has read the host
}

const standIn = "name"

// read returns what the parser reads in place of a host.
func (h *hostReader) read(u *whatwg.Url, host string) string {
	switch {
	case host == "":
		return ""
	case host[0] == '[':
		inner, closed := strings.CutSuffix(host[1:], "]")
		h.failed = !closed || strings.ContainsAny(inner, "[]") // the parser removes all brackets
		return host
	case !u.IsSpecialScheme():
		if h.failed = len(host) > maxOpaqueHost; h.failed {
			return ""
		}
		return host
	}
	name, ok := domain(host)
	if h.failed = !ok; h.failed || endsInNumber(name) || u.Scheme() == "file" && name == "localhost" {
		return name
	}
	h.name = name
	return standIn
}

// restore replaces standIn in a URL, and reports whether that is its host.
func (h *hostReader) restore(href string) (string, bool) {
	scheme, rest, _ := strings.Cut(href, "://")
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		return "", false
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	port, ok := strings.CutPrefix(rest[at:end], standIn)
	if !ok || port != "" && port[0] != ':' {
		return "", false
	}
	return scheme + "://" + rest[:at] + h.name + port + rest[end:], true
}

// profile is the processing of UTS 46 that the standard wants.
func profile() *idna.Profile {
	return idna.New(
		idna.MapForLookup(),
		idna.BidiRule(),
		idna.VerifyDNSLength(false),
		idna.StrictDomainName(false),
		idna.ValidateLabels(true),
		idna.CheckHyphens(false),
		idna.CheckJoiners(true),
		idna.Transitional(false),
	)
}

// domain returns a domain name in ASCII and lower case.
func domain(host string) (string, bool) {
	name := decodeUTF8([]byte(unescape(host)))
	if isASCII(name) {
		name = strings.ToLower(name)
	} else {
		var err error
		name = strings.ReplaceAll(name, "ẞ", "ß") // since revision 31 of UTS 46
		if name, err = profile().ToASCII(name); err != nil {
			return "", false
		}
		if name[:min(1, len(name))] == "." || strings.Contains(name, "..") {
			return "", false // may have been xn--, which is invalid
		}
	}
	if name == "" {
		return "", false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("#%/:<>?@[\\]^|", c) >= 0 {
			return "", false
		}
	}
	if endsInNumber(name) {
		for l := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
			if !isNumber(l) {
				return "", false
			}
		}
	}
	return name, true
}

// endsInNumber reports whether the standard reads a name as an IPv4 address.
func endsInNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return isNumber(name[strings.LastIndexByte(name, '.')+1:])
}

// isNumber reports whether a label is a number: digits, or hexadecimal digits after
// 0x, of which there may be none.
func isNumber(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unescape decodes what is percent-encoded and leaves the rest.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
