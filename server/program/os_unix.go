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

// sameOwner reports whether two files belong to one user.
func sameOwner(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, known := b.Sys().(*syscall.Stat_t)
	return ok && known && x.Uid == y.Uid
}
