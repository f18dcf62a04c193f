//go:build js && wasm

package main

import (
	"weir/pkg/gateway"
	"weir/worker/bridge"
)

// version is set by scripts/build.sh.
var version = "(devel)"

// config reads the worker's variables and secrets. It is called at the first
// event: the platform has none before.
func config() gateway.Config {
	c := gateway.ReadConfig(bridge.Variable)
	c.Version = version
	return c
}
