package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// callTime limits a call of the management API. A test of an account is the longest.
const callTime = 2 * time.Minute

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 256 << 20

// client calls a gateway.
type client struct {
	http    http.Client
	base    string // scheme and host
	name    string // for people
	token   string // "" for a local gateway, whose transport has the operator's
	machine string // NAME or id, "" for the only one
	version string
	prefix  *string // "/{machineId}" for the operator, "" for a key, once it is known
}

// apiError is an answer that is not 2xx.
type apiError struct {
	status int
	body   []byte
	wait   string // seconds after which the call may be repeated, "" if the answer does not say so
	op     *op    // the command, whose flags and arguments the message names in place of fields; may be nil
}

func (e *apiError) code() string { return gjson.GetBytes(e.body, "error.code").String() }

// param returns the field that the answer is about.
func (e *apiError) param() string { return gjson.GetBytes(e.body, "error.param").String() }

// Error returns the API's message, with commands in place of routes and flags in place of fields,
// and its code, by which docs/troubleshooting.md is searched.
func (e *apiError) Error() string {
	v := gjson.GetBytes(e.body, "error")
	text := str(v, "message")
	if text == "" {
		return fmt.Sprintf("the gateway answered with status %d, and not as weir does; check the URL", e.status)
	}
	text = pages.Replace(route.ReplaceAllStringFunc(text, commandOf))
	if shown := e.op.paramOf(e.param()); shown != "" {
		if rest, ok := strings.CutPrefix(text, e.param()+" "); ok {
			text = shown + " " + rest
		} else {
			text = shown + ": " + text
		}
	}
	if e.op != nil && slices.ContainsFunc(e.op.fields, func(f field) bool { return f.name == allowUnknown.name }) {
		text = strings.ReplaceAll(text, "set "+allowUnknown.name+" to true to save", "--"+allowUnknown.flag+" saves")
	}
	if code := e.code(); code != "" {
		text += " (" + code + ")"
	}
	if _, err := strconv.Atoi(e.wait); err == nil {
		text += "; try again in " + e.wait + " s"
	}
	return text
}

// paramOf returns the flag or the argument that sets a field of the API, "" without one.
func (o *op) paramOf(field string) string {
	if o == nil || field == "" {
		return ""
	}
	for _, f := range o.fields {
		flag, _, _ := strings.Cut("--"+f.flag, ",")
		name := strings.TrimPrefix(f.name, "?")
		if name == field {
			return flag
		}
		if variable, ok := strings.CutPrefix(field, name); ok && strings.HasSuffix(name, ".") {
			return flag + " " + variable
		}
	}
	words := strings.Fields(o.use)[1:]
	if strings.Contains(o.call, "{") && len(words) > len(o.args) { // the first is a part of the path
		words = words[1:]
	}
	for i, name := range o.args {
		if strings.Trim(name, "?…") == field && i < len(words) {
			return strings.Trim(words[i], "[]…")
		}
	}
	return ""
}

// pages puts commands in place of the pages of the dashboard that a message names.
var pages = strings.NewReplacer("Replace them under Providers", "weir accounts rotate replaces them",
	"Add one under Providers", "weir accounts add PROVIDER adds one",
	"connected: connect one", "connected: weir accounts add PROVIDER connects one", "under Providers", "with weir accounts",
	"Enable it on the page Providers, or with weir accounts resume", "To resume it: weir accounts resume",
	"on the page Providers", "with weir accounts", "on the page Models", "with weir models enable",
	"on the page Combos", "with weir combos set", "on the page Settings", "with weir settings set",
	"on the page Keys of the dashboard", "with weir keys", "on the page Keys", "with weir keys")

// route is a route in a message of the API.
var route = regexp.MustCompile(`\b(GET|POST|PUT|PATCH|DELETE) /(api|v1)/[\w/{}-]+`)

// commandOf returns the command that calls a route, or the route.
func commandOf(route string) string {
	switch route {
	case "GET /v1/models":
		return "weir models"
	case "GET /api/setup":
		return "weir setup"
	}
	for _, g := range commands() {
		for i, o := range g.ops {
			if o.call != route {
				continue
			}
			if i == 0 && g.short != "" {
				return "weir " + g.name
			}
			return strings.TrimSpace("weir " + strings.TrimSpace(g.name+" "+o.use))
		}
	}
	return route
}

