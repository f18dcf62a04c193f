package gateway

import (
	"context"
	"hash/fnv"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/jsoncodec"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/secret"
)

// begin begins the capture of a call's bodies if its machine or its key asks for that.
// Which calls of a share are captured depends on their ids alone.
func (g *Gateway) begin(c *auth.Call, route *Route) {
	if c.Machine == nil || !route.Explain || c.Method != "POST" {
		return
	}
	if percent := c.Machine.Settings.CapturePercentOf(c.Key); percent > 0 && sampled(c.ID, percent) {
		c.Capture = g.Captures.Begin(c.MachineID)
	}
}

// sampled reports whether an id belongs to a share of all ids.
func sampled(id string, percent int) bool {
	sum := fnv.New64a()
	sum.Write([]byte(id))
	h := sum.Sum64()
	return int((h^h>>32)%100) < percent
}

// storeCapture sends the sealed bodies of a call, which has the record rec, to its machine's
// object, once.
func (w *wiring) storeCapture(ctx context.Context, c *auth.Call, rec store.Request) {
	defer c.Capture.Release()
	own := w.presented(c)
	doc := c.Capture.Document(func(text string) string { return w.redact(own.String(text)) })
	sealed, err := w.keys.Seal(c.MachineID, rpc.CaptureField, c.ID, secret.New(string(doc)))
	if err != nil {
		w.logLine("capture: " + err.Error())
		return
	}
	head, err := jsoncodec.Marshal(rec)
	if err != nil {
		w.logLine("capture: " + err.Error())
		return
	}
	body := append(make([]byte, 0, len(head)+1+len(sealed)), head...)
	body = append(append(body, '\n'), sealed...)
	status, _, err := w.Objects.Call(ctx, c.MachineID, "capture.put", body)
	if err == nil && status >= 500 {
		w.logLine("capture: the machine's object failed to store it")
	}
}

// presented finds the credentials of a call: its own, and those of the accounts that
// were tried.
func (w *wiring) presented(c *auth.Call) *redact.R {
	var values []string
	for _, name := range [...]string{"authorization", "x-api-key", "x-goog-api-key"} {
		if v := c.Header.Get(name); v != "" {
			scheme, token, ok := strings.Cut(v, " ")
			if !ok {
				token = scheme
			}
			values = append(values, strings.TrimSpace(token))
		}
	}
	account := func(id string) {
		conn := c.Machine.Connection(id)
		if conn == nil {
			return
		}
		for field, sealed := range conn.Secrets {
			if plain, err := w.keys.Open(c.MachineID, conn.ID, field, sealed); err == nil {
				values = append(values, plain.Reveal())
			}
		}
	}
	account(c.Trace.ConnectionID)
	for _, failed := range c.Trace.Failed() {
		if failed.ConnectionID != c.Trace.ConnectionID {
			account(failed.ConnectionID)
		}
	}
	return redact.New(values...)
}
