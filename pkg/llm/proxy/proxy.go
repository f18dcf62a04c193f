// Package proxy is what the three chat endpoints have in common.
//
// A client's request is resolved to its targets, each target is spoken to in
// the client's own dialect where it understands it (the bytes pass) and in
// another otherwise (pkg/llm), and the answer comes back in the client's
// dialect: JSON whole or not at all, streams that never lie, and a row of usage
// for every attempt that was answered.
package proxy

import (
	"context"
	"errors"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// recorder is the part of accounts.Pool that takes rows of usage.
type recorder interface {
	Use(m *snapshot.Machine, row usage.Row)
}

// Dialog holds conversations with upstreams. One is shared by the endpoints.
type Dialog struct {
	Router   endpoint.Router
	Accounts endpoint.Sender
	Allows   endpoint.Allows // nil allows all
	Usage    recorder        // nil records nothing
	Now      func() time.Time
	Pause    upstream.Pauser // lets others run in a long translation; nil never pauses

	// chatOnly are the connections whose server turned out to have no
	// Responses endpoint though its provider's row has one. A connection's id
	// is its machine's own to choose.
	chatOnly map[place]struct{}
}

// Reply is the answer to a client.
type Reply struct {
	*httpmsg.Response
	// Target and Connection answered.
	Target     *routing.Target
	Connection *store.Connection
	// ResponseID names the answer where the upstream speaks the Responses
	// dialect itself and may keep it; else it is empty.
	ResponseID string
}

// Answer resolves, sends and shapes the answer to a request.
//
// With a stream everything that fails before the first event is an error here,
// so the client gets it as JSON; what fails later ends the stream with an error
// of the client's dialect.
func (d *Dialog) Answer(ctx context.Context, c *auth.Call, a *Ask) (*Reply, error) {
	targets, err := d.targets(c, a)
	if err != nil {
		return nil, err
	}
	x := &exchange{ctx: ctx, dialog: d, call: c, ask: a, many: len(targets) > 1, counted: c.Trace.Attempts}
	call := &accounts.Call{
		Machine: c.Machine, Request: c.Request, Targets: targets,
		Build: x.build, Base: x.base, Check: x.check, Again: x.again, Form: x.form,
		Dropped: func() []string { return x.dropped },
	}
	res, err := d.Accounts.Send(ctx, call)
	x.failed(err)
	if err != nil {
		if x.absent != nil && absent(err) {
			err = x.absent // neither address is there
		}
		return nil, x.unasked(err)
	}
	if x.chatOnlyConn != nil && x.chatOnlyConn.ID == res.Connection.ID {
		d.remember(place{c.Machine.ID, res.Connection.ID})
	}
	x.remember(res)
	c.Trace.Dropped = x.dropped
	return x.reply(res), nil
}

// targets resolves the model and leaves the targets that the key may use and
// that can hold a conversation.
func (d *Dialog) targets(c *auth.Call, a *Ask) ([]routing.Target, error) {
	targets, err := endpoint.Targets(d.Router, d.Allows, c, a.Model, catalog.LLM, func(to *routing.Target) error {
		if _, ok := wayOf(to, nil, a.Dialect, false); !ok {
			return apierr.Invalid("model", "the provider of this model has no chat")
		}
		return nil
	})
	if err == nil {
		err = endpoint.Further(d.Allows, c.Key, a.Body, targets)
	}
	if err != nil || a.Connection == "" {
		return targets, err
	}
	if targets = only(targets, a.Connection); len(targets) == 0 {
		return nil, apierr.Invalid("previous_response_id", "the previous response is kept by an account that does not serve this model")
	}
	return targets, nil
}

// only leaves the target that has a connection, with this one alone.
func only(targets []routing.Target, id string) []routing.Target {
	for _, to := range targets {
		for _, conn := range to.Connections {
			if conn.ID == id {
				to.Connections = []*store.Connection{conn}
				return []routing.Target{to}
			}
		}
	}
	return nil
}

// absent reports whether an upstream's failure may mean that it does not have the
// address.
func absent(err error) bool {
	var e *apierr.Error
	return errors.As(err, &e) && (e.Status == 404 && e.Code != "model_not_found" && e.Param == "" || e.Status == 405 || e.Status == 501)
}

const maxChatOnly = 512

// place is a connection of a machine.
type place struct{ machine, connection string }

func (d *Dialog) remember(p place) {
	if d.chatOnly == nil || len(d.chatOnly) >= maxChatOnly {
		d.chatOnly = map[place]struct{}{}
	}
	d.chatOnly[p] = struct{}{}
}

func (d *Dialog) isChatOnly(p place) bool {
	_, ok := d.chatOnly[p]
	return ok
}
