package videos

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// shape describes a provider's video API (docs/reference/api-shapes.md,
// 7). Its functions are pure.
type shape struct {
	providers []string // ids of the rows that have it
	native    bool     // xAI's own: bytes pass
	also      string   // a further endpoint besides generations
	large     bool     // the video is in the answer to the last poll
	failsLast bool     // a failed job shows by an error of the last poll

	create func(in *input, model, endpoint string) (*plan, error)
	// refusal finds an error that comes with a status of success.
	refusal func(raw []byte) error
	// name returns the upstream's name of the job, or "".
	name func(raw []byte, model string) string
	// poll returns the call of a step. read returns the state in its response, and
	// whether there is another step.
	poll func(name string, step int, last []byte) (*plan, error)
	read func(name string, step int, raw []byte) (s state, more bool)
}

// shapes are all of them.
var shapes = [...]*shape{
	&xai, &gemini, &vertex, &runway, &luma, &together, &openRouter, &miniMax, &dashScope, &zai, &replicate, &fal, &bfl,
}

// shapeOf returns the shape of a provider, or nil. A compatible provider that has
// videos has them in xAI's shape.
func shapeOf(d *provider.Descriptor) *shape {
	if d.Compatible && d.Serves(generations) {
		return &xai
	}
	for _, s := range shapes {
		for _, id := range s.providers {
			if id == d.ID {
				return s
			}
		}
	}
	return nil
}

// makers returns the active connections whose provider has videos, in stored
// order; those of compatible providers, which may have none, come last.
func makers(m *snapshot.Machine) (list []*store.Connection) {
	for _, compatible := range [...]bool{false, true} {
		for i := range m.Connections {
			c := &m.Connections[i]
			d := provider.Lookup(c.Provider)
			if !c.Inactive && d != nil && d.Compatible == compatible && shapeOf(d) != nil && d.Serves(generations) {
				list = append(list, c)
			}
		}
	}
	return list
}

// plan is one upstream call.
type plan struct {
	endpoint string // of the provider's row
	model    string
	parts    []provider.Part
	query    string // added to the address
	url      string // an address that the upstream gave, instead of endpoint
	header   httpmsg.Header
	body     []byte
	dropped  []string
}

var errForeign = errors.New("videos: the upstream named an address that is not its own")

func (p *plan) request(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
	method, url, err := to.Provider.Endpoint(conn, p.endpoint, p.model, p.parts...)
	if err != nil {
		return nil, err
	}
	if p.url != "" {
		if !download.SameSite(p.url, url) {
			return nil, endpoint.BadBody(errForeign)
		}
		url = p.url
	}
	if p.query != "" {
		url += "?" + p.query
	}
	req := &upstream.Request{Method: method, URL: url, Header: make(httpmsg.Header, 0, 8)}
	req.Header = append(append(req.Header, httpmsg.Field{Name: "accept", Value: "application/json"}), p.header...)
	if p.body != nil {
		req.Header = append(req.Header, httpmsg.Field{Name: "content-type", Value: "application/json"})
		req.Body = stream.FromBytes(p.body)
	}
	return req, nil
}

// state is what a provider says of a job, in xAI's words.
type state struct {
	Status   string // pending, done, failed, expired
	Progress int    // 0–100, -1 when not known
	Model    string
	URL      string
	Duration float64
	Code     string
	Message  string
	// private is an address that only the account may get, endpoint one of the
	// provider's row with the video: the client gets it from the gateway.
	private, endpoint string
	// data is the video itself, base64, and mime its type.
	data, mime string
}

func (s *state) json() []byte {
	type video struct {
		URL      string  `json:"url"`
		Duration float64 `json:"duration,omitempty"`
	}
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	out := struct {
		Status   string   `json:"status"`
		Progress *int     `json:"progress,omitempty"`
		Model    string   `json:"model,omitempty"`
		Video    *video   `json:"video,omitempty"`
		Error    *failure `json:"error,omitempty"`
	}{Status: s.Status, Model: s.Model}
	if s.Status == "done" {
		s.Progress = 100
		if s.URL != "" {
			out.Video = &video{s.URL, min(max(s.Duration, 0), 1e9)} // JSON has no infinite numbers; 1e999 is read as one
		}
	}
	if s.Progress >= 0 && s.Status != "failed" {
		out.Progress = &s.Progress
	}
	if s.Status == "failed" || s.Status == "expired" {
		s.Code = cmp.Or(s.Code, "generation_failed")
		s.Message = cmp.Or(s.Message, "the provider could not make the video")
		out.Error = &failure{s.Code, endpoint.Excerpt(s.Message)}
	}
	b, _ := json.Marshal(out) // strings and finite numbers: cannot fail
	return b
}

// words are a provider's own names for the states of jobs.
type words struct{ done, failed, expired string }

// state returns xAI's word; one that is not known counts as pending.
func (w words) state(word string) state {
	in := func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, "|"), func(v string) bool {
			return v != "" && strings.EqualFold(v, word)
		})
	}
	s := state{Status: "pending", Progress: -1}
	switch {
	case in(w.done):
		s.Status = "done"
	case in(w.failed):
		s.Status = "failed"
	case in(w.expired):
		s.Status = "expired"
	}
	return s
}

// byID is the poll of providers with one endpoint for it.
func byID(part string) func(string, int, []byte) (*plan, error) {
	return func(name string, _ int, _ []byte) (*plan, error) {
		return &plan{endpoint: "videoStatus", parts: []provider.Part{{Name: part, Value: name, Any: true}}}, nil
	}
}

// field returns the text at a path of the answer as the job's name.
func field(path string) func([]byte, string) string {
	return func(raw []byte, _ string) string { return textOf(gjson.GetBytes(raw, path)) }
}

// textOf returns a string, or a number as it is written.
func textOf(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.Number:
		return v.Raw
	}
	return ""
}

func raw(v gjson.Result) json.RawMessage { return json.RawMessage(v.Raw) }

// write makes a body and takes note of what was not read.
func write(endpoint, model string, in *input, body map[string]any) (*plan, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &plan{endpoint: endpoint, model: model, body: b, dropped: in.dropped()}, nil
}

// set adds a member unless it is empty.
func set(body map[string]any, name string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case int64:
		if v == 0 {
			return
		}
	case int:
		if v == 0 {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case gjson.Result:
		if !v.Exists() {
			return
		}
		value = raw(v)
	}
	body[name] = value
}
