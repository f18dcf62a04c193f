package search

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/htmlmd"
	"weir/pkg/words"
)

const (
	maxSnippet = 1000 // characters
	maxURL     = 8192 // bytes; a longer one is no result
	maxHits    = 1000 // of one answer that are looked at
)

// hit is one result as it was read; what is not known is "". Texts may have
// tags in them.
type hit struct {
	title, url, snippet string
	host                string // where the address does not tell the site
	score               string // a number in JSON
	published           string
	favicon, image      string
	author, language    string
	content             string // of the whole page
}

// field gives the field of a name.
func (h *hit) field(name string) *string {
	switch name {
	case "title":
		return &h.title
	case "url":
		return &h.url
	case "snippet":
		return &h.snippet
	case "published":
		return &h.published
	case "favicon":
		return &h.favicon
	case "image":
		return &h.image
	case "author":
		return &h.author
	case "language":
		return &h.language
	}
	return &h.content
}

// read takes the results of a list, as the shape says where their fields are.
func (f *found) read(list gjson.Result, a *ask) {
	words.Each(list, func(_, v gjson.Result) bool {
		if t := v.Get("type").Str; a.only != "" && t != "" && t != a.only {
			return true
		}
		var h hit
		for rest := strings.ReplaceAll(a.hit, "{format}", a.content); rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, " ")
			name, paths, _ := strings.Cut(pair, "=")
			if name == "score" {
				h.score = words.Number(v, paths)
			} else {
				*h.field(name) = words.OneOf(v, paths)
			}
		}
		f.results = append(f.results, h)
		return len(f.results) < maxHits
	})
}

// site gives the host of a result, "" when its address is none of the web.
func (h *hit) site() string {
	rest, ok := strings.CutPrefix(h.url, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(h.url, "http://")
	}
	if !ok || len(h.url) > maxURL {
		return ""
	}
	if h.host != "" {
		return strings.ToLower(h.host)
	}
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest, _, _ = strings.Cut(rest, ":")
	return strings.ToLower(strings.TrimSuffix(rest, "."))
}

// wanted applies the domain filter to a host.
func (r *request) wanted(host string) bool {
	return !of(host, r.exclude) && (len(r.include) == 0 || of(host, r.include))
}

// of tells whether a host is one of the domains, or under one.
func of(host string, domains []string) bool {
	for _, d := range domains {
		if host == d || strings.HasSuffix(host, d) && host[len(host)-len(d)-1] == '.' {
			return true
		}
	}
	return false
}

// write appends the result as the n-th of the answer.
func (h *hit) write(b []byte, f *found, a *ask, n int, published string) []byte {
	place := itoa(a.offset + n)
	shown := h.host
	if shown == "" {
		shown = display(h.url)
	}
	snippet := ""
	if a.snippet {
		snippet = cut(htmlmd.Plain(h.snippet), maxSnippet)
	}
	content := ""
	if a.full && h.content != "" {
		text, _ := htmlmd.Cut(h.content, a.maxChars)
		content = string(words.Fill(nil, `{"format":$,"text":$,"length":#}`, a.content, text, itoa(utf8.RuneCountInString(text))))
	}
	return words.Fill(b, `{"title":$,"url":$,"display_url":$,"snippet":$,"position":#,"score":#,"published_at":$,"favicon_url":$,"content":#,`+
		`"metadata":{"author":$,"language":$,"source_type":$,"image_url":$},"citation":{"provider":$,"retrieved_at":$,"rank":#}}`,
		cut(htmlmd.Plain(h.title), 500), h.url, shown, snippet, place, h.score, published, address(h.favicon), content,
		cut(htmlmd.Plain(h.author), 200), cut(h.language, 35), a.kind, address(h.image), f.provider, a.now.UTC().Format("2006-01-02T15:04:05Z"), place)
}

// display gives an address as people read it.
func display(u string) string {
	u = strings.TrimPrefix(strings.TrimPrefix(u, "https://"), "http://")
	if i := strings.IndexAny(u, "?#"); i >= 0 {
		u = u[:i]
	}
	return cut(strings.TrimSuffix(strings.TrimPrefix(u, "www."), "/"), 120)
}

func cut(s string, max int) string {
	if short, more := htmlmd.Cut(s, max); more {
		return short + "…"
	}
	return s
}

// address gives an address of the web, or "".
func address(s string) string {
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") || len(s) > 4096 {
		return ""
	}
	return s
}
