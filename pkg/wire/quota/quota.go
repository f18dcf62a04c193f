// Package quota reads what providers say of the limits of an account: the header
// fields of any answer, and the bodies of those that refuse a call. Forms lists
// all that it knows, each with the vendor's page.
package quota

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"weir/pkg/wire/httpmsg"
)

// Window is one limit of an account: how much of it is left, and when it is
// lifted.
type Window struct {
	// Name is that of the vendor: "5h", "7d", "primary", "requests", "tokens-day".
	Name string `json:"name"`
	// Model is the upstream model that the limit applies to; empty for the whole
	// account.
	Model string `json:"model,omitempty"`
	// Left is the share that is left, from 0 to 1.
	Left float64 `json:"left"`
	// Limit and Remaining are the counts that Left was computed from; Limit is 0
	// if the vendor states only a share.
	Limit     float64 `json:"limit,omitempty"`
	Remaining float64 `json:"remaining,omitempty"`
	ResetsAt  int64   `json:"resetsAt,omitempty"` // Unix milliseconds; 0 if not known
	Span      int64   `json:"span,omitempty"`     // seconds; 0 if not known
	At        int64   `json:"at"`                 // of the answer, Unix milliseconds
}

// Spans of windows, in seconds.
const (
	minute = 60
	hour   = 3600
	day    = 24 * hour
	week   = 7 * day
	month  = 30 * day
	// maxSpan is the longest that a reset may be away.
	maxSpan = 32 * day
)

// Used reports whether the window is used up at the time now.
func (w *Window) Used(now int64) bool { return w.Left <= 0 && w.ResetsAt > now }

// Long reports whether the window lasts an hour or more. Windows of a minute are
// full again before it matters which account they belong to.
func (w *Window) Long() bool { return w.Span >= hour }

// Weekly reports whether the window lasts a week or more.
func (w *Window) Weekly() bool { return w.Span >= week }

// MaxWindows is the number of windows that are read from one answer.
const MaxWindows = 8

// Call is the call that was answered.
type Call struct {
	Model string // upstream model
	// Requests is the span of the limit that the vendor calls "requests", in
	// seconds, if it documents one; else 0.
	Requests int64
	Now      int64 // Unix milliseconds
}

// Stated reports whether Read may find something. The header of every answer is
// looked at.
func Stated(h httpmsg.Header) bool {
	for i := range h {
		name := h[i].Name
		if len(name) < len("ratelimit") || name[0] != 'a' && name[0] != 'x' && name[0] != 'r' {
			continue
		}
		if strings.HasPrefix(name, "x-ratelimit") || strings.HasPrefix(name, "anthropic-ratelimit-") ||
			strings.HasPrefix(name, "x-codex-") ||
			strings.HasPrefix(name, "x-tokenlimit-") || strings.HasPrefix(name, "ratelimit") {
			return true
		}
	}
	return false
}

// Read appends the windows that the header of an answer states. A limit whose
// rest is not stated is left out, and the reverse. The names are parts of the
// header's memory.
func Read(out []Window, h httpmsg.Header, c Call) []Window {
	var r reading
	for i := range h {
		name, value := h[i].Name, h[i].Value
		if len(name) < len("ratelimit") || name[0] != 'a' && name[0] != 'x' && name[0] != 'r' {
			continue
		}
		if rest, ok := strings.CutPrefix(name, "anthropic-ratelimit-"); ok {
			if claim, ok := strings.CutPrefix(rest, "unified-"); ok {
				r.unified(claim, value, c.Now)
			} else {
				r.anthropic(rest, value, c.Now)
			}
		} else if rest, ok := strings.CutPrefix(name, "x-codex-"); ok {
			r.codex(rest, value, c.Now)
		} else if rest, ok := strings.CutPrefix(name, "x-ratelimitbysize-"); ok {
			r.bySize(rest, value, c.Now)
		} else if rest, ok := strings.CutPrefix(name, "x-tokenlimit-"); ok {
			r.tokens(rest, value, c.Now)
		} else if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "x-"), "ratelimit-"); ok {
			r.counts(rest, value, c.Now)
		} else if name == "ratelimit" {
			r.structured(value, c.Now)
		}
	}
	return r.append(out, c)
}

