package program

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"weir/server/store"
)

// listen returns the socket that was passed to the process, else it opens the address of the settings.
func (r *run) listen(s *settings) (net.Listener, error) {
	l, err := r.passed()
	if l == nil && err == nil {
		return s.open()
	}
	if err != nil {
		return nil, err
	}
	s.passed = true
	s.listen = address{l.Addr().Network(), l.Addr().String()}
	s.proxies.unix = s.listen.network == "unix"
	return l, nil
}

// open opens the address of the settings. A socket of unix that no process
// listens at any more is replaced.
func (s *settings) open() (net.Listener, error) {
	if s.listen.network == "unix" {
		return listenUnix(s.listen.name)
	}
	l, err := net.Listen("tcp", s.listen.name)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, errAddressInUse):
		return nil, fmt.Errorf("listen %s: the address is in use; stop the other program, or choose another address with --listen", s.listen)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("listen %s: permission denied; ports below 1024 need a privilege: choose another with --listen, such as :8787", s.listen)
	case errors.Is(err, errNoAddress):
		return nil, fmt.Errorf("listen %s: this computer does not have the address; choose another with --listen", s.listen)
	}
	return nil, fmt.Errorf("listen %s: %w; choose another address with --listen", s.listen, listenCause(err))
}

// listenCause returns the reason of a failed net.Listen.
func listenCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return store.Cause(op.Err)
	}
	return err
}

func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("listen unix:%s: it is a file; choose another path with --listen", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("listen unix:%s: the address is in use; stop the other program, or choose another path with --listen", path)
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen unix:%s: %w; choose another path with --listen", path, listenCause(err))
	}
	// The proxy in front is another user of the socket's group.
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen unix:%s: %w", path, store.Cause(err))
	}
	return l, nil
}

// isOpen reports whether other computers can connect to the server's address
// without TLS, and no proxy is known that has it.
func (s *settings) isOpen(at net.Addr) bool {
	a, ok := at.(*net.TCPAddr)
	return ok && !a.IP.IsLoopback() && !s.tls() && !s.proxies.any()
}

// own returns the addresses at which the server reaches itself.
func own(at net.Addr) []netip.AddrPort {
	if a, ok := at.(*net.TCPAddr); ok {
		p := a.AddrPort()
		return []netip.AddrPort{netip.AddrPortFrom(p.Addr().Unmap(), p.Port())}
	}
	return nil
}

// certificate is the certificate of the server. It is read again when its files
// change, so that a renewed one is used without a restart.
type certificate struct {
	cert, key string // paths
	log       func(level int, line string)

	mu     sync.Mutex
	loaded *tls.Certificate
	certAt fs.FileInfo // of the files of loaded
	keyAt  fs.FileInfo
	failed string // the last error that was logged
}

func newCertificate(cert, key string, log func(int, string)) (*certificate, error) {
	switch {
	case cert == "":
		return nil, usagef("--tls-key is set but --tls-cert is not")
	case key == "":
		return nil, usagef("--tls-cert is set but --tls-key is not")
	}
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// load reads both files.
func (c *certificate) load() error {
	certAt, err := os.Stat(c.cert)
	if err != nil {
		return fmt.Errorf("--tls-cert %s: %w", c.cert, store.Cause(err))
	}
	keyAt, err := os.Stat(c.key)
	if err != nil {
		return fmt.Errorf("--tls-key %s: %w", c.key, store.Cause(err))
	}
	for _, f := range [...][2]string{{"--tls-cert", c.cert}, {"--tls-key", c.key}} {
		if _, err := os.ReadFile(f[1]); err != nil {
			return fmt.Errorf("%s %s: %w", f[0], f[1], store.Cause(err))
		}
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", c.cert, c.key, err)
	}
	c.loaded, c.certAt, c.keyAt = &pair, certAt, keyAt
	return nil
}

// get returns the certificate for a handshake. While the files on disk cannot be
// used, as between the writing of one and of the other, it is the last good one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if same(c.cert, c.certAt) && same(c.key, c.keyAt) {
		return c.loaded, nil
	}
	switch err := c.load(); {
	case err == nil:
		c.failed = ""
		c.log(0, "the certificate was read again")
	case err.Error() != c.failed:
		c.failed = err.Error()
		c.log(1, oneLine(fmt.Errorf("the changed certificate cannot be used, the last one stays: %w", err)))
	}
	return c.loaded, nil
}

// same reports whether a file is as it was.
func same(path string, was fs.FileInfo) bool {
	is, err := os.Stat(path)
	return err == nil && os.SameFile(is, was) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size()
}
