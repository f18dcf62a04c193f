// Package images serves /v1/images: generations, edits and variations in
// OpenAI's shapes (docs/reference/api-shapes.md, 6), whatever the provider
// speaks.
//
// A creation is billed: it is sent again only after a definite refusal. A
// provider that queues is asked until the image is there.
package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/endpoint/upload"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Handler serves the endpoints.
type Handler struct {
	Accounts accounts.Sender
	Once     *endpoint.Once  // keeps idempotency keys
	Pause    upstream.Pauser // between polls of a provider that queues
	// Downloads gets images that a provider only points to, when the client
	// asked for their bytes.
	Downloads *download.Downloads
	Now       func() time.Time
}

const (
	imageTotal = 15 * time.Minute
	jobWait    = 5 * time.Minute // for the image of a job that is polled
	maxImages  = 32 << 20        // bytes of an answer (docs/reference/reliability.md, T43)
	maxImage   = 32 << 20        // bytes of one image
)

// The endpoints of a provider's row, which are also what a creation is.
const (
	generations = "images"
	edits       = "imageEdits"
	variations  = "imageVariations"
)

// creation is one client's creation on its way.
type creation struct {
	h        *Handler
	endpoint string
	call     *auth.Call
	*request                // of a JSON body
	form     *upload.Upload // of a form

	taken bool // an upstream has accepted the creation
	key   string
}

// attempt is one upstream call of a creation.
type attempt struct {
	accounts.Attempt
	shape *shape
	made  *made // the answer of a provider of another shape
	// ordered is the number of images that the client asks for, options their quality
	// and size.
	ordered int64
	options []string
	// body is the client's, or what is left of it without the fields that the provider has
	// refused; next is that of the account's next attempt.
	body, next []byte
	refused    *apierr.Error // the last refusal of a field, or nil
}

// maxOrder is the largest body, in bytes, that is read for its order and asked for again
// without a refused field.
const maxOrder = 64 << 10

// order returns what the price of a creation may depend on.
func (x *creation) order() (n int64, options []string) {
	if x.request == nil || len(x.body) > maxOrder {
		return 1, nil
	}
	v := gjson.GetManyBytes(x.body, "n", "quality", "size")
	for _, o := range v[1:] {
		if o.Str != "" {
			options = append(options, o.Str)
		}
	}
	return max(v[0].Int(), 1), options
}

// Generations answers POST /v1/images/generations, JSON. Partial images pass
// as the provider streams them.
func (h *Handler) Generations(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.create(ctx, c, generations)
}

// Edits answers POST /v1/images/edits: a form, or JSON with the addresses of
// images.
//
// A form may flow up when its model is known before its first file (the part
// model comes first, ?model= or the field x-model), and can then be sent once
// only. It is held by the host, up to 25 MiB, if there is another account and
// room for it, or an idempotency key; so is any other form.
func (h *Handler) Edits(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.create(ctx, c, edits)
}

// Variations answers POST /v1/images/variations, a form as that of Edits.
func (h *Handler) Variations(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.create(ctx, c, variations)
}

func (h *Handler) create(ctx context.Context, c *auth.Call, operation string) (*httpmsg.Response, error) {
	x := &creation{h: h, endpoint: operation, call: c}
	var err error
	if x.key, err = endpoint.IdempotencyKey(c.Header); err != nil {
		return nil, err
	}
	if operation != generations && !endpoint.IsJSON(c.Header.Get("content-type")) {
		return h.upload(ctx, x)
	}
	body, err := c.ReadUpTo(endpoint.MaxForm)
	if err != nil {
		return nil, err
	}
	if x.request, err = parse(body); err != nil {
		return nil, err
	}
	targets, err := h.targets(x, x.asked)
	if err == nil {
		err = endpoint.CheckFurtherModels(x.call.Key, body, targets)
	}
	if err != nil {
		return nil, err
	}
	return h.once(ctx, x, targets)
}

// once sends a creation; with an idempotency key, at most once.
func (h *Handler) once(ctx context.Context, x *creation, targets []routing.Target) (*httpmsg.Response, error) {
	if x.key == "" || h.Once == nil {
		return h.send(ctx, x, targets)
	}
	var body []byte
	var held stream.Held
	if x.form != nil {
		held = x.form.Held
	} else {
		body = x.body
	}
	digest, err := endpoint.Digest(x.call, x.endpoint, body, held)
	if err != nil {
		return nil, err
	}
	claim, replay, err := h.Once.Begin(ctx, x.call, x.key, digest)
	if claim == nil {
		return replay, err
	}
	resp, err := h.send(ctx, x, targets)
	claim.End(ctx, resp, err, x.taken)
	return resp, err
}

