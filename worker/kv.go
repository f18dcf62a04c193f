//go:build js && wasm

package main

import (
	"context"

	"github.com/syumai/workers/cloudflare/kv"
)

// kvStore is the store.KV over the namespace bound as KV. The namespace is looked
// up for each call: it belongs to the event that uses it.
type kvStore struct{}

// noValue is the result of Namespace.GetString for a missing key: the package
// converts the null that KV returns with js.Value.String, which is "<null>". A
// record is JSON, so none has this value.
const noValue = "<null>"

func (kvStore) Get(_ context.Context, key string) ([]byte, error) {
	ns, err := kv.NewNamespace("KV")
	if err != nil {
		return nil, err
	}
	v, err := ns.GetString(key, nil)
	if err != nil || v == noValue {
		return nil, err
	}
	return []byte(v), nil
}

func (kvStore) Put(_ context.Context, key string, value []byte) error {
	ns, err := kv.NewNamespace("KV")
	if err != nil {
		return err
	}
	return ns.PutString(key, string(value), nil)
}

func (kvStore) Delete(_ context.Context, key string) error {
	ns, err := kv.NewNamespace("KV")
	if err != nil {
		return err
	}
	return ns.Delete(key)
}
