package endpoint

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"weir/pkg/accounts"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// IsJSON reports whether a content type says JSON.
func IsJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// BadJSON returns the 400 for a body that jsonscan refused.
func BadJSON(err error) error {
	var e *jsonscan.Error
	if !errors.As(err, &e) {
		return err
	}
	bad := apierr.Invalid(e.Field, "%s", e.Sentence())
	if e.Field == "" {
		bad.Code = "invalid_json"
	}
	return bad
}

// BadBody is the 502 of an answer that cannot be read.
func BadBody(err error) error {
	e := apierr.New(502, "bad_upstream_body", "The provider's answer could not be read. Check the base URL of the account, or try again.")
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
	a := &struct { // one allocation
		httpmsg.Response
		body   stream.Bytes
		fields [answerFields]httpmsg.Field
	}{}
	a.body.Reset(body)
	a.fields[0] = httpmsg.Field{Name: "content-type", Value: contentType}
	a.Response = httpmsg.Response{Status: 200, Header: provider.AppendNotes(a.fields[:1], up), Body: &a.body}
	return &a.Response
}

// answerFields is the number of fields that an answer has space for: its own, those
// of the gateway, and what most providers say about limits.
const answerFields = 12

// Forward returns the upstream's answer with its body unchanged. The machine's idle
// limit ends a silent body. The attempt succeeds once the body is complete.
func Forward(m *snapshot.Machine, res *accounts.Result) *httpmsg.Response {
	resp := &httpmsg.Response{Status: res.Status, Header: provider.ResponseHeader(res.Header), Body: res.Body}
	if _, whole := res.Body.(*stream.Bytes); !whole {
		resp.Body = &stream.Through{Src: res.Body, T: passing{res: res}, Idle: m.Settings.Idle(), Cut: true}
	}
	return resp
}

// passing reports the end of a forwarded body to the account.
type passing struct {
	stream.Plain
	res *accounts.Result
}

func (passing) Push(chunk, out []byte) []byte { return append(out, chunk...) }

func (p passing) End(cause error, out []byte) []byte {
	p.res.Done(cause)
	return out
}

// HasField reports whether an answer that CheckJSON has read, if it is JSON,
// has one of the fields. An error with status 200 has none of them.
func HasField(resp *upstream.Response, names ...string) bool {
	b, ok := resp.Body.(*stream.Bytes)
	if !ok || !IsJSON(resp.Header.Get("content-type")) {
		return true
	}
	set, err := jsonscan.Read(b.All(), names...)
	if err != nil {
		return true // invalid for a reason that does not concern these fields
	}
	for _, n := range names {
		if k := set.Get(n).Kind; k != jsonscan.Absent && k != jsonscan.Null {
			return true
		}
	}
	return false
}

// ErrNoAnswer is the error for a body that is not the requested content.
var ErrNoAnswer = errors.New("endpoint: the body is a page, an error, or not a JSON object")

// CheckJSON checks an answer that is JSON: its whole body is read and must be a valid
// object, so that an incomplete one is never forwarded as complete. An HTML page is an
// error. Bodies of other types are not read.
func CheckJSON(resp *upstream.Response) error {
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

// CheckStart checks an answer whose body is forwarded. It reads the beginning of the
// body: an empty body, HTML and an error with status 2xx are failures. With sound the
// body must be audio, so that any text is a failure.
func CheckStart(resp *upstream.Response, sound bool) error {
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
		resp.Body = Unread(head, resp.Body)
	}
	if len(head) == 0 || isUnexpected(head, sound && !strings.HasPrefix(kind, "audio/"), events) {
		return BadBody(ErrNoAnswer)
	}
	return nil
}

// isUnexpected reports whether a body begins like HTML or an error, or if noJSON is set
// like any JSON object.
func isUnexpected(head []byte, noJSON, events bool) bool {
	head = bytes.TrimLeft(head[:min(len(head), 512)], " \t\r\n")
	if events {
		data, ok := bytes.CutPrefix(head, []byte("data:"))
		return bytes.HasPrefix(head, []byte("event: error")) || bytes.HasPrefix(head, []byte("event:error")) || ok &&
			isError(data)
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
	return ok && (bytes.HasPrefix(b, []byte(`"error"`)) || bytes.HasPrefix(b, []byte(`"errors"`)) ||
		bytes.HasPrefix(b, []byte(`"detail"`)))
}

const maxJSON = 32 << 20 // bytes of an answer

// Excerpt returns the beginning of a provider's error text, at most 500 bytes,
// with possible credentials masked.
func Excerpt(text string) string {
	return strings.ToValidUTF8(redact.Patterns(text[:min(len(text), 500)]), "")
}

// Said returns e with the text of an upstream, if there is one, in place of its message.
func Said(e *apierr.Error, text string) *apierr.Error {
	if text != "" {
		e.Message, e.Said = Excerpt(text), true
	}
	return e
}

// IsPage reports whether a content type is that of a page for people.
func IsPage(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// ReadJSON reads an upstream's whole body of at most max bytes, which must be valid
// JSON. The error is that of BadBody.
func ReadJSON(body io.ReadCloser, max int64) ([]byte, error) {
	raw, err := stream.ReadAll(body, max)
	if err == nil {
		err = ValidJSON(raw)
	}
	if err != nil {
		return nil, BadBody(err)
	}
	return raw, nil
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

// Unread returns a body that starts with head, the bytes that were read of it.
func Unread(head []byte, body io.ReadCloser) io.ReadCloser {
	if len(head) == 0 {
		return body
	}
	if u, ok := body.(unreader); ok {
		u.Unread(head)
		return body
	}
	return &stream.Prefix{Head: head, Rest: body}
}
