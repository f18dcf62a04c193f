package models

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// endpoints are where models of a kind are called, and with which fields. The
// fields are those of OpenAI's requests, and weir's own for search and fetch.
var endpoints = []struct {
	kind   catalog.Kind
	path   string // "" without an endpoint
	params []string
}{
	{catalog.LLM, "/v1/chat/completions", []string{"messages", "stream", "max_completion_tokens", "temperature", "top_p",
		"stop", "tools", "tool_choice", "response_format", "reasoning_effort"}},
	{catalog.ImageToText, "/v1/chat/completions", []string{"messages", "stream", "max_completion_tokens", "temperature",
		"top_p"}},
	{catalog.Embedding, "/v1/embeddings", []string{"input", "encoding_format", "dimensions", "user"}},
	{catalog.Image, "/v1/images/generations", []string{"prompt", "n", "size", "quality", "response_format", "background",
		"output_format"}},
	{catalog.TTS, "/v1/audio/speech", []string{"input", "voice", "response_format", "speed", "instructions",
		"stream_format"}},
	{catalog.STT, "/v1/audio/transcriptions", []string{"file", "language", "prompt", "response_format", "temperature",
		"timestamp_granularities"}},
	{catalog.Video, "/v1/videos/generations", []string{"prompt", "image", "duration", "aspect_ratio", "resolution"}},
	{catalog.WebSearch, "/v1/search", []string{"query", "max_results", "search_type", "country", "language", "time_range",
		"offset", "domain_filter", "content_options", "provider_options"}},
	{catalog.WebFetch, "/v1/web/fetch", []string{"url", "format", "max_characters"}},
	{catalog.Rerank, "/v1/rerank", []string{"query", "documents", "top_n", "return_documents"}},
	{catalog.Music, "", nil},
}

// Info serves GET /v1/models/info?id=<alias>/<model>&kind=<kind>:
//
//	{"id","name","kind","owned_by","endpoint","params":[],"dimensions"?,"context_length"?,
//	 "max_completion_tokens"?,"input_modalities":[],"output_modalities":[],"capabilities":{},
//	 "pricing"?{}, as of catalog.Price.AppendJSON, "deprecated"?{"date"?,"successor"?},
//	 "voices_url"?,"search_types"?,"max_results"?}
//
// kind picks between entries of one id. Unknown values are left out. 400
// without an id, 404 for one that no list has. See docs/reference/spec.md,
// 4.5.
func (h *Handler) Info(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	id := endpoint.Query(c.Query, "id")
	if id == "" {
		return nil, apierr.Invalid("id", "The query parameter id is required.")
	}
	entry, v := h.entryOfKind(ctx, c, id, endpoint.Query(c.Query, "kind"))
	if entry == nil {
		entry = webEntry(c, id)
	}
	if entry == nil {
		entry, v = h.claudeEntry(ctx, c, id)
	}
	if entry == nil {
		return nil, unknown(id)
	}
	only := []Entry{*entry}
	reprice(c.Machine, only)
	if e := &only[0]; e.Kind == catalog.LLM {
		alias := static(c.Machine, e.OwnedBy)
		if tools := catalog.ToolPrice(alias, e.Model.ID); tools != "" {
			e.setPrice(e.Model.Price.With(tools))
		}
	}
	resp := answerJSON(info(&only[0]))
	h.after(resp, c, v)
	return resp, nil
}

// entryOfKind finds an id under the kind asked for, and under any kind when it
// is listed for others only.
func (h *Handler) entryOfKind(ctx context.Context, c *auth.Call, id, kind string) (*Entry, view) {
	for i := range segments {
		if segments[i].name == kind && len(segments[i].kinds) == 1 {
			kind = string(segments[i].kinds[0])
		}
	}
	if k := catalog.Kind(kind); k.Known() {
		if e, v := h.entry(ctx, c, id, []catalog.Kind{k}); e != nil {
			return e, v
		}
	} else if e, v := h.entry(ctx, c, id, everything[:1]); e != nil {
		return e, v
	}
	return h.entry(ctx, c, id, everything)
}

// webEntry is the search or fetch service of a provider that has one, also
// before it is connected; nil for any other id.
func webEntry(c *auth.Call, id string) *Entry {
	alias, service, _ := strings.Cut(id, "/")
	row := provider.ByAlias(alias)
	if row == nil {
		return nil
	}
	if c.Machine != nil && newScope(c.Machine.Machine, row, nil).hides(service) {
		return nil
	}
	e := Entry{ID: id, OwnedBy: alias, Model: blank("")}
	switch {
	case service == "search" && row.Search:
		e.Kind, e.row = catalog.WebSearch, row
	case service == "fetch" && row.Fetch:
		e.Kind = catalog.WebFetch
	default:
		return nil
	}
	if len(allowed(c.Key, []Entry{e})) == 0 {
		return nil
	}
	return &e
}

func info(e *Entry) []byte {
	m := e.Model
	b := append([]byte(nil), `{"id":`...)
	b = appendString(b, e.ID)
	name := cmp.Or(m.Name, e.ID)
	b = append(b, `,"name":`...)
	b = appendString(b, name)
	b = append(b, `,"kind":`...)
	b = appendString(b, string(e.Kind))
	b = append(b, `,"owned_by":`...)
	b = appendString(b, e.OwnedBy)
	for i := range endpoints {
		if endpoints[i].kind != e.Kind {
			continue
		}
		b = append(b, `,"endpoint":`...)
		if endpoints[i].path == "" {
			b = append(b, "null"...)
		} else {
			b = appendString(b, endpoints[i].path)
		}
		b = append(b, `,"params":[`...)
		for j, p := range endpoints[i].params {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendString(b, p)
		}
		b = append(b, ']')
	}
	for _, n := range [...]struct {
		name  string
		value int
	}{{"dimensions", m.Dimensions}, {"context_length", m.Context}, {"max_completion_tokens", m.MaxOutput}} {
		if n.value > 0 {
			b = append(b, `,"`+n.name+`":`...)
			b = strconv.AppendInt(b, int64(n.value), 10)
		}
	}
	b = append(b, `,"input_modalities":`...)
	b = m.Input.AppendJSON(b)
	b = append(b, `,"output_modalities":`...)
	b = m.Output.AppendJSON(b)
	b = append(b, `,"capabilities":`...)
	b = m.Caps.AppendJSON(b)
	if m.Price != "" {
		b = m.Price.AppendJSON(append(b, `,"pricing":`...))
	}
	b = appendDeprecated(b, m)
	switch {
	case e.Kind == catalog.TTS:
		b = append(b, `,"voices_url":`...)
		b = appendString(b, "/v1/audio/voices?provider="+e.OwnedBy)
	case e.Kind == catalog.WebSearch && e.row != nil:
		b = append(b, `,"search_types":["web"`...)
		if e.row.News {
			b = append(b, `,"news"`...)
		}
		b = append(b, `],"max_results":`...)
		b = strconv.AppendInt(b, int64(e.row.Results), 10)
	}
	return append(b, '}')
}
