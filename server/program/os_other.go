//go:build !unix

package program

import (
	"os"
	"syscall"
)

// Windows delivers the closing of the console as SIGTERM.
var stopSignals = [...]os.Signal{syscall.SIGTERM, os.Interrupt}

// Numbers of Winsock; those of package syscall are its own.
const (
	errAddressInUse = syscall.Errno(10048)
	errNoAddress    = syscall.Errno(10049)
)

// sameOwner reports true: the temporary folder is the user's own.
func sameOwner(os.FileInfo, os.FileInfo) bool { return true }

// openFiles returns that there is no limit.
func openFiles() uint64 { return maxFiles }
