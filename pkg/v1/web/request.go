package web

import (
	"errors"
	"strconv"
	"strings"

	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/weburl"
)

// Limits of a request.
const (
	maxURL        = 8192 // bytes
	maxCharacters = 1_000_000
)

// Formats of the content.
const (
	markdown = "markdown"
	text     = "text"
	rawHTML  = "html"
)

// request is a client's request. See docs/reference/spec.md, 4.8.
type request struct {
	model  string // model or provider; "" lets the machine decide
	url    string // canonical, without a fragment
	format string
	max    int // characters; 0 is no limit
}

var (
	errPort     = errors.New("only the default port is allowed")
	errPlatform = errors.New("the path belongs to the platform")
)

// parse reads and checks a body.
func (h *Handler) parse(body []byte, ownHosts []string) (*request, error) {
	p := endpoint.Read(body, "model", "provider", "url", "format", "max_characters")
	r := &request{model: p.Model()}
	raw := p.Text("url", true)
	if p.Err == nil {
		if len(raw) > maxURL {
			p.Fail("url", "url must have at most "+strconv.Itoa(maxURL)+" bytes")
		} else {
			r.url, p.Err = h.address(raw, ownHosts)
		}
	}
	r.format = p.Choice("format", markdown, text, rawHTML)
	r.max = p.Int("max_characters", 0, 1, maxCharacters)
	return r, p.Err
}

// address returns the canonical form of an address that may be fetched: the
// policy of base addresses (docs/reference/spec.md, 2.3) holds for its origin,
// but http is taken too.
func (h *Handler) address(raw string, ownHosts []string) (string, error) {
	canonical, ok := weburl.Canonical(raw)
	if !ok {
		return "", apierr.Invalid("url", "url must be an absolute http or https address.")
	}
	canonical, _, _ = strings.Cut(canonical, "#")
	_, rest, _ := strings.Cut(canonical, "://")
	if len(canonical) > maxURL {
		return "", apierr.Invalid("url", "url must have at most %d bytes.", maxURL)
	}
	end := strings.IndexByte(rest, '/')
	err := provider.CheckBaseURL("https://"+rest[:end]+"/", h.AllowPrivate, ownHosts...)
	if err == nil && !h.AllowPrivate && strings.IndexByte(rest[:end], ':') >= 0 {
		err = errPort // the default port of the other scheme
	}
	if err == nil && h.AllowPrivate && provider.PlatformPath(rest[end:]) {
		err = errPlatform
	}
	if err != nil {
		e := apierr.Invalid("url", "url must be a public address: %s.",
			strings.TrimPrefix(err.Error(), provider.ErrBaseURL.Error()+": "))
		e.Code = "url_not_allowed"
		return "", e
	}
	return canonical, nil
}
