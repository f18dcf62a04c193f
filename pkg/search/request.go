package search

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/fields"
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

// request is a client's request. Spec-gaps, Search and fetch.
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

// option is a vendor's parameter. For "" it is for whoever knows it.
type option struct {
	provider, name string
	value          gjson.Result
}

var names = [...]string{
	"model", "provider", "query", "max_results", "search_type", "country", "language", "time_range", "offset", "domain_filter",
	"content_options", "provider_options",
}

// parse reads and checks a body.
func parse(body []byte, normalize func(string) string) (*request, error) {
	s, err := fields.Read(body, names[:]...)
	if err != nil {
		var e *fields.Error
		if errors.As(err, &e) && e.Field != "" {
			return nil, apierr.Invalid(e.Field, "%s", e.Error())
		}
		return nil, apierr.Invalid("", "the body is not valid JSON: %v", err)
	}
	r := &request{kind: kindWeb, since: anyTime, snippet: true, format: "markdown", max: 5}
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
	if r.query, err = readQuery(&s, normalize); err != nil {
		return nil, err
	}
	if n, ok, err := s.Int("max_results", 1, maxResults); err != nil {
		return nil, apierr.Invalid("max_results", "max_results must be an integer from 1 to %d", maxResults)
	} else if ok {
		r.max = int(n)
	}
	if n, _, err := s.Int("offset", 0, maxOffset); err != nil {
		return nil, apierr.Invalid("offset", "offset must be an integer from 0 to %d", maxOffset)
	} else {
		r.offset = int(n)
	}
	if err := choice(&s, "search_type", &r.kind, kindWeb, kindNews); err != nil {
		return nil, err
	}
	if err := choice(&s, "time_range", &r.since, anyTime, "day", "week", "month", "year"); err != nil {
		return nil, err
	}
	if v, ok, err := s.String("country"); err != nil || ok && !isCountry(v) {
		return nil, apierr.Invalid("country", "country must be a code of two letters (ISO 3166-1)")
	} else {
		r.country = strings.ToUpper(v)
	}
	if v, ok, err := s.String("language"); err != nil || ok && !isLanguage(v) {
		return nil, apierr.Invalid("language", "language must be a language tag like de or pt-BR")
	} else {
		r.language = v
	}
	if err := r.readDomains(gjson.ParseBytes(s.Raw("domain_filter"))); err != nil {
		return nil, err
	}
	if err := r.readContent(gjson.ParseBytes(s.Raw("content_options"))); err != nil {
		return nil, err
	}
	return r, r.readOptions(gjson.ParseBytes(s.Raw("provider_options")))
}

// readQuery reads the query: NFKC by the platform, trimmed, without control
// characters.
func readQuery(s *fields.Set, normalize func(string) string) (string, error) {
	q, ok, err := s.String("query")
	switch {
	case err == nil && !ok:
		return "", apierr.Invalid("query", "query is required")
	case err != nil:
		return "", apierr.Invalid("query", "query must be a string")
	case len(q) > maxQuery*utf8.UTFMax:
		return "", apierr.Invalid("query", "query must have at most %d characters", maxQuery)
	}
	if normalize != nil {
		q = normalize(q)
	}
	q = strings.TrimSpace(q)
	switch {
	case q == "":
		return "", apierr.Invalid("query", "query must not be empty")
	case utf8.RuneCountInString(q) > maxQuery:
		return "", apierr.Invalid("query", "query must have at most %d characters", maxQuery)
	case strings.IndexFunc(q, unicode.IsControl) >= 0:
		return "", apierr.Invalid("query", "query must not have control characters in it")
	}
	return q, nil
}

func choice(s *fields.Set, name string, to *string, values ...string) error {
	v, ok, err := s.String(name)
	if err == nil && !ok {
		return nil
	}
	for _, want := range values {
		if err == nil && v == want {
			*to = v
			return nil
		}
	}
	return apierr.Invalid(name, "%s must be one of %s", name, strings.Join(values, ", "))
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

// lang gives the language alone, in lower case.
func (r *request) lang() string {
	l, _, _ := strings.Cut(strings.ToLower(r.language), "-")
	return l
}

func (r *request) readDomains(v gjson.Result) error {
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	bad := apierr.Invalid("domain_filter", "domain_filter must be a list of at most %d domains; a leading - leaves one out", maxDomains)
	if !v.IsArray() {
		return bad
	}
	for _, d := range v.Array() {
		name := strings.ToLower(strings.TrimSpace(d.Str))
		out := strings.HasPrefix(name, "-")
		if name = strings.TrimPrefix(name, "-"); d.Type != gjson.String || !isDomain(name) || len(r.include)+len(r.exclude) == maxDomains {
			return bad
		}
		if out {
			r.exclude = append(r.exclude, name)
		} else {
			r.include = append(r.include, name)
		}
	}
	return nil
}

// isDomain keeps whatever could be an operator of a query out of it.
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

func (r *request) readContent(v gjson.Result) (err error) {
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return apierr.Invalid("content_options", "content_options must be an object")
	}
	v.ForEach(func(k, v gjson.Result) bool {
		param := "content_options." + k.Str
		switch k.Str {
		case "snippet", "full_page":
			if !v.IsBool() {
				err = apierr.Invalid(param, "%s must be true or false", param)
			} else if k.Str == "snippet" {
				r.snippet = v.Bool()
			} else {
				r.full = v.Bool()
			}
		case "format":
			if r.format = v.Str; r.format != "markdown" && r.format != "text" && r.format != "html" {
				err = apierr.Invalid(param, "%s must be markdown, text or html", param)
			}
		case "max_characters":
			if v.Type != gjson.Number || v.Num != float64(int(v.Num)) || v.Num < 1 || v.Num > maxCharacters {
				err = apierr.Invalid(param, "%s must be an integer from 1 to %d", param, maxCharacters)
			}
			r.maxChars = int(v.Num)
		}
		return err == nil
	})
	return err
}

// forbidden are pieces of names that are never a vendor's parameter here:
// addresses and credentials.
var forbidden = [...]string{
	"url", "uri", "key", "token", "secret", "auth", "host", "endpoint", "webhook", "callback", "proxy", "header", "password", "cookie", "credential", "base",
}

// readOptions reads provider_options: names with plain values, or such an
// object under a provider's id.
func (r *request) readOptions(v gjson.Result) error {
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return apierr.Invalid("provider_options", "provider_options must be an object")
	}
	return r.option("", v)
}

func (r *request) option(provider string, v gjson.Result) (err error) {
	v.ForEach(func(k, v gjson.Result) bool {
		param := "provider_options." + k.Str
		if provider != "" {
			param = "provider_options." + provider + "." + k.Str
		}
		low := strings.ToLower(k.Str)
		if v.IsObject() && provider == "" {
			err = r.option(k.Str, v)
			return err == nil
		}
		for _, f := range &forbidden {
			if strings.Contains(low, f) {
				err = apierr.Invalid(clip(param), "provider_options must not have addresses or keys in it")
				return false
			}
		}
		if len(k.Str) > 64 || !plain(v) || len(r.options) == 64 {
			err = apierr.Invalid(clip(param), "provider_options must have plain values: strings, numbers, true, false or lists of them")
			return false
		}
		r.options = append(r.options, option{provider, k.Str, v})
		return true
	})
	return err
}

func clip(s string) string { return s[:min(len(s), 100)] }

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
