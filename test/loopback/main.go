//go:build linux

// Command loopback runs a command in a network that has the loopback interface
// alone. Every connection to another address fails at once with ENETUNREACH, and the
// kernel counts it in OutNoRoutes of /proc/net/snmp and Ip6OutNoRoutes of
// /proc/net/snmp6.
//
//	loopback NAMES COMMAND…
//
// Every host name resolves to 192.0.2.1 (RFC 5737), so that a program that resolves a
// name goes on to connect; the names are appended to the file NAMES, one a line. It
// needs root or unprivileged user namespaces, and exits with 125 where neither is
// available.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

const inside = "WEIR_LOOPBACK" // set in the process that has the network of its own

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: loopback NAMES COMMAND…")
		os.Exit(2)
	}
	if os.Getenv(inside) == "" {
		os.Exit(outer())
	}
	os.Unsetenv(inside)
	if err := prepare(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "loopback:", err)
		os.Exit(125)
	}
	os.Exit(run(exec.Command(os.Args[2], os.Args[3:]...)))
}

// outer starts this program again in namespaces of its own.
func outer() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "loopback:", err)
		return 125
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr = attr
	return run(cmd)
}

// run returns the exit code of a command, which receives the signals.
func run(cmd *exec.Cmd) int {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "loopback:", err)
		return 125
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "loopback:", err)
		return 125
	}
	return max(cmd.ProcessState.ExitCode(), 0)
}

// prepare starts the loopback interface and the name server.
func prepare(names string) error {
	if err := up("lo"); err != nil {
		return fmt.Errorf("start lo: %w", err)
	}
	log, err := os.OpenFile(names, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	server, err := net.ListenPacket("udp4", "127.0.0.1:53")
	if err != nil {
		return err
	}
	go resolve(server, log)

	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if errors.Is(err, os.ErrNotExist) {
		return nil // 127.0.0.1 is the default
	}
	file, err := os.CreateTemp("", "resolv")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString("nameserver 127.0.0.1\noptions attempts:1 timeout:1\n"); err != nil {
		return err
	}
	file.Chmod(0o644)
	file.Close()
	if err := syscall.Mount(file.Name(), target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount resolv.conf: %w", err)
	}
	return nil
}

// up sets IFF_UP of an interface (netdevice(7)).
func up(name string) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var req struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], name)
	req.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

// resolve answers queries (RFC 1035, 4): 192.0.2.1 for type A, no record for others.
func resolve(server net.PacketConn, log *os.File) {
	query := make([]byte, 512)
	for {
		n, from, err := server.ReadFrom(query)
		if err != nil {
			return
		}
		name, end := question(query[:n])
		if end == 0 {
			continue
		}
		if isA := binary.BigEndian.Uint16(query[end-4:]) == 1; isA {
			fmt.Fprintln(log, name)
			server.WriteTo(answer(query[:end], []byte{192, 0, 2, 1}), from)
		} else {
			server.WriteTo(answer(query[:end], nil), from)
		}
	}
}

// question returns the name of a query's question and where the question ends, or 0.
func question(q []byte) (string, int) {
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		length := int(q[at])
		if length > 63 || at+1+length > len(q) {
			return "", 0
		}
		labels = append(labels, string(q[at+1:at+1+length]))
		at += 1 + length
	}
	if at+5 > len(q) {
		return "", 0
	}
	return strings.Join(labels, "."), at + 5
}

func answer(query, address []byte) []byte {
	a := append([]byte(nil), query...)
	a[2], a[3] = 0x81, 0x80 // a response, recursion available
	clear(a[6:12])
	if address == nil {
		return a
	}
	a[7] = 1
	a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4) // the name of the question, A, IN, 1 s
	return append(a, address...)
}
