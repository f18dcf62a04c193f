//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own, so that Ctrl-C in a
// terminal reaches it once, through demo.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
