package llm

import "github.com/tidwall/gjson"

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
