package store

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// runAsOrdinaryUser runs fn in a thread whose access to files is that of an ordinary
// user. The thread ends with it.
func runAsOrdinaryUser(t *testing.T, fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		fn()
	}()
	<-done
}