// newClient returns a client of a gateway at a URL.
func newClient(base, token, version string, t http.RoundTripper) *client {
	c := &client{base: base, name: base, token: token, version: version}
	c.http.Transport = t
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// operator reports whether the credential is the operator's.
func (c *client) operator() bool {
	return !strings.HasPrefix(c.token, "sk-") && !strings.HasPrefix(c.token, sessionPrefix)
}

// send makes a call and returns an answer of status 2xx, whose body is to be closed. A body
// that is not bytes is sent as JSON.
func (c *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	return c.sendIf(ctx, method, path, "", body)
}

// sendIf is send for a change of the state that has an ETag.
func (c *client) sendIf(ctx context.Context, method, path, etag string, body any) (*http.Response, error) {
	raw, isBytes := body.([]byte)
	if body != nil && !isBytes {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if etag != "" {
		req.Header.Set("If-Match", etag)
	}
	req.Header.Set("User-Agent", "weir/"+c.version)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	raw, _ = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 && to != "" {
		return nil, fmt.Errorf("%s redirects to %s; use the URL of the gateway itself", c.name, clean(to))
	}
	return nil, &apiError{status: res.StatusCode, body: raw, wait: res.Header.Get("Retry-After")}
}

// unreachable returns the error of a call that got no answer.
func (c *client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return fmt.Errorf("%s does not answer: %w", c.name, err)
}

// bytes makes a call, of the machine unless the path is the gateway's, and returns the body.
func (c *client) bytes(ctx context.Context, method, path string, body any) ([]byte, error) {
	out, _, err := c.exchange(ctx, method, path, "", body)
	return out, err
}

// exchange is bytes with ETags: that of the state that is changed, "" for any, and that of the
// answer.
func (c *client) exchange(ctx context.Context, method, path, etag string, body any) (_ []byte, next string, _ error) {
	if !ofGateway(path) {
		prefix, err := c.machinePrefix(ctx)
		if err != nil {
			return nil, "", err
		}
		path = prefix + path
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := c.sendIf(ctx, method, path, etag, body)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, "", fmt.Errorf("%s: the answer breaks off: %w", c.name, err)
	}
	return out, res.Header.Get("ETag"), nil
}

// call is bytes for answers in JSON.
func (c *client) call(ctx context.Context, method, path string, body any) (gjson.Result, error) {
	raw, err := c.bytes(ctx, method, path, body)
	return gjson.ParseBytes(raw), err
}

// ofGateway reports whether a path is of the gateway and not of a machine.
func ofGateway(path string) bool {
	for _, p := range []string{"/api/machines", "/api/version", "/health", "/api/identity-providers", "/api/sign-ins",
		"/api/sessions", "/server"} {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || strings.ContainsAny(rest[:1], "/?")) {
			return true
		}
	}
	return false
}

// machinePrefix returns the path before /api: the operator names the machine, a key has one.
func (c *client) machinePrefix(ctx context.Context) (string, error) {
	if c.prefix != nil {
		return *c.prefix, nil
	}
	prefix := ""
	if strings.HasPrefix(c.token, sessionPrefix) {
		id, err := c.ownMachine(ctx)
		if err != nil {
			return "", err
		}
		prefix = "/" + id
	} else if c.operator() {
		id, err := c.findMachine(ctx)
		if err != nil {
			return "", err
		}
		prefix = "/" + id
	}
	c.prefix = &prefix
	return prefix, nil
}

// findMachine returns the id of the machine: the named one, or the only one.
func (c *client) findMachine(ctx context.Context) (string, error) {
	list, err := c.machines(ctx, url.Values{"q": {c.machine}})
	if err != nil {
		return "", err
	}
	var names []string
	for _, m := range list {
		names = append(names, clean(str(m, "name"))+" ("+str(m, "machineId")+")")
	}
	if c.machine != "" {
		return c.matchMachine(ctx, c.machine, list)
	}
	switch len(list) {
	case 0:
		return "", errors.New("there is no machine, a workspace with its own accounts and keys; weir machines add NAME creates one")
	case 1:
		return list[0].Get("machineId").String(), nil
	}
	return "", Usagef("there are several machines, name one with --machine or in WEIR_MACHINE: %s", strings.Join(names[:min(len(names), 20)], ", "))
}

// machines returns the machines that match a query, of all pages.
func (c *client) machines(ctx context.Context, q url.Values) (all []gjson.Result, err error) {
	q = maps.Clone(q)
	for q.Set("limit", "200"); ; {
		page, err := c.call(ctx, "GET", "/api/machines?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		all = append(all, array(page, "data")...)
		q.Set("cursor", str(page, "next"))
		if q.Get("cursor") == "" {
			return all, nil
		}
	}
}

// matchMachine is match for the machines that a search has found.
func (c *client) matchMachine(ctx context.Context, text string, found []gjson.Result) (string, error) {
	id, err := match("machine", text, found, "/api/machines")
	if e := (*noMatch)(nil); errors.As(err, &e) {
		all, _ := c.machines(ctx, url.Values{}) // without them none is suggested
		id, err = match("machine", text, all, "/api/machines")
	}
	return id, err
}

// find returns the id of the row of a list that a text names.
func (c *client) find(ctx context.Context, what, list, text string) (string, error) {
	if list == "/api/machines" {
		rows, err := c.machines(ctx, url.Values{"q": {text}})
		if err != nil {
			return "", err
		}
		return c.matchMachine(ctx, text, rows)
	}
	v, err := c.call(ctx, "GET", list, nil)
	if err != nil {
		return "", err
	}
	return match(what, text, array(v, "data"), list)
}

// noMatch is a text that names no row of a list. It is a type since match is called by what the
// table of commands refers to, which a call of commandOf there would make a cycle.
type noMatch struct{ what, text, list, near string }

func (e *noMatch) Error() string {
	return fmt.Sprintf("no %s has the name or id %q; %s%s lists them", e.what, e.text, maybe(e.near), commandOf("GET "+e.list))
}

// match returns the id of the row that a text names: by its id, its name, its name in other case,
// or a beginning of its id.
func match(what, text string, rows []gjson.Result, list string) (string, error) {
	id := "id"
	if list == "/api/machines" {
		id = "machineId"
	}
	var names, folded, beginnings, known []string
	for _, r := range rows {
		known = append(known, clean(str(r, "name")))
		v := str(r, id)
		switch {
		case v == text:
			return v, nil
		case str(r, "name") == text:
			names = append(names, v)
		case strings.EqualFold(str(r, "name"), text):
			folded = append(folded, v)
		case len(text) >= 4 && strings.HasPrefix(v, text):
			beginnings = append(beginnings, v)
		}
	}
	if len(names) == 0 {
		names = folded
	}
	if len(names) == 0 {
		names = beginnings
	}
	switch len(names) {
	case 0:
		return "", &noMatch{what, text, list, closest(text, known)}
	case 1:
		return names[0], nil
	}
	return "", Usagef("several have the name %q; name the %s by its id: %s", text, what, strings.Join(names, ", "))
}