// reading gathers the windows of one answer.
type reading struct {
	list [MaxWindows]part
	n    int
}

// part is a window of which some fields were read.
type part struct {
	name, unit       string // unit continues the name after a hyphen
	account          bool   // it applies to the whole account
	limit, remaining float64
	left             float64 // the share, if it is stated
	resetsAt, span   int64
}

// window returns the window with a name, or nil if there are too many.
func (r *reading) window(name, unit string) *part {
	for i := range r.list[:r.n] {
		if p := &r.list[i]; p.name == name && p.unit == unit {
			return p
		}
	}
	if r.n == len(r.list) || len(name)+len(unit) > maxName || !printable(name) {
		return nil
	}
	p := &r.list[r.n]
	r.n++
	*p = part{name: name, unit: unit, limit: -1, remaining: -1, left: -1}
	return p
}

// maxName bounds the name of a window, in bytes.
const maxName = 48

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// append appends the windows whose share is known.
func (r *reading) append(out []Window, c Call) []Window {
	for i := range r.list[:r.n] {
		p := &r.list[i]
		w := Window{Name: p.name, Left: p.left, ResetsAt: p.resetsAt, Span: p.span, At: c.Now}
		switch {
		case p.left >= 0:
		case p.limit > 0 && p.remaining >= 0:
			w.Limit, w.Remaining = p.limit, min(p.remaining, p.limit)
			w.Left = w.Remaining / w.Limit
		case p.limit < 0 && p.remaining == 0 && p.resetsAt > 0:
			w.Left = 0
		default:
			continue
		}
		if w.ResetsAt = max(w.ResetsAt, 0); w.ResetsAt > 0 {
			w.ResetsAt = min(max(w.ResetsAt, c.Now), c.Now+1000*maxSpan)
		}
		if p.unit != "" {
			w.Name += "-" + p.unit
		} else if w.Name == "requests" && w.Span == 0 {
			w.Span = c.Requests
		}
		if !p.account {
			w.Model = c.Model
		}
		out = append(out, w)
	}
	return out
}

// unified reads a window of a Claude subscription:
//
//	anthropic-ratelimit-unified-5h-utilization: 0.42   the share that is used
//	anthropic-ratelimit-unified-5h-reset: 1790814600
//	anthropic-ratelimit-unified-7d_opus-status: rejected
//
// A claim with a suffix is of the family of the model that was called. Overage is
// billed apart and no window.
func (r *reading) unified(rest, value string, now int64) {
	claim, field, ok := cutLast(rest)
	if !ok || claim == "overage" || claim == "representative" || claim == "fallback" {
		return
	}
	p := r.window(claim, "")
	if p == nil {
		return
	}
	switch {
	case claim == "5h":
		p.span, p.account = 5*hour, true
	case claim == "7d":
		p.span, p.account = week, true
	case strings.HasPrefix(claim, "7d"):
		p.span = week
	}
	switch field {
	case "utilization":
		if used, ok := number(value); ok {
			p.left = share(1 - used)
		}
	case "status":
		if value == "rejected" {
			p.left = 0
		}
	case "reset":
		p.resetsAt, _ = At(value, now)
	}
}

// anthropic reads a limit of an API key, per minute and family of models:
//
//	anthropic-ratelimit-input-tokens-limit: 40000
//	anthropic-ratelimit-input-tokens-remaining: 39000
//	anthropic-ratelimit-input-tokens-reset: 2026-11-22T19:00:12Z
func (r *reading) anthropic(rest, value string, now int64) {
	name, field, ok := cutLast(rest)
	if !ok || field != "limit" && field != "remaining" && field != "reset" {
		return
	}
	if p := r.window(name, ""); p != nil {
		p.span = minute
		p.set(field, value, now)
	}
}

