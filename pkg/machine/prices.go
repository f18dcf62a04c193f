package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/catalog/refresh"
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
	refreshTimeout = 20 * time.Second
	maxSignature   = 4 << 10 // bytes
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

// Refresh fetches the source if the stored prices are older than an hour. A failure
// leaves them as they are. memory is what the document acquires its memory from.
func (f *Refresher) Refresh(ctx context.Context, memory stream.Memory) {
	before, err := rpc.Prices(ctx, f.KV, f.Objects)
	if err != nil {
		f.Log("prices: those that are stored cannot be read: " + err.Error())
		return
	}
	now := f.Now().UnixMilli()
	if !f.Issued(&before) {
		before = catalog.Update{}
	}
	if age := now - before.FetchedAt; age >= 0 && age < refreshEvery.Milliseconds() {
		return
	}
	p, err := f.take(ctx, memory, &before, now)
	if err == nil {
		err = rpc.PutPrices(ctx, f.KV, f.Objects, p)
	}
	if err != nil {
		f.Log(fmt.Sprintf("prices: %s: %v", f.URL, err))
		return
	}
	if p.Held != before.Held || p.Text != before.Text || p.RefusedModels != before.RefusedModels || p.ModelText != before.ModelText {
		checked := "signed"
		if !p.Signed {
			checked = "unsigned: bounds only"
		}
		f.Log(fmt.Sprintf("prices: %s: %d prices differ from the catalogue, %d held back, %d models added, %d out of bounds (%s)",
			f.URL, p.Rows, p.Held, p.AddedModels, p.RefusedModels, checked))
	}
}

// take fetches the document of the source and its signature, and returns what is
// taken. before is what is stored.
func (f *Refresher) take(ctx context.Context, memory stream.Memory, before *catalog.Update, now int64) (*catalog.Update, error) {
	document, err := f.get(ctx, f.URL, refresh.MaxDocument, memory)
	if err != nil {
		return nil, err
	}
	if f.Key != nil {
		signature, err := f.get(ctx, f.URL+".sig", maxSignature, nil)
		if err != nil {
			return nil, fmt.Errorf("the signature: %w", err)
		}
		if err := f.Verify(document, signature); err != nil {
			return nil, err
		}
	}
	return f.Take(document, before, now)
}

// get fetches a file of the source. Redirects are not followed.
func (f *Refresher) get(ctx context.Context, url string, most int64, memory stream.Memory) ([]byte, error) {
	resp, err := upstream.Do(ctx, f.Do, &upstream.Request{
		Method: "GET", URL: url, Timeout: refreshTimeout, MaxBody: most, Memory: memory,
		Header: httpmsg.Header{{Name: "accept", Value: "application/json, text/plain"}},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.Status != 200 {
		return nil, fmt.Errorf("status %d", resp.Status)
	}
	return stream.ReadAll(resp.Body, most)
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
