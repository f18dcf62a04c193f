package gateway

import (
	"net/url"
	"strings"

	"weir/pkg/wire/httpmsg"
)

// moveKey takes the key of a Gemini client out of the query, so that nothing after
// it has a query with a key, and puts it where a key is looked for. A header field
// with a key is preferred.
func moveKey(r *httpmsg.Request) {
	var rest []string
	key, given := "", false
	for pair := range strings.SplitSeq(r.Query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != "key" {
			rest = append(rest, pair)
			continue
		}
		if v, err := url.QueryUnescape(value); err == nil && !given {
			key = v
		}
		given = true
	}
	if !given {
		return
	}
	r.Query = strings.Join(rest, "&")
	if key != "" && r.Header.Get("x-goog-api-key") == "" {
		r.Header.Set("x-goog-api-key", key)
	}
}
