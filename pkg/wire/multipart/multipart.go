// Package multipart reads multipart/form-data (RFC 7578) from chunks of any size, and
// rewrites it while it streams.
//
// It buffers only a part's header and the values of requested small fields, so a form of
// any size needs constant memory. An accepted form means the same to every other parser:
// line ends are CRLF, a delimiter stands alone on its line, names are plain, and the
// closing delimiter is present (docs/reference/reliability.md, T42).
package multipart

import (
	"errors"
	"strings"

	"weir/pkg/wire/apierr"
)

// Limits of a form.
const (
	MaxParts    = 20        // unless a Scanner says otherwise
	maxHead     = 8 << 10   // bytes of a part's header
	maxField    = 64 << 10  // bytes of the value of a field that is read
	maxFields   = 256 << 10 // bytes of all such values
	maxPadding  = 64        // blanks after a delimiter
	maxEpilogue = 4 << 10   // bytes after the closing delimiter
	maxBoundary = 70        // RFC 2046, 5.1.1
)

// ErrBoundary is the error for a content type that is not multipart/form-data with a
// usable boundary.
var ErrBoundary = errors.New("multipart: no usable boundary")

// IsForm reports whether a content type says multipart/form-data.
func IsForm(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "multipart/form-data")
}

// Boundary returns the boundary of a multipart/form-data content type: 1 to 70
// characters of RFC 2046's bchars, no blank at the end. Given twice it is
// refused.
func Boundary(contentType string) (string, error) {
	if !IsForm(contentType) {
		return "", ErrBoundary
	}
	_, rest, _ := strings.Cut(contentType, ";")
	found := ""
	for rest != "" {
		name, value, after, ok := parameter(rest)
		if !ok || name == "boundary" && found != "" {
			return "", ErrBoundary
		}
		if name == "boundary" {
			found = value
		}
		rest = after
	}
	if len(found) == 0 || len(found) > maxBoundary || found[len(found)-1] == ' ' {
		return "", ErrBoundary
	}
	for i := 0; i < len(found); i++ {
		if c := found[i]; !alphanumeric(c) && strings.IndexByte("'()+_,-./:=? ", c) < 0 {
			return "", ErrBoundary
		}
	}
	return found, nil
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// parameter reads one name=value of a header value, with the semicolon after
// it. The name comes in lower case, a quoted value without its quotes: only \"
// and \\ are taken for escapes, as browsers write file names.
func parameter(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t;")
	if s == "" {
		return "", "", "", true
	}
	name, s, ok = strings.Cut(s, "=")
	name = strings.ToLower(strings.TrimSpace(name))
	if !ok || name == "" {
		return "", "", "", false
	}
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] != '"' {
		value, rest, _ = strings.Cut(s, ";")
		return name, strings.TrimSpace(value), rest, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			rest = strings.TrimLeft(s[i+1:], " \t")
			if rest != "" && rest[0] != ';' {
				return "", "", "", false
			}
			return name, b.String(), rest, true
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "", false
}

// Part is the head of one part.
type Part struct {
	Name        string
	Filename    string
	File        bool // has a file name, maybe an empty one
	ContentType string
}

// parsePart reads the header block of a part, each line with its CRLF.
func parsePart(head []byte) (p Part, err error) {
	disposed := false
	for text := string(head); text != ""; {
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || !token(name) || control(strings.ReplaceAll(value, "\t", " ")) {
			return p, bad("a part's header is malformed")
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-disposition":
			if disposed {
				return p, bad("a part has two dispositions")
			}
			disposed = true
			if err := p.dispose(value); err != nil {
				return p, err
			}
		case "content-type":
			p.ContentType = value
			if media := strings.ToLower(value); strings.HasPrefix(media, "multipart/") {
				return p, bad("a part is itself a multipart document")
			}
		case "content-transfer-encoding":
			switch strings.ToLower(value) {
			case "binary", "8bit", "7bit":
			default:
				return p, bad("a part is transfer-encoded, which forms are not (RFC 7578, 4.7)")
			}
		}
	}
	if !disposed {
		return p, bad("a part has no name")
	}
	return p, nil
}

func (p *Part) dispose(value string) error {
	kind, rest, _ := strings.Cut(value, ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "form-data") {
		return bad("a part's disposition is not form-data")
	}
	named := false
	for rest != "" {
		name, v, after, ok := parameter(rest)
		if !ok {
			return bad("a part's disposition is malformed")
		}
		rest = after
		switch name {
		case "name":
			if named {
				return bad("a part has two names")
			}
			named, p.Name = true, v
		case "filename":
			if p.File {
				return bad("a part has two file names")
			}
			p.File, p.Filename = true, v
		case "name*":
			return bad("a part's name is encoded, which forms do not allow (RFC 7578, 4.2)")
		}
	}
	if !named || p.Name == "" || len(p.Name) > 256 || control(p.Name) {
		return bad("a part has no usable name")
	}
	if control(p.Filename) || strings.ContainsAny(p.Filename, "/\\") || p.Filename == ".." {
		return bad("a part's file name is a path")
	}
	return nil
}

// token reports whether s is a field name of RFC 9110, 5.6.2.
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !alphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func control(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// bad is the 400 of a form that breaks a rule.
func bad(format string, args ...any) *apierr.Error {
	e := apierr.Invalid("", "The form is not valid: "+format+".", args...)
	e.Code = "invalid_multipart"
	return e
}
