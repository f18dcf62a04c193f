package llm

import "github.com/tidwall/gjson"

// webSearch is how the hosted search shall search, in raw JSON: how much of
// what it finds the model reads, where the user is (the flat form), from which
// sites, and how often at most.
type webSearch struct{ size, place, allowed, blocked, uses string }

// place reads a user's location: Responses and Messages have
// {"type":"approximate","city":…}, chat has the rest within "approximate".
func place(v gjson.Result) string {
	if in := v.Get("approximate"); in.IsObject() {
		v = in
	}
	if !v.IsObject() {
		return ""
	}
	d := doc{}
	d.open("", '{')
	d.str("type", "approximate")
	forEach(v, func(k, x gjson.Result) bool {
		if k.Str != "type" && x.Type != gjson.Null {
			d.raw(k.Str, x.Raw)
		}
		return true
	})
	d.close('}')
	return string(d.b)
}

// readTool reads the search tool of Responses or Messages.
func (w *webSearch) readTool(t gjson.Result) {
	w.size, w.place, w.uses = rawOf(t.Get("search_context_size")), place(t.Get("user_location")), rawOf(t.Get("max_uses"))
	w.allowed, w.blocked = rawOf(t.Get("allowed_domains")), rawOf(t.Get("blocked_domains"))
	if f := t.Get("filters"); f.IsObject() {
		w.allowed, w.blocked = rawOf(f.Get("allowed_domains")), rawOf(f.Get("blocked_domains"))
	}
}

// dropWeb notes which of the wishes the upstream's search does not know.
func (q *request) dropWeb(size, place, domains, blocked, uses bool) {
	at := q.fieldName(fieldSearch)
	for _, f := range [...]struct {
		drop      bool
		name, raw string
	}{
		{size, at + ".search_context_size", q.web.size}, {place, at + ".user_location", q.web.place},
		{domains, q.fieldName(fieldSearchAllowed), q.web.allowed}, {blocked, q.fieldName(fieldSearchBlocked), q.web.blocked},
		{uses, at + ".max_uses", q.web.uses},
	} {
		if f.drop {
			q.dropSet(f.name, f.raw)
		}
	}
}
