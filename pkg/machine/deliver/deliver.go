// Package deliver has the kinds of destinations: what an owner sets of each, the request
// that delivers an item, and what its answer means. It stores nothing.
package deliver

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
	"weir/pkg/wire/weburl"
)

// Kind is a kind of destination.
type Kind struct {
	Name   string
	Takes  string // the type of its items: storage.Notification, storage.Telemetry, storage.Lines
	Fields []Field
	// Check returns the field whose value does not fit the others, and why; may be nil. It
	// does not get secrets.
	Check func(values map[string]string) (field, why string)
	// Request returns the request for an item; Send adds the limits.
	Request func(d *Opened, item *storage.Delivery) (*upstream.Request, error)
	// Send delivers an item otherwise than by HTTP, in the place of Request.
	Send func(ctx context.Context, dialer proxydial.Dialer, d *Opened, item *storage.Delivery) storage.Result
	// Test returns an item without an effect on what is stored; nil for a message.
	Test func(d *Opened) storage.Delivery
	// Judge changes what an answer means, by its status and the first 64 KiB of its body;
	// nil leaves the judgement by the status.
	Judge func(status int, body []byte, r storage.Result) storage.Result
}

// Field is a setting of a kind.
type Field struct {
	Name     string
	Secret   bool // is sealed and never shown
	Required bool
	Max      int      // characters; 0 for 200
	Values   []string // that are allowed; nil for any
	// Address says that the value is the URL that is called. It may have a query.
	Address bool
	// Pairs says that the value is a list of name=value pairs. The end of such a secret is not
	// shown: it is a part of a shorter one.
	Pairs bool
	// Place says that secrets are sent to what the value names: if it changes, those that are
	// not sent with it are removed.
	Place bool
	// Check returns why a value is refused, "" for a good one; may be nil.
	Check func(value string) (why string)
}

// Opened is a destination with its secrets in the clear.
type Opened struct {
	MachineID string
	storage.Destination
	Values map[string]secret.Secret // of all fields
	Key    []byte                   // signs webhooks
	Now    time.Time
	Policy Policy
}

// Value returns the value of a field, "" if it is not set.
func (d *Opened) Value(field string) string { return d.Values[field].Reveal() }

// Policy is what addresses are judged by, as those of connections are.
type Policy struct {
	AllowPrivate bool
	OwnHosts     []string
}

// Address returns the canonical form of an address that may be called, with its query, and
// its host.
func (p Policy) Address(raw string) (canonical, host string, err error) {
	canonical, ok := weburl.Canonical(raw)
	if !ok || strings.Contains(canonical, "#") {
		return "", "", errors.New("is not a valid http or https URL")
	}
	plain, _, _ := strings.Cut(canonical, "?")
	if why := provider.Refusal(plain, p.AllowPrivate, p.OwnHosts...); why != "" {
		return "", "", errors.New(why)
	}
	_, rest, _ := strings.Cut(plain, "://")
	host, _, _ = strings.Cut(rest, "/")
	return canonical, host, nil
}

// bodies is the field by which a destination gets the bodies of captured requests too.
var bodies = Field{Name: "bodies", Values: []string{"true", "false"}}

// TakesBodies reports whether a destination with these options gets captured bodies.
func TakesBodies(options map[string]string) bool { return options[bodies.Name] == "true" }

// kinds are the kinds of destinations.
//
// To add one: add its row here, and its functions to a file of its own.
var kinds = [...]Kind{
	slack, discord, teams, googleChat, ntfy, email, smtp, webhook,
	collector, s3,
}

// Kinds returns all kinds. The result must not be changed.
func Kinds() []Kind { return kinds[:] }

// KindOf returns the kind with a name, or nil.
func KindOf(name string) *Kind {
	for i := range kinds {
		if kinds[i].Name == name {
			return &kinds[i]
		}
	}
	return nil
}

// Targets returns the destinations that take items of a type and are not paused.
func Targets(t *storage.Tx, takes string) (list []storage.Destination) {
	for _, d := range t.Destinations() {
		if k := KindOf(d.Kind); k != nil && k.Takes == takes && !d.Paused {
			list = append(list, d)
		}
	}
	return list
}

// TestItem returns the item of a test, for a machine with a name.
func (k *Kind) TestItem(d *Opened, machine string) storage.Delivery {
	if k != nil && k.Test != nil { // nil for a kind of a later version
		return k.Test(d)
	}
	m := Message{Type: Test, At: d.Now.UnixMilli(), Level: Good, Title: "Test of weir",
		Text: fmt.Sprintf("This is a test of the destination %q. Notifications of the machine %q arrive here.", d.Name,
			machine)}
	return m.Item(d.ID)
}

const (
	timeout  = 10 * time.Second
	maxReply = 64 << 10 // bytes that are read of an answer
	maxWhy   = 4 << 10  // bytes of its text that are searched for secrets
)

