//go:build unix

package program

import (
	"os"
	"syscall"
)

func becomeUser() {
	if os.Geteuid() != 0 {
		return
	}
	if err := syscall.Setuid(65534); err != nil {
		panic(err)
	}
}
