// Package models serves GET /v1/models, /v1/models/{kind},
// /v1/models/{alias}/{model} and /v1/models/info.
//
// A pure function (List) builds a list from a machine's records, the static catalogue
// and the upstreams' own lists (LiveLists). The finished bytes are cached until one of these
// changes, so most responses are a look-up.
package models

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// Handler serves the model lists.
type Handler struct {
	Live *LiveLists
	Now  func() time.Time

	mu     sync.Mutex
	cached map[cacheKey]*cachedList
	order  []cacheKey
	bytes  int
}

// segments are the kinds that a path segment stands for.
// See docs/reference/spec.md, 4.5.
var segments = []struct {
	name  string
	kinds []catalog.Kind
}{
	{"llm", []catalog.Kind{catalog.LLM}},
	{"image", []catalog.Kind{catalog.Image}},
	{"tts", []catalog.Kind{catalog.TTS}},
	{"stt", []catalog.Kind{catalog.STT}},
	{"embedding", []catalog.Kind{catalog.Embedding}},
	{"image-to-text", []catalog.Kind{catalog.ImageToText}},
	{"web", []catalog.Kind{catalog.WebSearch, catalog.WebFetch}},
	{"video", []catalog.Kind{catalog.Video}},
	{"music", []catalog.Kind{catalog.Music}},
	{"rerank", []catalog.Kind{catalog.Rerank}},
}

// everything is every kind, chat first.
var everything = []catalog.Kind{
	catalog.LLM, catalog.Embedding, catalog.Image, catalog.TTS, catalog.STT, catalog.ImageToText,
	catalog.Video, catalog.Music, catalog.Rerank, catalog.WebSearch, catalog.WebFetch,
}

// List serves GET /v1/models: the chat models, in the caller's form. See
// docs/reference/spec.md, 4, docs/reference/api-shapes.md, 8.5.
func (h *Handler) List(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.list(ctx, c, segments[0].name, segments[0].kinds, formOf(c))
}

// Kind serves GET /v1/models/{kind}. A segment that is no kind is looked up as
// the id of a model.
func (h *Handler) Kind(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	for i := range segments {
		if segments[i].name == c.Params[0] {
			return h.list(ctx, c, segments[i].name, segments[i].kinds, formOf(c))
		}
	}
	return h.one(ctx, c, c.Params[0])
}

// Detailed serves GET /api/models/list/{kind}: the same entries with what
// appendDetailedList adds, whatever dialect the caller speaks; "all" is every kind.
func (h *Handler) Detailed(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	if c.Params[0] == "all" {
		return h.list(ctx, c, "all", everything, detailed)
	}
	for i := range segments {
		if segments[i].name == c.Params[0] {
			return h.list(ctx, c, segments[i].name, segments[i].kinds, detailed)
		}
	}
	return nil, apierr.New(404, "unknown_kind", "No kind of model has this name.")
}

// Model serves GET /v1/models/{alias}/{model...}: one entry of a list.
func (h *Handler) Model(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.one(ctx, c, strings.Join(c.Params, "/"))
}

func (h *Handler) list(ctx context.Context, c *auth.Call, name string, kinds []catalog.Kind,
	f form) (*httpmsg.Response, error) {
	q := cacheKeyOf(c, name, f)
	k := h.cachedFor(q)
	var stale view
	if k == nil {
		var rec *store.Machine
		var update *catalog.Update
		var complete []string
		if c.Machine != nil {
			rec, update = c.Machine.Machine, c.Machine.Catalog()
			var asked []*scope
			for _, s := range scopes(rec) {
				if serves(s.row, kinds) {
					asked = append(asked, s)
				}
			}
			stale = h.Live.lists(ctx, c, asked, f.wait())
			for _, s := range asked {
				if l := stale.lists[s.conn.ID]; s.row.Compatible && l != nil && !l.Partial {
					complete = append(complete, s.out)
				}
			}
		} else {
			stale.until = h.Now().Add(liveTTL)
		}
		entries := allowed(c.Key, own(rec, kinds, List(rec, update, kinds, stale.lists)))
		if f == anthropic && name == segments[0].name && !q.internal {
			entries = claudeNames(c, entries)
		}
		k = &cachedList{until: stale.until, created: h.Now().Unix()}
		switch f {
		case anthropic, gemini:
			k.entries = entries
		case codex:
			k.body = appendCodexList(nil, entries)
		case detailed:
			reprice(c.Machine, entries)
			k.body = appendDetailedList(nil, entries, complete, k.created)
		default:
			k.body = appendList(make([]byte, 0, 64+384*len(entries)), entries, k.created)
		}
		h.store(q, k)
	}
	body := k.body
	var err error
	switch f {
	case anthropic:
		body, err = page(k.entries, c.Query, k.created)
	case gemini:
		body, err = geminiPage(k.entries, c.Query)
	}
	if err != nil {
		return nil, err
	}
	resp := answerJSON(body)
	if f == codex {
		setETag(resp, body)
	}
	h.after(resp, c, stale)
	return resp, nil
}

