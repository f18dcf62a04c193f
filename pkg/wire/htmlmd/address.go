package htmlmd

import (
	"bytes"
	"cmp"
	"strings"
)

// Resolve resolves the URL of a link or a redirect against base, as text: RFC 3986, 5.2,
// with the backslashes and white space that URL parsers of browsers accept. base is a
// URL with a host. A ref with a scheme is returned unchanged. Before a call the
// platform's own parser must read the result.
func Resolve(base, ref string) string {
	ref = strings.TrimFunc(ref, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(ref, "\t\r\n") {
		ref = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(ref)
	}
	if scheme(ref) != "" {
		return ref
	}
	at := strings.Index(base, "://")
	if at < 0 {
		return ref
	}
	base, _, _ = strings.Cut(base, "#")
	host := base
	path, query := "/", ""
	if i := strings.IndexAny(base[at+3:], "/?"); i >= 0 {
		host, path = base[:at+3+i], base[at+3+i:]
		if i := strings.IndexByte(path, '?'); i >= 0 {
			path, query = path[:i], path[i:]
		}
		path = cmp.Or(path, "/")
	}
	rest := ""
	if i := strings.IndexAny(ref, "?#"); i >= 0 {
		ref, rest = ref[:i], ref[i:]
	}
	ref = strings.ReplaceAll(ref, `\`, "/")
	switch {
	case strings.HasPrefix(ref, "//"):
		return base[:at+1] + ref + rest
	case ref == "" && !strings.HasPrefix(rest, "?"):
		return host + path + query + rest
	case ref == "":
		return host + path + rest
	case ref[0] != '/':
		ref = path[:strings.LastIndexByte(path, '/')+1] + ref
	}
	return host + flat(ref) + rest
}

// scheme returns the scheme of an address in lower case, "" for a relative one.
func scheme(ref string) string {
	for i := 0; i < len(ref); i++ {
		switch c := ref[i]; {
		case c == ':' && i > 0:
			return strings.ToLower(ref[:i])
		case isLetter(c), i > 0 && (isWord(c) || c == '+' || c == '-' || c == '.'):
		default:
			return ""
		}
	}
	return ""
}

// flat takes the segments . and .. out of an absolute path.
func flat(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	out := make([]byte, 0, len(path))
	for path != "" {
		segment, rest := path[1:], ""
		if i := strings.IndexByte(segment, '/'); i >= 0 {
			segment, rest = segment[:i], segment[i:]
		}
		switch segment {
		case "..":
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			if rest == "" {
				out = append(out, '/')
			}
		case ".":
			if rest == "" {
				out = append(out, '/')
			}
		default:
			out = append(append(out, '/'), segment...)
		}
		path = rest
	}
	return string(out)
}
