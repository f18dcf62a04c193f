package videos

import "github.com/tidwall/gjson"

// xai is the shape that clients see; it passes as it is (api-shapes 7.1).
var xai = shape{
	providers: []string{"xai"}, native: true,
	name: field("request_id"),
	poll: byID("request_id"),
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
