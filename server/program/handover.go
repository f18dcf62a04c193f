package program

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"weir/server/store"
)

// passedFile is the file of the socket that a process is started with, see sd_listen_fds(3).
const passedFile = 3

// passed returns the socket that systemd, or another supervisor, has opened for this process; nil
// for none. The supervisor keeps it open, so that connections wait in it while the program restarts.
func (r *run) passed() (net.Listener, error) {
	pid, _ := r.env("LISTEN_PID")
	n, _ := r.env("LISTEN_FDS")
	if n == "" || n == "0" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	if n != "1" {
		return nil, usagef("LISTEN_FDS: %s sockets were passed; the socket unit must have one ListenStream", n)
	}
	f := os.NewFile(passedFile, "socket")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("LISTEN_FDS: the passed file is not a socket that listens: %w", store.Cause(err))
	}
	return l, nil
}

// notify tells systemd the state of the program, see sd_notify(3).
func (r *run) notify(state string) {
	path, _ := r.env("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.Dial("unixgram", path)
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		r.warn("NOTIFY_SOCKET: %v", listenCause(err))
	}
}

// handOver moves clients to the process that serves next, if there is one: calls are served for a
// moment, and each connection is closed behind its next answer. New connections wait in the passed
// socket, or go to another server of the database. It reports whether a second signal came.
func (v *server) handOver(signals <-chan os.Signal) (again bool) {
	if !v.settings.passed && v.database == nil {
		return false
	}
	if v.settings.passed {
		v.clients.Close()
	}
	limit, look := time.NewTimer(v.limits.leave), time.NewTicker(5*time.Millisecond)
	defer limit.Stop()
	defer look.Stop()
	for waits := true; waits && len(v.clients.open) > 0; {
		select {
		case <-look.C:
		case <-limit.C:
			waits = false
		case <-signals:
			return true
		}
	}
	v.clients.Close()
	v.http.SetKeepAlivesEnabled(false) // closes connections without a call
	return false
}
