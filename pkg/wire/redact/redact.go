// Package redact takes credentials out of text before it is shown, stored or
// logged.
//
// There are two ways. An R knows live values and finds each of them in the
// encodings in which an upstream may echo it: raw, URL- and form-encoded,
// JSON-escaped once or twice, as HTML entities, in base64 and base64url at any
// alignment (so also inside "user:key"), in hex, as UTF-16, and soft-wrapped.
// Patterns finds what looks like a credential, for error
// texts and logs only: a model's answer may rightly contain "sk-…".
// See docs/reference/reliability.md, 3.7.
package redact

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/secret"
)

// Mask stands where a credential was.
const Mask = "***"

// minValue is the length under which a value may occur by chance. Local servers
// have such keys ("ollama", "EMPTY"); they are not masked.
const minValue = 8

// maxSkip is the number of line ends, NULs and blanks that may stand between
// two characters of a value.
const maxSkip = 8

// maxRun is the number of times that a character may be escaped: at most this number of
// backslashes, "25" or "amp;" count as one escape.
const maxRun = 16

// enough is the number of matching characters that count as the whole value. It
// bounds the work at each position of a text, whatever the value.
const enough = 128

// R finds the values it was made of. Several requests may use it at the same time.
type R struct {
	needles []needle
	start   [256]bool // bytes at which some needle may begin
	steps   *int      // counts the characters that are compared, for tests; nil counts nothing
}

// needle is text to be found; its characters may each stand escaped.
type needle struct {
	text string
	kind uint8
}

const (
	exact   uint8 = iota
	base64x       // - and + are one, so are _ and /
	hexx          // upper and lower case are one
)

// New makes an R of live values. Of a JSON document, such as a Google key
// file, also its private key counts; of "id:secret" also the secret. Values
// under 8 bytes are left out.
func New(values ...string) *R {
	r := &R{}
	for _, v := range values {
		r.add(v)
		if strings.HasPrefix(strings.TrimSpace(v), "{") {
			for _, name := range []string{"private_key", "private_key_id", "client_secret"} {
				r.add(gjson.Get(v, name).String())
			}
		} else if i := strings.LastIndexByte(v, ':'); i >= 0 && !strings.Contains(v, "\n") {
			r.add(v[i+1:])
		}
	}
	return r
}

// Secrets is New for the credentials of the account in use.
func Secrets(secrets ...secret.Secret) *R {
	values := make([]string, len(secrets))
	for i, s := range secrets {
		values[i] = s.Reveal()
	}
	return New(values...)
}

func (r *R) add(v string) {
	v = strings.TrimSpace(v)
	if len(v) < minValue {
		return
	}
	for i := range r.needles {
		if r.needles[i].kind == exact && r.needles[i].text == v {
			return
		}
	}
	r.needle(v, exact)
	r.needle(hex.EncodeToString([]byte(v)), hexx)
	for lead := range 3 {
		// The characters of base64 that are made of v alone when lead bytes
		// stand before it.
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, lead), v...))
		r.needle(text[(8*lead+5)/6:8*(lead+len(v))/6], base64x)
	}
}

func (r *R) needle(text string, kind uint8) {
	r.needles = append(r.needles, needle{text, kind})
	for c := range 256 {
		if same(kind, byte(c), text[0]) {
			r.start[c] = true
		}
	}
	r.start['%'], r.start['\\'], r.start['&'] = true, true, true
}

// String returns s without the values.
func (r *R) String(s string) string {
	if r == nil || len(r.needles) == 0 {
		return s
	}
	var b strings.Builder
	done := 0
	for {
		from, to := r.find(s, done)
		if from < 0 {
			if done == 0 {
				return s
			}
			b.WriteString(s[done:])
			return b.String()
		}
		b.WriteString(s[done:from])
		b.WriteString(Mask)
		done = to
	}
}

// step counts a character that is compared.
func (r *R) step() {
	if r.steps != nil {
		*r.steps++
	}
}

// find returns where the first value in text at or after from begins and ends,
// or -1. The work is linear in text.
func (r *R) find(text string, from int) (start, end int) {
	for p := from; p < len(text); p++ {
		if !r.start[text[p]] {
			continue
		}
		longest := -1
		for i := range r.needles {
			longest = max(longest, match(r, &r.needles[i], text, p))
		}
		if longest != -1 {
			return p, longest
		}
		if text[p] == '\\' { // every backslash of a run leads to the same match
			for n := 1; n < maxRun && p+1 < len(text) && text[p+1] == '\\'; n++ {
				p++
			}
		}
	}
	return -1, 0
}

// match returns where n ends that begins at text[p], or -1. A needle of which
// enough characters have matched ends where the next one does not.
func match(r *R, n *needle, text string, p int) int {
	for i := 0; i < len(n.text); i++ {
		want, begun := n.text[i], p
		for skipped := 0; ; skipped++ {
			r.step()
			if p >= len(text) {
				return far(i, begun)
			}
			if c := text[p]; same(n.kind, c, want) {
				p++
				if c == '\\' || c == '&' || c == '%' {
					p = again(r, text, p, c, n.text[i+1:])
				}
				break
			}
			c, next := unit(r, text, p)
			if next == 0 {
				return far(i, begun)
			}
			p = next
			if same(n.kind, c, want) || c == '+' && want == ' ' {
				break
			}
			if i == 0 || skipped == maxSkip || c != 0 && c != '\r' && c != '\n' && c != '=' &&
				(c != ' ' && c != '\t' || skipped == 0) {
				return far(i, begun)
			}
		}
	}
	return p
}

// far returns p if n characters are enough, else -1.
func far(n, p int) int {
	if n < enough {
		return -1
	}
	return p
}

func same(kind uint8, c, want byte) bool {
	if c == want {
		return true
	}
	switch kind {
	case base64x:
		return c == '-' && want == '+' || c == '_' && want == '/'
	case hexx:
		return 'A' <= c && c <= 'F' && c+'a'-'A' == want
	}
	return false
}
