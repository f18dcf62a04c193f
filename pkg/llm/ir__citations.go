package llm

import "strings"

// maxCites is the number of citations of a text that are kept until its end.
const maxCites = 1 << 12

// own returns a copy whose strings remain valid after the event.
func (c citation) own() citation {
	c.url, c.title, c.quote = strings.Clone(c.url), strings.Clone(c.title), strings.Clone(c.quote)
	return c
}

// moved returns the citation with its offsets increased by n code points.
func (c citation) moved(n int) citation {
	if c.end > 0 {
		c.start, c.end = c.start+n, c.end+n
	}
	return c
}

// sourced holds the citations of a streamed block until its length is known.
type sourced struct {
	cites  []citation
	length int
}

func (q *sourced) text(escaped string) { q.length += points(escaped) }

func (q *sourced) cite(c citation) {
	if len(q.cites) < maxCites {
		q.cites = append(q.cites, c.own())
	}
}

// flush passes on the citations of a block that has ended.
func (q *sourced) flush(to sink) {
	for _, c := range q.cites {
		if c.end = q.length; c.end > 0 {
			to.event(&event{kind: evCite, cite: c})
		}
	}
	q.cites, q.length = q.cites[:0], 0
}

// points counts the code points of an escaped text, as in a JSON string.
func points(escaped string) (n int) {
	for i := 0; i < len(escaped); i++ {
		switch c := escaped[i]; {
		case c == '\\' && i+5 < len(escaped) && escaped[i+1] == 'u':
			// The second half of a surrogate pair is not a code point.
			if low := escaped[i+2]|0x20 == 'd' && escaped[i+3]|0x20 >= 'c'; !low {
				n++
			}
			i += 5
		case c == '\\':
			n++
			i++
		case c&0xc0 != 0x80:
			n++
		}
	}
	return n
}