// upload sends a form.
func (h *Handler) upload(ctx context.Context, x *creation) (*httpmsg.Response, error) {
	var err error
	if x.form, err = upload.Begin(x.call, "image"); err != nil {
		return nil, err
	}
	var targets []routing.Target
	if x.form.Model != "" {
		if targets, err = h.targets(x, x.form.Model); err != nil {
			return nil, err
		}
	}
	if x.form.Model == "" || x.form.Small() || x.key != "" || shapeOf(targets[0].Provider) != &openAI ||
		x.form.Repeatable(targets) {
		release, err := x.form.Hold(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		if targets == nil {
			if targets, err = h.targets(x, x.form.Model); err != nil {
				return nil, err
			}
		}
		for i := range targets {
			if shapeOf(targets[i].Provider) != &openAI && x.request == nil {
				if x.request, err = ofForm(x.form); err != nil {
					return nil, err
				}
				if err := x.call.Memory.Acquire(ctx, memory.Work, memory.Both(x.size)); err != nil {
					return nil, err
				}
				defer x.call.Memory.Drop(memory.Work)
			}
		}
	} else {
		release, err := x.form.Flow(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		targets = targets[:1]
	}
	return h.once(ctx, x, targets)
}

func (h *Handler) targets(x *creation, model string) ([]routing.Target, error) {
	return endpoint.Targets(x.call, model, catalog.Image, func(to *routing.Target) error {
		s := shapeOf(to.Provider)
		switch {
		case s == nil || !to.Provider.Serves(s.at(x.endpoint)):
			return endpoint.Refused("The provider of this model does not offer this for images.")
		case s.create != nil && x.endpoint != generations && (x.endpoint != edits || !s.edits):
			return endpoint.Refused("The provider of this model does not change images.")
		}
		return nil
	})
}

// send tries the targets and shapes the answer.
func (h *Handler) send(ctx context.Context, x *creation, targets []routing.Target) (*httpmsg.Response, error) {
	c := x.call
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: x.build, Read: read, Billable: true,
		Estimate: x.estimate(),
	})
	if err != nil {
		return nil, err
	}
	x.taken = true
	a := res.Attempt.State.(*attempt)
	if a.shape.create == nil {
		if t := res.Header.Get("content-type"); strings.HasPrefix(strings.ToLower(t), "text/event-stream") {
			return endpoint.Watch(c.Machine, res, `"type":"image_generation.completed"`, `"type":"image_edit.completed"`), nil
		}
		return endpoint.Forward(c.Machine, res), nil
	}
	done := a.made
	if done.job != "" {
		if done, err = h.wait(ctx, x, res, a); err != nil {
			return nil, x.waited(err)
		}
	}
	return x.answer(ctx, res, done)
}

// estimate returns what the creation may use, for budgets.
func (x *creation) estimate() (e accounts.Estimate) {
	if len(x.call.Machine.Budgets) == 0 {
		return e
	}
	m := &usage.Media{}
	m.Images, m.Options = x.order()
	if x.request != nil && len(x.body) <= maxOrder {
		e = accounts.EstimateOf([]byte(gjson.GetBytes(x.body, "prompt").Str))
	}
	e.Media = m
	return e
}

// build makes the upstream's request for one target and account.
func (x *creation) build(to *routing.Target, conn *store.Connection,
	before *accounts.Attempt) (*accounts.Attempt, error) {
	a := &attempt{shape: shapeOf(to.Provider)}
	a.State = a
	a.ordered, a.options = x.order()
	method, url, err := to.Provider.Endpoint(conn, a.shape.of(x.endpoint, to.Model), to.Model)
	if err != nil {
		return nil, err
	}
	if x.form != nil {
		a.Fault = x.form.Failed
	}
	a.Request = upstream.Request{Method: method, URL: url, HeaderTimeout: x.call.Machine.Settings.FirstByte(),
		Timeout: imageTotal}
	req := &a.Request
	if a.shape.create == nil {
		req.Header = provider.RequestHeader(x.call.Header, clientheader.ToImages)
		if x.form != nil {
			req.Body, err = x.form.Body(to.Model, before)
			return &a.Attempt, err
		}
		req.Body = x.forModel(to.Model)
		if len(x.body) <= maxOrder {
			a.Forms = a
			a.body = x.body
		}
		if before != nil && before.Retry == accounts.OtherForm {
			last := before.State.(*attempt)
			a.body, a.refused, a.Dropped = last.next, last.refused, last.Dropped
			at, err := jsonscan.Read(a.body, "model")
			if err != nil {
				return nil, err
			}
			req.Body = endpoint.Splice(a.body, at.Get("model").Span, jsonscan.Quote(nil, to.Model))
		}
		return &a.Attempt, nil
	}
	in := x.input()
	p, err := a.shape.create(in, to.Model)
	if err != nil {
		return nil, err
	}
	a.Dropped = in.dropped()
	req.Header = httpmsg.Header{{Name: "content-type", Value: "application/json"},
		{Name: "accept", Value: "application/json"}}
	for _, f := range p.header {
		req.Header.Set(f.Name, f.Value)
	}
	if x.key != "" {
		req.Header.Set("idempotency-key", x.key)
	}
	if p.contentType != "" {
		req.Header[0].Value = p.contentType
	}
	if p.body, err = x.fill(p.body); err != nil {
		return nil, err
	}
	req.Body = stream.FromBytes(p.body)
	req.MaxBody, req.Timeout = maxImages, x.call.Machine.Settings.Whole()
	return &a.Attempt, nil
}

