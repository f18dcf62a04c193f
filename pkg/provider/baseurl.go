package provider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrBaseURL is the error for a refused base URL. It is wrapped with the reason, which
// never contains the URL.
var ErrBaseURL = errors.New("base address refused")

// maxURLBytes is the longest base address taken.
const maxURLBytes = 2048

// deniedSuffixes are the top labels, or ends, that never name a public host.
var deniedSuffixes = [...]string{
	"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp",
	"home.arpa", "test", "invalid", "onion", "arpa",
}

// metadataHosts are cloud metadata services, which return credentials of the calling
// server. They are refused even if private addresses are allowed.
var metadataHosts = [...]string{
	"metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal",
	"instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com",
}

// CheckBaseURL checks a base URL in the form of weburl.Canonical, never in the form
// that was typed (docs/reference/spec.md, 2.3).
//
// It accepts https, the default port, and a public DNS name of at most 253 bytes that
// contains a dot; no user, query, fragment, trailing dot or IP address in any
// spelling: a URL parser reads a last label of digits, or one that starts with 0x, as
// an IPv4 address. Paths of the platform's own pages are refused. ownHosts are names
// of the gateway itself, with a port if only that port is meant; all loopback
// spellings are one host.
//
// allowPrivate is set by the operator if upstreams may be on the local network: http,
// any port, single labels and IP addresses are then accepted too, except link-local,
// multicast, unspecified and reserved ones.
func CheckBaseURL(canonical string, allowPrivate bool, ownHosts ...string) error {
	refuse := func(why string) error { return fmt.Errorf("%w: %s", ErrBaseURL, why) }
	if len(canonical) > maxURLBytes {
		return refuse("too long")
	}
	for i := 0; i < len(canonical); i++ {
		switch c := canonical[i]; {
		case c <= ' ' || c >= 0x7f:
			return refuse("not a canonical address")
		case c == '\\' || c == '{' || c == '}':
			return refuse("not a canonical address")
		case c == '?' || c == '#':
			return refuse("query and fragment are not allowed")
		}
	}
	rest, secure := strings.CutPrefix(canonical, "https://")
	if !secure {
		var plain bool
		if rest, plain = strings.CutPrefix(canonical, "http://"); !plain || !allowPrivate {
			return refuse("the scheme must be https")
		}
	}
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(authority, "@") {
		return refuse("user and password are not allowed")
	}
	if path = strings.TrimSuffix(path, "/"); path != "" && (!cleanPath(path) || !cleanPath(unescape(path))) {
		return refuse("the path is not plain")
	}
	if PlatformPath("/" + path) {
		return refuse("the path belongs to the platform")
	}
	host, port, literal, ok := splitHost(authority)
	if !ok {
		return refuse("the host is not usable")
	}
	for _, own := range ownHosts {
		if isOwn(own, host, port) {
			return refuse("the gateway itself is not an upstream")
		}
	}
	if port != "" && !allowPrivate && (port != "443" || !secure) {
		return refuse(otherPort)
	}
	if literal {
		if !allowPrivate || !usableIPv6(host) {
			return refuse("the host must be a name, not an address")
		}
		return nil
	}
	return checkName(host, allowPrivate, refuse)
}

const otherPort = "only the default port is allowed"

// Refusal returns why CheckBaseURL refuses an address and what to do, as what follows the
// field's name in a sentence; "" if it accepts it. The address alone decides, never what
// its host resolves to (docs/reference/reliability.md, T18).
func Refusal(canonical string, allowPrivate bool, ownHosts ...string) string {
	err := CheckBaseURL(canonical, allowPrivate, ownHosts...)
	if err == nil {
		return ""
	}
	_, why, _ := strings.Cut(err.Error(), ": ")
	rest, plain := strings.CutPrefix(canonical, "http://")
	switch {
	case plain && CheckBaseURL("https://"+rest, allowPrivate, ownHosts...) == nil:
		return "must begin with https://"
	case !allowPrivate && CheckBaseURL(canonical, true, ownHosts...) == nil:
		kind := "on a private network"
		if why == otherPort {
			kind = "with a port of its own"
		}
		return "is an address " + kind + ", which this gateway does not call. On a server of your own, stop weir " +
			"and start it with ALLOW_PRIVATE_UPSTREAMS=true weir serve; Cloudflare reaches public addresses only"
	}
	return "is refused: " + why
}

// PlatformPath reports whether path is one of the platform's own pages, which
// every worker's port serves: /cdn-cgi/…, however it is escaped.
func PlatformPath(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for range 3 { // each server on the way may decode once
		rest := strings.ToLower(strings.TrimLeft(path, "/\\"))
		if rest, ok := strings.CutPrefix(rest, "cdn-cgi"); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' ||
			rest[0] == ';') {
			return true
		}
		path = unescape(path)
	}
	return false
}

