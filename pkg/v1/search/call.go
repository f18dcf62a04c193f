package search

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonvalue"
)

// call is one call to a service.
type call struct {
	*request
	service  *service
	model    string // of the provider, for a chat model
	now      time.Time
	want     int    // results to ask for, including those before the offset
	skip     int    // results to leave out of the answer
	content  string // format of whole pages, "" if the service returns none
	endpoint string // of the provider's row
	params   []param
	header   httpmsg.Header
	dropped  []string // request fields that were not sent
}

// param is a parameter of a call: a text, or a value in JSON.
type param struct {
	name, value string
	json        bool
}

// newCall prepares a call of a service for a target.
func newCall(r *request, s *service, to *routing.Target, now time.Time) *call {
	c := &call{request: r, service: s, model: to.Model, now: now, endpoint: "search"}
	limit := to.Provider.Results
	if s.chat != nil {
		c.endpoint, limit = s.chat.dialect.Endpoint(), s.chat.max
	} else {
		if c.kind == kindNews && to.Provider.Serves("news") {
			c.endpoint = "news"
		}
		if !to.Provider.News {
			c.drop(fieldSearchType)
		}
	}
	if s.paged {
		c.want = min(r.max, limit)
	} else {
		c.want, c.skip = min(r.offset+r.max, limit), r.offset
	}
	if slices.Contains(s.formats, r.format) {
		c.content = r.format
	} else if len(s.formats) > 0 {
		c.content = s.formats[0]
	}
	s.build(c)
	c.drop(s.ignores)
	for i := range r.options {
		o := &r.options[i]
		switch {
		case o.provider != "" && o.provider != to.Provider.ID && o.provider != to.Provider.Alias && o.provider != to.Alias:
		case !slices.Contains(s.options, o.name):
			c.dropped = append(c.dropped, "provider_options."+o.name)
		case s.get:
			c.set(o.name, o.value.String())
		default:
			c.setJSON(o.name, o.value.Raw)
		}
	}
	return c
}

// set sets a parameter to a text; "" leaves it out. A later value replaces an
// earlier one in its place.
func (c *call) set(name, value string) { c.setParam(param{name: name, value: value}) }

// setJSON sets a parameter to a value in JSON; "" leaves it out.
func (c *call) setJSON(name, value string) {
	c.setParam(param{name: name, value: value, json: true})
}

// setInt sets a parameter to an integer.
func (c *call) setInt(name string, n int) { c.setJSON(name, strconv.Itoa(n)) }

// setList sets a parameter to a list of texts; an empty one is left out.
func (c *call) setList(name string, list []string) { c.setJSON(name, jsonvalue.Strings(list)) }

func (c *call) setParam(p param) {
	if p.value == "" {
		return
	}
	for i := range c.params {
		if c.params[i].name == p.name {
			c.params[i] = p
			return
		}
	}
	c.params = append(c.params, p)
}

// payload returns the body, or the query of the URL for a GET.
func (c *call) payload() (body []byte, query string) {
	body = make([]byte, 0, 512)
	if c.service.get {
		for i, p := range c.params {
			body = append(body, "?&"[min(i, 1)])
			body = append(body, p.name...)
			body = append(body, '=')
			body = append(body, url.QueryEscape(p.value)...)
		}
		return nil, string(body)
	}
	w := jsonvalue.Writer(body)
	w.Object("")
	for _, p := range c.params {
		if p.json {
			w.Raw(p.name, p.value)
		} else {
			w.Text(p.name, p.value)
		}
	}
	w.End('}')
	return w, ""
}

// drop notes the fields that the service ignores, as far as the request has them.
func (c *call) drop(ignored requestField) {
	for _, f := range [...]struct {
		field requestField
		name  string
		set   bool
	}{
		{fieldSearchType, "search_type", c.kind != kindWeb},
		{fieldCountry, "country", c.country != ""},
		{fieldLanguage, "language", c.language != ""},
		{fieldTimeRange, "time_range", c.since != anyTime},
		{fieldFullPage, "content_options.full_page", c.full},
	} {
		if f.set && ignored&f.field != 0 {
			c.dropped = append(c.dropped, f.name)
		}
	}
}

// read fills a response from a provider's answer. ok is false if the answer has
// another shape; the error is an *apierr.Error if the answer reports a failure.
func (c *call) read(r *response, answer gjson.Result) (ok bool, err error) {
	if success := answer.Get("success"); success.Type == gjson.False || answer.Get("code").Num >= 400 {
		return false, apierr.New(502, "upstream_failed", "The provider could not search.")
	}
	return c.service.read(c, r, answer), nil
}

// messages returns a list of chat messages with one text of the user.
func messages(text string) string {
	return `[{"role":"user","content":` + jsonvalue.Quote(text) + `}]`
}
