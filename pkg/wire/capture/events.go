package capture

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maskEvents returns text masked. The events of a stream have a text in pieces: a
// credential that the pieces of several events make up is masked too. Then the first
// of them has the whole masked text, and the others are empty. Of what stands at or after
// keep, which the caller drops, nothing may move in front of it.
func maskEvents(text string, keep int, mask func(string) string) string {
	s := &scan{text: text, texts: map[uint64][]value{}}
	switch {
	case strings.HasPrefix(text, "["): // the stream of a Gemini client
		s.elements()
	case strings.HasPrefix(text, "data:"), strings.Contains(text, "\ndata:"):
		s.lines()
	}
	var edits []edit
	for _, values := range s.texts {
		if len(values) < 2 {
			continue
		}
		var whole strings.Builder
		dropped := 0
		for _, v := range values {
			whole.WriteString(v.text)
			if v.from >= keep {
				dropped += len(v.text)
			}
		}
		masked := mask(whole.String())
		if masked == whole.String() {
			continue
		}
		masked = masked[:max(0, len(masked)-dropped)]
		for i, v := range values {
			if i > 0 {
				masked = ""
			}
			quoted, _ := json.Marshal(masked) // a string has a JSON form
			edits = append(edits, edit{v.from, v.to, string(quoted)})
		}
	}
	text = apply(text, edits)
	return mask(apply(text, escaped(text, mask)))
}

// escaped returns the edits that mask the strings of JSON in which a credential has
// escapes of characters that need none, as some writers have for "/".
func escaped(text string, mask func(string) string) (edits []edit) {
	s := &scan{text: text}
	for at := 0; at < len(text); at++ {
		if text[at] != '"' {
			continue
		}
		from := at
		at = s.stringEnd(at, len(text))
		if raw := text[from:at]; needlessEscape(raw) {
			plain := gjson.Parse(raw).Str
			if masked := mask(plain); masked != plain {
				quoted, _ := json.Marshal(masked) // a string has a JSON form
				edits = append(edits, edit{from, at, string(quoted)})
			}
		}
		at--
	}
	return edits
}

// needlessEscape reports whether a string has a printable character of ASCII escaped
// that needs no escape.
func needlessEscape(raw string) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] == '/' || strings.HasPrefix(raw[i:], "u00") && i+3 < len(raw) && '2' <= raw[i+3] && raw[i+3] <= '7' {
			return true
		}
	}
	return false
}

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string
}

func apply(text string, edits []edit) string {
	if len(edits) == 0 {
		return text
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	done := 0
	for _, e := range edits {
		out.WriteString(text[done:e.from])
		out.WriteString(e.with)
		done = e.to
	}
	out.WriteString(text[done:])
	return out.String()
}

// scan collects the strings of a stream's events by where they stand in an event.
type scan struct {
	text  string
	texts map[uint64][]value
}

// value is a string at text[from:to], with its quotes.
type value struct {
	from, to int
	text     string
}

// lines reads the data of server-sent events.
func (s *scan) lines() {
	for at := 0; at < len(s.text); {
		end := strings.IndexByte(s.text[at:], '\n')
		if end < 0 {
			end = len(s.text)
		} else {
			end += at
		}
		if strings.HasPrefix(s.text[at:end], "data:") {
			s.event(at+len("data:"), end)
		}
		at = end + 1
	}
}

// elements reads the elements of an array.
func (s *scan) elements() {
	depth, from := 0, 0
	for at := 1; at < len(s.text); at++ {
		switch s.text[at] {
		case '"':
			at = s.stringEnd(at, len(s.text)) - 1
		case '{', '[':
			if depth++; depth == 1 {
				from = at
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.event(from, at+1)
			}
		}
	}
	if depth > 0 {
		s.event(from, len(s.text))
	}
}

// maxDepth is the depth of objects and arrays up to which strings are told apart.
const maxDepth = 32

// event reads the JSON document text[at:end], or its beginning. Strings belong together
// if they stand under the same names, in events with the same numbers of parts: index,
// output_index, content_index.
func (s *scan) event(at, end int) {
	type leaf struct {
		value
		path uint64
	}
	var leaves []leaf
	var path [maxDepth]uint64 // digests of the names that lead to an object or an array
	depth, name, parts := 0, noName, noName
	counts := false // name is that of a number of a part
	for at < end {
		switch c := s.text[at]; c {
		case '{', '[':
			path[min(depth+1, maxDepth-1)] = path[min(depth, maxDepth-1)]*prime ^ name
			depth++
			name, counts = noName, false
		case '}', ']':
			depth = max(depth-1, 0)
			name, counts = noName, false
		case ',':
			name, counts = noName, false
		case '"':
			from := at
			at = s.stringEnd(at, end)
			raw := s.text[from:at]
			next := at
			for next < end && (s.text[next] == ' ' || s.text[next] == '\t') {
				next++
			}
			if next < end && s.text[next] == ':' {
				name, counts, at = digest(noName, raw), strings.HasSuffix(raw, `index"`), next+1
				continue
			}
			if at-from <= 2 { // it is empty
				continue
			}
			leaves = append(leaves, leaf{value{from, at, gjson.Parse(raw).Str}, path[min(depth, maxDepth-1)]*prime ^ name})
			continue
		default:
			if counts {
				parts = digest(parts, s.text[at:at+1])
			}
		}
		at++
	}
	for _, l := range leaves {
		key := l.path*prime ^ parts
		s.texts[key] = append(s.texts[key], l.value)
	}
}

// The constants of FNV-1a with 64 bits.
const (
	noName uint64 = 14695981039346656037
	prime  uint64 = 1099511628211
)

// digest continues the digest of a text.
func digest(h uint64, text string) uint64 {
	for i := 0; i < len(text); i++ {
		h = (h ^ uint64(text[i])) * prime
	}
	return h
}

// stringEnd returns where the string that begins at text[at] ends, end if it does not.
func (s *scan) stringEnd(at, end int) int {
	for at++; at < end; at++ {
		switch s.text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return end
}
