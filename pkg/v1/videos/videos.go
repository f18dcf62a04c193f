// Package videos serves /v1/videos: creation of video jobs, their state, and
// the finished video.
//
// A creation is billed, so it is sent once: again only after an upstream said
// that it did not take it (docs/reference/spec.md, 4.4). The account that made
// a job is noted in the machine's object before the answer leaves, and nothing
// else ever asks for that job. Whatever the provider speaks, the client sees
// xAI's shape (docs/reference/api-shapes.md, 7.1).
package videos

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Handler serves the endpoints.
type Handler struct {
	Accounts accounts.Sender
	Object   rpc.Stub
	// Downloads gets finished videos; Credentials is for those that their
	// provider sends only to the account.
	Downloads   *download.Downloads
	Credentials *accounts.Credentials

	lost lostJobs
}

const (
	maxAnswer  = 1 << 20  // bytes of an answer to a creation
	maxState   = 4 << 20  // bytes of a job's state
	maxInState = 40 << 20 // bytes of one that has the video in it
	// maxGuesses is how many connections are asked for a job whose creator the
	// object does not know (docs/reference/reliability.md, T12).
	maxGuesses = 3
)

// Get answers GET /v1/videos/{request_id}: what the job's own account says of
// it. A job that this machine did not create is 404 without an upstream call.
func (h *Handler) Get(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	p, err := h.poll(ctx, c)
	if err != nil {
		return nil, err
	}
	if p.shape.native {
		header := provider.ResponseHeader(p.res.Header)
		resp := &httpmsg.Response{Status: p.res.Status, Header: header,
			Body: stream.FromBytes(h.clean(ctx, c, p.conn, p.body))}
		if len(p.body) == 0 {
			resp.Header.Set("content-type", "application/json")
		}
		return resp, nil
	}
	if p.state.private != "" || p.state.endpoint != "" || p.state.data != "" {
		p.state.URL = c.Origin + "/v1/videos/" + p.id + "/content"
	}
	return endpoint.JSONAnswer(p.res.Header, p.state.json()), nil
}

// Content answers GET /v1/videos/{request_id}/content with the bytes of the
// finished video, streamed. 409 until the video is finished.
func (h *Handler) Content(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	p, err := h.poll(ctx, c)
	if err != nil {
		return nil, err
	}
	s := p.state
	if p.shape.native {
		s = readXAI(p.body)
	}
	if s.Status != "done" {
		e := apierr.New(409, "video_not_ready", "The video is not ready: the job is %s.", s.Status)
		e.NoRetry = s.Status != "pending"
		if s.Status == "pending" {
			e.RetryAfter = 5 * time.Second
		}
		return nil, e
	}
	if s.data != "" {
		video, err := base64.StdEncoding.DecodeString(s.data)
		if err != nil {
			return nil, endpoint.BadBody(err)
		}
		if !strings.HasPrefix(s.mime, "video/") {
			s.mime = "video/mp4"
		}
		return endpoint.Answer(nil, provider.ContentType(s.mime), video), nil
	}
	if s.endpoint != "" {
		if _, s.private, err = p.target.Provider.Endpoint(p.conn, s.endpoint, "",
			provider.Part{Name: "id", Value: p.name}); err != nil {
			return nil, notFound()
		}
	}
	if s.URL == "" && s.private == "" {
		return nil, apierr.New(404, "file_unavailable", "The job has no video.")
	}
	address, header := s.URL, httpmsg.Header(nil)
	if s.private != "" {
		address = s.private
		// The account's credential goes to the provider's own hosts only.
		if download.Origin(address) != p.origin {
			return nil, endpoint.BadBody(errors.New("videos: a file on another origin"))
		}
		cred, err := h.Credentials.Credential(ctx, c.Machine, p.conn)
		if err == nil {
			err = provider.Authorize(&header, p.target.Provider, p.conn, cred)
		}
		if err != nil {
			e := apierr.New(503, "key_unavailable", "The credentials of the account that made the video cannot be used at the moment. Check the account under Providers.")
			e.Err = err
			return nil, e
		}
	}
	resp, err := h.Downloads.Get(ctx, c.Request, address, header, 0)
	if err != nil {
		return nil, err
	}
	out := &httpmsg.Response{Status: 200, Header: provider.ResponseHeader(resp.Header), Body: resp.Body}
	if t := out.Header.Get("content-type"); t == "application/octet-stream" || t == "" {
		out.Header.Set("content-type", "video/mp4")
	}
	return out, nil
}

// polled is what an upstream says of a job.
type polled struct {
	id     string
	name   string // the upstream's own
	target routing.Target
	conn   *store.Connection
	origin string // of the provider's address
	shape  *shape
	res    *accounts.Result
	body   []byte
	state  state
}

