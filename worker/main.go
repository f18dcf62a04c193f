//go:build js && wasm

// Command worker is the gateway on the edge: it fills the ports of the program in
// pkg with the platform and passes the program to the bridge.
package main

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/andybalholm/brotli"

	"weir/pkg/gateway"
	"weir/worker/bridge"
)

func main() {
	bridge.Run(func() bridge.App {
		cfg := config()
		return gateway.New(cfg, gateway.Ports{
			Do:         bridge.Doer{},
			Dialer:     bridge.Dialer{},
			Pause:      bridge.Pauser{},
			Objects:    bridge.Stub{},
			KV:         kvStore{},
			ZoneOffset: bridge.ZoneOffset,
			Decode:     bridge.Decode,
			Brotli:     func(r io.Reader) io.Reader { return brotli.NewReader(r) },
			SignRS256:  bridge.SignRS256,
			Verify:     bridge.Verify,
			Memory:     bridge.Memory,
			Collect:    bridge.Collect,
			Now:        time.Now,
			Rand:       rand.Reader,
			Log:        bridge.LogLine,
			Changed:    bridge.Changed,
		})
	})
}
