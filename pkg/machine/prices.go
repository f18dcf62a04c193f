package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/catalog/refresh"
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	refreshEvery   = time.Hour
	refreshAgain   = 10 * time.Minute // after a failure
	refreshTimeout = time.Minute
	refreshSilence = 20 * time.Second
	maxSignature   = 4 << 10 // bytes
	maxReason      = 300     // bytes of the error that is stored
)

// Refresher fetches prices and models from the operator's source and stores them.
type Refresher struct {
	refresh.Source
	Do      upstream.Doer
	KV      store.KV // nil where the registry has them
	Objects rpc.Stub
	Now     func() time.Time
	Log     func(line string)
}

// Refresh fetches the source if the stored prices are older than an hour, and the last
// failure is older than ten minutes. A failure leaves them as they are; it is stored, and
// logged unless it is that of the last time. memory is what a part of the document acquires
// its memory from.
func (f *Refresher) Refresh(ctx context.Context, memory stream.Memory) {
	before, err := rpc.Prices(ctx, f.KV, f.Objects)
	if err != nil {
		f.Log("prices: those that are stored cannot be read: " + err.Error())
		return
	}
	now := f.Now().UnixMilli()
	if !f.Issued(&before) {
		before = catalog.Update{Source: f.URL, Signed: f.Key != nil}
	}
	younger := func(at int64, than time.Duration) bool { return at <= now && now-at < than.Milliseconds() }
	if younger(before.FetchedAt, refreshEvery) || younger(before.FailedAt, refreshAgain) {
		return
	}
	p, err := f.take(ctx, memory, &before, now)
	if err != nil {
		f.failed(ctx, &before, now, err)
		return
	}
	if err := rpc.PutPrices(ctx, f.KV, f.Objects, p); err != nil {
		f.Log(fmt.Sprintf("prices: %s: %v", f.URL, err))
		return
	}
	if p.Dear != "" && p.Dear != before.Dear {
		f.Log(fmt.Sprintf("prices: %s: dearer than any vendor's, left out: %s", f.URL, p.Dear))
	}
	if p.Held != before.Held || p.Text != before.Text || p.RefusedModels != before.RefusedModels ||
		p.ModelText != before.ModelText || p.LimitText != before.LimitText {
		checked := "signed"
		if !p.Signed {
			checked = "unsigned: bounds only"
		}
		f.Log(fmt.Sprintf("prices: %s: %d prices differ from the catalogue, %d held back, %d models added, %d with other limits, %d out of bounds (%s)",
			f.URL, p.Rows, p.Held, p.AddedModels, p.Limits, p.RefusedModels, checked))
	}
}

// failed stores when and why the source could not be taken beside what is stored.
func (f *Refresher) failed(ctx context.Context, before *catalog.Update, now int64, cause error) {
	reason := strings.ToValidUTF8(cause.Error(), "\uFFFD")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	if reason != before.Error {
		f.Log(fmt.Sprintf("prices: %s: %s", f.URL, reason))
	}
	if before.FetchedAt > 0 && now-before.FetchedAt >= (24*time.Hour).Milliseconds() {
		n := rpc.Notice{Event: deliver.PricesStale, Title: "The prices could not be refreshed for a day",
			Text: "The source of the prices does not answer as it should. Costs follow the prices of " +
				time.UnixMilli(before.FetchedAt).UTC().Format("Jan 2, 15:04 UTC") + "."}
		f.Objects.Call(ctx, rpc.RegistryID, "notice", storage.Encode(n))
	}
	p := *before
	p.FailedAt, p.Error = now, reason
	if err := rpc.PutPrices(ctx, f.KV, f.Objects, &p); err != nil {
		f.Log(fmt.Sprintf("prices: %s: %v", f.URL, err))
	}
}

// take fetches the document of the source, and returns what is taken of it. A signed one
// is read whole, because its signature is that of all bytes. before is what is stored.
func (f *Refresher) take(ctx context.Context, memory stream.Memory, before *catalog.Update,
	now int64) (*catalog.Update, error) {
	if f.Key != nil {
		document, err := f.get(ctx, f.URL, refresh.MaxPart, memory)
		if err != nil {
			return nil, err
		}
		signature, err := f.get(ctx, f.URL+".sig", maxSignature, nil)
		if err != nil {
			return nil, fmt.Errorf("the signature: %w", err)
		}
		if err := f.Verify(document, signature); err != nil {
			return nil, err
		}
		return f.Take(bytes.NewReader(document), before, now)
	}
	if memory != nil {
		part := stream.Gathered{Bytes: refresh.MaxPart, Of: refresh.MaxPart}
		if err := memory.GrowAnswer(ctx, stream.Gathered{}, part); err != nil {
			return nil, err
		}
	}
	body, err := f.open(ctx, &upstream.Request{URL: f.URL})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return f.Take(body, before, now)
}

// get reads a file of the source into memory.
func (f *Refresher) get(ctx context.Context, url string, most int64, memory stream.Memory) ([]byte, error) {
	body, err := f.open(ctx, &upstream.Request{URL: url, MaxBody: most, Memory: memory})
	if err != nil {
		return nil, err
	}
	return stream.ReadAll(body, most)
}

// open fetches a file of the source: a GET without anything that names the caller. Redirects
// are not followed.
func (f *Refresher) open(ctx context.Context, req *upstream.Request) (io.ReadCloser, error) {
	req.Method, req.Timeout, req.HeaderTimeout = "GET", refreshTimeout, refreshSilence
	req.Header = httpmsg.Header{{Name: "accept", Value: "application/json, text/plain"}}
	resp, err := upstream.Do(ctx, f.Do, req)
	if err != nil {
		return nil, err
	}
	if resp.Status != 200 {
		resp.Body.Close()
		return nil, fmt.Errorf("status %d", resp.Status)
	}
	return resp.Body, nil
}

// pricesPut stores refreshed prices.
func (o *Object) pricesPut(r *storage.Call) (any, error) {
	if _, ok := catalog.ReadUpdate(r.Body); !ok {
		return nil, apierr.Invalid("", "The prices are not readable.")
	}
	r.Meta.ID = rpc.RegistryID
	r.Meta.Generation++
	r.Put(rpc.PricesKey, json.RawMessage(r.Body))
	return struct{}{}, nil
}

// pricesGet returns the refreshed prices, or {}.
func (o *Object) pricesGet(r *storage.Call) (any, error) {
	raw, ok := r.Get(rpc.PricesKey)
	if !ok {
		return struct{}{}, nil
	}
	return json.RawMessage(raw), nil
}
