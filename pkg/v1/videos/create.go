package videos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// The endpoints of a provider's row, which are also what a creation is.
const (
	generations = "videos"
	edits       = "videoEdits"
	extensions  = "videoExtensions"
)

// Generations answers POST /v1/videos/generations.
//
// A JSON body goes up byte for byte, save that the alias is cut out of its
// model; any other body without a change at all, and its provider is that of
// the header x-provider, else of the query parameter provider, else of the
// machine's first connection with video. The answer passes as it came.
func (h *Handler) Generations(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.create(ctx, c, generations)
}

// Edits answers POST /v1/videos/edits, as Generations.
func (h *Handler) Edits(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.create(ctx, c, edits)
}

// Extensions answers POST /v1/videos/extensions, as Generations.
func (h *Handler) Extensions(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.create(ctx, c, extensions)
}

// creation is one client's creation on its way.
type creation struct {
	endpoint string
	call     *auth.Call
	*request             // of a JSON body
	held     stream.Held // of any other
	targets  []routing.Target
}

// attempt is one upstream call of a creation.
type attempt struct {
	accounts.Attempt
	shape *shape
	raw   []byte // the answer
	name  string // the upstream's own name of the job
}

func (h *Handler) create(ctx context.Context, c *auth.Call, operation string) (*httpmsg.Response, error) {
	key, err := endpoint.IdempotencyKey(c.Header)
	if err != nil {
		return nil, err
	}
	x := &creation{endpoint: operation, call: c}
	release, err := h.read(ctx, x)
	if err != nil {
		return nil, err
	}
	defer release()
	if x.targets, err = h.targets(x); err != nil {
		return nil, err
	}
	if key == "" {
		return h.send(ctx, x)
	}
	var body []byte
	if x.request != nil {
		body = x.body
	}
	digest, err := endpoint.Digest(c, operation, body, x.held)
	if err != nil {
		return nil, err
	}
	once := &endpoint.Once{Object: h.Object}
	claim, replay, err := once.Begin(ctx, c, key, digest)
	if claim == nil {
		return replay, err
	}
	resp, err := h.send(ctx, x)
	claim.End(ctx, resp, err, false)
	return resp, err
}

// read takes in the body. release releases what is held of it.
func (h *Handler) read(ctx context.Context, x *creation) (release func(), err error) {
	c := x.call
	if c.Body == nil {
		return nil, apierr.Invalid("", "The request has no body.")
	}
	encoding := c.Header.Get("content-encoding")
	if endpoint.IsJSON(c.Header.Get("content-type")) && (encoding == "" || encoding == "identity") {
		body, err := c.ReadUpTo(endpoint.MaxForm)
		if err != nil {
			return nil, err
		}
		x.request, err = parse(body)
		return func() {}, err
	}
	x.held, release, err = c.Memory.Hold(ctx, c.Body, c.Length, endpoint.MaxForm)
	return release, err
}

