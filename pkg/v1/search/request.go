package search

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"golang.org/x/text/unicode/norm"

	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
)

// Limits of a request.
const (
	maxQuery      = 2000 // characters
	maxResults    = 100
	maxOffset     = 1000
	maxDomains    = 20
	maxCharacters = 1_000_000
)

// Values of the request.
const (
	kindWeb  = "web"
	kindNews = "news"
	anyTime  = "any"
)

// request is a client's request (docs/reference/spec.md, 4.8).
type request struct {
	model    string // model or provider; "" lets the machine decide
	query    string // NFKC, trimmed
	max      int    // results
	offset   int
	kind     string // kindWeb, kindNews
	country  string // ISO 3166-1 alpha-2 in upper case, or ""
	language string // BCP 47 as given, or ""
	since    string // anyTime, day, week, month, year
	include  []string
	exclude  []string
	snippet  bool
	full     bool   // the pages' content is wanted
	format   string // of the content: markdown, text, html
	maxChars int    // of the content; 0 is no limit
	options  []option
}

// option is a parameter of one provider; provider "" means every provider that knows it.
type option struct {
	provider, name string
	value          gjson.Result
}

// parse reads and checks a body.
func parse(body []byte) (*request, error) {
	p := endpoint.Read(body, "model", "provider", "query", "max_results", "search_type", "country", "language",
		"time_range", "offset", "domain_filter",
		"content_options", "provider_options")
	r := &request{snippet: true, format: "markdown", model: p.Model(), query: readQuery(p)}
	r.max = p.Int("max_results", 5, 1, maxResults)
	r.offset = p.Int("offset", 0, 0, maxOffset)
	r.kind = p.Choice("search_type", kindWeb, kindNews)
	r.since = p.Choice("time_range", anyTime, "day", "week", "month", "year")
	if r.country = strings.ToUpper(p.Text("country", false)); r.country != "" && !isCountry(r.country) {
		p.Fail("country", "country must be a code of two letters (ISO 3166-1)")
	}
	if r.language = p.Text("language", false); r.language != "" && !isLanguage(r.language) {
		p.Fail("language", "language must be a language tag like de or pt-BR")
	}
	r.readDomains(p)
	r.readContent(p)
	r.readOptions(p, "provider_options", "", p.Value("provider_options"))
	return r, p.Err
}

// readQuery reads the query: normalized to NFKC, and trimmed. Control
// characters are refused.
func readQuery(p *endpoint.Reader) string {
	q := p.Text("query", true)
	long := len(q) > maxQuery*utf8.UTFMax
	if !long {
		q = norm.NFKC.String(q)
	}
	q = strings.TrimSpace(q)
	switch {
	case p.Err != nil:
	case q == "":
		p.Fail("query", "query must not be empty")
	case long || utf8.RuneCountInString(q) > maxQuery:
		p.Fail("query", "query must have at most "+strconv.Itoa(maxQuery)+" characters")
	case strings.IndexFunc(q, unicode.IsControl) >= 0:
		p.Fail("query", "query must not have control characters in it")
	}
	return q
}

