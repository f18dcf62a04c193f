package web

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/edge"
	"weir/pkg/provider"
	"weir/pkg/webpage"
)

// shape is how a provider's fetch endpoint is spoken to (api-shapes 12.2). Its
// functions are pure.
type shape struct {
	providers []string
	build     func(r *request) part
	// read fills a page from an answer. errShape: it is not one. An
	// *apierr.Error: the page could not be had.
	read func(p *page, raw []byte, r *request) error
}

// part is what one upstream call sends.
type part struct {
	body    []byte
	header  edge.Header
	dropped []string // fields of the client that the provider does not know
}

var errShape = errors.New("the answer has another shape")

var shapes = [...]*shape{&tavily, &exa, &firecrawl, &jina, &linkup, &you, &ollama, &zai, &serper}

// shapeOf gives the shape of a provider, or nil.
func shapeOf(d *provider.Descriptor) *shape {
	for _, s := range &shapes {
		for _, id := range s.providers {
			if id == d.ID {
				return s
			}
		}
	}
	return nil
}

// send makes a part of a body. Keys are sorted, so it is always the same.
func send(body map[string]any, dropped ...string) part {
	b, err := json.Marshal(body)
	if err != nil {
		b = nil // only strings, numbers and lists of them are sent
	}
	return part{body: b, dropped: dropped}
}

// viaHTML sets the text from a page's HTML where that is the only source of the
// format asked for.
func (p *page) viaHTML(html string, r *request) {
	p.text, p.format = html, rawHTML
	if r.format != rawHTML && html != "" {
		f := webpage.Markdown
		if r.format == text {
			f = webpage.Text
		}
		p.text, p.format = webpage.Read(html, r.url, f, r.max).Text, r.format
	}
}

// oneOf gives the first non-empty string among fields of an object.
func oneOf(v gjson.Result, paths ...string) string {
	for _, path := range paths {
		if s := v.Get(path); s.Type == gjson.String && strings.TrimSpace(s.Str) != "" {
			return s.Str
		}
	}
	return ""
}

// number gives a number, or nil.
func number(v gjson.Result) *float64 {
	if v.Type != gjson.Number {
		return nil
	}
	return &v.Num
}
