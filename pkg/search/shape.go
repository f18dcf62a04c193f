package search

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/edge"
	"weir/pkg/routing"
)

// shape is how a provider is asked to search (api-shapes 12.1). Its functions
// are pure.
type shape struct {
	providers []string
	max       int      // results of one call
	options   []string // vendor parameters that a client may set
	// own: the shape deals with the offset itself.
	own bool
	// chat: a chat model with a search tool. model is the one used where the
	// client names only the provider.
	chat     bool
	model    string
	fits     func(model string) bool // which models; nil is all
	endpoint string                  // "" is "search"
	build    func(a *ask)
	// read fills what was found from an answer. errShape: it is not one.
	read func(f *found, raw gjson.Result, a *ask) error
}

// ask is one upstream call being made.
type ask struct {
	*request
	model string // upstream model
	now   time.Time
	want  int // results to ask for, those before the offset included
	skip  int // results to leave out

	endpoint string
	body     map[string]any // of a POST
	params   [][2]string    // of a GET
	header   edge.Header
	dropped  []string
}

var errShape = errors.New("the answer has another shape")

var shapes = [...]*shape{
	&tavily, &exa, &brave, &serper, &searxng, &linkup, &you, &perplexity, &firecrawl, &jina, &zai, &ollama,
	&openAISearchModels, &openAIResponses, &xaiResponses, &anthropicMessages, &geminiGrounding, &openRouterChat, &perplexityChat,
}

// shapeOf gives the shape for a target: the provider's search service, or the
// search tool of one of its chat models; nil when there is none.
func shapeOf(to *routing.Target) *shape {
	for _, s := range &shapes {
		if s.chat == (to.Model == "search" && to.Provider.Search) {
			continue
		}
		for _, id := range s.providers {
			if id == to.Provider.ID && (s.fits == nil || s.fits(to.Model)) {
				return s
			}
		}
	}
	return nil
}

// newAsk prepares a call.
func newAsk(r *request, s *shape, to *routing.Target, now time.Time) *ask {
	a := &ask{request: r, model: to.Model, now: now, endpoint: s.endpoint, body: map[string]any{}}
	if a.endpoint == "" {
		a.endpoint = "search"
	}
	if s.chat && a.model == "search" {
		a.model = s.model
	}
	if s.own {
		a.want = min(r.max, s.max)
	} else {
		a.want, a.skip = min(r.offset+r.max, s.max), r.offset
	}
	s.build(a)
	for _, o := range r.options {
		known := false
		for _, name := range s.options {
			known = known || name == o.name
		}
		switch {
		case o.provider != "" && o.provider != to.Provider.ID && o.provider != to.Provider.Alias && o.provider != to.Alias:
		case !known:
			a.drop("provider_options." + o.name)
		case len(a.params) > 0:
			a.param(o.name, o.value.String())
		default:
			a.body[o.name] = json.RawMessage(o.value.Raw)
		}
	}
	return a
}

// payload gives the body, and what is added to the address.
func (a *ask) payload() (body []byte, query string, err error) {
	if len(a.params) == 0 {
		body, err = json.Marshal(a.body)
		return body, "", err
	}
	var b strings.Builder
	for i, p := range a.params {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(p[0])
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(p[1]))
	}
	return nil, b.String(), nil
}

// param sets a parameter of the address.
func (a *ask) param(name, value string) {
	for i := range a.params {
		if a.params[i][0] == name {
			a.params[i][1] = value
			return
		}
	}
	a.params = append(a.params, [2]string{name, value})
}

func (a *ask) drop(field string) { a.dropped = append(a.dropped, field) }

// without notes fields that the provider does not know, where they are set.
func (a *ask) without(fields ...string) {
	for _, f := range fields {
		set := false
		switch f {
		case "search_type":
			set = a.kind != kindWeb
		case "country":
			set = a.country != ""
		case "language":
			set = a.language != ""
		case "time_range":
			set = a.since != anyTime
		case "content_options.full_page":
			set = a.full
		}
		if set {
			a.drop(f)
		}
	}
}

// page turns the offset into a page of max results; the results of the page
// before the offset are left out.
func (a *ask) page() int {
	a.skip = a.offset % a.max
	return a.offset / a.max
}

// sites gives the query with the domain filter as operators of the query.
func (a *ask) sites() string {
	var b strings.Builder
	b.WriteString(a.query)
	switch len(a.include) {
	case 0:
	case 1:
		b.WriteString(" site:" + a.include[0])
	default:
		b.WriteString(" (site:" + strings.Join(a.include, " OR site:") + ")")
	}
	for _, d := range a.exclude {
		b.WriteString(" -site:" + d)
	}
	return b.String()
}

// lists sets the domain filter as two lists.
func (a *ask) lists(include, exclude string) {
	if len(a.include) > 0 {
		a.body[include] = a.include
	}
	if len(a.exclude) > 0 {
		a.body[exclude] = a.exclude
	}
}

// from gives the begin of the time range; ok is false for any time.
func (a *ask) from() (t time.Time, ok bool) {
	t = a.now.UTC()
	switch a.since {
	case "day":
		return t.AddDate(0, 0, -1), true
	case "week":
		return t.AddDate(0, 0, -7), true
	case "month":
		return t.AddDate(0, -1, 0), true
	case "year":
		return t.AddDate(-1, 0, 0), true
	}
	return t, false
}

// google gives the time range in Google's words, "qdr:w", or "".
func (a *ask) google() string {
	if a.since == anyTime {
		return ""
	}
	return "qdr:" + a.since[:1]
}

func itoa(n int) string { return strconv.Itoa(n) }
