package rpc

import (
	"context"
	"encoding/json"

	"weir/pkg/catalog"
	"weir/pkg/store"
)

// PricesKey is the key of the refreshed prices and models in KV. Without KV they are a row of the
// registry, of its operations "prices.get" and "prices.put".
const PricesKey = "prices"

// Prices reads the refreshed prices and models. They are empty if none were stored.
func Prices(ctx context.Context, kv store.KV, objects Stub) (p catalog.Update, err error) {
	var raw []byte
	if kv != nil {
		raw, err = kv.Get(ctx, PricesKey)
	} else {
		raw, err = Call[json.RawMessage](ctx, objects, RegistryID, "prices.get", nil)
	}
	if err != nil {
		return p, err
	}
	p, _ = catalog.ReadUpdate(raw) // of another version: as if there were none
	return p, nil
}

// PutPrices stores refreshed prices and models.
func PutPrices(ctx context.Context, kv store.KV, objects Stub, p *catalog.Update) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if kv != nil {
		return kv.Put(ctx, PricesKey, raw)
	}
	_, err = Call[struct{}](ctx, objects, RegistryID, "prices.put", json.RawMessage(raw))
	return err
}
