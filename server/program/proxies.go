package program

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies decides what is believed of a request's X-Forwarded fields: they count
// if the connection comes from a trusted proxy, and are ignored otherwise.
type proxies struct {
	trusted []netip.Prefix
	unix    bool   // connections over the unix socket: its mode decides who may
	public  string // PUBLIC_URL, "" if it is not set
	host    string // that of PUBLIC_URL
}

// Ranges that have a name in the list of trusted proxies.
var (
	loopbackRanges = [...]string{"127.0.0.0/8", "::1/128"}
	privateRanges  = [...]string{"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}
)

// parseProxies reads a list of addresses and ranges, separated by commas.
func parseProxies(list string) (p proxies, err error) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		switch item {
		case "":
			continue
		case "loopback":
			for _, r := range loopbackRanges {
				p.trusted = append(p.trusted, netip.MustParsePrefix(r))
			}
			continue
		case "private":
			for _, r := range privateRanges {
				p.trusted = append(p.trusted, netip.MustParsePrefix(r))
			}
			continue
		}
		prefix, err := netip.ParsePrefix(item)
		if a, bad := netip.ParseAddr(item); bad == nil && a.Zone() == "" {
			prefix, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return p, usagef("--trusted-proxies: %q is neither an address nor a range such as 10.0.0.0/8", item)
		}
		if a := prefix.Addr(); a.Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
		}
		p.trusted = append(p.trusted, prefix.Masked())
	}
	return p, nil
}

// any reports whether there are trusted proxies.
func (p *proxies) any() bool { return len(p.trusted) > 0 }

func (p *proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.trusted, func(r netip.Prefix) bool { return r.Contains(a) })
}

// peer returns the address of a connection, invalid for a unix socket, and
// reports whether the fields that it forwards count.
func (p *proxies) peer(r *http.Request) (a netip.Addr, trusted bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, p.unix
	}
	a = at.Addr().Unmap().WithZone("")
	return a, p.trusts(a)
}

// clientAddress returns the IP address of a request's client: that of the
// connection or, through trusted proxies, the last one of X-Forwarded-For that is
// not theirs. It is "" for a client of a unix socket without the field.
func (p *proxies) clientAddress(r *http.Request) string {
	client, trusted := p.peer(r)
	fields := r.Header["X-Forwarded-For"]
	for i := len(fields) - 1; trusted && i >= 0; i-- {
		for rest, more := fields[i], true; trusted && more; {
			var item string
			if at := strings.LastIndexByte(rest, ','); at >= 0 {
				rest, item = rest[:at], rest[at+1:]
			} else {
				item, more = rest, false
			}
			a, ok := parseForwarded(item)
			if !ok { // from here on nothing is known to come from a proxy
				trusted = false
				break
			}
			client, trusted = a, p.trusts(a)
		}
	}
	if !client.IsValid() {
		return ""
	}
	return client.String()
}

// parseForwarded reads an address of X-Forwarded-For, which some proxies write
// with a port.
func parseForwarded(item string) (netip.Addr, bool) {
	item = strings.TrimSpace(item)
	if at, err := netip.ParseAddrPort(item); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if len(item) > 1 && item[0] == '[' && item[len(item)-1] == ']' {
		item = item[1 : len(item)-1]
	}
	a, err := netip.ParseAddr(item)
	return a.Unmap().WithZone(""), err == nil
}

// origin returns scheme and host of a request as a browser would write them in the
// field Origin. A trusted proxy may state both. For the host of PUBLIC_URL it is
// PUBLIC_URL, since the proxy in front of it has the certificate.
func (p *proxies) origin(r *http.Request) string {
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if _, trusted := p.peer(r); trusted {
		switch v := strings.ToLower(last(r.Header["X-Forwarded-Proto"])); v {
		case "http", "https":
			scheme = v
		}
		if v := last(r.Header["X-Forwarded-Host"]); v != "" {
			host = v
		}
	}
	host = strings.ToLower(host)
	if host == p.host && host != "" {
		return p.public
	}
	standard := ":80"
	if scheme == "https" {
		standard = ":443"
	}
	return scheme + "://" + strings.TrimSuffix(host, standard)
}

// last returns the last item of a list field, that of the nearest proxy.
func last(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	v := fields[len(fields)-1]
	return strings.TrimSpace(v[strings.LastIndexByte(v, ',')+1:])
}
