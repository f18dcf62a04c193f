package web

import (
	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonvalue"
)

// service is a provider's service that fetches pages. See
// docs/reference/api-shapes.md, 12.2.
//
// A new one is a file of its own and a line in services; the provider's row has the
// endpoint.
type service struct {
	provider string
	lacks    []string // formats that the service cannot return

	body   func(r *request) string         // of the call
	header func(r *request) httpmsg.Header // of the call; may be nil

	// find returns the object of the page in an answer.
	find func(answer gjson.Result) document
	// fill sets what the document says about the page, apart from its text.
	fill func(p *page, doc gjson.Result)
	// texts returns the paths of the text in a format, none if there is no such text.
	texts func(format string) []string
	cost  string // path of the cost in USD; "" if the answer has none
}

// document is the part of an answer that describes the page.
type document struct {
	object gjson.Result
	status int64 // of the page, or 0
	failed bool  // the answer reports that the page could not be fetched
}

// services are the providers with a fetch service.
var services = [...]*service{&tavily, &exa, &firecrawl, &jina, &linkup, &you, &ollama, &zai, &serper}

// serviceOf returns the service of a provider, or nil.
func serviceOf(d *provider.Descriptor) *service {
	for _, s := range services {
		if s.provider == d.ID {
			return s
		}
	}
	return nil
}

// bodyWithURL returns the body {"url"}.
func bodyWithURL(r *request) string { return `{"url":` + jsonvalue.Quote(r.url) + `}` }

// markdownOrHTML returns the format to ask for where there is no plain text.
func (r *request) markdownOrHTML() string {
	if r.format == markdown {
		return markdown
	}
	return rawHTML
}

// markdownOrText returns the format to ask for where there is no HTML.
func (r *request) markdownOrText() string {
	if r.format == text {
		return text
	}
	return markdown
}

// read fills a page from an answer. ok is false if the answer has another shape; the
// error is an *apierr.Error if the page could not be fetched.
func (s *service) read(p *page, answer gjson.Result, r *request) (ok bool, err error) {
	doc := s.find(answer)
	switch {
	case doc.status == 404, doc.status == 410:
		return false, notFound()
	case doc.status >= 400 && doc.object.IsObject():
		return false, unavailable("The page answered with status %d.", doc.status)
	case doc.status >= 400, answer.Get("success").Type == gjson.False:
		return false, refused()
	case !doc.object.IsObject() && doc.failed:
		return false, refused()
	case !doc.object.IsObject():
		return false, nil
	}
	s.fill(p, doc.object)
	p.published = htmlmd.Date(p.published, p.now)
	if s.cost != "" {
		p.cost = jsonvalue.Number(answer, s.cost)
	}
	return s.readText(p, doc.object, r), nil
}

// readText takes the text in the format asked for, or in one that it can be
// converted from, or in any other. It reports whether the document has a member for
// a text, empty or not.
func (s *service) readText(p *page, doc gjson.Result, r *request) bool {
	found := false
	order := [...]string{r.format, text, rawHTML, markdown}
	if r.format == rawHTML {
		order = [...]string{rawHTML, markdown, text, text}
	}
	for _, format := range order {
		paths := s.texts(format)
		for _, path := range paths {
			found = found || doc.Get(path).Exists()
		}
		content := jsonvalue.Text(doc, paths...)
		if content == "" {
			continue
		}
		if p.text, p.format = content, format; format == rawHTML && r.format != rawHTML {
			to := htmlmd.Markdown
			if r.format == text {
				to = htmlmd.Text
			}
			p.text, p.format = htmlmd.Read(content, r.url, to, r.max).Text, r.format
		}
		break
	}
	return found
}

func refused() *apierr.Error { return unavailable("The provider could not fetch the page.") }

func notFound() *apierr.Error {
	return apierr.New(404, pageNotFound, "There is no page at this URL.")
}