// poll asks for the job of the call's request_id.
func (h *Handler) poll(ctx context.Context, c *auth.Call) (*polled, error) {
	if len(c.Params) == 0 || len(c.Params[0]) > maxStored {
		return nil, apierr.Invalid("request_id", "The request_id is not valid.")
	}
	if c.Machine == nil {
		return nil, notFound()
	}
	id := polledID(c.Params[0])
	job, err := h.job(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if job != nil {
		conn := c.Machine.Connection(job.ConnectionID)
		if conn == nil || conn.Inactive {
			return nil, notFound()
		}
		return h.ask(ctx, c, id, job, conn)
	}
	// The account of the job is unknown: the object is down.
	var first error
	own := makers(c.Machine)
	for _, conn := range own[:min(len(own), maxGuesses)] {
		p, err := h.ask(ctx, c, id, &rpc.Job{ID: id, ConnectionID: conn.ID}, conn)
		if err == nil {
			return p, nil
		}
		var e *apierr.Error
		if first == nil || errors.As(err, &e) && e.Status != 404 {
			first = err
		}
	}
	if first == nil {
		first = notFound()
	}
	return nil, first
}

// job finds who made a job: nil when the object cannot be asked.
func (h *Handler) job(ctx context.Context, c *auth.Call, id string) (*rpc.Job, error) {
	if j := h.lost.find(c.Machine.ID, id); j != nil {
		if h.put(ctx, c.Machine.ID, j) {
			h.lost.drop(c.Machine.ID, id)
		}
		return j, nil
	}
	j, err := rpc.Call[rpc.Job](ctx, h.Object, c.Machine.ID, "job.get", map[string]string{"id": id})
	switch {
	case rpc.Status(err) == 404:
		return nil, notFound()
	case err != nil:
		return nil, nil
	case j.Kind != "video":
		return nil, notFound()
	}
	return &j, nil
}

// clean takes the account's own credentials out of an answer that passes.
func (h *Handler) clean(ctx context.Context, c *auth.Call, conn *store.Connection, body []byte) []byte {
	if h.Credentials == nil || len(body) == 0 {
		return body
	}
	cred, err := h.Credentials.Credential(ctx, c.Machine, conn)
	if err != nil {
		return body
	}
	text := string(body)
	if shown := redact.Secrets(cred.APIKey, cred.AccessToken, cred.AccessKeyID, cred.SecretAccessKey,
		cred.SessionToken).String(text); shown != text {
		return []byte(shown)
	}
	return body
}

func notFound() error {
	return apierr.New(404, "video_not_found", "No video job has this id.")
}

// ask polls one job with one account, in as many calls as the provider needs.
func (h *Handler) ask(ctx context.Context, c *auth.Call, id string, job *rpc.Job,
	conn *store.Connection) (*polled, error) {
	d := provider.Lookup(conn.Provider)
	if d == nil || shapeOf(d) == nil {
		return nil, notFound()
	}
	p := &polled{id: id, conn: conn, shape: shapeOf(d)}
	p.target = routing.Target{Provider: d, Alias: aliasOf(d, conn), Model: job.Model,
		Connections: []*store.Connection{conn}}
	// The job may have been created under a combo's name, so the key that
	// created it may always poll it.
	if (job.KeyID == "" || job.KeyID != c.Trace.KeyID) && !auth.AllowsModel(c.Key, p.target.ID()) {
		return nil, endpoint.NotAllowed(c.Key)
	}
	var ok bool
	if p.name, ok = nameOf(id, job); !ok {
		return nil, notFound()
	}
	most := int64(maxState)
	if p.shape.large {
		most = maxInState
	}
	var last []byte
	for step := 0; ; step++ {
		plan, err := p.shape.poll(p.name, step, last)
		if err != nil {
			return nil, err
		}
		for i := range plan.parts {
			// A name that is not stored comes from the client.
			plan.parts[i].Any = plan.parts[i].Any && job.Provider != ""
		}
		res, err := h.Accounts.Send(ctx, &accounts.Call{
			Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: []routing.Target{p.target},
			Build: func(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
				req, err := plan.request(to, conn)
				if err != nil {
					return nil, err
				}
				if job.Origin != "" && download.Origin(req.URL) != job.Origin &&
					(plan.url == "" || !download.SameSite(req.URL, job.Origin)) {
					return nil, notFound() // the connection has moved: the job is not there
				}
				s := &c.Machine.Settings
				req.HeaderTimeout, req.Timeout, req.MaxBody = s.FirstByte(), s.Whole(), most
				return &accounts.Attempt{Request: *req}, nil
			},
			Read: func(a *accounts.Attempt, resp *upstream.Response) error {
				raw, err := stream.ReadAll(resp.Body, most)
				if err != nil {
					return endpoint.BadBody(err)
				}
				a.State = raw
				if len(raw) == 0 && resp.Status == 202 {
					return nil
				}
				if !jsonscan.Valid(raw) || !gjson.ParseBytes(raw).IsObject() {
					return endpoint.BadBody(errors.New("videos: the state is no JSON object"))
				}
				return nil
			},
		})
		if err != nil && step > 0 && p.shape.failsLast {
			// The result of a failed job is itself an error.
			var e *apierr.Error
			if errors.As(err, &e) && (e.Status == 400 || e.Status == 422) {
				p.state = state{Status: "failed", Code: e.Code, Message: e.Message}
				return p, nil
			}
		}
		if err != nil {
			return nil, pollError(err)
		}
		raw := res.Attempt.State.([]byte)
		p.res, p.body = res, raw
		p.origin = download.Origin(res.Attempt.Request.URL)
		if p.shape.native {
			return p, nil
		}
		s, more := p.shape.read(p.name, step, raw)
		if p.state = s; !more {
			return p, nil
		}
		last = raw
	}
}

// pollError is the answer to a poll whose account cannot be asked now: no other
// one may be.
func pollError(err error) error {
	if !errors.Is(err, accounts.ErrCooling) {
		return err
	}
	var e *apierr.Error
	if !errors.As(err, &e) {
		return err
	}
	shown := apierr.New(503, "account_cooling_down", "The account that made the video cannot be asked at the moment. %s",
		e.Message)
	shown.Err = err
	shown.RetryIn(max(accounts.Wait(err), time.Second))
	return shown
}

func aliasOf(d *provider.Descriptor, conn *store.Connection) string {
	if conn.Data.Prefix != "" {
		return conn.Data.Prefix
	}
	return d.Alias
}
