package sigv4

import (
	"cmp"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// canonicalRequest returns the text whose digest is signed, and the names of the
// signed fields, joined by semicolons:
//
//	method \n path \n query \n name:value \n … \n names \n hex SHA-256 of the body
func canonicalRequest(req *upstream.Request, service string, sum []byte,
	signed func(string) bool) (text []byte, names string, err error) {
	host, path, query, err := split(req.URL)
	if err != nil {
		return nil, "", err
	}
	fields := httpmsg.Header{{Name: "host", Value: host}}
	for _, f := range req.Header {
		if f.Name != "host" && signed(f.Name) {
			fields = append(fields, httpmsg.Field{Name: f.Name, Value: trimAll(f.Value)})
		}
	}
	slices.SortStableFunc(fields, func(a, b httpmsg.Field) int { return strings.Compare(a.Name, b.Name) })

	out := make([]byte, 0, 512+len(path)*2+len(query))
	out = append(append(out, req.Method...), '\n')
	if service == "s3" {
		out = append(out, path...)
	} else {
		out = appendPath(out, path)
	}
	out = append(out, '\n')
	if out, err = appendQuery(out, query); err != nil {
		return nil, "", err
	}
	out = append(out, '\n')
	for i, f := range fields {
		if i > 0 && fields[i-1].Name == f.Name {
			out = append(append(out, ','), f.Value...)
			continue
		}
		if i > 0 {
			out = append(out, '\n')
			names += ";"
		}
		out = append(append(append(out, f.Name...), ':'), f.Value...)
		names += f.Name
	}
	out = append(out, "\n\n"...)
	out = append(append(out, names...), '\n')
	return hex.AppendEncode(out, sum), names, nil
}

// split takes an absolute address apart. A default port is not part of the
// Host header and so not of host.
func split(url string) (host, path, query string, err error) {
	rest, secure := strings.CutPrefix(url, "https://")
	if !secure {
		var ok bool
		if rest, ok = strings.CutPrefix(url, "http://"); !ok {
			return "", "", "", ErrURL
		}
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ = strings.Cut(rest, "?")
	host = rest
	path = "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if host == "" || strings.ContainsAny(host, "@\\ ") {
		return "", "", "", ErrURL
	}
	host = strings.ToLower(host)
	if secure {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	return host, path, query, nil
}

// appendPath appends a path without empty and dot segments, each segment
// encoded on top of the encoding it has.
func appendPath(out []byte, path string) []byte {
	var kept []string
	for _, s := range strings.Split(path, "/") {
		switch s {
		case "", ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, s)
		}
	}
	for _, s := range kept {
		out = encode(append(out, '/'), s)
	}
	if len(kept) == 0 || strings.HasSuffix(path, "/") {
		out = append(out, '/')
	}
	return out
}

// appendQuery appends the parameters, encoded again and sorted by name, then by value. A
// plus sign stands for itself, not for a blank.
func appendQuery(out []byte, query string) ([]byte, error) {
	if query == "" {
		return out, nil
	}
	var params []httpmsg.Field
	for _, p := range strings.Split(query, "&") {
		if p == "" {
			continue
		}
		name, value, _ := strings.Cut(p, "=")
		n, err := url.PathUnescape(name)
		v, err2 := url.PathUnescape(value)
		if err != nil || err2 != nil {
			return nil, ErrURL
		}
		params = append(params, httpmsg.Field{Name: string(encode(nil, n)), Value: string(encode(nil, v))})
	}
	slices.SortFunc(params, func(a, b httpmsg.Field) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	for i, p := range params {
		if i > 0 {
			out = append(out, '&')
		}
		out = append(append(append(out, p.Name...), '='), p.Value...)
	}
	return out, nil
}

// trimAll takes blanks from both ends and makes runs of them one.
func trimAll(s string) string {
	s = strings.Trim(s, " \t")
	if !strings.Contains(s, "  ") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != ' ' || s[i-1] != ' ' {
			out = append(out, s[i])
		}
	}
	return string(out)
}

const upperHex = "0123456789ABCDEF"

// encode appends s with every byte but the unreserved ones percent-encoded.
func encode(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; unreserved(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return out
}

// unreserved are the characters of RFC 3986 2.3.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' ||
		c == '~'
}
