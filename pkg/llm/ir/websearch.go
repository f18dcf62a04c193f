package ir

import "github.com/tidwall/gjson"

// WebSearch are the options of the hosted search, in raw JSON: how much of the
// results the model reads, the user's location (flat form), the sites, and the
// maximum number of searches.
type WebSearch struct{ Size, Location, Allowed, Blocked, MaxUses string }

// ReadUserLocation reads a user's location: Responses and Messages have
// {"type":"approximate","city":…}, chat has the rest within "approximate".
func ReadUserLocation(v gjson.Result) string {
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
	return string(d.Buf)
}

// ReadTool reads the search tool of Responses or Messages.
func (w *WebSearch) ReadTool(t gjson.Result) {
	w.Size, w.Location, w.MaxUses = Raw(t.Get("search_context_size")), ReadUserLocation(t.Get("user_location")),
		Raw(t.Get("max_uses"))
	w.Allowed, w.Blocked = Raw(t.Get("allowed_domains")), Raw(t.Get("blocked_domains"))
	if f := t.Get("filters"); f.IsObject() {
		w.Allowed, w.Blocked = Raw(f.Get("allowed_domains")), Raw(f.Get("blocked_domains"))
	}
}

// DropWeb drops the options that the upstream's search does not support.
func (q *Request) DropWeb(size, place, domains, blocked, uses bool) {
	at := q.FieldName(FieldSearch)
	for _, f := range [...]struct {
		drop      bool
		name, raw string
	}{
		{size, at + ".search_context_size", q.WebSearch.Size}, {place, at + ".user_location", q.WebSearch.Location},
		{domains, q.FieldName(FieldSearchAllowed), q.WebSearch.Allowed},
		{blocked, q.FieldName(FieldSearchBlocked), q.WebSearch.Blocked},
		{uses, at + ".max_uses", q.WebSearch.MaxUses},
	} {
		if f.drop {
			q.DropIfSet(f.name, f.raw)
		}
	}
}
