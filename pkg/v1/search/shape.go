package search

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/words"
)

// shape is how a provider is asked to search, and how its answer is read
// (docs/reference/api-shapes.md, 12.1). Lists of words are separated by spaces.
type shape struct {
	provider string // ids
	max      int    // results of one answer of a chat model
	options  string // vendor parameters that a client may set
	drop     string // fields of the client that the provider does not know
	get      bool   // the fields go into the address
	own      bool   // the offset is told to the provider
	endpoint string // "" is "search"; news goes to the endpoint of that name where there is one
	news     string // the fields for news, besides

	// send are the fields of the call, "name=term"; pages those besides where
	// whole pages are wanted. A term is a word of ask.term, or a value behind a
	// colon. Fields without a value are left out.
	send, pages string
	// more sets what no term can say. May be nil.
	more func(a *ask)

	// list is the path of the results; |-separated alternatives, {kind} is web
	// or news. none is an object of an answer that has no results and no list.
	list, none string
	// hit are the fields of a result, "name=path|path"; {format} is that of the
	// pages' content, the first of formats unless another one is asked for.
	hit, formats        string
	only                string // the type of results that are read, where they have one
	answer, cost, total string // paths in the answer
	// read reads an answer that no path can say, or the rest of one. False: it
	// has another shape. May be nil.
	read func(f *found, raw gjson.Result, a *ask) bool

	// chat: a chat model with a search tool. model is the one used where the
	// client names only the provider.
	chat   bool
	model  string
	fits   string // what the names of its models have in them
	speaks llm.Dialect
}

var shapes = [...]*[]shape{&services, &chats}

// shapeOf gives the shape for a target: the provider's search service, or the
// search tool of one of its chat models; nil when there is none.
func shapeOf(to *routing.Target) *shape {
	for _, list := range &shapes {
		for i := range *list {
			s := &(*list)[i]
			if s.chat != (to.Model == "search" && to.Provider.Search) && words.Has(s.provider, to.Provider.ID) && strings.Contains(to.Model, s.fits) {
				return s
			}
		}
	}
	return nil
}

// ask is one upstream call being made.
type ask struct {
	*request
	*shape
	model    string // upstream model
	now      time.Time
	want     int    // results to ask for, those before the offset included
	skip     int    // results to leave out
	content  string // format of whole pages, "" where there are none
	endpoint string
	fields   []field
	header   httpmsg.Header
	dropped  []string
}

// field is one of the call: a text, or a value in JSON.
type field struct {
	name, value string
	json        bool
}

// newAsk prepares a call.
func newAsk(r *request, s *shape, to *routing.Target, now time.Time) *ask {
	a := &ask{request: r, shape: s, model: to.Model, now: now, endpoint: s.endpoint}
	if a.endpoint == "" {
		a.endpoint = "search"
	}
	if a.kind == kindNews && !s.chat && to.Provider.Serves("news") {
		a.endpoint = "news"
	}
	most := s.max
	if !s.chat {
		if most = to.Provider.Results; !to.Provider.News {
			a.without("search_type")
		}
	}
	if s.own {
		a.want = min(r.max, most)
	} else {
		a.want, a.skip = min(r.offset+r.max, most), r.offset
	}
	if a.content, _, _ = strings.Cut(s.formats, " "); words.Has(s.formats, r.format) {
		a.content = r.format
	}
	a.send(s.send)
	if a.kind == kindNews {
		a.send(s.news)
	}
	if a.full {
		a.send(s.pages)
	}
	if s.more != nil {
		s.more(a)
	}
	a.without(s.drop)
	for i := range r.options {
		o := &r.options[i]
		switch {
		case o.provider != "" && o.provider != to.Provider.ID && o.provider != to.Provider.Alias && o.provider != to.Alias:
		case !words.Has(s.options, o.name):
			a.dropped = append(a.dropped, "provider_options."+o.name)
		case s.get:
			a.set(o.name, o.value.String())
		default:
			a.put(o.name, o.value.Raw)
		}
	}
	return a
}

// set sets a field to a text, put to a value in JSON. "" leaves it out.
func (a *ask) set(name, value string) { a.field(name, value, false) }
func (a *ask) put(name, value string) { a.field(name, value, true) }

func (a *ask) field(name, value string, json bool) {
	if value == "" {
		return
	}
	for i := range a.fields {
		if a.fields[i].name == name {
			a.fields[i] = field{name, value, json}
			return
		}
	}
	a.fields = append(a.fields, field{name, value, json})
}

// payload gives the body, and what is added to the address.
func (a *ask) payload() (body []byte, query string) {
	body = make([]byte, 0, 512)
	for i := range a.fields {
		f := &a.fields[i]
		switch {
		case a.get:
			body = append(body, "?&"[min(i, 1)])
			body = append(body, f.name...)
			body = append(body, '=')
			body = append(body, url.QueryEscape(f.value)...)
			continue
		case i == 0:
			body = append(body, '{')
		default:
			body = append(body, ',')
		}
		body = jsonscan.Quote(body, f.name)
		body = append(body, ':')
		if f.json {
			body = append(body, f.value...)
		} else {
			body = jsonscan.Quote(body, f.value)
		}
	}
	if a.get {
		return nil, string(body)
	}
	return append(body, '}'), ""
}

// without notes fields that the provider does not know, where they are set.
func (a *ask) without(list string) {
	for list != "" {
		var f string
		f, list, _ = strings.Cut(list, " ")
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
			a.dropped = append(a.dropped, f)
		}
	}
}

// readAnswer fills what was found from an answer: nil, an *apierr.Error for one
// that tells of a failure, or false for one of another shape.
func (a *ask) readAnswer(f *found, raw gjson.Result) (bool, error) {
	if ok := raw.Get("success"); ok.Type == gjson.False || raw.Get("code").Num >= 400 {
		return false, apierr.New(502, "upstream_failed", "the provider could not search")
	}
	if a.read != nil && !a.read(f, raw, a) {
		return false, nil
	}
	if a.list == "" {
		return true, nil
	}
	f.answer = words.OneOf(raw, a.shape.answer)
	f.cost = words.Number(raw, a.cost)
	if n := raw.Get(a.total); a.total != "" && n.Num > 0 {
		f.total = strconv.FormatInt(n.Int(), 10)
	}
	for paths := strings.ReplaceAll(a.list, "{kind}", a.kind); paths != ""; {
		var path string
		path, paths, _ = strings.Cut(paths, "|")
		if list := raw.Get(path); list.IsArray() {
			f.read(list, a)
			return true, nil
		}
	}
	return a.none != "" && raw.Get(a.none).IsObject(), nil
}
