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
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// Dialog holds conversations with upstreams. One is shared by the endpoints.
type Dialog struct {
	Router   endpoint.Router
	Accounts endpoint.Sender
	Allows   endpoint.Allows // nil allows all
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
	x := &exchange{ctx: ctx, dialog: d, call: c, ask: a, many: len(targets) > 1}
	res, err := d.Accounts.Send(ctx, &accounts.Call{Machine: c.Machine, Request: c.Request, Targets: targets, Build: x.build, Read: readAnswer})
	if err != nil {
		return nil, err
	}
	made := res.Attempt.State.(*attempt)
	if made.noResponses != nil && made.noResponses.ID == res.Connection.ID {
		d.remember(place{c.Machine.ID, res.Connection.ID})
	}
	made.remember(res)
	return made.reply(res), nil
}

// targets resolves the model and leaves the targets that the key may use and
// that can hold a conversation.
func (d *Dialog) targets(c *auth.Call, a *Ask) ([]routing.Target, error) {
	targets, err := endpoint.Targets(d.Router, d.Allows, c, a.Model, catalog.LLM, func(to *routing.Target) error {
		if _, ok := wayOf(to, nil, a.Dialect, false); !ok {
			return apierr.Invalid("model", "The provider of this model has no chat.")
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
		return nil, apierr.Invalid("previous_response_id", "The previous response is kept by an account that does not serve this model.")
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