// RequestOf returns the request for an item. Its address is judged again, as the
// operator's settings may have changed; natively each connection is judged after DNS.
// Redirects are not followed.
func (d *Opened) RequestOf(item *storage.Delivery) (*upstream.Request, error) {
	k := KindOf(d.Kind)
	if k == nil {
		return nil, fmt.Errorf("the kind %q is not known to this version", d.Kind)
	}
	req, err := k.Request(d, item)
	if err != nil {
		return nil, err
	}
	if req.URL, _, err = d.Policy.Address(req.URL); err != nil {
		return nil, fmt.Errorf("the address %w", err)
	}
	req.Method, req.Timeout = cmp.Or(req.Method, "POST"), cmp.Or(req.Timeout, timeout)
	req.Header.Set(clientheader.Hop, "1") // the address may lead to a gateway
	return req, nil
}

// Judge returns what the outcome of a call means. It reads and closes the answer. Errors
// are stated without the address.
func (d *Opened) Judge(resp *upstream.Response, err error) storage.Result {
	switch {
	case errors.Is(err, upstream.ErrTimeout):
		return storage.Result{Verdict: storage.Again, Why: "no answer in time"}
	case err != nil:
		return storage.Result{Verdict: storage.Again, Why: "not reachable"}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxReply)) // the head decides
	r := byStatus(resp.Status)
	r.After = retryAfter(resp.Header.Get("retry-after"), d.Now)
	if k := KindOf(d.Kind); k != nil && k.Judge != nil {
		r = k.Judge(resp.Status, body, r)
	}
	r.Why = d.hide(r.Why)
	return r
}

// byStatus returns what a status means.
func byStatus(status int) storage.Result {
	r := storage.Result{Why: "status " + strconv.Itoa(status)}
	switch {
	case status >= 200 && status <= 299:
		r.Verdict, r.Why = storage.Delivered, ""
	case status == 410:
		r.Verdict, r.Why = storage.Disable, "status 410: the address no longer exists"
	case status >= 300 && status <= 399:
		r.Verdict, r.Why = storage.Refused, r.Why+": redirects are not followed"
	case status == 400, status == 411, status == 413, status == 414, status == 415, status == 422:
		r.Verdict = storage.Dropped
	case status == 408, status == 425, status == 429, status >= 500, status < 200:
		r.Verdict = storage.Again
	default:
		r.Verdict = storage.Refused
	}
	return r
}

// hide returns a text of an answer to show: printable, short and without the settings of
// the destination.
func (d *Opened) hide(s string) string {
	if len(s) > maxWhy { // a cut secret would not be recognized
		s = s[:strings.LastIndexByte(s[:maxWhy], ' ')+1]
	}
	secrets := make([]secret.Secret, 0, len(d.Values))
	for _, v := range d.Values {
		secrets = append(append(secrets, v), parts(v.Reveal())...)
	}
	return Plain(redact.Patterns(redact.Secrets(secrets...).String(s)), 200)
}

// parts returns what is secret alone of a setting: the path of an address, and the values of a
// list of pairs, also without their schemes as "Bearer".
func parts(value string) (parts []secret.Secret) {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		_, path, _ := strings.Cut(rest, "/")
		return []secret.Secret{secret.New(path)}
	}
	pairs, _ := Pairs(value)
	for _, p := range pairs {
		parts = append(parts, secret.New(p[1]), secret.New(p[1][strings.LastIndexByte(p[1], ' ')+1:]))
	}
	return parts
}

// retryAfter reads the field retry-after, seconds or a date, in milliseconds.
func retryAfter(v string, now time.Time) int64 {
	const most = 24 * 60 * 60
	if n, err := strconv.ParseFloat(v, 64); err == nil && n > 0 {
		return int64(min(n, most) * 1000)
	}
	if at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", v); err == nil {
		return max(min(at.Sub(now).Milliseconds(), most*1000), 0)
	}
	return 0
}

// Sign returns the field webhook-signature of the Standard Webhooks specification:
//
//	v1,base64(HMAC-SHA256(key, id "." timestamp "." body))
func Sign(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// post returns a POST of JSON.
func post(url string, body []byte, header ...httpmsg.Field) *upstream.Request {
	return &upstream.Request{URL: url, Body: stream.FromBytes(body),
		Header: append(httpmsg.Header{{Name: "content-type", Value: "application/json"}}, header...)}
}

// webhook posts the message as it is, signed.
var webhook = Kind{
	Name: "webhook", Takes: storage.Notification, Fields: notification(address),
	Request: func(d *Opened, item *storage.Delivery) (*upstream.Request, error) {
		m, err := ReadMessage(item)
		if err != nil {
			return nil, err
		}
		body, at := m.webhookBody(), strconv.FormatInt(d.Now.Unix(), 10)
		return post(d.Value("url"), body, httpmsg.Field{Name: "webhook-id", Value: item.ID},
			httpmsg.Field{Name: "webhook-timestamp", Value: at},
			httpmsg.Field{Name: "webhook-signature", Value: Sign(d.Key, item.ID, at, body)}), nil
	},
}
