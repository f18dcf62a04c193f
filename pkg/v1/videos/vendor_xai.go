package videos

import (
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// xai is the shape that clients see; it passes as it is
// (docs/reference/api-shapes.md, 7.1).
var xai = shape{
	providers: []string{"xai"}, native: true,
	name: nameXAI,
	poll: byID("request_id"),
}

// nameXAI returns the name of a job: request_id, or id on servers that copied the
// API.
func nameXAI(raw []byte, _ string) string {
	if id := textOf(gjson.GetBytes(raw, "request_id")); id != "" {
		return id
	}
	return textOf(gjson.GetBytes(raw, "id"))
}

// withID returns raw with the request_id that clients poll with. A number stays one
// unless clients would lose digits of it.
func withID(raw []byte, id string) []byte {
	switch v := gjson.GetBytes(raw, "request_id"); {
	case v.Type == gjson.String && v.Str == id, v.Type == gjson.Number && v.Raw == id &&
		strconv.FormatInt(v.Int(), 10) == id && v.Int() <= 1<<53:
		return raw
	}
	out, err := sjson.SetBytes(raw, "request_id", id)
	if err != nil {
		return raw
	}
	return out
}

// readXAI reads a state in xAI's own shape. One without a status that has a
// video is done, an empty one (HTTP 202) pending.
func readXAI(body []byte) state {
	doc := gjson.ParseBytes(body)
	s := state{Status: doc.Get("status").Str, URL: doc.Get("video.url").Str, Progress: -1}
	if s.Status == "" {
		s.Status = "pending"
		if s.URL != "" {
			s.Status = "done"
		}
	}
	return s
}
