// Package weburl reads the URLs that users, providers and pages give to the gateway.
package weburl

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Canonical returns an http or https URL as new URL(raw).href of the WHATWG URL
// Standard does. It reports false for one that is invalid, has another scheme, or that
// parsers read in different ways. These are refused though the standard has a reading:
// control characters, malformed UTF-8, a backslash before the query, another number of
// slashes than two, percent-encoding and characters beside those of DNS in the host,
// characters outside ASCII that become ASCII, and IPv4 addresses that are not four
// decimal numbers.
//
// A judgement about the result is one about the host that is called: browsers,
// net/http and the edge's fetch read the same host in it.
func Canonical(raw string) (string, bool) {
	raw = strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	scheme, rest, ok := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "https" && scheme != "http" || !utf8.ValidString(rest) || hasControl(rest) {
		return "", false
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.IndexByte(rest, '\\') >= 0 {
		return "", false
	}
	at := strings.LastIndexByte(authority, '@')
	host, ok := hostPort(scheme, authority[at+1:])
	if !ok {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(raw) + 16)
	b.WriteString(scheme)
	b.WriteString("://")
	if at > 0 {
		writeUser(&b, authority[:at])
	}
	b.WriteString(host)
	writePath(&b, path)
	if hasQuery {
		b.WriteByte('?')
		escape(&b, query, inQuery)
	}
	if hasFragment {
		b.WriteByte('#')
		escape(&b, fragment, inFragment)
	}
	return b.String(), true
}

func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// These characters are escaped in a part of a URL, and so are spaces, control characters
// and those outside ASCII.
const (
	inUser     = inPath + `/:;=@[\]|`
	inPath     = "\"#<>?^`{}"
	inQuery    = `"#<>'`
	inFragment = "\"<>`"
)

func escape(b *strings.Builder, s, set string) {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(set, c) >= 0 {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
}

func writeUser(b *strings.Builder, info string) {
	user, password, _ := strings.Cut(info, ":")
	escape(b, user, inUser)
	if password != "" {
		b.WriteByte(':')
		escape(b, password, inUser)
	}
	if user != "" || password != "" {
		b.WriteByte('@')
	}
}

// writePath writes a path without dot segments, escaped ones included. path is what
// follows the first slash.
func writePath(b *strings.Builder, path string) {
	segments := strings.Split(path, "/")
	kept := segments[:0]
	for i, s := range segments {
		dots := ""
		if len(s) <= len("%2e%2e") {
			dots = strings.ReplaceAll(strings.ToLower(s), "%2e", ".")
		}
		switch {
		case dots != "." && dots != "..":
			kept = append(kept, s)
			continue
		case dots == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		}
		if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	for _, s := range kept {
		b.WriteByte('/')
		escape(b, s, inPath)
	}
}

// hostPort returns a host with its port, unless that is the default of the scheme.
func hostPort(scheme, s string) (string, bool) {
	colon := strings.IndexByte(s[strings.LastIndexByte(s, ']')+1:], ':')
	port := ""
	if colon >= 0 {
		colon += strings.LastIndexByte(s, ']') + 1
		s, port = s[:colon], s[colon+1:]
	}
	host, ok := canonicalHost(s)
	if !ok || port == "" {
		return host, ok
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", false
	}
	if scheme == "https" && n == 443 || scheme == "http" && n == 80 {
		return host, true
	}
	return host + ":" + strconv.FormatUint(n, 10), true
}

func canonicalHost(s string) (string, bool) {
	if s != "" && s[0] == '[' {
		return ipv6(s)
	}
	name := strings.ToLower(s)
	if !isASCII(s) {
		var ok bool
		if name, ok = toASCII(s); !ok {
			return "", false
		}
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	for _, l := range labels {
		if l == "" || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	if isNumber(labels[len(labels)-1]) {
		a, err := netip.ParseAddr(name)
		return name, err == nil && a.Is4()
	}
	return name, true
}

// ipv6 returns an IPv6 address in brackets. An IPv4 address in it is written in
// hexadecimal digits.
func ipv6(s string) (string, bool) {
	inner, ok := strings.CutSuffix(s[1:], "]")
	a, err := netip.ParseAddr(inner)
	if !ok || err != nil || !a.Is6() || a.Zone() != "" {
		return "", false
	}
	if !a.Is4In6() {
		return "[" + a.String() + "]", true
	}
	b := a.As16()
	group := func(i int) string { return strconv.FormatUint(uint64(b[i])<<8|uint64(b[i+1]), 16) }
	return "[::ffff:" + group(12) + ":" + group(14) + "]", true
}

// isNumber reports whether the standard reads a name with this last label as an IPv4
// address.
func isNumber(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// maxName is the longest name outside ASCII that is read, in bytes. The longest one of
// DNS has a quarter.
const maxName = 1024

// toASCII returns a name with labels outside ASCII by the processing of UTS 46 that the
// standard wants. Labels remain what they are: none of them becomes a name in ASCII,
// another address, or two labels.
func toASCII(s string) (string, bool) {
	if len(s) > maxName {
		return "", false
	}
	profile := idna.New(
		idna.MapForLookup(),
		idna.BidiRule(),
		idna.VerifyDNSLength(false),
		idna.StrictDomainName(false),
		idna.ValidateLabels(true),
		idna.CheckHyphens(false),
		idna.CheckJoiners(true),
		idna.Transitional(false),
	)
	name, err := profile.ToASCII(strings.ReplaceAll(s, "ẞ", "ß")) // since revision 31 of UTS 46
	if err != nil {
		return "", false
	}
	in, out := strings.Split(s, "."), strings.Split(name, ".")
	if len(in) != len(out) {
		return "", false
	}
	for i, l := range in {
		if isASCII(l) && strings.ToLower(l) != out[i] || !isASCII(l) && !strings.HasPrefix(out[i], "xn--") {
			return "", false
		}
	}
	return name, true
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
