//go:build unix

package program

import (
	"os"
	"syscall"
)

var stopSignals = [...]os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

const (
	errAddressInUse = syscall.EADDRINUSE
	errNoAddress    = syscall.EADDRNOTAVAIL
)
