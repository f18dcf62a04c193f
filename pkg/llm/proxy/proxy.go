// Package proxy serves the chat endpoints.
//
// A client's request is resolved to its targets. Each target gets it in the
// client's own dialect if it supports that (the bytes pass), or translated
// (pkg/llm). The answer is in the client's dialect: a JSON answer is complete
// or an error, and a stream that fails ends with an error.
package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// Proxy sends requests of the chat endpoints to upstreams. The endpoints share
// one.
type Proxy struct {
	Accounts accounts.Sender
	Now      func() time.Time
	Pause    upstream.Pauser // lets others run in a long translation; nil never pauses

	// ChatOnly is shared with the Proxy that explains calls. A nil one remembers
	// nothing.
	ChatOnly *ChatOnly
}

// ChatOnly is the set of connections whose server has no Responses endpoint
// although its provider's row has one. The ids of connections are unique within
// a machine only.
type ChatOnly struct {
	mu  sync.Mutex
	set map[connectionKey]struct{}
}

// Result is the answer to a client.
type Result struct {
	*httpmsg.Response
	// Target and Connection answered.
	Target     *routing.Target
	Connection *store.Connection
	// ResponseID is the answer's id if the upstream speaks the Responses
	// dialect itself and may store it; otherwise it is empty.
	ResponseID string
	// Unbilled, Counted and Labels are those of accounts.Attempt.
	Unbilled *usage.Row
	Counted  map[string]int64
	Labels   []usage.Label
}

// Answer resolves a request, sends it and returns the client's answer.
//
// For a stream, everything that fails before the first event is returned as an
// error, so the client gets it as JSON; a later failure ends the stream with an
// error of the client's dialect.
func (d *Proxy) Answer(ctx context.Context, c *auth.Call, a *Request) (*Result, error) {
	session := c.Converse(a, a.Stream)
	targets, err := d.targets(c, a)
	if err != nil {
		return nil, err
	}
	leaveOutTooLong(c, a, targets)
	x := &struct { // one allocation
		exchange
		send accounts.Call
	}{exchange: exchange{ctx: ctx, proxy: d, call: c, req: a, targets: targets, input: -1}}
	x.send = accounts.Call{Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Session: session, Targets: targets,
		Build: x.build, Read: readAnswer, Repeats: true, Estimate: a.estimate(c.Machine)}
	if x.send.Estimate.Text {
		x.input = x.send.Estimate.Input
	}
	res, err := d.Accounts.Send(ctx, &x.send)
	if err != nil {
		return x.overflow(err)
	}
	made := res.Attempt.State.(*attempt)
	if made.noResponses != nil && made.noResponses.ID == res.Connection.ID && !a.Compaction {
		d.ChatOnly.add(connectionKey{c.Machine.ID, res.Connection.ID})
	}
	made.remember(res)
	return made.reply(res), nil
}

// targets returns the targets of the model that the key may use and that have
// chat.
func (d *Proxy) targets(c *auth.Call, a *Request) ([]routing.Target, error) {
	targets, err := endpoint.Targets(c, a.Model, catalog.LLM, func(to *routing.Target) error {
		if _, ok := chooseAPI(to, nil, a.Dialect, false); !ok {
			return apierr.Invalid("model", "The provider of this model has no chat.")
		}
		return nil
	})
	if e, ok := errors.AsType[*apierr.Error](err); ok {
		if shown := a.Dialect.Client().Error(e); shown != e {
			err = shown
		}
	}
	if err == nil && a.marked.Named() {
		err = endpoint.CheckFurtherModels(c.Key, a.Body, targets)
	}
	if err != nil || a.Connection == "" {
		return targets, err
	}
	if targets = onlyConnection(targets, a.Connection); len(targets) == 0 {
		return nil, apierr.Invalid("previous_response_id",
			"The previous response is stored by an account that does not serve this model.")
	}
	return targets, nil
}

// onlyConnection returns the target of a connection, with this connection only.
func onlyConnection(targets []routing.Target, id string) []routing.Target {
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

// connectionKey identifies a connection of a machine.
type connectionKey struct{ machine, connection string }

func (c *ChatOnly) add(p connectionKey) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil || len(c.set) >= maxChatOnly {
		c.set = map[connectionKey]struct{}{}
	}
	c.set[p] = struct{}{}
}

func (c *ChatOnly) has(p connectionKey) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.set[p]
	return ok
}
