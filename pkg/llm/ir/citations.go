package ir

import "strings"

// MaxCitations is the maximum number of citations of a text that are stored
// until its end.
const MaxCitations = 1 << 12

// Clone returns a copy whose strings remain valid after the event.
func (c Citation) Clone() Citation {
	c.URL, c.Title, c.Quote = strings.Clone(c.URL), strings.Clone(c.Title), strings.Clone(c.Quote)
	return c
}

// Shift returns the citation with its offsets increased by n code points.
func (c Citation) Shift(n int) Citation {
	if c.End > 0 {
		c.Start, c.End = c.Start+n, c.End+n
	}
	return c
}

// CitationQueue holds the citations of a streamed block until its length is known.
type CitationQueue struct {
	citations []Citation
	length    int
}

// Text counts a delta of the block's text.
func (q *CitationQueue) Text(escaped string) { q.length += CodePoints(escaped) }

// Add stores a citation until Flush.
func (q *CitationQueue) Add(c Citation) {
	if len(q.citations) < MaxCitations {
		q.citations = append(q.citations, c.Clone())
	}
}

// Flush sends the citations of a block that has ended.
func (q *CitationQueue) Flush(to Sink) {
	for _, c := range q.citations {
		if c.End = q.length; c.End > 0 {
			to.Event(&Event{Kind: EventCitation, Citation: c})
		}
	}
	q.citations, q.length = q.citations[:0], 0
}

// CodePoints counts the code points of an escaped text, as in a JSON string.
func CodePoints(escaped string) (n int) {
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
