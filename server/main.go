// Command weir is the gateway as one binary. See docs/guides/self-hosting.md.
package main

import (
	"os"

	"weir/server/program"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.0".
var version string

func main() { os.Exit(program.Main(version)) }
