//go:build unix

package program

import (
	"os"
	"syscall"
	"testing"

	"weir/server/postgres/postgrestest"
)

// databases are those of the tests.
var databases postgrestest.Databases

func runTests(m *testing.M) int { return databases.Run(m) }

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
