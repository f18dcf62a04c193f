package gemini

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// grounding reads Gemini's sources and their supports, and passes citations to
// cite. Offsets of supports count bytes of the text, which text returns. An
// unused source is cited without offsets.
func grounding(v gjson.Result, text func() string, cite func(c ir.Citation)) {
	var sources []ir.Citation
	ir.Each(v.Get("groundingChunks"), func(_, g gjson.Result) bool {
		sources = append(sources, ir.Citation{URL: ir.Str(g.Get("web.uri")), Title: ir.Str(g.Get("web.title"))})
		return len(sources) < ir.MaxCitations
	})
	if len(sources) == 0 {
		return
	}
	used := make([]bool, len(sources))
	n, supports := 0, 0
	var at offsets
	ir.Each(v.Get("groundingSupports"), func(_, s gjson.Result) bool {
		if supports++; supports > ir.MaxCitations {
			return false
		}
		start, end := int(ir.Count(s.Get("segment.startIndex"))), int(ir.Count(s.Get("segment.endIndex")))
		if at.text == "" {
			at.text = text()
		}
		start, end = at.point(start), at.point(end)
		quote := ir.Str(s.Get("segment.text"))
		if len(quote) > maxSegment {
			quote = ""
		}
		ir.Each(s.Get("groundingChunkIndices"), func(_, k gjson.Result) bool {
			i := int(k.Int())
			if i < 0 || i >= len(sources) || sources[i].URL == "" || end <= start {
				return true
			}
			used[i] = true
			c := sources[i]
			c.Start, c.End, c.Quote = start, end, quote
			cite(c)
			n++
			return n < ir.MaxCitations
		})
		return n < ir.MaxCitations
	})
	for i, c := range sources {
		if !used[i] && c.URL != "" {
			cite(c)
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

// runes counts the code points that start in a part of a text.
func runes(piece string) (n int) {
	for i := 0; i < len(piece); i++ {
		if piece[i]&0xc0 != 0x80 {
			n++
		}
	}
	return n
}

// grounded collects the sources of an answer's texts.
type grounded struct {
	text      []byte // so far; segments have byte offsets in it
	from      int    // where the last block begins
	lost      bool   // the text is longer than is stored
	citations []placed
}

// placed is a citation whose offsets count the code points from a byte on.
type placed struct {
	ir.Citation
	from int
}

// begin begins a block.
func (g *grounded) begin() { g.from = len(g.text) }

// add adds a text to the last block.
func (g *grounded) add(text string) {
	if g.lost = g.lost || len(g.text)+len(text) > maxText; !g.lost {
		g.text = append(g.text, text...)
	}
}

// cite adds a citation of the last block.
func (g *grounded) cite(c ir.Citation) {
	if c.URL != "" && len(g.citations) < ir.MaxCitations {
		g.citations = append(g.citations, placed{c, g.from})
	}
}

// maxSegment is the maximum length of a segment's text that is repeated, in bytes.
const maxSegment = 2 << 10

// write writes groundingMetadata: each source once, and the segments of the text
// that cite them.
func (g *grounded) write(d *ir.Writer) {
	if len(g.citations) == 0 {
		return
	}
	index := make(map[string]int, len(g.citations))
	d.Open("groundingMetadata", '{')
	d.Open("groundingChunks", '[')
	for i := range g.citations {
		c := &g.citations[i]
		if _, seen := index[c.URL]; seen {
			continue
		}
		index[c.URL] = len(index)
		d.Open("", '{')
		d.Open("web", '{')
		d.Str("uri", c.URL)
		d.OptStr("title", c.Title)
		d.Close('}')
		d.Close('}')
	}
	d.Close(']')
	d.Open("groundingSupports", '[')
	text := ir.View(g.text)
	var at bytesOf
	for i := range g.citations {
		c := &g.citations[i]
		if at.text == "" || at.from != c.from {
			at = bytesOf{text: text[c.from:], from: c.from}
		}
		start, end := at.offset(c.Start), at.offset(c.End)
		if g.lost || end <= start {
			continue
		}
		d.Open("", '{')
		d.Open("segment", '{')
		d.Int("startIndex", int64(c.from+start))
		d.Int("endIndex", int64(c.from+end))
		if end-start <= maxSegment {
			d.Str("text", at.text[start:end])
		}
		d.Close('}')
		d.Open("groundingChunkIndices", '[')
		d.Int("", int64(index[c.URL]))
		d.Close(']')
		d.Close('}')
	}
	d.Close(']')
	d.Close('}')
}

// bytesOf converts code point offsets of a text into byte offsets.
type bytesOf struct {
	text  string
	from  int
	marks []int // offset of each 1024th code point
}

func (o *bytesOf) offset(point int) int {
	if point <= 0 {
		return 0
	}
	if o.marks == nil {
		o.marks = append(o.marks, 0)
	}
	for len(o.marks) <= point/markEvery {
		last := o.marks[len(o.marks)-1]
		if last == len(o.text) {
			return last
		}
		o.marks = append(o.marks, forward(o.text, last, markEvery))
	}
	return forward(o.text, o.marks[point/markEvery], point%markEvery)
}

// forward returns the offset n code points after another one.
func forward(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		for at++; at < len(text) && text[at]&0xc0 == 0x80; at++ {
		}
	}
	return at
}