func isCountry(s string) bool {
	return len(s) == 2 && isLetter(s[0]) && isLetter(s[1])
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isLanguage(s string) bool {
	parts := strings.Split(s, "-")
	if len(s) > 35 || len(parts[0]) < 2 || len(parts[0]) > 3 {
		return false
	}
	for i, p := range parts {
		if len(p) < 2 || len(p) > 8 {
			return false
		}
		for j := 0; j < len(p); j++ {
			if !isLetter(p[j]) && (i == 0 || p[j] < '0' || p[j] > '9') {
				return false
			}
		}
	}
	return true
}

// lang returns the language without its region, in lower case.
func (r *request) lang() string {
	l, _, _ := strings.Cut(strings.ToLower(r.language), "-")
	return l
}

func (r *request) readDomains(p *endpoint.Reader) {
	v := p.Value("domain_filter")
	ok := !v.Exists() || v.IsArray()
	v.ForEach(func(_, d gjson.Result) bool {
		name := strings.ToLower(strings.TrimSpace(d.Str))
		list := &r.include
		if strings.HasPrefix(name, "-") {
			name, list = name[1:], &r.exclude
		}
		*list = append(*list, name)
		ok = ok && d.Type == gjson.String && isDomain(name) && len(r.include)+len(r.exclude) <= maxDomains
		return ok
	})
	if !ok {
		p.Fail("domain_filter", "domain_filter must be a list of at most "+strconv.Itoa(maxDomains)+" domains; a leading - leaves one out")
	}
}

// isDomain reports whether s is a domain name. It allows nothing that could be a
// search operator.
func isDomain(s string) bool {
	if len(s) < 3 || len(s) > 253 || !strings.Contains(s, ".") || strings.Contains(s, "..") {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(isLetter(c) || c >= '0' && c <= '9' || (c == '-' || c == '.') && i > 0 && i < len(s)-1) {
			return false
		}
	}
	return true
}

func (r *request) readContent(p *endpoint.Reader) {
	v := p.Value("content_options")
	if v.Exists() && !v.IsObject() {
		p.Fail("content_options", "content_options must be an object")
	}
	v.ForEach(func(k, v gjson.Result) bool {
		must := ""
		switch k.Str {
		case "snippet":
			if r.snippet = v.Bool(); !v.IsBool() {
				must = "true or false"
			}
		case "full_page":
			if r.full = v.Bool(); !v.IsBool() {
				must = "true or false"
			}
		case "format":
			if r.format = v.Str; v.Str != "markdown" && v.Str != "text" && v.Str != "html" {
				must = "markdown, text or html"
			}
		case "max_characters":
			if r.maxChars = int(v.Num); v.Type != gjson.Number || v.Num != float64(int(v.Num)) || v.Num < 1 ||
				v.Num > maxCharacters {
				must = "an integer from 1 to " + strconv.Itoa(maxCharacters)
			}
		}
		if must != "" {
			p.Fail("content_options."+k.Str, "content_options."+k.Str+" must be "+must)
		}
		return must == ""
	})
}

// forbidden are parts of the names of parameters that are refused: those of URLs and
// credentials.
var forbidden = [...]string{
	"url", "uri", "key", "token", "secret", "auth", "host", "endpoint", "webhook", "callback", "proxy", "header",
	"password", "cookie", "credential", "base",
}

// readOptions reads provider_options: names with plain values, or an object of them
// under a provider's id.
func (r *request) readOptions(p *endpoint.Reader, path, provider string, v gjson.Result) {
	if v.Exists() && !v.IsObject() {
		p.Fail(path, path+" must be an object")
	}
	v.ForEach(func(k, v gjson.Result) bool {
		param := apierr.ShortName(path + "." + k.Str)
		if v.IsObject() && provider == "" && k.Str != "" {
			r.readOptions(p, param, k.Str, v)
			return p.Err == nil
		}
		low := strings.ToLower(k.Str)
		for _, f := range &forbidden {
			if strings.Contains(low, f) {
				p.Fail(param, "provider_options must not have addresses or keys in it")
			}
		}
		if len(k.Str) > 64 || !plain(v) || len(r.options) == 64 {
			p.Fail(param, "provider_options must have plain values: strings, numbers, true, false or lists of them")
		}
		r.options = append(r.options, option{provider, k.Str, v})
		return p.Err == nil
	})
}

func plain(v gjson.Result) bool {
	if v.IsObject() || v.Type == gjson.Null || len(v.Raw) > 4096 {
		return false
	}
	ok := true
	if v.IsArray() {
		v.ForEach(func(_, e gjson.Result) bool {
			ok = e.Type != gjson.JSON && e.Type != gjson.Null
			return ok
		})
	}
	return ok
}
