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

func limitFiles(n uint64) {
	l := syscall.Rlimit{}
	l.Cur, l.Max = n, n
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		panic(err)
	}
}
