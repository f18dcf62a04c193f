//go:build js && wasm

package main

import (
	"context"

	"github.com/syumai/workers/cloudflare/kv"

	"weir/pkg/wire/upstream"
	"weir/worker/bridge"
)

// kvStore is the store.KV over the namespace bound as KV. The namespace is looked
// up for each call: it belongs to the event that uses it.
type kvStore struct{}

// noValue is the result of Namespace.GetString for a missing key: the package
// converts the null that KV returns with js.Value.String, which is "<null>". A
// record is JSON, so none has this value.
const noValue = "<null>"

func (kvStore) Get(ctx context.Context, key string) (value []byte, err error) {
	err = onNamespace(ctx, func(ns *kv.Namespace) error {
		v, err := ns.GetString(key, nil)
		if err == nil && v != noValue {
			value = []byte(v)
		}
		return err
	})
	return value, err
}

func (kvStore) Put(ctx context.Context, key string, value []byte) error {
	return onNamespace(ctx, func(ns *kv.Namespace) error { return ns.PutString(key, string(value), nil) })
}

func (kvStore) Delete(ctx context.Context, key string) error {
	return onNamespace(ctx, func(ns *kv.Namespace) error { return ns.Delete(key) })
}

// onNamespace runs use, which may wait for a promise, outside the tasks.
func onNamespace(ctx context.Context, use func(*kv.Namespace) error) (err error) {
	if !bridge.Await(ctx, func() {
		var ns *kv.Namespace
		if ns, err = kv.NewNamespace("KV"); err == nil {
			err = use(ns)
		}
	}) {
		return upstream.ErrCanceled
	}
	return err
}
