package endpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/multipart"
	"weir/pkg/wire/stream"
)

// Once makes creations that are billed, and have an idempotency key, at most
// once. The keys are in the machine's object.
type Once struct{ Object rpc.Stub }

// longestCreation is how long a creation may run, with all attempts and the wait
// for a job. Without an outcome by then it is lost.
const longestCreation = 30 * time.Minute

// IdempotencyKey returns the client's key, up to 255 visible ASCII characters;
// "" without one.
func IdempotencyKey(h httpmsg.Header) (string, error) {
	key, n := "", 0
	for _, f := range h {
		if f.Name == "idempotency-key" {
			key = f.Value
			n++
		}
	}
	ok := n == 0 || n == 1 && key != "" && len(key) <= rpc.MaxIdempotencyKey
	for i := 0; i < len(key); i++ {
		ok = ok && key[i] > 0x20 && key[i] < 0x7f
	}
	if !ok {
		return "", apierr.Invalid("Idempotency-Key", "The idempotency key must be up to 255 visible ASCII characters.")
	}
	return key, nil
}

// Digest returns a hexadecimal digest that is equal for repeated requests. body is
// the JSON of a request; if it is nil, held is its body. Two forms are equal if
// their parts are: a client that retries chooses a new boundary.
func Digest(c *auth.Call, endpoint string, body []byte, held stream.Held) (string, error) {
	kind := c.Header.Get("content-type")
	sum := sha256.Sum256(body)
	if body == nil {
		boundary, err := multipart.Boundary(kind)
		if err == nil {
			opened := held.Open()
			sum, err = multipart.Digest(opened, boundary, MaxParts)
			opened.Close()
		}
		if err == nil {
			kind = "multipart/form-data"
		} else if sum, err = held.SHA256(); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, part := range []string{
		endpoint, kind, c.Header.Get("content-encoding"),
		c.Header.Get("x-provider"), Query(c.Query, "provider"), c.Header.Get("x-model"), Query(c.Query, "model"),
		string(sum[:]),
	} {
		h.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Claim is a creation that has claimed its idempotency key.
type Claim struct {
	once *Once
	call *auth.Call
	key  string
	sum  string // the digest
}

// Begin claims the key of a creation. If an earlier call has claimed it, Begin
// returns that call's answer, or an error: 422 for another body, 409 while it is
// running or if its answer was too large to store, 502 if its outcome is unknown.
// If the object cannot be called, the error is 503 and nothing may be sent.
func (o *Once) Begin(ctx context.Context, c *auth.Call, key, digest string) (*Claim, *httpmsg.Response, error) {
	s, err := rpc.Call[rpc.IdempotencyState](ctx, o.Object, c.Machine.ID, "idem.begin", rpc.IdempotencyBegin{
		Key: key, Digest: digest, For: longestCreation.Milliseconds(),
	})
	if e, ok := errors.AsType[*apierr.Error](err); ok && e.Status == 503 && e.Code == "overloaded" {
		e = apierr.New(503, e.Code, "%s", e.Message)
		e.RetryAfter = time.Minute
		return nil, nil, e
	}
	if err != nil {
		e := apierr.New(503, "unavailable", "The idempotency key cannot be checked at the moment. Nothing was sent.")
		e.RetryAfter, e.Err = time.Second, err
		return nil, nil, e
	}
	refuse := func(status int, code, message string) (*Claim, *httpmsg.Response, error) {
		e := apierr.New(status, code, "%s", message)
		e.NoRetry = true
		return nil, nil, e
	}
	switch {
	case s.State == rpc.StateNew:
		return &Claim{o, c, key, digest}, nil, nil
	case s.State == rpc.StateOther:
		return refuse(422, "idempotency_mismatch",
			"This idempotency key was used for another request. Use a new key for each request.")
	case s.State == rpc.StateRunning:
		return refuse(409, "idempotency_in_progress",
			"A request with this idempotency key is still running. Send it again when that one has ended.")
	case s.State == rpc.StateLost:
		return refuse(502, outcomeUnknown, "The request with this idempotency key was interrupted, so it is unknown whether anything was created. Check at the provider. Use a new key to create it anyway.")
	case !s.Whole:
		return refuse(409, "idempotency_done", "The request with this idempotency key has succeeded, but its answer was too large to store. Use a new key to create it again.")
	}
	resp := &httpmsg.Response{Status: s.Status, Body: stream.FromBytes(s.Body)}
	for _, f := range s.Header {
		switch f[0] {
		case connectionField:
			c.Trace.ConnectionID = f[1]
		case modelField:
			c.Trace.Model = f[1]
		case droppedField:
			c.Trace.Dropped = strings.Split(f[1], ",")
		default:
			resp.Header.Add(f[0], f[1])
		}
	}
	resp.Header.Set("idempotent-replayed", "true")
	return nil, resp, nil
}

// Names under which the trace of a call is stored with its answer.
const (
	connectionField = "x-weir-connection-id"
	modelField      = "x-weir-model"
	droppedField    = "x-weir-dropped"
)

const outcomeUnknown = "upstream_outcome_unknown"

// End stores the outcome under the key. After a refusal, which created nothing, the
// key is free again; while the outcome is unknown it stays claimed. made reports
// that something was created, whatever err is. A stream's outcome is stored when
// it has ended.
func (l *Claim) End(ctx context.Context, resp *httpmsg.Response, err error, made bool) {
	in := rpc.IdempotencyEnd{Key: l.key, Digest: l.sum}
	var e *apierr.Error
	switch {
	case err == nil:
		in.Status = resp.Status
		in.Header = l.header(resp)
		body, whole := resp.Body.(*stream.Bytes)
		if !whole {
			w := watcherOf(resp) // now: later the gateway may have wrapped it
			resp.After = append(resp.After, func(ctx context.Context) {
				in.Large = true
				if w == nil || !w.whole {
					in.Status, in.Large, in.Unknown = 502, false, true
					in.Header, in.Body = failure(nil)
				}
				l.put(ctx, &in)
			})
			return
		}
		if in.Large = len(body.All()) > rpc.MaxStoredAnswer; !in.Large {
			in.Body = body.All()
		}
	case errors.As(err, &e) && !made && !unknown(e, l.call.Trace.Attempts()):
	default:
		in.Status, in.Unknown = 502, true
		if e != nil && e.Status != 499 {
			in.Status = e.Status
		} else {
			e = nil
		}
		in.Header, in.Body = failure(e)
	}
	l.put(ctx, &in)
}

func (l *Claim) header(resp *httpmsg.Response) [][2]string {
	t := &l.call.Trace
	out := [][2]string{{connectionField, t.ConnectionID}, {modelField, t.Model}}
	if len(t.Dropped) > 0 {
		out = append(out, [2]string{droppedField, strings.Join(t.Dropped, ",")})
	}
	for _, f := range resp.Header {
		if f.Name == "content-type" || f.Name == "content-security-policy" {
			out = append(out, [2]string{f.Name, f.Value})
		}
	}
	return out
}

func (l *Claim) put(ctx context.Context, in *rpc.IdempotencyEnd) {
	for range 2 {
		if _, err := rpc.Call[struct{}](ctx, l.once.Object, l.call.Machine.ID, "idem.end", in); err == nil {
			return
		}
	}
}

// watcherOf returns the watcher of an answer that is an event stream, or nil.
func watcherOf(resp *httpmsg.Response) *StreamWatcher {
	if body, ok := resp.Body.(*stream.Through); ok {
		w, _ := body.T.(*StreamWatcher)
		return w
	}
	return nil
}

// unknown reports whether an upstream may have created something despite e.
func unknown(e *apierr.Error, attempts int) bool {
	return e.NoRetry && e.Status >= 500 || e.Code == outcomeUnknown || e.Status == 408 ||
		e.Status == apierr.StatusClientLeft && attempts > 0
}

// failure returns the stored answer for a creation with an unknown outcome.
func failure(e *apierr.Error) (header [][2]string, body []byte) {
	var b struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    string  `json:"code"`
		} `json:"error"`
	}
	b.Error.Message, b.Error.Type, b.Error.Code = "It is unknown whether anything was created. Check at the provider before you repeat the request.", "server_error", outcomeUnknown
	if e != nil {
		b.Error.Message, b.Error.Type = e.Message, e.Type
		if e.Code != "" {
			b.Error.Code = e.Code
		}
	}
	body, _ = json.Marshal(b)
	return [][2]string{{"content-type", "application/json"}, {"x-should-retry", "false"}}, body
}
