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
		ir.Each(s.Get("groundingChunkIndices"), func(_, k gjson.Result) bool {
			i := int(k.Int())
			if i < 0 || i >= len(sources) || sources[i].URL == "" || end <= start {
				return true
			}
			used[i] = true
			c := sources[i]
			c.Start, c.End = start, end
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