// counts reads the fields of OpenAI, which many have taken over:
//
//	x-ratelimit-limit-requests: 60          x-ratelimit-limit: 1, 15000
//	x-ratelimit-remaining-requests: 59      x-ratelimit-remaining: 1, 1000
//	x-ratelimit-reset-requests: 1s          x-ratelimit-reset: 1, 1419704
//	                                        x-ratelimit-policy: 1;w=1, 15000;w=2592000
//
// A name may end with the window's span: tokens-day, tokens-per-day, req-minute,
// tokens-5-minute. Of a list, the last entry is the longest window.
func (r *reading) counts(rest, value string, now int64) {
	field, name, _ := strings.Cut(rest, "-")
	value = value[strings.LastIndexByte(value, ',')+1:]
	if field == "policy" && name == "" {
		if p := r.window("requests", ""); p != nil {
			p.span = param(value, "w")
			if q := param(value, "q"); q > 0 {
				p.limit = float64(q)
			}
		}
		return
	}
	if field != "limit" && field != "remaining" && field != "reset" {
		return
	}
	name = cmp.Or(name, "requests")
	if p := r.window(name, ""); p != nil {
		p.span = max(p.span, spanOf(name))
		p.set(field, value, now)
	}
}

// bySize reads Mistral's limits of tokens:
//
//	x-ratelimitbysize-limit-minute: 500000
//	x-ratelimitbysize-remaining-month: 999000000
func (r *reading) bySize(rest, value string, now int64) {
	field, span, _ := strings.Cut(rest, "-")
	if p := r.window("tokens", span); p != nil {
		p.span = spanOf(span)
		p.set(field, value, now)
	}
}

// tokens reads Together's limit of tokens:
//
//	x-tokenlimit-limit: 3000   x-tokenlimit-remaining: 2990   x-tokenlimit-reset: 1
func (r *reading) tokens(rest, value string, now int64) {
	if p := r.window("tokens", ""); p != nil {
		p.set(rest, value, now)
	}
}

// codex reads a window of a ChatGPT subscription:
//
//	x-codex-primary-used-percent: 12.5     x-codex-primary-reset-at: 1704069000
//	x-codex-primary-window-minutes: 300    x-codex-primary-reset-after-seconds: 18000
func (r *reading) codex(rest, value string, now int64) {
	name, field, _ := strings.Cut(rest, "-")
	if name != "primary" && name != "secondary" {
		return
	}
	p := r.window(name, "")
	if p == nil {
		return
	}
	p.account = true
	n, ok := number(value)
	if !ok {
		return
	}
	switch field {
	case "used-percent":
		p.left = share(1 - n/100)
	case "window-minutes":
		p.span = seconds(n * minute)
	case "reset-at":
		p.resetsAt, _ = At(value, now)
	case "reset-after-seconds":
		if p.resetsAt == 0 {
			p.resetsAt = now + 1000*seconds(n)
		}
	}
}

// structured reads the fields of draft-ietf-httpapi-ratelimit-headers. The policy
// is in the field ratelimit-policy, see counts.
//
//	ratelimit: "api";r=489;t=189
//	ratelimit-policy: "api";q=500;w=300
func (r *reading) structured(value string, now int64) {
	if p := r.window("requests", ""); p != nil {
		value = value[strings.LastIndexByte(value, ',')+1:]
		if has(value, "r") {
			p.remaining = float64(param(value, "r"))
		}
		if t := param(value, "t"); t > 0 {
			p.resetsAt = now + 1000*t
		}
	}
}

// set sets a field of a window of counts.
func (p *part) set(field, value string, now int64) {
	switch field {
	case "limit":
		if n, ok := number(value); ok {
			p.limit = n
		}
	case "remaining":
		if n, ok := number(value); ok {
			p.remaining = n
		}
	case "reset":
		p.resetsAt, _ = At(value, now)
	}
}

