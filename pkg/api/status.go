package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const (
	statusFor   = time.Minute      // a page is served without asking the object
	maxStatuses = 256              // pages of an instance
	firstStatus = 10 * time.Second // after which another call reads the first page
)

// Status serves the public status page of a machine, /{machineId}/status and /status.json,
// to anybody. The object of a machine is asked once a minute by each instance, and only if
// the machine exists and shows a page.
type Status struct {
	Objects rpc.Stub
	Cache   cache
	Now     func() time.Time

	mu    sync.Mutex // of pages
	pages map[string]*statusPage
}

// statusPage is a page as it is sent.
type statusPage struct {
	html, json []byte
	at         time.Time
	reading    bool // it says that the first one is being read
}

// Page serves GET /{machineId}/status.
func (h *Status) Page(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	p, err := h.page(ctx, c)
	if err != nil {
		return nil, err
	}
	return &httpmsg.Response{Status: 200, Body: stream.FromBytes(p.html), Header: httpmsg.Header{
		{Name: "content-type", Value: "text/html; charset=utf-8"},
		{Name: "content-security-policy", Value: "default-src 'none'; style-src 'sha256-" + statusStyleHash() +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		{Name: "referrer-policy", Value: "no-referrer"},
		{Name: "cache-control", Value: p.cacheControl()},
	}}, nil
}

// JSON serves GET /{machineId}/status.json.
func (h *Status) JSON(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	p, err := h.page(ctx, c)
	if err != nil {
		return nil, err
	}
	resp := answer(200, p.json)
	resp.Header.Set("cache-control", p.cacheControl())
	return resp, nil
}

// page returns the page of the machine in the path. While one call asks for a newer page,
// and if there is no answer, others get the one before, or one that says that it is being read.
func (h *Status) page(ctx context.Context, c *auth.Call) (*statusPage, error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(c.Path, "/"), "/")
	if !rpc.IsMachineID(id) {
		return nil, rpc.ErrNoStatus()
	}
	m, err := h.Cache.Known(ctx, id)
	switch {
	case errors.Is(err, snapshot.ErrUnknown), err == nil && m.Settings.PublicStatus == "":
		return nil, rpc.ErrNoStatus()
	case err != nil:
		return nil, err
	}
	now := h.Now()
	p, fresh := h.cached(id, now)
	if fresh {
		return p, nil
	}
	newer, err := h.load(ctx, id)
	switch {
	case err == nil:
		newer.at = now
		h.mu.Lock()
		defer h.mu.Unlock()
		h.put(id, newer)
		return newer, nil
	case !p.reading && rpc.Status(err) != 404:
		return p, nil
	}
	if p.reading {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pages, id)
	}
	return nil, err
}

// put stores a page. The caller has the lock.
func (h *Status) put(id string, p *statusPage) {
	if len(h.pages) >= maxStatuses || h.pages == nil {
		h.pages = map[string]*statusPage{}
	}
	h.pages[id] = p
}

// cached returns the page of a machine. If it is not fresh, the caller asks for a newer one,
// and the next callers do not.
func (h *Status) cached(id string, now time.Time) (p *statusPage, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p = h.pages[id]; p == nil {
		p = &statusPage{html: []byte(readingPage), json: []byte(readingJSON), at: now, reading: true}
		h.put(id, p)
		return p, false
	}
	span := statusFor
	if p.reading {
		span = firstStatus
	}
	fresh = now.Sub(p.at) < span && !now.Before(p.at)
	if !fresh {
		p.at = now
	}
	return p, fresh
}

// The page of a machine while the first one is read, which reads itself again.
const (
	readingPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">` +
		`<title>Status</title></head><body><p>The status is being read.</p></body></html>`
	readingJSON = `{"object":"status","by":"provider","state":"unknown","updatedAt":0,"data":[]}`
)

// cacheControl returns how long others may store the page.
func (p *statusPage) cacheControl() string {
	if p.reading {
		return "no-store"
	}
	return "public, max-age=60"
}

