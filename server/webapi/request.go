package webapi

import (
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// RequestPath splits the target of a request into path and query as workerd does:
// both stay as they were sent, with dot segments, escapes and backslashes, and a
// fragment is removed. It reports false for a target that workerd refuses: one with
// control characters, malformed UTF-8, or characters that end a URL in a text.
//
// An absolute target counts by its path, as RFC 9112, 3.2.2 wants: the host is that
// of the Host field.
func RequestPath(raw string) (path, query string, ok bool) {
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

// RequestURL returns a canonical http or https URL for net/http, which sends path
// and query as they stand in it: url.Parse refuses some escapes, and its String
// writes others in another way.
//
// The host that net/http connects to is the host in canonical, byte by byte. A URL
// for which that does not hold is an error.
func RequestURL(canonical string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(canonical, "://")
	if !ok || scheme != "https" && scheme != "http" {
		return nil, errHost
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return nil, errHost
	}
	u := &url.URL{Scheme: scheme, Host: rest[:end]}
	// net/http reads Host alone: this is what it would read from the whole URL.
	if read, err := url.Parse(scheme + "://" + u.Host + "/"); err != nil || read.Host != u.Host || read.User != nil || read.Hostname() == "" {
		return nil, errHost
	}
	path, query, marked := strings.Cut(rest[end:], "?")
	u.RawQuery, u.ForceQuery = query, marked && query == ""
	for i := 0; i < len(rest); i++ {
		if c := rest[i]; c <= ' ' || c >= 0x7f {
			return nil, errHost
		}
	}
	switch {
	case path == "":
		u.Path = "/"
	case strings.HasPrefix(path, "//"):
		// An opaque path with two slashes would be sent with scheme and host.
		var err error
		if u.Path, err = url.PathUnescape(path); err != nil {
			return nil, errHost
		}
		if u.RawPath = path; u.EscapedPath() != path {
			return nil, errHost
		}
	default:
		u.Opaque = path
	}
	return u, nil
}