// isOwn reports whether own, a name of the gateway with an optional port, is
// host and port. A server on one loopback address may listen on all of them.
func isOwn(own, host, port string) bool {
	own = strings.ToLower(strings.TrimSuffix(own, "."))
	if own == "" {
		return false
	}
	name, ownPort, _, ok := splitHost(own)
	if !ok {
		return own == host
	}
	if name == host && (ownPort == "" || ownPort == port) {
		return true
	}
	return ownPort == port && isLoopback(name) && isLoopback(host)
}

// isLoopback reports whether a canonical host is this machine.
func isLoopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasSuffix(host, ".localhost") ||
		strings.HasPrefix(host, "127.") && strings.Count(host, ".") == 3
}

// splitHost splits host[:port]. literal reports an IPv6 address, which is returned
// without its brackets.
func splitHost(authority string) (host, port string, literal, ok bool) {
	host = authority
	if rest, bracket := strings.CutPrefix(authority, "["); bracket {
		if host, port, literal = strings.Cut(rest, "]"); !literal {
			return "", "", false, false
		}
	} else if i := strings.IndexByte(authority, ':'); i >= 0 {
		host, port = authority[:i], authority[i:]
	}
	if port != "" {
		if port = port[1:]; port == "" || len(port) > 5 {
			return "", "", false, false
		}
		for i := 0; i < len(port); i++ {
			if port[i] < '0' || port[i] > '9' {
				return "", "", false, false
			}
		}
		if n, _ := strconv.Atoi(port); n == 0 || n > 65535 {
			return "", "", false, false
		}
	}
	return host, port, literal, host != ""
}

func checkName(host string, allowPrivate bool, refuse func(string) error) error {
	if len(host) > 253 {
		return refuse("the host name is too long")
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if !IsLabel(l) || strings.ToLower(l) != l {
			return refuse("the host must be a DNS name")
		}
	}
	for _, m := range metadataHosts {
		if host == m {
			return refuse("the host is a metadata service")
		}
	}
	last := labels[len(labels)-1]
	if strings.HasPrefix(last, "0x") || allDigits(last) {
		if !allowPrivate || !usableIPv4(labels) {
			return refuse("the host must be a name, not an address")
		}
		return nil
	}
	if allowPrivate {
		return nil
	}
	if len(labels) < 2 {
		return refuse("the host must be a public name")
	}
	for _, s := range &deniedSuffixes {
		if host == s || strings.HasSuffix(host, s) && host[len(host)-len(s)-1] == '.' {
			return refuse("the host must be a public name")
		}
	}
	return nil
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// usableIPv4 reports whether a canonical dotted IPv4 address may be called if private
// addresses are allowed: loopback, private and public ones.
func usableIPv4(labels []string) bool {
	if len(labels) != 4 {
		return false
	}
	var b [4]int
	for i, l := range labels {
		n, err := strconv.Atoi(l)
		if err != nil || n < 0 || n > 255 || strconv.Itoa(n) != l {
			return false
		}
		b[i] = n
	}
	switch {
	case b[0] == 0, b[0] >= 224, // this network; multicast and reserved
		b[0] == 169 && b[1] == 254,                               // link-local, metadata
		b[0] == 192 && b[1] == 0 && b[2] == 0,                    // protocol assignments
		b[0] == 192 && b[1] == 88 && b[2] == 99,                  // 6to4 relays
		b[0] == 198 && (b[1] == 18 || b[1] == 19),                // benchmarks
		b[0] == 100 && b[1] == 100 && b[2] == 100 && b[3] == 200: // a cloud's metadata
		return false
	}
	return true
}

// usableIPv6 is usableIPv4 for an address in its canonical form: loopback,
// unique local and global unicast ones that carry no other address.
func usableIPv6(host string) bool {
	if host == "::1" {
		return true
	}
	for i := 0; i < len(host); i++ {
		if c := host[i]; c != ':' && (hexValue(c) < 0 || c >= 'A' && c <= 'F') {
			return false
		}
	}
	first, rest, _ := strings.Cut(host, ":")
	second, _, _ := strings.Cut(rest, ":")
	g, err := strconv.ParseUint(first, 16, 16)
	if err != nil || strings.Contains(host, ":::") {
		return false
	}
	switch {
	case g&0xfe00 == 0xfc00: // unique local
		return host != "fd00:ec2::254" // a cloud's metadata
	case g == 0x2001: // Teredo, benchmarks, ORCHID, documentation
		n, err := strconv.ParseUint(second, 16, 16)
		return err == nil && n >= 0x200 && n != 0xdb8
	case g == 0x2002: // 6to4
		return false
	}
	return g >= 0x2000 && g < 0x4000 && g != 0x3fff
}