// read reads an answer that must be whole.
func read(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*attempt)
	if a.shape.create == nil {
		if t := strings.ToLower(resp.Header.Get("content-type")); !endpoint.IsJSON(t) &&
			!strings.HasPrefix(t, "text/event-stream") {
			return outcome(endpoint.BadBody(errNoImage))
		}
		err := endpoint.CheckJSON(resp)
		if err == nil && !endpoint.HasField(resp, "data") {
			err = endpoint.BadBody(errNoImage)
		}
		if b, whole := resp.Body.(*stream.Bytes); whole && err == nil {
			a.used(gjson.GetBytes(b.All(), "data.#").Int(), gjson.GetBytes(b.All(), "usage"))
		}
		return outcome(err)
	}
	raw, err := stream.ReadAll(resp.Body, maxImages)
	if err == nil && endpoint.IsJSON(resp.Header.Get("content-type")) {
		err = endpoint.ValidJSON(raw)
	}
	if err == nil {
		a.made, err = a.shape.read(raw, resp.Header.Get("content-type"))
	}
	var shown *apierr.Error
	if errors.As(err, &shown) {
		return err
	}
	if err == nil && a.made.job == "" && len(a.made.images) == 0 {
		err = errNoImage
	}
	if err != nil {
		return outcome(endpoint.BadBody(err))
	}
	a.used(int64(len(a.made.images)), gjson.GetBytes(raw, "usage"))
	if v := gjson.GetBytes(raw, "usageMetadata"); v.IsObject() {
		a.Used.Tokens = llm.CountUsage(llm.Gemini, []byte(v.Raw))
	}
	return nil
}

// used notes what the answer is billed by: its images, those that a job will make, and
// the tokens that it states.
//
//	usage {input_tokens, output_tokens, input_tokens_details{image_tokens}, output_tokens_details{image_tokens}, cost_in_usd_ticks}
//
// Without details all output is of images.
func (a *attempt) used(images int64, v gjson.Result) {
	m := &usage.Media{Images: images, Options: a.options}
	if a.made != nil && a.made.job != "" {
		m.Images = a.ordered
	}
	a.Used.Media = m
	t := &a.Used.Tokens
	if in := v.Get("input_tokens"); in.Type == gjson.Number {
		*t = llm.Usage{Known: true, Input: ir.Count(in), Output: ir.Count(v.Get("output_tokens"))}
		t.ImageInput = ir.Count(v.Get("input_tokens_details.image_tokens"))
		if t.ImageOutput = t.Output; v.Get("output_tokens_details.image_tokens").Exists() {
			t.ImageOutput = ir.Count(v.Get("output_tokens_details.image_tokens"))
		}
	}
	for _, name := range [...]string{"cost", "cost_in_usd_ticks"} {
		t.Charge(v, name, v.Get(name))
	}
}

var errNoImage = errors.New("images: the answer has no image")

// outcome marks an unreadable answer to a creation: it may have been billed.
func outcome(err error) error {
	var e *apierr.Error
	if errors.As(err, &e) {
		e.Code, e.NoRetry = "upstream_outcome_unknown", true
	}
	return err
}

// waited marks the error of a failed wait: the image may have been made, unless
// the provider says otherwise.
func (x *creation) waited(err error) error {
	var e *apierr.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Status == 400 || e.Status == 422 {
		x.taken = false
	} else {
		e.NoRetry = true
	}
	return err
}

