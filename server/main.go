// Command weir is the gateway as one binary. See docs/guides/self-hosting.md.
package main

import (
	"os"

	"weir/server/program"
)

// The linker sets these: -ldflags "-X main.version=v1.2.0". releases is the address of the
// releases and signer the public key that signs them, for weir upgrade.
var version, releases, signer string

func main() {
	os.Exit(program.Main(program.Options{Version: version, Releases: releases, Signer: signer}))
}