// targets finds who may make the video.
func (h *Handler) targets(x *creation) ([]routing.Target, error) {
	c := x.call
	asked := x.model()
	named := cmp.Or(c.Header.Get("x-provider"), endpoint.Query(c.Query, "provider"))
	if named != "" {
		model := asked
		if rest, ok := strings.CutPrefix(model, named+"/"); ok {
			model = rest
		} else if d := provider.Lookup(named); d != nil {
			model = strings.TrimPrefix(model, d.Alias+"/")
		} else if d := provider.ByAlias(named); d != nil {
			model = strings.TrimPrefix(model, d.ID+"/")
		}
		if !provider.CheckAlias(named) {
			return nil, apierr.Invalid("provider", "The provider is not known.")
		}
		// A body that is not looked into may be for any model.
		placeholder := model == ""
		if placeholder {
			model = "video"
		}
		x.call.Trace.Asked = model
		all, err := routing.Resolve(named+"/"+model, c.Machine, "video", c.Session())
		if err != nil {
			return nil, err
		}
		if placeholder {
			for i := range all {
				all[i].Model = ""
			}
		}
		// The client's name of the model is not checked: it goes to the named
		// provider.
		return endpoint.FilterTargets(all, c.Key, "", x.usable)
	}
	if asked != "" {
		x.call.Trace.Asked = asked
		all, err := routing.Resolve(asked, c.Machine, "video", c.Session())
		var e *apierr.Error
		switch {
		case err == nil:
			return endpoint.FilterTargets(all, c.Key, asked, x.usable)
		case !errors.As(err, &e) || e.Status != 400 || e.Code != "model_not_found":
			return nil, err
		}
	}
	var refusal error
	for _, conn := range makers(c.Machine) {
		d := provider.Lookup(conn.Provider)
		to := routing.Target{Provider: d, Alias: aliasOf(d, conn), Model: asked, Kind: "video",
			Connections: c.Machine.Active(d.ID)}
		kept, err := endpoint.FilterTargets([]routing.Target{to}, c.Key, "", x.usable)
		if err == nil {
			return kept, nil
		}
		refusal = err
	}
	if refusal == nil {
		e := apierr.Invalid("model", "No account of a provider with videos is connected. Add one under Providers.")
		e.Code = "no_credentials"
		refusal = e
	}
	return nil, refusal
}

// usable returns why a target cannot make the video, or nil.
func (x *creation) usable(to *routing.Target) error {
	s := shapeOf(to.Provider)
	switch {
	case s == nil || !to.Provider.Serves(generations):
		return endpoint.Refused("The provider of this model has no videos.")
	case s.native && !to.Provider.Serves(x.endpoint):
		return endpoint.Refused("The provider of this model has no such creation of videos.")
	case s.native:
		return nil
	case x.request == nil:
		return endpoint.Refused("The provider of this model takes a JSON body.")
	case x.endpoint != generations && x.endpoint != s.also:
		return endpoint.Refused("The provider of this model has no such creation of videos.")
	case to.Model == "":
		return apierr.Invalid("model", "model is required.")
	}
	return nil
}

// send makes the creation and notes who made the job.
func (h *Handler) send(ctx context.Context, x *creation) (*httpmsg.Response, error) {
	c := x.call
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: x.targets,
		Build: x.build, Read: read, Billable: true, Estimate: x.estimate(),
	})
	if err != nil {
		return nil, err
	}
	a := res.Attempt.State.(*attempt)
	id := idOf(a.name)
	job := &rpc.Job{
		ID: id, Kind: "video", ConnectionID: res.Connection.ID, Provider: res.Target.Provider.ID,
		Origin: download.Origin(a.Request.URL), Model: res.Target.Model, KeyID: c.Trace.KeyID,
	}
	if len(a.name) > maxName {
		job.Name = a.name
	}
	saved := h.put(ctx, c.Machine.ID, job)
	if !saved {
		h.lost.add(c.Machine.ID, job)
	}
	var resp *httpmsg.Response
	if a.shape.native {
		resp = &httpmsg.Response{Status: res.Status, Header: provider.ResponseHeader(res.Header),
			Body: stream.FromBytes(h.clean(ctx, c, res.Connection, withID(a.raw, id)))}
	} else {
		body, _ := json.Marshal(map[string]string{"request_id": id})
		resp = endpoint.JSONAnswer(res.Header, body)
	}
	if !saved {
		resp.After = append(resp.After, func(ctx context.Context) {
			if h.put(ctx, c.Machine.ID, job) {
				h.lost.drop(c.Machine.ID, job.ID)
			}
		})
	}
	return resp, nil
}

// put notes a job in the machine's object, with one more try.
func (h *Handler) put(ctx context.Context, machineID string, job *rpc.Job) bool {
	for range 2 {
		if _, err := rpc.Call[struct{}](ctx, h.Object, machineID, "job.put", job); err == nil {
			return true
		}
	}
	return false
}

// estimate returns what the creation may use, for budgets.
func (x *creation) estimate() (e accounts.Estimate) {
	if len(x.call.Machine.Budgets) > 0 {
		e.Media = x.order()
	}
	return e
}

