package videos

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/edge"
	"weir/pkg/machine"
	"weir/pkg/media"
	"weir/pkg/stream"
)

// onceOnly is a creation that has claimed its idempotency key.
type onceOnly struct {
	machineID, key, digest string
}

// begin claims the key of a creation in the machine's object. When a call has
// had it before, its answer comes back, or the reason why there is none: 422
// for another body, 409 while it runs and when its answer was too large to be
// kept. Without the object nothing is sent: the client asked for once only.
func (h *Handler) begin(ctx context.Context, x *creation, key string, once **onceOnly) (*edge.Response, error) {
	digest, err := x.digest()
	if err != nil {
		return nil, err
	}
	o := &onceOnly{machineID: x.call.Machine.ID, key: key, digest: digest}
	body, _ := json.Marshal(struct {
		Key    string `json:"key"`
		Digest string `json:"digest"`
	}{key, digest})
	status, answer, err := h.Object.Call(ctx, o.machineID, "idem.begin", body)
	var s machine.IdemState
	if err == nil && status == 503 && gjson.GetBytes(answer, "error.code").Str == "overloaded" {
		e := apierr.New(503, "overloaded", "%s", gjson.GetBytes(answer, "error.message").Str)
		e.RetryAfter = time.Minute
		return nil, e
	}
	if err != nil || status != 200 || json.Unmarshal(answer, &s) != nil {
		e := apierr.New(503, "unavailable", "the idempotency key cannot be checked at the moment; nothing was sent")
		e.RetryAfter, e.Err = time.Second, err
		return nil, e
	}
	refuse := func(status int, code, message string) error {
		e := apierr.New(status, code, "%s", message)
		e.NoRetry = true
		return e
	}
	switch s.State {
	case "new":
		*once = o
		return nil, nil
	case "other":
		return nil, refuse(422, "idempotency_mismatch", "the idempotency key was used with another request")
	case "running":
		return nil, refuse(409, "idempotency_in_progress", "a request with this idempotency key is still running")
	}
	if !s.Whole {
		return nil, refuse(409, "idempotency_done", "the request with this idempotency key is done; its answer was too large to be kept")
	}
	resp := &edge.Response{Status: s.Status, Body: stream.FromBytes(s.Body)}
	for _, f := range s.Header {
		if f[0] == connectionField {
			x.call.Trace.ConnectionID = f[1]
			continue
		}
		resp.Header.Add(f[0], f[1])
	}
	resp.Header.Set("idempotent-replayed", "true")
	return resp, nil
}

// connectionField is how the account of an answer is kept with it.
const connectionField = "x-weir-connection-id"

// digest is what two creations with one key must have in common.
func (x *creation) digest() (string, error) {
	var sum [32]byte
	if x.request != nil {
		sum = sha256.Sum256(x.body)
	} else {
		var err error
		if sum, err = x.held.SHA256(); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, part := range []string{
		x.endpoint, x.call.Header.Get("content-type"), x.call.Header.Get("content-encoding"),
		x.call.Header.Get("x-provider"), media.Query(x.call.Query, "provider"), string(sum[:]),
	} {
		h.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	return hexOf([32]byte(h.Sum(nil))), nil
}

// end keeps the outcome under the key. After a refusal, which created nothing,
// the key is free again; when the outcome is not known it stays taken.
func (h *Handler) end(ctx context.Context, o *onceOnly, c *auth.Call, resp *edge.Response, err error) {
	in := machine.IdemEnd{Key: o.key, Digest: o.digest}
	var e *apierr.Error
	switch {
	case err == nil:
		in.Status = resp.Status
		in.Body = resp.Body.(*stream.Bytes).All()
		in.Header = [][2]string{{connectionField, c.Trace.ConnectionID}}
		for _, f := range resp.Header {
			if f.Name == "content-type" || f.Name == "content-security-policy" {
				in.Header = append(in.Header, [2]string{f.Name, f.Value})
			}
		}
	case errors.As(err, &e) && !unknown(e):
	default:
		in.Status = 502
		if e != nil {
			in.Status = e.Status
		}
		in.Header = [][2]string{{"content-type", "application/json"}, {"x-should-retry", "false"}}
		in.Body, in.Unknown = outcomeUnknown(e), true
	}
	body, jsonErr := json.Marshal(in)
	if jsonErr != nil {
		return
	}
	for range 2 {
		if status, _, err := h.Object.Call(ctx, o.machineID, "idem.end", body); err == nil && status == 200 {
			return
		}
	}
}

// unknown tells whether the upstream may have made the video all the same.
func unknown(e *apierr.Error) bool {
	return e.NoRetry && e.Status >= 500 || e.Code == "upstream_outcome_unknown" || e.Status == 408
}

func outcomeUnknown(e *apierr.Error) []byte {
	var b struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    string  `json:"code"`
		} `json:"error"`
	}
	b.Error.Message, b.Error.Type, b.Error.Code = "it is not known whether the video was made", "server_error", "upstream_outcome_unknown"
	if e != nil {
		b.Error.Message, b.Error.Type = e.Message, e.Type
		if e.Code != "" {
			b.Error.Code = e.Code
		}
	}
	out, _ := json.Marshal(b)
	return out
}
