// Package api serves /api in the gateway: the management of machines.
//
// Handler carries a call to the machine's object, where package manage serves it. Calls that
// need providers, other routes or more than one machine are served here.
package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
)

// cache is the part of snapshot.Cache used here.
type cache interface {
	Get(ctx context.Context, machineID string) (*snapshot.Machine, error)
	Known(ctx context.Context, machineID string) (*snapshot.Machine, error)
	Invalidate(machineID string)
}

// Handler carries management calls to the machines' objects.
type Handler struct {
	Objects rpc.Stub
	Cache   cache
	// KeySecret is the worker secret API_KEY_SECRET. With it the id of a
	// machine is made of the Idempotency-Key that asks for one.
	KeySecret []byte
	Version   string // of the build
	// Newer returns the version of a newer release, "" if none is known. nil where none is
	// looked for.
	Newer func() string
	// SendsPieces reports that the platform sends stream.Pieces. Elsewhere the lists are
	// short.
	SendsPieces bool
	// Prices returns what was last taken of the operator's source of prices, without the
	// texts. nil without a source.
	Prices func(ctx context.Context) *catalog.Update
}

// Forward serves every route whose records live in the object: the route's
// pattern tells the object what is meant.
func (h *Handler) Forward(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	return h.send(ctx, c, env)
}

// envelope makes a management call of a request.
func envelope(c *auth.Call) (env rpc.ManageCall, err error) {
	env = rpc.ManageCall{Method: c.Method, Route: c.Route, Params: c.Params, IfMatch: c.Header.Get("if-match")}
	if c.Key != nil {
		env.KeyID = c.Key.ID
		if c.KeyDigest != ([32]byte{}) {
			env.KeyDigest = hex.EncodeToString(c.KeyDigest[:])
		}
	}
	env.Person = c.Person
	if c.OldSignIn {
		env.SignIn = rpc.SignInOld
	}
	if env.MutationID, err = mutationID(c); err != nil {
		return env, err
	}
	if env.Query, err = query(c.Query); err != nil {
		return env, err
	}
	env.Body, err = jsonBody(c)
	return env, err
}

// send carries a management call to the machine's object and back.
func (h *Handler) send(ctx context.Context, c *auth.Call, env rpc.ManageCall) (*httpmsg.Response, error) {
	a, err := h.manage(ctx, c.MachineID, &env)
	if c.Method != "GET" && !isNoMachine(err) {
		// Also after an error: what became of the change may not be known.
		h.Cache.Invalidate(c.MachineID)
	}
	if err != nil {
		return nil, err
	}
	if a.Status == 204 {
		return &httpmsg.Response{Status: 204}, nil
	}
	a.Body = h.named(ctx, c, &env, a.Body)
	return tagged(&a), nil
}

// tagged returns the answer of an object with its ETag.
func tagged(a *rpc.ManageAnswer) *httpmsg.Response {
	resp := answer(a.Status, a.Body)
	if a.ETag != "" {
		resp.Header.Set("etag", a.ETag)
	}
	return resp
}

// isNoMachine reports whether an object has refused a call because there is no machine.
func isNoMachine(err error) bool {
	e, ok := errors.AsType[*apierr.Error](err)
	return ok && e.Code == "machine_not_found"
}

// manage makes a management call of the machine's object. Only the operator can ask for
// a machine that does not exist: it may be a seed document that no call has adopted yet.
func (h *Handler) manage(ctx context.Context, machineID string, env *rpc.ManageCall) (a rpc.ManageAnswer, err error) {
	a, err = rpc.Call[rpc.ManageAnswer](ctx, h.Objects, machineID, "manage", env)
	if isNoMachine(err) {
		if _, e := h.Cache.Known(ctx, machineID); e == nil {
			a, err = rpc.Call[rpc.ManageAnswer](ctx, h.Objects, machineID, "manage", env)
		}
	}
	return a, err
}

func answer(status int, body []byte) *httpmsg.Response {
	return &httpmsg.Response{
		Status: status,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromBytes(body),
	}
}

// jsonBody reads the body, which must be JSON when there is one.
func jsonBody(c *auth.Call) (json.RawMessage, error) {
	raw, err := c.ReadBody()
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return nil, err
	}
	var doc jsonscan.Cursor
	doc.Reset(raw)
	doc.Skip()
	if err := doc.End(); err != nil {
		return nil, endpoint.BadJSON(err)
	}
	return raw, nil
}

// mutationID returns the Idempotency-Key of a mutation: visible ASCII. The same
// key from the same caller within a day is the same mutation.
func mutationID(c *auth.Call) (string, error) {
	if c.Method == "GET" || c.Header.Get("idempotency-key") == "" {
		return "", nil
	}
	id, err := endpoint.IdempotencyKey(c.Header)
	if err != nil {
		return "", apierr.Invalid("idempotency-key",
			"The header Idempotency-Key must be sent once, with 1 to %d visible ASCII characters.", rpc.MaxIdempotencyKey)
	}
	return id, nil
}

// query reads a query string in which no name comes twice.
func query(raw string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	q := map[string]string{}
	for _, pair := range strings.Split(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		n, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if err := errors.Join(err1, err2); err != nil {
			return nil, apierr.Invalid("", "The query is not readable.")
		}
		if _, twice := q[n]; twice {
			return nil, apierr.Invalid(n, "%s is given more than once in the query.", n)
		}
		q[n] = v
	}
	return q, nil
}
