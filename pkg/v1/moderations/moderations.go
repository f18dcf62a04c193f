// Package moderations serves POST /v1/moderations in OpenAI's shape.
//
//	{model?, input: string, strings or parts} → {id, model, results[{flagged, categories, category_scores, …}]}
//
// The body goes up as it came, only the model is replaced.
package moderations

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	maxAnswer = 8 << 20 // bytes
	maxInputs = 2048
)

// usual are the models by their vendors' names: the one that is used where the
// client names none, and what the bare names of the vendor's begin with.
var usual = [...]struct{ alias, model, begins string }{
	{"openai", "omni-moderation-latest", "omni-moderation"},
	{"openai", "omni-moderation-latest", "text-moderation"},
	{"mistral", "mistral-moderation-latest", "mistral-moderation"},
}

// Handler serves the endpoint.
type Handler struct {
	Accounts accounts.Sender
}

// Create parses, resolves, sends and shapes the answer.
func (h *Handler) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	asked, err := parse(body)
	if err != nil {
		return nil, err
	}
	targets, err := h.targets(c, asked)
	if err == nil {
		err = endpoint.CheckFurtherModels(c.Key, body, targets)
	}
	if err != nil {
		return nil, err
	}
	x := exchange{body: body, inputs: texts(body), limits: &c.Machine.Settings}
	res, err := h.Accounts.Send(ctx, &accounts.Call{Machine: c.Machine, Request: c.Request, Trace: &c.Trace,
		Targets: targets, Build: x.build, Read: x.read, Repeats: true, Estimate: accounts.EstimateOf(body)})
	if err != nil {
		return nil, err
	}
	if asked == "" {
		asked = res.Target.ID()
	}
	out, err := sjson.SetBytes(res.Attempt.State.([]byte), "model", asked)
	if err != nil {
		return nil, endpoint.BadBody(err)
	}
	return endpoint.JSONAnswer(res.Header, out), nil
}

// parse checks a body and returns its model, or "".
func parse(body []byte) (string, error) {
	p := endpoint.Read(body, "model", "input")
	model := p.Text("model", false)
	v := p.Value("input")
	list := v.Array() // of one item, if the input is not an array
	ok := v.Exists() && (v.IsArray() || v.Type == gjson.String) && len(list) <= maxInputs
	for i := range list {
		ok = ok && list[i].Type == list[0].Type && usable(list[i])
	}
	if !ok || len(list) == 0 {
		p.Fail("input", "input must be a non-empty string, a list of up to "+strconv.Itoa(maxInputs)+" such strings, or a list of parts with text or image_url")
	}
	return model, p.Err
}

// texts returns the number of results that a checked body asks for: one per
// string, and one for all parts together.
func texts(body []byte) int {
	if v := gjson.GetBytes(body, "input"); v.IsArray() && v.Get("0").Type == gjson.String {
		return len(v.Array())
	}
	return 1
}

// usable reports whether one item of the input is a text or a part.
func usable(e gjson.Result) bool {
	if e.Type == gjson.String {
		return e.Str != ""
	}
	switch e.Get("type").Str {
	case "text":
		return e.Get("text").Type == gjson.String
	case "image_url":
		return e.Get("image_url.url").Type == gjson.String
	}
	return false
}

// targets resolves the model. Without one, or with a vendor's bare name, the
// first connected provider that moderates is used.
func (h *Handler) targets(c *auth.Call, asked string) ([]routing.Target, error) {
	model := asked
	if !strings.Contains(asked, "/") && c.Machine.Combo(asked) == nil && c.Machine.Alias(asked) == "" {
		for i := range usual {
			u := &usual[i]
			switch {
			case asked == "" && len(c.Machine.Active(u.alias)) > 0:
				model = u.alias + "/" + u.model
			case asked != "" && strings.HasPrefix(asked, u.begins):
				model = u.alias + "/" + asked
			default:
				continue
			}
			break
		}
	}
	if model == "" {
		e := apierr.Invalid("model", "No account of a provider with moderation is connected. Add one under Providers.")
		e.Code = "no_credentials"
		return nil, e
	}
	return endpoint.Targets(c, model, "", func(to *routing.Target) error {
		if !to.Provider.Serves("moderations") {
			return apierr.Invalid("model", "The provider of this model does not moderate.")
		}
		return nil
	})
}

// exchange is one client's request.
type exchange struct {
	body   []byte
	inputs int // number of results that the answer must have
	limits *store.Settings
}

func (x *exchange) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	method, url, err := to.Provider.Endpoint(conn, "moderations", to.Model)
	if err != nil {
		return nil, err
	}
	body, err := sjson.SetBytes(x.body, "model", to.Model)
	if err != nil {
		return nil, err
	}
	return &accounts.Attempt{Request: upstream.Request{
		Method: method, URL: url, Body: stream.FromBytes(body), HeaderTimeout: x.limits.FirstByte(),
		Timeout: x.limits.Whole(), MaxBody: maxAnswer,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}, {Name: "accept", Value: "application/json"},
			{Name: "accept-encoding", Value: "identity"}},
	}}, nil
}

// read reads an answer. For a provider without flagged (Mistral), a result is
// flagged if any of its categories is.
func (x *exchange) read(a *accounts.Attempt, resp *upstream.Response) error {
	raw, err := stream.ReadAll(resp.Body, maxAnswer)
	if err == nil {
		err = endpoint.ValidJSON(raw)
	}
	list := gjson.GetBytes(raw, "results")
	if err == nil && (!list.IsArray() || !gjson.ParseBytes(raw).IsObject()) {
		err = errors.New("the answer has no results")
	}
	if err != nil {
		return endpoint.BadBody(err)
	}
	// Written from the end, so that the positions before stay valid.
	all := list.Array()
	if len(all) < x.inputs {
		// A missing verdict must not read as a good one.
		return endpoint.BadBody(errors.New("the answer has fewer results than there are inputs"))
	}
	for i := len(all) - 1; i >= 0; i-- {
		r := all[i]
		if !r.IsObject() || !r.Get("categories").IsObject() {
			return endpoint.BadBody(errors.New("a result has no categories"))
		}
		told := r.Get("flagged")
		if told.IsBool() {
			continue
		}
		verdict, judged, ok := "false", false, told.Type == gjson.Null
		r.Get("categories").ForEach(func(_, v gjson.Result) bool {
			if v.Type == gjson.True {
				verdict = "true"
			}
			judged = judged || v.IsBool()
			ok = ok && (v.IsBool() || v.Type == gjson.Null) // null: it is not judged for this
			return ok
		})
		if !ok || !judged {
			return endpoint.BadBody(errors.New("a verdict is neither true nor false"))
		}
		span, text := jsonscan.Span{Start: r.Index, End: r.Index + 1}, `{"flagged":`+verdict+`,`
		if told.Exists() {
			span, text = jsonscan.Span{Start: told.Index, End: told.Index + len(told.Raw)}, verdict
		}
		raw = jsonscan.Splice(raw, span, []byte(text))
	}
	a.State, a.Used.Tokens = raw, llm.UsageOf(llm.Chat, raw)
	return nil
}
