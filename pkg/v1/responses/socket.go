package responses

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/upstream"
)

// Sockets serves GET /v1/responses over WebSocket (docs/reference/dialects.md, b).
//
// Each response.create is served as a POST /v1/responses of its own, so a socket has
// no rules of its own for keys, limits, fallback and records. The socket adds what
// the transport has: lanes, and the latest response of each, which the next request
// may continue although no upstream stores it.
type Sockets struct {
	// Serve answers a request as the gateway does.
	Serve func(ctx context.Context, r *httpmsg.Request) *httpmsg.Response
	Pause upstream.Pauser // waits for memory; nil: a stream without memory fails at once
	Now   func() time.Time

	conversations conversations
}

// The limits of a socket, as the vendor has them.
const (
	maxAge   = time.Hour
	maxLanes = 32 // with a name
	maxName  = 256
)

// Connect upgrades a request. Machines may turn that off: with status 426 Codex
// uses HTTP at once.
func (s *Sockets) Connect(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
	if c.Machine.Settings.ResponsesSocket == "off" {
		return nil, apierr.New(426, "upgrade_not_supported",
			"WebSocket is turned off for this machine. Send a plain POST request.")
	}
	c.Machine = nil // each turn has the machine as it is then
	v := &session{Sockets: s, request: turnOf(c.Request), ends: s.Now().Add(maxAge), lanes: map[string]*conversation{}}
	return &httpmsg.Response{Status: 101, Upgrade: &socket.Upgrade{Limits: socket.Standard(), Serve: v.run}}, nil
}

// turnOf returns the request of a turn, without its body: the caller and the tool's
// own fields are those of the handshake.
func turnOf(opening *httpmsg.Request) httpmsg.Request {
	r := httpmsg.Request{Method: "POST", Path: opening.Path, Query: opening.Query, Origin: opening.Origin}
	for _, f := range opening.Header {
		switch f.Name {
		case "upgrade", "origin", "content-type", "content-length", "content-encoding", "idempotency-key":
			continue
		case "openai-beta":
			if f.Value = httpBetas(f.Value); f.Value == "" {
				continue
			}
		}
		r.Header = append(r.Header, f)
	}
	r.Header.Add("content-type", "application/json")
	return r
}

// httpBetas removes the beta that is about the transport.
func httpBetas(list string) string {
	betas := slices.DeleteFunc(strings.Split(list, ","), func(beta string) bool {
		return strings.HasPrefix(strings.TrimSpace(beta), "responses_websockets=")
	})
	return strings.TrimSpace(strings.Join(betas, ","))
}

// session is one socket. Its responses are created one after the other, in the order
// of the requests, so those of a lane are too.
type session struct {
	*Sockets
	conn    socket.Conn
	request httpmsg.Request
	ends    time.Time
	served  int                      // responses that have completed
	lanes   map[string]*conversation // by stream_id; nil: the lane has no response to continue
}

// run serves the messages of a client until it leaves or its time is over.
func (v *session) run(ctx context.Context, conn socket.Conn) {
	v.conn = conn
	defer v.forget()
	for {
		m, err := conn.Read()
		if err != nil {
			return
		}
		if !v.Now().Before(v.ends) {
			v.full()
			return
		}
		if m.Binary {
			conn.Close(socket.Unsupported, "Send events as text messages.")
			return
		}
		if v.message(ctx, m.Data) != nil {
			return
		}
	}
}

// full ends a socket that has reached a limit: clients open another one, and send
// everything again.
func (v *session) full() error {
	if err := v.fail("", apierr.New(400, "websocket_connection_limit_reached",
		"The WebSocket connection has reached its limit. Open another one to continue.")); err != nil {
		return err
	}
	v.conn.Close(socket.Normal, "")
	return &socket.Closed{Code: socket.Normal}
}

// forget frees what the socket's responses have in memory.
func (v *session) forget() {
	for lane, c := range v.lanes {
		v.conversations.remove(c)
		v.lanes[lane] = nil
	}
}

// event is a client's event.
type event struct {
	jsonscan.Set
	text []byte
	lane string // stream_id, "" for the default lane
}

// fields are the fields of an event that the socket reads. Those of a request are
// validated when it is served.
var fields = []string{"type", "stream_id", "model", "input", "previous_response_id", "generate", "background", "stream",
	"store", "response_id"}

// message serves one message. An error ends the socket; one of the message is only
// reported.
func (v *session) message(ctx context.Context, text []byte) error {
	set, err := jsonscan.Read(text, fields...)
	if err != nil {
		return v.fail("", endpoint.BadJSON(err))
	}
	e := &event{Set: set, text: text}
	if e.lane, err = v.lane(&e.Set); err != nil {
		return v.fail(e.lane, err)
	}
	kind, _, err := e.String("type")
	switch {
	case err != nil || kind == "":
		return v.fail(e.lane, apierr.Invalid("type", "type is required: send a response.create event."))
	case kind == "response.create":
		return v.create(ctx, e)
	case kind == "response.inject":
		return v.refuseInput(e)
	case kind == "response.processed": // Codex reports what it has read
		return nil
	}
	return v.fail(e.lane, apierr.Invalid("type", "The event %q is not supported. Send response.create.",
		apierr.ShortName(kind)))
}

// lane returns the lane of an event. A lane that is named for the first time counts
// for the rest of the connection.
func (v *session) lane(set *jsonscan.Set) (string, error) {
	if !set.Has("stream_id") {
		return "", nil
	}
	name, _, err := set.String("stream_id")
	if err != nil || !isLane(name) {
		e := apierr.Invalid("stream_id", "stream_id must have 1 to %d letters, digits, underscores, hyphens and periods.",
			maxName)
		e.Code = "invalid_stream_id"
		return "", e
	}
	if _, ok := v.lanes[name]; !ok {
		named := len(v.lanes)
		if _, ok := v.lanes[""]; ok {
			named--
		}
		if named == maxLanes {
			e := apierr.Invalid("stream_id", "The WebSocket connection has used %d stream names. Use one of them again, or open another connection.", maxLanes)
			e.Code = "websocket_stream_limit_reached"
			return name, e
		}
		v.lanes[name] = nil
	}
	return name, nil
}

func isLane(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return true
}
