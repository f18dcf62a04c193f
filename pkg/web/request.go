package web

import (
	"errors"
	"strings"

	"weir/pkg/apierr"
	"weir/pkg/fields"
	"weir/pkg/provider"
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

// request is a client's request. Spec-gaps, Search and fetch.
type request struct {
	model  string // model or provider; "" lets the machine decide
	url    string // canonical, without a fragment
	format string
	max    int // characters; 0 is no limit
}

// parse reads and checks a body.
func (h *Handler) parse(body []byte, ownHost string) (*request, error) {
	s, err := fields.Read(body, "model", "provider", "url", "format", "max_characters")
	if err != nil {
		var e *fields.Error
		if errors.As(err, &e) && e.Field != "" {
			return nil, apierr.Invalid(e.Field, "%s", e.Error())
		}
		return nil, apierr.Invalid("", "the body is not valid JSON: %v", err)
	}
	r := &request{format: markdown}
	for _, name := range [...]string{"model", "provider"} {
		v, ok, err := s.String(name)
		switch {
		case err != nil, ok && v == "":
			return nil, apierr.Invalid(name, "%s must be a non-empty string", name)
		case ok && r.model != "" && r.model != v:
			return nil, apierr.Invalid(name, "model and provider name two different things")
		case ok:
			r.model = v
		}
	}
	raw, ok, err := s.String("url")
	switch {
	case err == nil && !ok:
		return nil, apierr.Invalid("url", "url is required")
	case err != nil, strings.TrimSpace(raw) == "":
		return nil, apierr.Invalid("url", "url must be a non-empty string")
	case len(raw) > maxURL:
		return nil, apierr.Invalid("url", "url must have at most %d bytes", maxURL)
	}
	if r.url, err = h.address(raw, ownHost); err != nil {
		return nil, err
	}
	if v, ok, err := s.String("format"); err != nil || ok {
		if v != markdown && v != text && v != rawHTML {
			return nil, apierr.Invalid("format", "format must be markdown, text or html")
		}
		r.format = v
	}
	if n, ok, err := s.Int("max_characters", 1, maxCharacters); err != nil {
		return nil, apierr.Invalid("max_characters", "max_characters must be an integer from 1 to %d", maxCharacters)
	} else if ok {
		r.max = int(n)
	}
	return r, nil
}

// address gives the canonical form of an address that may be fetched: the
// policy of base addresses (design 4) holds for its origin, but http is taken
// too. It is judged on the platform's own reading of it, never on Go's.
func (h *Handler) address(raw, ownHost string) (string, error) {
	canonical, ok := h.CanonicalURL(raw)
	if !ok {
		return "", apierr.Invalid("url", "url must be an absolute http or https address")
	}
	canonical, _, _ = strings.Cut(canonical, "#")
	rest, ok := strings.CutPrefix(canonical, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(canonical, "http://"); !ok {
			return "", apierr.Invalid("url", "url must be an http or https address")
		}
	}
	if len(canonical) > maxURL {
		return "", apierr.Invalid("url", "url must have at most %d bytes", maxURL)
	}
	for i := 0; i < len(canonical); i++ {
		if c := canonical[i]; c <= ' ' || c >= 0x7f {
			return "", apierr.Invalid("url", "url is not usable")
		}
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return "", apierr.Invalid("url", "url is not usable")
	}
	err := provider.CheckBaseURL("https://"+rest[:end]+"/", h.AllowPrivate, ownHost)
	if err == nil && !h.AllowPrivate && strings.IndexByte(rest[:end], ':') >= 0 {
		err = provider.ErrBaseURL // the default port of the other scheme
	}
	if err != nil {
		e := apierr.Invalid("url", "url must be a public address: %v", err)
		e.Code = "url_not_allowed"
		return "", e
	}
	return canonical, nil
}
