package store

import (
	"net/netip"
	"slices"
)

// KeyNetwork is a network that a key was used from.
//
//easyjson:json
type KeyNetwork struct {
	KeyID string `json:"keyId,omitempty"`
	// Network is 203.0.113.0/24, or of IPv6 the /48: never a whole address.
	Network  string   `json:"network"`
	Country  string   `json:"country,omitempty"` // two letters; "" is not known
	Tools    []string `json:"tools,omitempty"`   // the first ones
	First    int64    `json:"firstAt"`           // Unix milliseconds
	Last     int64    `json:"lastAt"`
	Requests int64    `json:"requests"`
}

const maxNetworkTools = 4

// NetworkOf returns the network of an address, or "".
func NetworkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	bits := 24
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		bits = 48
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.String()
}

// AddNetwork adds to the network of the same key in a list, or adds it as another one of at most
// this number.
func AddNetwork(list []KeyNetwork, n *KeyNetwork, most int) []KeyNetwork {
	i := slices.IndexFunc(list, func(had KeyNetwork) bool { return had.Network == n.Network && had.KeyID == n.KeyID })
	if i < 0 {
		if len(list) >= most {
			return list
		}
		n := *n
		n.Tools = slices.Clone(n.Tools)
		return append(list, n)
	}
	had := &list[i]
	had.First, had.Last = min(had.First, n.First), max(had.Last, n.Last)
	had.Requests += n.Requests
	if n.Country != "" {
		had.Country = n.Country
	}
	for _, tool := range n.Tools {
		if len(had.Tools) < maxNetworkTools && !slices.Contains(had.Tools, tool) {
			had.Tools = append(had.Tools, tool)
		}
	}
	return list
}

// Valid reports whether an isolate may add the network to the stored ones.
func (n *KeyNetwork) Valid() bool {
	p, err := netip.ParsePrefix(n.Network)
	return err == nil && p.String() == n.Network && n.Requests > 0 && len(n.Country) <= 2 &&
		len(n.Tools) <= maxNetworkTools && n.First > 0 && n.First <= n.Last
}
