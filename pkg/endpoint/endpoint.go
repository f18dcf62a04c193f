// Package endpoint is what the endpoints of audio, images and videos have in
// common: which targets may serve a call, room for bodies that the host holds,
// downloads that carry no credential, and event streams that must not end
// without their terminator.
package endpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// MaxForm is the largest body that is held or read whole, in bytes.
const MaxForm = 25 << 20

// MaxParts is the largest number of parts of a form.
const MaxParts = 40

// Router is the part of routing.Router used here.
type Router interface {
	Resolve(model string, m *snapshot.Machine, kind catalog.Kind) ([]routing.Target, error)
}

// Sender is the part of accounts.Pool used here.
type Sender interface {
	Send(ctx context.Context, call *accounts.Call) (*accounts.Result, error)
}

// Allows reports whether a key may use a model, by the name asked for or the
// public id of a target. nil allows all.
type Allows func(k *store.Key, id string) bool

// Targets resolves a model and leaves the targets that the key may use and of
// which usable says nothing. The error is that of the first one left out.
func Targets(r Router, allows Allows, c *auth.Call, model string, kind catalog.Kind, usable func(*routing.Target) error) ([]routing.Target, error) {
	c.Trace.Asked = model
	all, err := r.Resolve(model, c.Machine, kind)
	if err != nil {
		return nil, err
	}
	return Keep(all, allows, c.Key, model, usable)
}

// Keep is Targets for what has been resolved already.
func Keep(all []routing.Target, allows Allows, key *store.Key, asked string, usable func(*routing.Target) error) ([]routing.Target, error) {
	whole := allows == nil || asked != "" && allows(key, asked)
	kept := all[:0]
	var refusal error
	for i := range all {
		err := usable(&all[i])
		if err == nil && !whole && !allows(key, all[i].ID()) {
			err = NotAllowed(key)
		}
		if err == nil {
			kept = append(kept, all[i])
		} else if refusal == nil {
			refusal = err
		}
	}
	if len(kept) == 0 {
		return nil, refusal
	}
	return kept, nil
}

// maxNamed is the number of a key's models that an error names.
const maxNamed = 10

// NotAllowed returns the 403 of a key that may not use a model. It names the models
// that the key is limited to.
func NotAllowed(key *store.Key) error {
	e := apierr.New(403, "model_not_allowed", "This API key may not use the model.")
	if key != nil && len(key.Models) > 0 {
		names, more := key.Models, ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], ", …"
		}
		e.Message += " It may use: " + strings.Join(names, ", ") + more + "."
	}
	return e
}

// Query returns the first value of a parameter of a query string, decoded.
func Query(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(key); err == nil && k == name {
			if v, err := url.QueryUnescape(value); err == nil {
				return v
			}
		}
	}
	return ""
}

// IsJSON reports whether a content type says JSON.
func IsJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// BadJSON returns the 400 for a body that jsonscan refused.
func BadJSON(err error) error {
	var e *jsonscan.Error
	if errors.As(err, &e) {
		return apierr.Invalid(e.Field, "%s", e.Sentence())
	}
	return err
}

// BadBody is the 502 of an answer that cannot be read.
func BadBody(err error) error {
	e := apierr.New(502, "bad_upstream_body", "The provider's answer could not be read.")
	e.Err = err
	return e
}

// JSONAnswer is a 200 with a body of our own and what the upstream's answer
// says besides.
func JSONAnswer(up httpmsg.Header, body []byte) *httpmsg.Response {
	return Answer(up, "application/json", body)
}

// Answer is JSONAnswer for a body of any type.
func Answer(up httpmsg.Header, contentType string, body []byte) *httpmsg.Response {
	header := append(make(httpmsg.Header, 0, 12), httpmsg.Field{Name: "content-type", Value: contentType})
	return &httpmsg.Response{
		Status: 200,
		Header: append(header, provider.ResponseNotes(up)...),
		Body:   stream.FromBytes(body),
	}
}

// Passed is the upstream's answer with its body passed on as it is, for no
// longer than the machine's limit of silence. The account has worked once the
// body has come to its end.
func Passed(m *snapshot.Machine, res *accounts.Result) *httpmsg.Response {
	resp := &httpmsg.Response{Status: res.Status, Header: provider.ResponseHeader(res.Header), Body: res.Body}
	if _, whole := res.Body.(*stream.Bytes); !whole {
		resp.Body = &stream.Watched{Src: res.Body, W: passing{res}, Idle: m.Settings.Idle(), Cut: true}
	}
	return resp
}

// passing tells the account how a body that passes has ended.
type passing struct{ res *accounts.Result }

func (passing) Sample([]byte) {}

func (p passing) End(cause error) []byte {
	p.res.Done(cause)
	return nil
}