// cutLast cuts a name at its last hyphen.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// spanOf returns the span that a name ends with, in seconds, or 0.
func spanOf(name string) int64 {
	before, unit, ok := cutLast(name)
	var span int64
	switch unit {
	case "second":
		span = 1
	case "minute":
		span = minute
	case "hour":
		span = hour
	case "day":
		span = day
	case "week":
		span = week
	case "month":
		span = month
	default:
		return 0
	}
	if _, n, hyphen := cutLast(before); ok && hyphen && n != "" && n[0] >= '1' && n[0] <= '9' {
		if n, err := strconv.Atoi(n); err == nil && n < 1000 {
			span *= int64(n)
		}
	}
	return span
}

// param returns a number among the parameters of a value, 0 if it is missing.
//
//	15000;w=2592000
func param(value, name string) int64 {
	for value != "" {
		var p string
		p, value, _ = strings.Cut(value, ";")
		if n, v, ok := strings.Cut(strings.TrimSpace(p), "="); ok && n == name {
			f, _ := number(v)
			return seconds(f)
		}
	}
	return 0
}

// has reports whether a value has a parameter.
func has(value, name string) bool {
	for value != "" {
		var p string
		p, value, _ = strings.Cut(value, ";")
		if n, _, ok := strings.Cut(strings.TrimSpace(p), "="); ok && n == name {
			return true
		}
	}
	return false
}

// share limits a share to 0…1 and rounds it to a millionth.
func share(f float64) float64 { return math.Round(min(max(f, 0), 1)*1e6) / 1e6 }

// seconds converts a number of seconds, with a bound.
func seconds(f float64) int64 { return int64(min(max(f, 0), maxSpan)) }

// number reads a count. Nothing negative and nothing infinite is one.
func number(v string) (float64, bool) {
	v = strings.TrimSpace(v)
	if v == "" || v[len(v)-1] < '0' || v[len(v)-1] > '9' || len(v) > 32 { // ParseFloat allocates its errors
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	return n, err == nil && n >= 0 && n <= math.MaxInt64
}

// At reads when a limit is lifted, in Unix milliseconds, from any spelling: a
// duration ("6m0s", "120ms", "1d2h"), seconds, seconds or milliseconds since
// 1970, RFC 3339, an HTTP date.
func At(v string, now int64) (at int64, ok bool) {
	v = strings.TrimSpace(v)
	if n, ok := number(v); ok {
		switch {
		case n >= 1e15:
			return 0, false
		case n >= 1e11:
			return int64(n), true
		case n >= 1e9:
			return int64(n * 1000), true
		}
		return now + int64(n*1000), true
	}
	if v == "" || len(v) > 64 {
		return 0, false
	}
	if len(v) > len("2006-01-02") && v[4] == '-' {
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return t.UnixMilli(), true
		}
	}
	var days time.Duration
	if d, rest, ok := strings.Cut(v, "d"); ok {
		if n, err := strconv.Atoi(d); err == nil && n >= 0 && n < 1000 {
			days = time.Duration(n) * 24 * time.Hour
			if v = rest; v == "" {
				return now + days.Milliseconds(), true
			}
		}
	}
	if d, err := time.ParseDuration(v); err == nil {
		return now + (days + d).Milliseconds(), true
	}
	return Date(v)
}

// dateForms are those of RFC 9110, 5.6.7, and what servers send instead.
var dateForms = [...]string{time.RFC1123, time.RFC850, time.ANSIC, time.RFC1123Z}

// Date reads an HTTP date, in Unix milliseconds.
func Date(v string) (at int64, ok bool) {
	v = strings.TrimSpace(v)
	for _, form := range dateForms {
		if t, err := time.Parse(form, v); err == nil {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}