// maxOrder is the size of a body, in bytes, in which the order is looked for.
const maxOrder = 64 << 10

// order returns what the price of a video may depend on: its length and its size.
func (x *creation) order() *usage.Media {
	if x.request == nil || len(x.body) > maxOrder {
		return nil
	}
	m := &usage.Media{}
	for i, v := range gjson.GetManyBytes(x.body, "seconds", "duration", "size", "resolution") {
		switch {
		case i < 2 && m.Seconds == 0:
			m.Seconds = max(v.Float(), 0)
		case i >= 2 && v.Str != "":
			m.Options = append(m.Options, v.Str)
		}
	}
	return m
}

// build makes the upstream's request for one target and account.
func (x *creation) build(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
	a := &attempt{shape: shapeOf(to.Provider)}
	a.State, a.Used.Media = a, x.order()
	req := &a.Request
	if a.shape.native {
		method, url, err := to.Provider.Endpoint(conn, x.endpoint, to.Model)
		if err != nil {
			return nil, err
		}
		*req = upstream.Request{Method: method, URL: url, Header: provider.RequestHeader(x.call.Header,
			clientheader.ToVideos)}
		if x.request != nil {
			req.Body = x.forModel(to)
		} else {
			req.Body = x.held.Open()
		}
	} else {
		in, err := x.request.input()
		if err != nil {
			return nil, err
		}
		plan, err := a.shape.create(in, to.Model, x.endpoint)
		if err != nil {
			return nil, err
		}
		a.Dropped = plan.dropped
		up, err := plan.request(to, conn)
		if err != nil {
			return nil, err
		}
		*req = *up
		if key := x.call.Header.Get("idempotency-key"); key != "" {
			req.Header.Set("idempotency-key", key)
		}
	}
	req.Header.Set("accept-encoding", "identity")
	s := &x.call.Machine.Settings
	req.HeaderTimeout, req.Timeout = s.FirstByte(), s.Whole()
	return &a.Attempt, nil
}

// read reads the answer to a creation. One without the job's name leaves the
// outcome unknown: it must not be sent again. A name that came whole counts
// even when the answer broke off after it.
func read(up *accounts.Attempt, resp *upstream.Response) error {
	a := up.State.(*attempt)
	raw, readErr := readSome(resp.Body)
	resp.Body = stream.FromBytes(raw)
	a.raw = raw
	why := readErr
	if jsonscan.Valid(raw) {
		if a.shape.refusal != nil {
			if err := a.shape.refusal(raw); err != nil {
				return err
			}
		}
		if a.name = a.shape.name(raw, a.Target.Model); a.name != "" && len(a.name) <= maxStored {
			return nil
		}
	}
	if why == nil {
		why = errors.New("videos: the answer has no id of a job")
	}
	e := apierr.New(502, "upstream_outcome_unknown",
		"The provider's answer could not be read; the video may have been created.")
	if errors.Is(readErr, upstream.ErrTimeout) || errors.Is(readErr, stream.ErrTimeout) ||
		errors.Is(readErr, stream.ErrIdle) {
		e = apierr.New(504, "upstream_outcome_unknown",
			"The provider did not finish its answer in time; the video may have been created.")
	}
	if seen := resp.Header.Get("x-request-id"); seen != "" && len(seen) <= 128 && provider.SafeValue(seen) {
		e.Header.Add("x-weir-upstream-request-id", seen)
	}
	e.NoRetry, e.Err = true, why
	return e
}

// readSome reads a body to its end or to where it breaks off, and closes it.
func readSome(body io.ReadCloser) (raw []byte, err error) {
	if b, ok := body.(*stream.Bytes); ok {
		return b.All(), nil
	}
	defer body.Close()
	buf := make([]byte, 4<<10)
	for len(raw) <= maxAnswer {
		n, err := body.Read(buf)
		raw = append(raw, buf[:n]...)
		if err == io.EOF {
			return raw, nil
		}
		if err != nil {
			return raw, err
		}
	}
	return nil, stream.ErrTooLarge
}
