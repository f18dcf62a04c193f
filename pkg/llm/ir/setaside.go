package ir

import (
	"bytes"
	"strconv"

	"weir/pkg/wire/jsonscan"
)

// AttributionMark begins the system text by which Claude Code tells Anthropic's billing its
// version and a hash of the request.
const AttributionMark = "x-anthropic-billing-header:"

// SetAside are the long texts of a request, which a reader copies if they have escapes. A
// short text stands in for each while the request is translated, and is replaced in the
// result: the escapes of one JSON document are those of another.
type SetAside struct {
	body  []byte
	mark  []byte // begins the short texts; the request does not contain it
	texts []jsonscan.Span
	long  int // bytes of the texts
}

// aside are the members whose strings are texts of a conversation. The answer of the
// Responses API repeats instructions.
var aside = [...]string{"text", "content", "system", "output"}

// LongTexts returns the long texts of a valid request. id is part of the short texts.
func LongTexts(body []byte, id string) *SetAside {
	s := &SetAside{body: body}
	for n := 0; s.mark == nil || bytes.Contains(body, s.mark); n++ {
		s.mark = []byte("weir-text-" + id + "-" + strconv.Itoa(n) + "-")
	}
	var c jsonscan.Cursor
	c.Reset(body)
	s.object(&c, 1)
	return s
}

func (s *SetAside) value(c *jsonscan.Cursor, depth int) {
	switch c.Kind() {
	case jsonscan.Array:
		for c.Array(); c.Elem(); {
			s.value(c, depth+1)
		}
	case jsonscan.Object:
		s.object(c, depth+1)
	default:
		c.Skip()
	}
}

func (s *SetAside) object(c *jsonscan.Cursor, depth int) {
	for c.Object(); c.Key(); {
		switch k := c.Kind(); {
		case k == jsonscan.String && keyIn(c, aside[:]):
			s.text(c)
		// JSON in these may become a string in a string.
		case depth > 1 && isOpaque(c), c.KeyIs("response"):
			c.Skip()
		default:
			s.value(c, depth)
		}
	}
}

// text sets the next string aside if it is long and is not JSON itself, which some
// dialects have as a value. One with half a surrogate pair is corrected when it is read,
// and a mark at the beginning is removed.
func (s *SetAside) text(c *jsonscan.Cursor) {
	c.Lone()
	v := c.Value()
	at := jsonscan.Span{Start: v.Start + 1, End: v.End - 1}
	at.End -= blankEnd(s.body[at.Start:max(at.End, at.Start)])
	raw := s.body[at.Start:max(at.End, at.Start)]
	if len(raw) >= MinSpan && !c.Lone() && !isJSON(raw) && !bytes.HasPrefix(raw, []byte(AttributionMark)) {
		s.texts = append(s.texts, at)
		s.long += at.End - at.Start
	}
}

// blankEnd returns how many bytes of the content of a string are blanks at its end, which
// some writers remove.
func blankEnd(raw []byte) int {
	n := len(raw)
	for n > 0 {
		switch raw[n-1] {
		case ' ':
			n--
			continue
		case 'n', 'r', 't':
			slashes := 0
			for slashes < n-1 && raw[n-2-slashes] == '\\' {
				slashes++
			}
			if slashes%2 == 1 {
				n -= 2
				continue
			}
		}
		break
	}
	return len(raw) - n
}

// isJSON reports whether the content of a string may be a JSON object or array.
func isJSON(raw []byte) bool {
	for len(raw) > 1 && (raw[0] == ' ' || raw[0] == '\\' && (raw[1] == 'n' || raw[1] == 'r' || raw[1] == 't')) {
		if raw[0] == '\\' {
			raw = raw[1:]
		}
		raw = raw[1:]
	}
	return len(raw) < 2 || raw[0] == '{' || raw[0] == '[' || raw[0] == '\\' && raw[1] == 'u'
}

// shortText is the most that a short text takes.
const shortText = 100

// Size returns the most bytes that Short has.
func (s *SetAside) Size() int { return len(s.body) - s.long + shortText*len(s.texts) }

// Short returns the request with the short texts.
func (s *SetAside) Short() []byte {
	short, from := make([]byte, 0, s.Size()), 0
	for i, t := range s.texts {
		short = append(append(short, s.body[from:t.Start]...), s.mark...)
		short = append(strconv.AppendInt(short, int64(i), 10), ';')
		from = t.End
	}
	return append(short, s.body[from:]...)
}

// Restore replaces the short texts in the parts of a translated request. It reports
// whether it could: not if one was cut, or stands in JSON that is a string itself.
func (s *SetAside) Restore(parts [][]byte) ([][]byte, bool) {
	all := make([][]byte, 0, len(parts)+2*len(s.texts))
	for _, p := range parts {
		for {
			at := bytes.Index(p, s.mark)
			if at < 0 {
				break
			}
			number := p[at+len(s.mark):]
			end := bytes.IndexByte(number[:min(len(number), 9)], ';')
			n, err := strconv.ParseUint(string(number[:max(end, 0)]), 10, 31)
			if err != nil || int(n) >= len(s.texts) || at >= 2 && p[at-1] == '"' && p[at-2] == '\\' {
				return nil, false
			}
			all = append(all, p[:at], s.body[s.texts[n].Start:s.texts[n].End])
			p = number[end+1:]
		}
		all = append(all, p)
	}
	return all, true
}
