package host

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/pkg/wire/weburl"
)

// requestPath splits the target of a request into path and query as workerd does:
// both stay as they were sent, with dot segments, escapes and backslashes, and a
// fragment is removed. It reports false for a target that workerd refuses: one with
// control characters, malformed UTF-8, or characters that end a URL in a text.
//
// An absolute target counts by its path, as RFC 9112, 3.2.2 wants: the host is that
// of the Host field.
func requestPath(raw string) (path, query string, ok bool) {
	if raw == "" || raw[0] != '/' {
		if raw, ok = absolute(raw); !ok {
			return "", "", false
		}
	}
	at, ascii := -1, true
scan:
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c <= ' ' || c == 0x7f || c == '<' || c == '>':
			return "", "", false
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '?' && at < 0:
			at = i
		case c == '`' && at < 0, c == '"' && at >= 0:
			return "", "", false
		case c == '#':
			raw = raw[:i]
			break scan
		}
	}
	if !ascii && !utf8.ValidString(raw) {
		return "", "", false
	}
	if at < 0 {
		return raw, "", true
	}
	if at == 0 {
		return "/", raw[1:], true
	}
	return raw[:at], raw[at+1:], true
}

// absolute returns what follows the authority of an http or https URL.
func absolute(raw string) (string, bool) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#")
	switch {
	case end == 0 || rest == "":
		return "", false
	case end < 0 || rest[end] == '#':
		return "/", true
	}
	return rest[end:], true
}

// errHost is the error for a URL that net/http would read in another way.
var errHost = errors.New("the address cannot be called")

// requestURL returns an http or https URL for net/http, which sends path and query
// as they stand in the canonical form: url.Parse refuses some escapes, and its String
// writes others in another way. A fragment is removed.
//
// The host that net/http connects to is the host of the canonical form, byte by byte. A
// URL for which that does not hold is an error, and so is one with a user.
func requestURL(raw string) (*url.URL, error) {
	u, ok := split(raw)
	if !ok || !u.plain {
		canonical, valid := weburl.Canonical(raw)
		if u, ok = split(canonical); !valid || !ok {
			return nil, errHost
		}
	}
	r := &url.URL{Scheme: u.scheme, Host: u.host, RawQuery: u.query, ForceQuery: u.marked && u.query == ""}
	if !u.plain {
		// net/http reads Host alone: this is what it would read from the whole URL.
		read, err := url.Parse(u.scheme + "://" + u.host + "/")
		if err != nil || read.Host != u.host || read.User != nil || read.Hostname() == "" {
			return nil, errHost
		}
	}
	if !strings.HasPrefix(u.path, "//") {
		r.Opaque = u.path
		return r, nil
	}
	// An opaque path with two slashes would be sent with scheme and host.
	var err error
	if r.Path, err = url.PathUnescape(u.path); err != nil {
		return nil, errHost
	}
	if r.RawPath = u.path; r.EscapedPath() != u.path {
		return nil, errHost
	}
	return r, nil
}

// parts are those of an http or https URL.
type parts struct {
	scheme, host, path, query string
	marked                    bool // has a ?
	plain                     bool // is in canonical form, as far as its characters show
}

// split splits a URL in canonical form. It reports false for one that has another
// scheme, no path, or other characters than those of ASCII.
func split(s string) (p parts, ok bool) {
	p.scheme, s, ok = strings.Cut(s, "://")
	if !ok || p.scheme != "https" && p.scheme != "http" {
		return p, false
	}
	at := strings.IndexByte(s, '/')
	if at <= 0 || strings.IndexByte(s[:at], '@') >= 0 {
		return p, false
	}
	p.host = s[:at]
	p.plain = plainHost(p.scheme, p.host)
	s, _, _ = strings.Cut(s[at:], "#")
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c >= 0x7f {
			return p, false
		}
		if c == '?' && !p.marked {
			p.path, p.query, p.marked = s[:i], s[i+1:], true
			continue
		}
		p.plain = p.plain && (unreserved(c) || c == '/' || c == '%' || c == '=' || c == '&' || c == ':' ||
			c == '?' || c == '+' || c == ',' || c == '@')
		if !p.marked && c == '/' && i+1 < len(s) && (s[i+1] == '.' || s[i+1] == '%') {
			p.plain = false // may be a dot segment
		}
	}
	if !p.marked {
		p.path = s
	}
	return p, true
}

// plainHost reports whether a host, with a port if it has one, is in canonical form: a
// name whose last label begins with a letter, or an IPv4 address.
func plainHost(scheme, host string) bool {
	name, port, ok := strings.Cut(host, ":")
	if ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || port[0] == '0' || scheme == "https" && n == 443 || scheme == "http" && n == 80 {
			return false
		}
	}
	last := strings.LastIndexByte(name, '.') + 1
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c == '-' || c >= '0' && c <= '9' || c == '.' && i > 0 && name[i-1] != '.') {
			return false
		}
	}
	if last < len(name) && name[last] >= 'a' && name[last] <= 'z' {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Is4()
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
