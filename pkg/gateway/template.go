package gateway

import (
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
)

// Bits of a template's variant.
const (
	toBrowser = 1 << iota // the caller sends an Origin
	jsonBody              // content-type is application/json
	ownCache              // the endpoint has set cache-control
	forAll                // anybody may call the route
	corsRule              // the first of the bits of the route's rule
	variants  = (int(endpoint.ListCors) + 1) * corsRule
)

// template returns the fields that each answer of a route has, and removes from h
// those of the same names: the request's id, which is added later, and what an
// endpoint has set of the template itself. An endpoint's own cache-control stays.
func (t *table) template(r *Route, h *httpmsg.Header, browser bool) *httpmsg.Template {
	variant := int(r.Cors) * corsRule
	if r.Access == endpoint.Public {
		variant |= forAll
	}
	if browser {
		variant |= toBrowser
	}
	own := (*h)[:0]
	for _, f := range *h {
		switch f.Name {
		case "content-type":
			if f.Value == "application/json" {
				variant |= jsonBody
				continue
			}
		case "cache-control":
			variant |= ownCache
		case "x-request-id", "x-content-type-options", "vary", "access-control-allow-origin", "access-control-expose-headers":
			continue
		case "request-id":
			if r.Dialect.Client().IDField {
				continue
			}
		}
		own = append(own, f)
	}
	*h = own
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.templates[variant] == nil {
		t.templates[variant] = newTemplate(r, variant)
	}
	return t.templates[variant]
}

func newTemplate(r *Route, variant int) *httpmsg.Template {
	var h httpmsg.Header
	if variant&jsonBody != 0 {
		h.Add("content-type", "application/json")
	}
	if variant&ownCache == 0 {
		h.Add("cache-control", "no-store")
	}
	h.Add("x-content-type-options", "nosniff")
	if r.Access != endpoint.Public {
		h.Add("vary", "Authorization, Origin")
	}
	cors(&h, r.Cors, variant&toBrowser != 0)
	return &httpmsg.Template{Fields: h}
}