// wait polls the account that has the job until the image is finished.
func (h *Handler) wait(ctx context.Context, x *creation, res *accounts.Result, a *attempt) (*made, error) {
	to := *res.Target
	to.Connections = []*store.Connection{res.Connection}
	began, pause, failures := h.Now(), time.Second, 0
	for step := 0; ; {
		if h.Now().Sub(began) > jobWait {
			return nil, apierr.New(504, "upstream_timeout", "The provider did not finish the image in time.")
		}
		p := a.shape.poll(a.made, to.Model, step)
		polled, err := h.Accounts.Send(ctx, &accounts.Call{
			Machine: x.call.Machine, Request: x.call.Request, Trace: &x.call.Trace, Targets: []routing.Target{to},
			Estimate: accounts.Estimate{Follows: true},
			Build: func(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
				method, url, err := to.Provider.Endpoint(conn, p.endpoint, p.model, p.parts...)
				if err != nil {
					return nil, err
				}
				if p.url != "" {
					if !download.SameSite(p.url, url) {
						return nil, apierr.New(502, "bad_upstream_address", "The provider named an address that is not its own.")
					}
					url = p.url
				}
				req := upstream.Request{Method: method, URL: url, Header: httpmsg.Header{{Name: "accept",
					Value: "application/json"}}, Timeout: time.Minute, MaxBody: maxImages}
				if p.body != nil {
					req.Header.Add("content-type", "application/json")
					req.Body = stream.FromBytes(p.body)
				}
				return &accounts.Attempt{Request: req, Used: accounts.StatedCost(0, true)}, nil
			},
			Read: func(up *accounts.Attempt, resp *upstream.Response) error {
				raw, err := stream.ReadAll(resp.Body, maxImages)
				if err == nil {
					err = endpoint.ValidJSON(raw)
				}
				if err == nil {
					up.State, err = a.shape.state(raw, step)
				}
				var shown *apierr.Error
				if err != nil && !errors.As(err, &shown) {
					err = endpoint.BadBody(err)
				}
				return err
			},
		})
		var e *apierr.Error
		var next *made
		if err == nil {
			next = polled.Attempt.State.(*made)
		}
		switch {
		case err == nil && len(next.images) > 0:
			return next, nil
		case err == nil && next.more:
			step++
			continue
		case err == nil:
			failures = 0
		case errors.As(err, &e) && (e.Status == 429 || e.Status >= 500) && e.Code != "bad_upstream_address" && failures < 5:
			failures++ // the job continues
			pause = max(pause, min(e.RetryAfter, 10*time.Second))
		default:
			return nil, err
		}
		if err := h.Pause.Pause(ctx, pause); err != nil {
			return nil, upstream.ErrCanceled
		}
		pause = min(pause*3/2, 5*time.Second)
	}
}

// answer writes {created, data[{b64_json|url}]} as the client asked: an image
// of which only the address is known is fetched when its bytes are wanted, and
// one of which only the bytes are becomes a data: address when a URL is.
func (x *creation) answer(ctx context.Context, res *accounts.Result, done *made) (*httpmsg.Response, error) {
	type item struct {
		B64  string `json:"b64_json,omitempty"`
		URL  string `json:"url,omitempty"`
		Text string `json:"revised_prompt,omitempty"`
	}
	out := struct {
		Created int64  `json:"created"`
		Data    []item `json:"data"`
		Usage   any    `json:"usage,omitempty"`
	}{Created: x.h.Now().Unix()}
	events := x.streams()
	wanted := x.text("response_format")
	if events {
		wanted = "b64_json"
	}
	for _, m := range done.images {
		it := item{Text: m.text}
		switch {
		case m.url != "" && wanted == "b64_json":
			_, data, ok := download.DataURI(m.url)
			if !ok {
				resp, err := x.h.Downloads.Get(ctx, x.call.Request, m.url, nil, maxImage)
				if err != nil {
					return nil, err
				}
				raw, err := stream.ReadAll(resp.Body, maxImage)
				if err != nil {
					return nil, endpoint.BadBody(err)
				}
				data = base64.StdEncoding.EncodeToString(raw)
			}
			it.B64 = data
		case m.url != "":
			it.URL = m.url
		case wanted == "url":
			it.URL = "data:" + m.mime + ";base64," + m.b64
		default:
			it.B64 = m.b64
		}
		out.Data = append(out.Data, it)
	}
	if done.usage != nil {
		out.Usage = done.usage
	}
	if events {
		kind := "image_generation.completed"
		if x.endpoint == edits {
			kind = "image_edit.completed"
		}
		var all []byte
		for i, it := range out.Data {
			e := struct {
				Type    string `json:"type"`
				B64     string `json:"b64_json"`
				Created int64  `json:"created_at"`
				Usage   any    `json:"usage,omitempty"`
			}{Type: kind, B64: it.B64, Created: out.Created}
			if i == len(out.Data)-1 {
				e.Usage = out.Usage
			}
			b, err := json.Marshal(e)
			if err != nil {
				return nil, err
			}
			all = append(append(append(append(all, "event: "+kind+"\ndata: "...), b...), '\n'), '\n')
		}
		return endpoint.Answer(res.Header, "text/event-stream", all), nil
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return endpoint.JSONAnswer(res.Header, body), nil
}
