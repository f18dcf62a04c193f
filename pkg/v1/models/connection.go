package models

import (
	"context"
	"errors"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// Connection answers GET /api/providers/{connectionId}/models: what the
// upstream of one connection lists, asked again, under the upstream's own ids.
//
//	{"object":"list","data":[entries as Detailed has them],"source":"upstream"|"last"|"catalog"}
//
// source states whether the upstream answered, whether it failed and this is its last
// list, or whether it has no list and these are the models of the catalogue. A failure of the
// upstream is not an error (docs/reference/spec.md, 4.2.6).
func (h *Handler) Connection(ctx context.Context, c *auth.Call, conn *store.Connection) (*httpmsg.Response, error) {
	row := provider.Lookup(conn.Provider)
	var entries []Entry
	source := "catalog"
	if row != nil {
		s := newScope(c.Machine.Machine, row, conn)
		var listed []catalog.Model
		if hop, err := provider.Hop(c.Header); err == nil && row.Serves("models") && !row.Models.None && !internal(c) {
			h.Live.discover(ctx, c.Machine, hop, []*scope{s}, total, false)
			if e := h.Live.last(c.Machine, conn); e.list != nil {
				listed, source = e.list.Models, "upstream"
				if e.tried.After(e.at) {
					source = "last"
				}
			}
		}
		if source == "catalog" {
			listed = c.Machine.Catalog().Models(row.Alias)
		}
		for i := range listed {
			m := &listed[i]
			if known := s.lookup(c.Machine.Catalog(), s.cut(m.ID)); len(known) > 0 && source != "catalog" {
				merged := *merge(m, &known[0])
				merged.ID = m.ID
				m = &merged
			} else if m.Kind == "" {
				inferred := *m
				inferred.Kind = infer(c.Machine.Catalog(), m.ID)
				m = &inferred
			}
			entries = append(entries, Entry{ID: m.ID, OwnedBy: s.out, Kind: m.Kind, Model: m})
		}
	}
	reprice(c.Machine, entries)
	body := appendDetailedList(nil, entries, nil, h.Now().Unix())
	body = append(body[:len(body)-1], `,"source":"`+source+`"}`...)
	return answerJSON(body), nil
}

// Probe fetches the model ids of one connection. UpstreamStatus returns the
// status of an error.
func (h *Handler) Probe(ctx context.Context, c *auth.Call, conn *store.Connection) (ids []string, err error) {
	row := provider.Lookup(conn.Provider)
	if row == nil || !row.Serves("models") || row.Models.None {
		return nil, provider.ErrNoEndpoint
	}
	hop, err := provider.Hop(c.Header)
	if err != nil {
		return nil, err
	}
	h.Live.discover(ctx, c.Machine, hop, []*scope{newScope(c.Machine.Machine, row, conn)}, total, false)
	e := h.Live.last(c.Machine, conn)
	if e.failed != nil {
		return nil, e.failed
	}
	if e.list == nil {
		return nil, upstream.ErrTimeout
	}
	for i := range e.list.Models {
		ids = append(ids, e.list.Models[i].ID)
	}
	return ids, nil
}

// Check calls the endpoint of a connection's provider that is there for a connection
// test, and returns why it did not answer with 2xx. UpstreamStatus returns the status
// of an error.
func (h *Handler) Check(ctx context.Context, c *auth.Call, conn *store.Connection) error {
	row := provider.Lookup(conn.Provider)
	hop, err := provider.Hop(c.Header)
	if err != nil {
		return err
	}
	l := h.Live
	j := &job{m: c.Machine, s: newScope(c.Machine.Machine, row, conn), hop: hop, until: l.Now().Add(fetchTimeout)}
	if j.cred, err = l.Credentials.Credential(ctx, c.Machine, conn); err != nil {
		return err
	}
	_, err = l.again(ctx, j, row.Check, "")
	return err
}

// UpstreamStatus returns the status of an answer outside 2xx.
func UpstreamStatus(err error) (status int, ok bool) {
	var s statusError
	ok = errors.As(err, &s)
	return int(s), ok
}