// Holds reports whether an answer that WholeJSON has read, where it is JSON,
// has one of the fields. An error that comes with status 200 has none of them.
func Holds(resp *upstream.Response, names ...string) bool {
	b, ok := resp.Body.(*stream.Bytes)
	if !ok || !IsJSON(resp.Header.Get("content-type")) {
		return true
	}
	set, err := jsonscan.Read(b.All(), names...)
	if err != nil {
		return true // strange in a way that has nothing to do with these
	}
	for _, n := range names {
		if k := set.Get(n).Kind; k != jsonscan.Absent && k != jsonscan.Null {
			return true
		}
	}
	return false
}

// ErrNoAnswer reports that a body is not what was asked for.
var ErrNoAnswer = errors.New("media: a page, an error, or no JSON object")

// WholeJSON is a Check for answers that are JSON: such a body is read whole and
// must be a valid object, so that a cut one is never shown as complete. A page
// is no answer. Other bodies pass.
func WholeJSON(resp *upstream.Response) error {
	kind := resp.Header.Get("content-type")
	if !IsJSON(kind) {
		if IsPage(kind) {
			return BadBody(ErrNoAnswer)
		}
		return nil
	}
	raw, err := stream.ReadAll(resp.Body, maxJSON)
	if err == nil {
		err = ValidJSON(raw)
	}
	if err == nil && bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		err = ErrNoAnswer
	}
	if err != nil {
		return BadBody(err)
	}
	resp.Body = stream.FromBytes(raw)
	return nil
}

// Started is a Check for answers whose body passes. It reads the beginning of
// the body: an empty one, HTML and an error with status 2xx are failures. With
// sound the body must be audio, so that any text is a failure.
func Started(resp *upstream.Response, sound bool) error {
	kind, _, _ := strings.Cut(resp.Header.Get("content-type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	events := kind == "text/event-stream"
	if IsPage(kind) || sound && !events && (IsJSON(kind) || strings.HasPrefix(kind, "text/")) {
		return BadBody(ErrNoAnswer)
	}
	var head []byte
	if b, whole := resp.Body.(*stream.Bytes); whole {
		head = b.All()
	} else {
		head = make([]byte, 4<<10)
		n, err := 0, error(nil)
		for n == 0 && err == nil {
			n, err = resp.Body.Read(head)
		}
		if n == 0 && err != io.EOF {
			return err
		}
		head = head[:n]
		resp.Body = Back(head, resp.Body)
	}
	if len(head) == 0 || notMeant(head, sound && !strings.HasPrefix(kind, "audio/"), events) {
		return BadBody(ErrNoAnswer)
	}
	return nil
}

// notMeant reports whether a body begins like HTML or an error, or with noJSON
// like any JSON object.
func notMeant(head []byte, noJSON, events bool) bool {
	head = bytes.TrimLeft(head[:min(len(head), 512)], " \t\r\n")
	if events {
		data, ok := bytes.CutPrefix(head, []byte("data:"))
		return bytes.HasPrefix(head, []byte("event: error")) || bytes.HasPrefix(head, []byte("event:error")) || ok && isError(data)
	}
	for _, tag := range [...]string{"<!doctype", "<html"} {
		if len(head) >= len(tag) && strings.EqualFold(string(head[:len(tag)]), tag) {
			return true
		}
	}
	if noJSON && len(head) > 0 && head[0] == '{' {
		next := bytes.TrimLeft(head[1:], " \t\r\n")
		return len(next) > 0 && (next[0] == '"' || next[0] == '}')
	}
	return isError(head)
}

// isError reports whether a text begins like a JSON object whose first field is
// an error.
func isError(b []byte) bool {
	b, ok := bytes.CutPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{"))
	b = bytes.TrimLeft(b, " \t\r\n")
	return ok && (bytes.HasPrefix(b, []byte(`"error"`)) || bytes.HasPrefix(b, []byte(`"errors"`)) || bytes.HasPrefix(b, []byte(`"detail"`)))
}

const maxJSON = 32 << 20 // bytes of an answer

// Excerpt returns the beginning of a provider's error text, at most 500 bytes,
// with possible credentials masked.
func Excerpt(text string) string {
	return strings.ToValidUTF8(redact.Patterns(text[:min(len(text), 500)]), "")
}

// IsPage reports whether a content type is that of a page for people.
func IsPage(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// ValidJSON checks a whole answer of any size.
func ValidJSON(raw []byte) error {
	var c jsonscan.Cursor
	c.MaxTokens = maxJSON
	c.Reset(raw)
	c.Skip()
	return c.End()
}

// unreader is a body that takes bytes back, as a host's does.
type unreader interface{ Unread(head []byte) }

// Back puts what was read of a body back in front of it.
func Back(head []byte, body io.ReadCloser) io.ReadCloser {
	if len(head) == 0 {
		return body
	}
	if u, ok := body.(unreader); ok {
		u.Unread(head)
		return body
	}
	return &stream.Prefix{Head: head, Rest: body}
}
