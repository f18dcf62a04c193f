package search

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/jsonvalue"
)

const (
	maxSnippet = 1000 // characters
	maxURL     = 8192 // bytes; a result with a longer URL is left out
	// maxResultsRead is how many results of one answer are read.
	maxResultsRead = 1000
)

// result is one result as the provider returned it; unknown values are "". Texts
// may contain HTML tags.
type result struct {
	title, url, snippet string
	host                string // if the URL does not name the site
	score               string // a number in JSON
	published           string
	favicon, image      string
	author, language    string
	content             string // of the whole page
}

// readResults appends the results of a list, each read by f.
func (r *response) readResults(list gjson.Result, f func(v gjson.Result) result) {
	jsonvalue.Each(list, func(_, v gjson.Result) bool {
		r.results = append(r.results, f(v))
		return len(r.results) < maxResultsRead
	})
}

// readFirst appends the results of the first array at the paths. It reports whether
// there is one.
func (r *response) readFirst(answer gjson.Result, f func(v gjson.Result) result, paths ...string) bool {
	list, ok := jsonvalue.FirstArray(answer, paths...)
	if ok {
		r.readResults(list, f)
	}
	return ok
}

// site returns the host of the result's URL in lower case, or "" if the URL is not
// an http or https URL.
func (h *result) site() string {
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

// allows reports whether the domain filter allows a host.
func (r *request) allows(host string) bool {
	return !isUnder(host, r.exclude) && (len(r.include) == 0 || isUnder(host, r.include))
}

// isUnder reports whether a host is one of the domains or a subdomain of one.
func isUnder(host string, domains []string) bool {
	return slices.ContainsFunc(domains, func(d string) bool {
		return host == d || strings.HasSuffix(host, d) && host[len(host)-len(d)-1] == '.'
	})
}

// write appends the result as the n-th of the answer.
func (h *result) write(w *jsonvalue.Writer, r *response, c *call, n int, published string) {
	position := c.offset + n
	display := h.host
	if display == "" {
		display = displayURL(h.url)
	}
	snippet := ""
	if c.snippet {
		snippet = truncate(htmlmd.Plain(h.snippet), maxSnippet)
	}
	w.Object("")
	w.Text("title", truncate(htmlmd.Plain(h.title), 500))
	w.Text("url", h.url)
	w.Text("display_url", display)
	w.Text("snippet", snippet)
	w.Int("position", position)
	w.Raw("score", h.score)
	w.Text("published_at", published)
	w.Text("favicon_url", webURL(h.favicon))
	if c.full && h.content != "" {
		text, _ := htmlmd.Cut(h.content, c.maxChars)
		w.Object("content")
		w.Text("format", c.content)
		w.Text("text", text)
		w.Int("length", utf8.RuneCountInString(text))
		w.End('}')
	} else {
		w.Raw("content", "")
	}
	w.Object("metadata")
	w.Text("author", truncate(htmlmd.Plain(h.author), 200))
	w.Text("language", truncate(h.language, 35))
	w.Text("source_type", c.kind)
	w.Text("image_url", webURL(h.image))
	w.End('}')
	w.Object("citation")
	w.Text("provider", r.provider)
	w.Text("retrieved_at", c.now.UTC().Format("2006-01-02T15:04:05Z"))
	w.Int("rank", position)
	w.End('}')
	w.End('}')
}

// displayURL returns a URL as people read it: no scheme, no www., no query.
func displayURL(u string) string {
	u = strings.TrimPrefix(strings.TrimPrefix(u, "https://"), "http://")
	if i := strings.IndexAny(u, "?#"); i >= 0 {
		u = u[:i]
	}
	return truncate(strings.TrimSuffix(strings.TrimPrefix(u, "www."), "/"), 120)
}

// truncate returns at most max characters of s; an ellipsis marks a cut.
func truncate(s string, max int) string {
	if short, more := htmlmd.Cut(s, max); more {
		return short + "…"
	}
	return s
}

// webURL returns an http or https URL of at most 4096 bytes, or "".
func webURL(s string) string {
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") || len(s) > 4096 {
		return ""
	}
	return s
}
