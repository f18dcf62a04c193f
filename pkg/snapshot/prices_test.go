package snapshot

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/catalog"
	"weir/pkg/catalog/refresh"
)

const pricesURL = "https://prices.example/p.json"

func stored(id string) []byte {
	raw, _ := json.Marshal(catalog.Update{Source: pricesURL, FetchedAt: 1, Text: "openai/" + id + "\t1/2\n"})
	return raw
}

func TestRefreshedPricesAreReadWithTheFirstSnapshot(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.publish(1)
	w.kv.Put(ctx, "prices", stored("first"))
	w.want("without a source", 1, 1, 1)
	if m, _ := w.cache.Get(ctx, mid); m.Catalog() != nil {
		t.Error("there are prices without a source")
	}

	w = newWorld(t)
	w.publish(1)
	w.kv.Put(ctx, "prices", stored("first"))
	w.cache.PriceSource = &refresh.Source{URL: pricesURL}
	w.want("the first call", 1, 2, 1)
	m, _ := w.cache.Get(ctx, mid)
	find := func(id string) string { return string(m.Catalog().Price("openai", id)) }
	if find("first") != "1/2" {
		t.Fatalf("%+v", m.Catalog())
	}
	w.kv.Put(ctx, "prices", stored("second"))
	w.now = w.now.Add(9 * time.Minute)
	w.cache.Revalidate(ctx, mid)
	if find("first") != "1/2" {
		t.Error("the prices were read again too early")
	}
	w.now = w.now.Add(time.Minute)
	w.want("a snapshot that is loaded again", 1, 0, 1)
	w.cache.Revalidate(ctx, mid)
	if find("second") != "1/2" || find("first") != "" { // also in the snapshot that calls have
		t.Errorf("%+v", m.Catalog())
	}
	// While KV is down the prices stay; it is tried again after a minute.
	w.now = w.now.Add(10 * time.Minute)
	w.kv.Down(true)
	w.cache.Revalidate(ctx, mid)
	w.kv.Down(false)
	w.kv.Put(ctx, "prices", stored("third"))
	w.cache.Revalidate(ctx, mid)
	if find("second") != "1/2" {
		t.Errorf("%+v", m.Catalog())
	}
	w.now = w.now.Add(time.Minute)
	w.cache.Revalidate(ctx, mid)
	if find("third") != "1/2" {
		t.Errorf("%+v", m.Catalog())
	}
	// Those of another source, or without the signature that is asked for, do not count.
	w.cache.PriceSource = &refresh.Source{URL: pricesURL, Key: make([]byte, 32)}
	w.now = w.now.Add(10 * time.Minute)
	w.cache.Revalidate(ctx, mid)
	if find("third") != "" {
		t.Errorf("%+v", m.Catalog())
	}
}

func TestRefreshDiscardsDerivedValues(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.publish(1)
	w.kv.Put(ctx, "prices", stored("first"))
	w.cache.PriceSource = &refresh.Source{URL: pricesURL}
	m, err := w.cache.Get(ctx, mid)
	if err != nil {
		t.Fatal(err)
	}
	key := func() Derived { return Derived{Kind: catalog.LLM, Model: "gpt-next", At: m.Catalog().At()} }
	m.KeepDerived(key(), 1)
	w.now = w.now.Add(10 * time.Minute)
	w.cache.Revalidate(ctx, mid)
	if m.Derived(key()) == nil {
		t.Error("discarded although nothing has changed")
	}
	raw, _ := json.Marshal(catalog.Update{Source: pricesURL, FetchedAt: 2, ModelText: "openai/gpt-next\tl\n"})
	w.kv.Put(ctx, "prices", raw)
	w.now = w.now.Add(10 * time.Minute)
	w.cache.Revalidate(ctx, mid)
	if kind, _ := m.Catalog().KindOf("openai", "gpt-next"); kind != catalog.LLM || m.Derived(key()) != nil {
		t.Errorf("the kind is %q, the derived value %v", kind, m.Derived(key()))
	}
}

func TestWithoutKVTheRegistryHasThePrices(t *testing.T) {
	w := newWorld(t)
	w.publish(1)
	w.cache.KV, w.cache.PriceSource = nil, &refresh.Source{URL: pricesURL}
	machine, _ := json.Marshal(w.obj.state)
	w.obj.Answer = func(op string, _ []byte) (int, []byte, error) {
		if op == "prices.get" {
			return 200, stored("first"), nil
		}
		return 200, machine, nil
	}
	m, err := w.cache.Get(context.Background(), mid)
	if err != nil || m.Catalog().Price("openai", "first") != "1/2" || !slices.Contains(w.obj.Called, "registry") {
		t.Errorf("%v, %v", err, w.obj.Called)
	}
	w.obj.Answer = func(string, []byte) (int, []byte, error) { return 0, nil, objects.ErrUnreachable }
	w.now = w.now.Add(10 * time.Minute)
	w.cache.Revalidate(context.Background(), mid)
	if m.Catalog().Price("openai", "first") != "1/2" {
		t.Error("the prices are gone while the registry is unreachable")
	}
}
