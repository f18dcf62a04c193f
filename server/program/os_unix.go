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

// openFiles returns how many files the process may have open. The Go runtime has
// raised the limit as far as it may.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return maxFiles
	}
	return uint64(l.Cur)
}

// sameOwner reports whether two files belong to one user.
func sameOwner(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, known := b.Sys().(*syscall.Stat_t)
	return ok && known && x.Uid == y.Uid
}

// asService reports false: services are ordinary processes here.
func (o Options) asService([]string) (code int, is bool) { return 0, false }
