package web

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/htmlmd"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// The gateway's own fetch, as a provider.
const (
	ownAlias = provider.Own
	ownModel = provider.Own + "/fetch"
)

// itself returns the target that stands for the gateway in a plan that is only
// recorded.
func itself() routing.Target {
	return routing.Target{
		Provider: &provider.Descriptor{ID: ownAlias, Alias: ownAlias}, Alias: ownAlias, Model: "fetch",
		Kind:        catalog.WebFetch,
		Connections: []*store.Connection{{Name: "the gateway itself"}},
	}
}

const (
	maxMoves = 5       // redirects that are followed
	maxPage  = 5 << 20 // bytes of a page, inflated
)

// agent is the name of the gateway for sites.
const agent = "Mozilla/5.0 (compatible; weir/1)"

// own fetches a page, which counts as the target self. Every address on the way is judged like the first one; no
// credential, cookie or header of the client goes with the call
// (docs/reference/reliability.md, T16, T19, T43).
func (h *Handler) own(ctx context.Context, c *auth.Call, self *routing.Target, req *request,
	deadline time.Time) (*page, error) {
	target, hosts := req.url, h.ownHosts(c)
	hop, err := provider.Hop(c.Header)
	if err != nil {
		return nil, apierr.New(508, "loop_detected", "The call has passed too many gateways. Remove this gateway's own address from its accounts.")
	}
	for moves := 0; ; moves++ {
		left := deadline.Sub(h.Now())
		if left <= 0 {
			return nil, timedOut(nil)
		}
		sent := accounts.Outcome{Target: self, Connection: self.Connections[0], Sent: true}
		c.Trace.Outcomes = append(c.Trace.Outcomes, sent)
		resp, err := upstream.Do(ctx, h.Do, pageRequest(target, left, hop))
		if err != nil {
			return nil, failed(err)
		}
		raw, err := stream.ReadAll(resp.Body, maxPage)
		if err != nil {
			return nil, failed(err)
		}
		switch s := resp.Status; {
		case s == 301, s == 302, s == 303, s == 307, s == 308:
			location := resp.Header.Get("location")
			if location == "" || moves == maxMoves {
				return nil, unavailable("The page redirects too many times.")
			}
			if target, err = h.address(htmlmd.Resolve(target, location), hosts); err != nil {
				// Which address it is, and why it may not be called, is not said.
				e := unavailable("The page redirects to an address that may not be fetched.")
				e.Err = err
				return nil, e
			}
			continue
		case s == 404, s == 410:
			return nil, notFound()
		case s < 200 || s > 299:
			return nil, unavailable("The page answered with status %d.", s)
		}
		return h.read(raw, resp.Header.Get("content-type"), target, req)
	}
}

// pageRequest returns the call for a page, with further header fields.
func pageRequest(target string, left time.Duration, also ...httpmsg.Field) *upstream.Request {
	return &upstream.Request{
		Method: "GET", URL: target, Header: append(httpmsg.Header{
			{Name: "user-agent", Value: agent},
			{Name: "accept", Value: "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5"},
			{Name: "accept-encoding", Value: "identity"},
		}, also...),
		HeaderTimeout: left, Timeout: left, MaxBody: maxPage,
	}
}

// read makes the content of a page's bytes.
func (h *Handler) read(raw []byte, contentType, address string, req *request) (*page, error) {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind = strings.TrimSpace(kind)
	isHTML := kind == "text/html" || kind == "application/xhtml+xml" || kind == "" && looksHTML(raw)
	switch {
	case isHTML:
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"), kind == "",
		slices.Contains(textTypes[:], kind):
	default:
		return nil, apierr.New(422, pageUnreadable, "The page cannot be read: its content type is not text.")
	}
	doc, label, ok := htmlmd.Decode(raw, contentType)
	if !ok && h.Decode != nil {
		doc, ok = h.Decode(label, raw)
	}
	if !ok {
		return nil, apierr.New(422, pageUnreadable, "The page is written in an encoding that is not supported.")
	}
	if kind == "" && !isHTML && strings.IndexByte(doc, 0) >= 0 {
		return nil, apierr.New(422, pageUnreadable, "The page cannot be read: it is not text.")
	}
	p := &page{url: address, format: req.format, cost: "0"}
	if !isHTML {
		p.text, p.format = doc, text
		if kind == "text/markdown" {
			p.format = markdown
		}
		return p, nil
	}
	f, limit := htmlmd.Markdown, req.max
	switch req.format {
	case text:
		f = htmlmd.Text
	case rawHTML:
		limit = 1 // only what the page says of itself
	}
	w := htmlmd.Read(doc, address, f, limit)
	p.title, p.author, p.language = w.Title, w.Author, w.Language
	p.published = htmlmd.Date(w.PublishedAt, h.Now())
	if p.text = w.Text; req.format == rawHTML {
		p.text = doc
	}
	return p, nil
}

// textTypes are the content types outside text/ that are read as text.
var textTypes = [...]string{"application/json", "application/xml", "application/javascript", "application/yaml",
	"application/x-yaml"}

func looksHTML(raw []byte) bool {
	head := strings.ToLower(strings.TrimLeft(string(raw[:min(len(raw), 512)]), "\ufeff \t\r\n"))
	return strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html") ||
		strings.HasPrefix(head, "<head") ||
		strings.HasPrefix(head, "<!--") || strings.HasPrefix(head, "<body")
}

// failed judges a call without an answer. All failures of the network are one,
// so that none shows what lies behind an address.
func failed(err error) error {
	switch {
	case errors.Is(err, upstream.ErrCanceled), errors.Is(err, stream.ErrClient):
		return apierr.ClientLeft(err)
	case errors.Is(err, stream.ErrTooLarge):
		e := apierr.New(422, pageUnreadable, "The page has more than %d bytes.", maxPage)
		e.Err = err
		return e
	case errors.Is(err, upstream.ErrTimeout), errors.Is(err, stream.ErrTimeout), errors.Is(err, stream.ErrIdle):
		return timedOut(err)
	}
	e := unavailable("The page could not be reached.")
	e.Err = err
	return e
}

func timedOut(err error) error {
	e := apierr.New(504, "upstream_timeout", "The page did not answer in time.")
	e.Err = err
	return e
}
