package llm

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxCites is the number of citations of a text that are kept until its end.
const maxCites = 1 << 12

// chatCite reads the url_citation of an annotation; in Responses that is the
// annotation itself.
func chatCite(u gjson.Result) citation {
	return citation{
		url: str(u.Get("url")), title: str(u.Get("title")),
		start: int(count(u.Get("start_index"))), end: int(count(u.Get("end_index"))),
	}
}

// messagesCite reads a citation of Claude. It has no offsets: it applies to the
// whole block.
func messagesCite(v gjson.Result) (c citation, ok bool) {
	c = citation{url: str(v.Get("url")), title: str(v.Get("title")), quote: str(v.Get("cited_text"))}
	if s := str(v.Get("source")); c.url == "" && strings.Contains(s, "://") {
		c.url = s // a search result of the client's
	}
	return c, c.url != ""
}

// converseCite reads a citation of Bedrock, which applies to the whole block too.
func converseCite(v gjson.Result) (c citation, ok bool) {
	c = citation{url: str(v.Get("location.web.url")), title: str(v.Get("title")), quote: str(v.Get("sourceContent.0.text"))}
	return c, c.url != ""
}

// citeWhole extends the citations of a block to its whole text.
func (b *block) citeWhole() {
	if len(b.cites) == 0 {
		return
	}
	n := utf8.RuneCountInString(b.text)
	for i := range b.cites {
		b.cites[i].end = n
	}
}

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

// grounding reads Gemini's sources and where they are used. Its offsets count
// bytes of the text, which text returns. An unused source is cited without
// offsets.
func grounding(v gjson.Result, text func() string, found func(c citation)) {
	var sources []citation
	forEach(v.Get("groundingChunks"), func(_, g gjson.Result) bool {
		sources = append(sources, citation{url: str(g.Get("web.uri")), title: str(g.Get("web.title"))})
		return len(sources) < maxCites
	})
	if len(sources) == 0 {
		return
	}
	used := make([]bool, len(sources))
	n, supports := 0, 0
	var at offsets
	forEach(v.Get("groundingSupports"), func(_, s gjson.Result) bool {
		if supports++; supports > maxCites {
			return false
		}
		start, end := int(count(s.Get("segment.startIndex"))), int(count(s.Get("segment.endIndex")))
		if at.text == "" {
			at.text = text()
		}
		start, end = at.point(start), at.point(end)
		forEach(s.Get("groundingChunkIndices"), func(_, k gjson.Result) bool {
			i := int(k.Int())
			if i < 0 || i >= len(sources) || sources[i].url == "" || end <= start {
				return true
			}
			used[i] = true
			c := sources[i]
			c.start, c.end = start, end
			found(c)
			n++
			return n < maxCites
		})
		return n < maxCites
	})
	for i, c := range sources {
		if !used[i] && c.url != "" {
			found(c)
		}
	}
}

// offsets converts byte offsets of a text into code point offsets.
type offsets struct {
	text  string
	marks []int // code points before each 1024th byte
}

const markEvery = 1 << 10

func (o *offsets) point(at int) int {
	at = min(at, len(o.text))
	for len(o.marks) <= at/markEvery {
		n := len(o.marks)
		if n == 0 {
			o.marks = append(o.marks, 0)
			continue
		}
		o.marks = append(o.marks, o.marks[n-1]+runes(o.text[(n-1)*markEvery:n*markEvery]))
	}
	return o.marks[at/markEvery] + runes(o.text[at/markEvery*markEvery:at])
}

// runes counts the code points that start in a piece of a text.
func runes(piece string) (n int) {
	for i := 0; i < len(piece); i++ {
		if piece[i]&0xc0 != 0x80 {
			n++
		}
	}
	return n
}
