package images

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
	"weir/pkg/wire/httpmsg"
)

// shape is how a provider's images are spoken to. Its functions are pure.
type shape struct {
	providers []string // ids of the rows that have it
	endpoint  string   // of the row, where it is not the client's
	// route returns the endpoint of the row for a model, "" for the usual one. May
	// be nil.
	route func(model string) string
	edits bool
	apart bool // edits have their own endpoint
	// create makes the body; nil sends the client's with the upstream's model.
	create func(in *input, model string) (*plan, error)
	// read takes the images out of an answer, or the job that will make them.
	read func(raw []byte, contentType string) (*made, error)
	// poll returns the call that asks for a job; state reads its answer: no
	// image and no further step means that it is in progress.
	poll  func(m *made, model string, step int) *plan
	state func(raw []byte, step int) (*made, error)
}

// plan is one upstream call.
type plan struct {
	header      httpmsg.Header
	contentType string // "application/json" when empty
	body        []byte
	// of a poll
	endpoint, model, url string
	parts                []provider.Part
}

// made is what came of a creation.
type made struct {
	images []image
	job    string
	more   bool // the next step has the images
	usage  any
}

type image struct{ url, b64, mime, text string }

// openAI is OpenAI's own shape, and of all who copied it.
var openAI = shape{}

var shapes = [...]*shape{
	&gemini, &fal, &bfl, &replicate, &stability, &together, &xai, &miniMax, &huggingFace,
	&cloudflare, &dashScope, &bedrock, &fireworks, &luma, &runway,
}

// shapeOf returns the shape of a provider.
func shapeOf(d *provider.Descriptor) *shape {
	for _, s := range shapes {
		for _, id := range s.providers {
			if id == d.ID {
				return s
			}
		}
	}
	return &openAI
}

// at returns the endpoint of the row for the client's.
func (s *shape) at(endpoint string) string {
	switch {
	case s.endpoint != "":
		return s.endpoint
	case s.create != nil && !s.apart:
		return generations
	}
	return endpoint
}

// of returns the endpoint of the row for a client's endpoint and a model.
func (s *shape) of(endpoint, model string) string {
	if s.route != nil {
		if name := s.route(model); name != "" {
			return name
		}
	}
	return s.at(endpoint)
}

// jsonBody makes a plan of a body.
func jsonBody(body map[string]any) (*plan, error) {
	b, err := json.Marshal(body)
	return &plan{body: b}, err
}

// set adds a member unless it is empty.
func set(body map[string]any, name string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case int:
		if v == 0 {
			return
		}
	case gjson.Result:
		if !v.Exists() {
			return
		}
		value = json.RawMessage(v.Raw)
	}
	body[name] = value
}