// load asks the object of a machine for its status.
func (h *Status) load(ctx context.Context, id string) (*statusPage, error) {
	raw, err := rpc.Call[json.RawMessage](ctx, h.Objects, id, "status", nil)
	if err != nil {
		return nil, err
	}
	var s rpc.PublicStatus
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("status: read the answer: %w", err)
	}
	return &statusPage{html: statusHTML(&s), json: raw}, nil
}

// stateTexts are the texts of states.
var stateTexts = map[string]string{
	"operational": "Operational", "degraded": "Degraded", "down": "Down", "unknown": "No recent calls", "": "No calls",
}

// stateHeights are the heights of bars: the states differ without their colors.
var stateHeights = map[string]int{"operational": 16, "degraded": 12, "down": 8, "": 1}

const statusStyle = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif;` +
	`background:light-dark(#fff,#101414);color:light-dark(#17201f,#e6ebea)}` +
	`body{max-width:44rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1rem;margin:1.5rem 0 0}` +
	`p{margin:.25rem 0}.note{color:light-dark(#56625f,#9daaa7);font-size:.8125rem;font-weight:400}` +
	`svg{display:block;width:100%;height:1.25rem}rect{fill:light-dark(#8b9696,#667272)}` +
	`.operational{fill:light-dark(#176b3a,#6fcf97);color:light-dark(#176b3a,#6fcf97)}` +
	`.degraded{fill:light-dark(#7c4a03,#e9b356);color:light-dark(#7c4a03,#e9b356)}` +
	`.down{fill:light-dark(#a8232b,#f58a8d);color:light-dark(#a8232b,#f58a8d)}`

// statusStyleHash is what the policy of the page allows: no style but its own.
func statusStyleHash() string {
	sum := sha256.Sum256([]byte(statusStyle))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// statusHTML writes the page: no script, and nothing from elsewhere.
func statusHTML(s *rpc.PublicStatus) []byte {
	var b strings.Builder
	updated := time.UnixMilli(s.UpdatedAt).UTC()
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><head><meta charset="utf-8">`+
		`<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">`+
		`<title>%[1]s – Status</title><style>%[2]s</style></head><body><main><h1>Status: <span class="%[3]s">%[1]s</span></h1>`+
		`<p class="note">Updated <time datetime="%[4]s">%[5]s UTC</time></p>`, stateTexts[s.State], statusStyle, s.State,
		updated.Format(time.RFC3339), updated.Format("2006-01-02 15:04"))
	for i := range s.Data {
		d := &s.Data[i]
		fmt.Fprintf(&b, `<section><h2><bdi>%s</bdi> <span class="%s">%s</span></h2>`, escape(d.Name), d.State,
			stateTexts[d.State])
		statusBars(&b, "24 hours", d.Success24h, d.Hours)
		statusBars(&b, "30 days", d.Success30d, d.Days)
		b.WriteString(`</section>`)
	}
	if len(s.Data) == 0 {
		b.WriteString(`<p>No calls in the last 30 days.</p>`)
	}
	b.WriteString(`</main></body></html>`)
	return []byte(b.String())
}

// statusBars writes the bars of a span, with their text.
func statusBars(b *strings.Builder, span string, success *float64, states []string) {
	text := "no calls"
	if success != nil {
		text = fmt.Sprintf("%.1f%% succeeded", *success*100)
	}
	fmt.Fprintf(b, `<p class="note">Last %[1]s: %[2]s</p>`+
		`<svg viewBox="0 0 %[3]d 16" preserveAspectRatio="none" role="img" aria-label="Last %[1]s: %[2]s">`,
		span, text, len(states))
	for i, state := range states {
		height := stateHeights[state]
		fmt.Fprintf(b, `<rect class="%s" x="%d.1" y="%d" width=".8" height="%d"><title>%s</title></rect>`, state, i,
			16-height, height, stateTexts[state])
	}
	b.WriteString(`</svg>`)
}
