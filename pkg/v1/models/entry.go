package models

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// Entry is one model of a list. See docs/reference/spec.md, 2.2.
type Entry struct {
	ID      string
	OwnedBy string       // the output alias, or "combo"
	Kind    catalog.Kind // what it is listed for
	// Model is what is known of it, never nil. It is shared and must not be
	// changed; its ID is the upstream's, or empty.
	Model *catalog.Model
	row   *provider.Descriptor // of a search service
}

// append writes the entry as OpenAI's clients read it:
//
//	{"id","object":"model","created","owned_by","kind"?,"context_length"?,"max_completion_tokens"?,
//	 "capabilities"?{…: bool},"input_modalities"?,"output_modalities"?}
//
// kind stands on web entries only; the fields after it on chat models, as far
// as they are known. See docs/reference/spec.md, 2.2.
func (e *Entry) append(b []byte, created int64) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, e.ID)
	b = append(b, `,"object":"model","created":`...)
	b = strconv.AppendInt(b, created, 10)
	b = append(b, `,"owned_by":`...)
	b = appendString(b, e.OwnedBy)
	switch e.Kind {
	case catalog.WebSearch, catalog.WebFetch:
		b = append(b, `,"kind":"`...)
		b = append(b, e.Kind...)
		b = append(b, '"')
	case catalog.LLM:
		b = appendDetails(b, e.Model)
	}
	return append(b, '}')
}

// appendDetails writes the known limits, capabilities and modalities, each
// after a comma.
func appendDetails(b []byte, m *catalog.Model) []byte {
	if m.Context > 0 {
		b = append(b, `,"context_length":`...)
		b = strconv.AppendInt(b, int64(m.Context), 10)
	}
	if m.MaxOutput > 0 {
		b = append(b, `,"max_completion_tokens":`...)
		b = strconv.AppendInt(b, int64(m.MaxOutput), 10)
	}
	if m.Caps.Known() {
		b = append(b, `,"capabilities":`...)
		b = m.Caps.AppendJSON(b)
	}
	if m.Input != 0 {
		b = append(b, `,"input_modalities":`...)
		b = m.Input.AppendJSON(b)
	}
	if m.Output != 0 {
		b = append(b, `,"output_modalities":`...)
		b = m.Output.AppendJSON(b)
	}
	return b
}

// appendList writes a whole list. See docs/reference/spec.md, 2.1.
func appendList(b []byte, list []Entry, created int64) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = list[i].append(b, created)
	}
	return append(b, "]}"...)
}

// appendDetailedList writes a list for people who manage: each entry has its
// kind, and its prices and dimensions as far as they are known.
//
//	{…, "kind", "dimensions"?, "pricing"? on the usual terms, "deprecated"? as Info has it}
//
// complete are the aliases of compatible servers whose own list is a whole part of it.
func appendDetailedList(b []byte, list []Entry, complete []string, created int64) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i := range list {
		e := &list[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = e.append(b, created)
		b = b[:len(b)-1]
		if e.Kind != catalog.WebSearch && e.Kind != catalog.WebFetch {
			b = append(b, `,"kind":`...)
			b = appendString(b, string(e.Kind))
		}
		if e.Model.Dimensions > 0 {
			b = append(b, `,"dimensions":`...)
			b = strconv.AppendInt(b, int64(e.Model.Dimensions), 10)
		}
		if p := e.Model.Price; p != "" {
			r, _ := p.Rates(catalog.Terms{})
			b = append(r.AppendJSON(append(b, `,"pricing":{`...)), '}')
		}
		b = append(appendDeprecated(b, e.Model), '}')
	}
	b = append(b, ']')
	if len(complete) > 0 {
		names, _ := json.Marshal(complete)
		b = append(append(b, `,"complete":`...), names...)
	}
	return append(b, '}')
}

// appendDeprecated writes that a model is deprecated, with what is known, after a comma.
func appendDeprecated(b []byte, m *catalog.Model) []byte {
	if m.Deprecated == "" {
		return b
	}
	b = append(b, `,"deprecated":{`...)
	if day, successor, _ := strings.Cut(m.Deprecated, " "); day != "-" {
		b = appendString(append(b, `"date":`...), day)
		if successor != "" {
			b = appendString(append(b, `,"successor":`...), successor)
		}
	}
	return append(b, '}')
}

// appendAnthropic writes the entry as Anthropic's clients read it:
//
//	{"type":"model","id","display_name","created_at": RFC 3339,"max_input_tokens"?,"max_tokens"?}
//
// docs/reference/api-shapes.md, 8.5. capabilities is left out: theirs is an
// object of another shape.
func (e *Entry) appendAnthropic(b []byte, created int64) []byte {
	b = append(b, `{"type":"model","id":`...)
	b = appendString(b, e.ID)
	b = append(b, `,"display_name":`...)
	name := cmp.Or(e.Model.Name, e.ID)
	b = appendString(b, name)
	b = append(b, `,"created_at":"`...)
	b = time.Unix(created, 0).UTC().AppendFormat(b, time.RFC3339)
	b = append(b, '"')
	if e.Model.Context > 0 {
		b = append(b, `,"max_input_tokens":`...)
		b = strconv.AppendInt(b, int64(e.Model.Context), 10)
	}
	if e.Model.MaxOutput > 0 {
		b = append(b, `,"max_tokens":`...)
		b = strconv.AppendInt(b, int64(e.Model.MaxOutput), 10)
	}
	return append(b, '}')
}

// appendString writes s as a JSON string.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s)
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
