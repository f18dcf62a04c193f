package program

import (
	"os"

	"golang.org/x/sys/windows/svc"
)

// asService runs the program as a service of Windows if the system has started it as one.
func (o Options) asService(args []string) (code int, is bool) {
	if is, err := svc.IsWindowsService(); err != nil || !is {
		return 0, false
	}
	h := &handler{Options: o, args: args}
	if err := svc.Run("weir", h); err != nil {
		return 1, true
	}
	return h.code, true
}

// handler is the program as the system's services see it.
type handler struct {
	Options
	args []string
	code int
}

// Execute runs the program until it ends or the system stops it.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (own bool,
	code uint32) {
	const accepted = svc.AcceptStop | svc.AcceptShutdown
	signals, done := make(chan os.Signal, 1), make(chan int, 1)
	h.Signals = signals
	go func() { done <- h.Main(h.args, os.LookupEnv, os.Stdin, os.Stdout, os.Stderr) }()
	status <- svc.Status{State: svc.Running, Accepts: accepted}
	for {
		select {
		case h.code = <-done:
			return h.code != 0, uint32(h.code)
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				status <- svc.Status{State: svc.StopPending, WaitHint: uint32(standardLimits().stop().Milliseconds())}
				signals <- os.Interrupt
			}
		}
	}
}