// after asks old lists again once the answer has gone out.
func (h *Handler) after(resp *httpmsg.Response, c *auth.Call, v view) {
	if len(v.stale) == 0 {
		return
	}
	if v.stale = h.Live.claim(c.Machine, v.stale, h.Now()); len(v.stale) == 0 {
		return
	}
	machine := c.Machine
	resp.After = append(resp.After, func(ctx context.Context) {
		h.Live.behind(ctx, machine, &v)
	})
}

// one answers with the entry of an id, in the caller's dialect.
func (h *Handler) one(ctx context.Context, c *auth.Call, id string) (*httpmsg.Response, error) {
	entry, v := h.entry(ctx, c, id, everything)
	if entry == nil {
		entry, v = h.claudeEntry(ctx, c, id)
	}
	if entry == nil {
		return nil, unknown(id)
	}
	created := h.Now().Unix()
	var body []byte
	if formOf(c) == anthropic {
		body = entry.appendAnthropic(nil, created)
	} else {
		body = entry.append(nil, created)
	}
	resp := answerJSON(body)
	h.after(resp, c, v)
	return resp, nil
}

// entry finds the entry that a list of these kinds has for an id, or nil. Only
// the upstream that the id names is asked for its list.
func (h *Handler) entry(ctx context.Context, c *auth.Call, id string, kinds []catalog.Kind) (*Entry, view) {
	var v view
	b := builder{kinds: kinds}
	if c.Machine != nil {
		b.m, b.update = c.Machine.Machine, c.Machine.Catalog()
		b.scopes = scopes(b.m)
		asked := named(b.scopes, id)
		if c.Machine.Combo(id) != nil {
			asked = b.scopes // its members may be anywhere
		}
		v = h.Live.lists(ctx, c, asked, formOf(c).wait())
		b.live = v.lists
	}
	b.only = id
	b.build()
	for i := range b.list {
		if b.list[i].ID == id && len(allowed(c.Key, b.list[i:i+1])) == 1 {
			return &b.list[i], v
		}
	}
	return ownEntry(c, id), v
}

// named returns the scopes whose output alias starts an id.
func named(all []*scope, id string) []*scope {
	var found []*scope
	for _, s := range all {
		if strings.HasPrefix(id, s.out+"/") {
			found = append(found, s)
		}
	}
	return found
}

// allowed leaves out what a key with an allow-list cannot call.
func allowed(key *store.Key, list []Entry) []Entry {
	if key == nil || len(key.Models) == 0 {
		return list
	}
	var filtered []Entry
	for _, e := range list {
		if auth.AllowsModel(key, e.ID) {
			filtered = append(filtered, e)
		}
	}
	return filtered
}

func unknown(id string) error {
	e := apierr.New(404, "model_not_found", "The model '%s' does not exist or you do not have access to it.",
		apierr.ShortName(id))
	e.Param = "id"
	return e
}

// page makes Anthropic's form of a list: at most limit (20, or 1 to 1000)
// entries after after_id or before before_id. See docs/reference/api-shapes.md,
// 8.5.
func page(list []Entry, query string, created int64) ([]byte, error) {
	limit, from, to := 20, 0, 0
	if s := endpoint.Query(query, "limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1000 {
			return nil, apierr.Invalid("limit", "limit must be a number from 1 to 1000.")
		}
		limit = n
	}
	after, before := endpoint.Query(query, "after_id"), endpoint.Query(query, "before_id")
	position := func(name, id string) (int, error) {
		for i := range list {
			if list[i].ID == id {
				return i, nil
			}
		}
		return 0, apierr.Invalid(name, "%s names no model of the list.", name)
	}
	more := false
	switch {
	case after != "" && before != "":
		return nil, apierr.Invalid("before_id", "after_id and before_id cannot be used together.")
	case before != "":
		i, err := position("before_id", before)
		if err != nil {
			return nil, err
		}
		from, to = max(0, i-limit), i
		more = from > 0
	default:
		if after != "" {
			i, err := position("after_id", after)
			if err != nil {
				return nil, err
			}
			from = i + 1
		}
		to = min(len(list), from+limit)
		more = to < len(list)
	}
	b := append(make([]byte, 0, 256*(to-from)+128), `{"data":[`...)
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = list[i].appendAnthropic(b, created)
	}
	b = append(b, `],"has_more":`...)
	b = strconv.AppendBool(b, more)
	first, last := []byte("null"), []byte("null")
	if to > from {
		first, last = appendString(nil, list[from].ID), appendString(nil, list[to-1].ID)
	}
	b = append(append(b, `,"first_id":`...), first...)
	b = append(append(b, `,"last_id":`...), last...)
	return append(b, '}'), nil
}

func answerJSON(body []byte) *httpmsg.Response {
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromBytes(body),
	}
}
