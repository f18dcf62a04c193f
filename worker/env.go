//go:build js && wasm

package main

import (
	"weir/pkg/gateway"
	"weir/worker/bridge"
)

// config reads the worker's variables and secrets. It is called at the first
// event: the platform has none before.
func config() gateway.Config { return gateway.ReadConfig(bridge.Variable) }
