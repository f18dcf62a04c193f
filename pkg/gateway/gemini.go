package gateway

import (
	"net/url"
	"strings"

	"weir/pkg/wire/httpmsg"
)

// geminiPath returns the path of a request under /v1beta if it is of the Gemini API,
// else the path itself. Clients name the version v1beta, v1alpha or v1. Under v1,
// where OpenAI's model list is, a POST is Gemini's, and a caller with the field of
// Gemini's key. The older of Google's two clients leaves out "models/" before a name
// with a slash.
func geminiPath(r *httpmsg.Request, path string) string {
	rest, v1 := strings.CutPrefix(path, "/v1/")
	switch {
	case v1 && (r.Method != "POST" || rest == "models") && r.Header.Get("x-goog-api-key") == "":
		return path
	case !v1:
		_, rest, _ = strings.Cut(path[1:], "/")
	}
	if r.Method == "POST" && strings.Contains(rest, "/") && strings.Contains(rest, ":") &&
		!strings.HasPrefix(rest, "models/") && lacking("/v1beta/"+rest) == "" {
		rest = "models/" + rest
	}
	return "/v1beta/" + rest
}

// fromGemini puts what a Gemini client says in places of its own where the rest of
// the program looks for it: the key of the query, and its time limit in seconds.
func fromGemini(r *httpmsg.Request) {
	if r.Query != "" {
		moveKey(r)
	}
	if limit := r.Header.Get("x-server-timeout"); limit != "" && r.Header.Get("x-stainless-timeout") == "" {
		r.Header.Add("x-stainless-timeout", limit)
	}
}

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
