package ir

import "github.com/tidwall/gjson"

// WebSearch is how the hosted search shall search, in raw JSON: how much of
// what it finds the model reads, where the user is (the flat form), from which
// sites, and how often at most.
type WebSearch struct{ Size, Place, Allowed, Blocked, Uses string }

// ReadPlace reads a user's location: Responses and Messages have
// {"type":"approximate","city":…}, chat has the rest within "approximate".
func ReadPlace(v gjson.Result) string {
	if in := v.Get("approximate"); in.IsObject() {
		v = in
	}
	if !v.IsObject() {
		return ""
	}
	d := Writer{}
	d.Open("", '{')
	d.Str("type", "approximate")
	Each(v, func(k, x gjson.Result) bool {
		if k.Str != "type" && x.Type != gjson.Null {
			d.Raw(k.Str, x.Raw)
		}
		return true
	})
	d.Close('}')
	return string(d.B)
}

// ReadTool reads the search tool of Responses or Messages.
func (w *WebSearch) ReadTool(t gjson.Result) {
	w.Size, w.Place, w.Uses = Raw(t.Get("search_context_size")), ReadPlace(t.Get("user_location")), Raw(t.Get("max_uses"))
	w.Allowed, w.Blocked = Raw(t.Get("allowed_domains")), Raw(t.Get("blocked_domains"))
	if f := t.Get("filters"); f.IsObject() {
		w.Allowed, w.Blocked = Raw(f.Get("allowed_domains")), Raw(f.Get("blocked_domains"))
	}
}

// DropWeb notes which of the wishes the upstream's search does not know.
func (q *Request) DropWeb(size, place, domains, blocked, uses bool) {
	at := q.FieldName(FieldSearch)
	for _, f := range [...]struct {
		drop      bool
		name, raw string
	}{
		{size, at + ".search_context_size", q.Web.Size}, {place, at + ".user_location", q.Web.Place},
		{domains, q.FieldName(FieldSearchAllowed), q.Web.Allowed}, {blocked, q.FieldName(FieldSearchBlocked), q.Web.Blocked},
		{uses, at + ".max_uses", q.Web.Uses},
	} {
		if f.drop {
			q.DropIfSet(f.name, f.raw)
		}
	}
}
