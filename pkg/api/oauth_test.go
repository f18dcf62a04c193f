package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

func newOAuth(public string) *OAuth {
	return &OAuth{Handler: &Handler{KeySecret: []byte(strings.Repeat("s", 32))}, PublicURL: public, Rand: rand.NewChaCha8([32]byte{2})}
}

const mid = "abcdefgh01234567"

func codeOf(err error) string {
	var e *apierr.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Code
}

// Browsers return to PUBLIC_URL, else to the origin of their request if its
// transport is protected.
func TestRedirectURINeedsProtectedOrigin(t *testing.T) {
	for _, tt := range []struct{ public, origin, want string }{
		{"", "https://weir.example.com", "https://weir.example.com/oauth/callback"},
		{"", "https://weir.example.com:8443", "https://weir.example.com:8443/oauth/callback"},
		{"", "http://localhost:8787", "http://localhost:8787/oauth/callback"},
		{"", "http://127.0.0.1:8787", "http://127.0.0.1:8787/oauth/callback"},
		{"https://public.example.com", "http://evil.example.com", "https://public.example.com/oauth/callback"},
		{"", "http://weir.example.com", ""},
		{"", "http://localhost.evil.example.com", ""},
		{"", "http://127.0.0.1.evil.example.com:80", ""},
		{"", "https://user@weir.example.com", ""},
		{"", "", ""},
	} {
		got, err := newOAuth(tt.public).redirectURI(&httpmsg.Request{Origin: tt.origin})
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && codeOf(err) != "insecure_origin" {
			t.Errorf("%q %q: got %q %v, want %q", tt.public, tt.origin, got, err, tt.want)
		}
	}
}

// A ticket is valid only if this gateway created it and it comes alone.
func TestOnlyIssuedTicketsAreAccepted(t *testing.T) {
	h := newOAuth("")
	good, err := h.newTicket()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := h.newTicket()
	header := func(cookies ...string) (out httpmsg.Header) {
		for _, c := range cookies {
			out.Add("cookie", c)
		}
		return out
	}
	for name, tt := range map[string]struct {
		header httpmsg.Header
		ok     bool
	}{
		"good":              {header(flowCookie + "=" + good), true},
		"among others":      {header("a=b; " + flowCookie + "=" + good + "; c=d"), true},
		"none":              {header(), false},
		"two":               {header(flowCookie+"="+good, flowCookie+"="+other), false},
		"twice in one":      {header(flowCookie + "=" + good + "; " + flowCookie + "=" + good), false},
		"changed":           {header(flowCookie + "=" + "x" + good[1:]), false},
		"another's proof":   {header(flowCookie + "=" + good[:ticketLen] + other[ticketLen:]), false},
		"without its proof": {header(flowCookie + "=" + good[:ticketLen]), false},
		"empty":             {header(flowCookie + "="), false},
	} {
		if got, ok := h.ticket(tt.header); ok != tt.ok || ok && got != good {
			t.Errorf("%s: got %q, %v", name, got, ok)
		}
	}
	if good == other || len(good) != ticketLen+1+32 {
		t.Errorf("%q and %q", good, other)
	}
}

func TestCallbackWithoutTicketCallsNoObject(t *testing.T) {
	h := newOAuth("https://weir.example.com") // without objects: a call would panic
	good, _ := h.newTicket()
	for _, tt := range []struct{ query, cookie string }{
		{"code=1&state=" + mid + ".x", ""},
		{"code=1&state=" + mid + ".x", flowCookie + "=" + strings.Repeat("A", ticketLen) + "." + strings.Repeat("0", 32)},
		{"code=1&state=" + mid, flowCookie + "=" + good},
		{"code=1&state=<script>.x", flowCookie + "=" + good},
		{"code=1", flowCookie + "=" + good},
		{"", flowCookie + "=" + good},
	} {
		c := &auth.Call{Request: &httpmsg.Request{Method: "GET", Query: tt.query, Header: httpmsg.Header{{Name: "cookie", Value: tt.cookie}}}}
		resp, err := h.Callback(context.Background(), c)
		if err != nil || resp.Status != 400 {
			t.Errorf("%s: %v %v", tt.query, resp, err)
			continue
		}
		body, _ := stream.ReadAll(resp.Body, 1<<20)
		if text := string(body); strings.Contains(text, "<script") || !strings.Contains(text, "Not connected") || c.Trace.Err == nil {
			t.Errorf("%s: %s", tt.query, text)
		}
	}
}

func TestPageEscapesText(t *testing.T) {
	body, _ := stream.ReadAll(page(200, "Connected", `<b>"&'`).Body, 1<<20)
	if !strings.Contains(string(body), `<p>&lt;b&gt;&quot;&amp;&#39;</p>`) {
		t.Errorf("%s", body)
	}
}
