package provider

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir/pkg/wire/secret"
	"weir/pkg/wire/weburl"
)

// ErrProxyURL is the error for a refused proxy URL. It is wrapped with the reason, which
// contains no part of the URL.
var ErrProxyURL = errors.New("the proxy's address is refused")

const (
	minProxyAuth = 8 // bytes; a shorter one cannot be kept out of texts
	maxProxyAuth = 1024
)

// ParseProxy reads the address of an HTTP CONNECT proxy: http://host:port, with
// user:password@ before the host where the proxy asks for them. The host is
// a public DNS name, anything with allowPrivate, and never one of ownHosts. The port is 80, 443 or at least
// 1024, so that it is not that of another well-known service.
//
// The result is "host:port" and "user:password", a zero Secret for none.
func ParseProxy(raw string, allowPrivate bool, ownHosts ...string) (address string, auth secret.Secret, err error) {
	none := secret.Secret{}
	refuse := func(why string) error { return fmt.Errorf("%w: %s", ErrProxyURL, why) }
	url, ok := weburl.Canonical(raw)
	rest, plain := strings.CutPrefix(url, "http://")
	if !ok || len(url) > maxURLBytes || !plain {
		return "", none, refuse("it must be written http://host:port")
	}
	if rest = strings.TrimSuffix(rest, "/"); strings.ContainsAny(rest, "/?#\\") {
		return "", none, refuse("path, query and fragment are not allowed")
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		text := unescape(rest[:at])
		rest = rest[at+1:]
		if !strings.Contains(text, ":") {
			text += ":"
		}
		if err := CheckProxyAuth(text); err != nil {
			return "", none, err
		}
		auth = secret.New(text)
	}
	host, port, literal, ok := splitHost(rest)
	if !ok {
		return "", none, refuse("the host is not usable")
	}
	port = cmp.Or(port, "80")
	if n, _ := strconv.Atoi(port); !allowPrivate && n < 1024 && n != 80 && n != 443 {
		return "", none, refuse("the port must be 80, 443 or at least 1024")
	}
	for _, own := range ownHosts {
		if isOwn(own, host, port) {
			return "", none, refuse("the gateway itself is not a proxy")
		}
	}
	if literal {
		if !allowPrivate || !usableIPv6(host) {
			return "", none, refuse("the host must be a name, not an address")
		}
		return "[" + host + "]:" + port, auth, nil
	}
	if err := checkName(host, allowPrivate, refuse); err != nil {
		return "", none, err
	}
	return host + ":" + port, auth, nil
}

// CheckProxyAuth returns an error if text cannot be the user:password of a proxy.
func CheckProxyAuth(text string) error {
	switch {
	case strings.IndexByte(text, ':') < 1:
		return fmt.Errorf("%w: user and password must be written user:password", ErrProxyURL)
	case len(text) < minProxyAuth || len(text) > maxProxyAuth:
		return fmt.Errorf("%w: user and password must have %d to %d bytes together", ErrProxyURL, minProxyAuth, maxProxyAuth)
	case !SafeValue(text):
		return fmt.Errorf("%w: user and password have characters that cannot be sent in a header", ErrProxyURL)
	}
	return nil
}
