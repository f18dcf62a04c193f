package store

import "testing"

func TestNetworkOfAnAddress(t *testing.T) {
	for address, want := range map[string]string{
		"203.0.113.77": "203.0.113.0/24", "::ffff:203.0.113.77": "203.0.113.0/24", "2001:db8:1:2:3::4": "2001:db8:1::/48",
		"fe80::1%eth0": "fe80::/48", "127.0.0.1": "127.0.0.0/24", "": "", "unknown": "", "203.0.113.77:443": "", "203.0.113.0/24": "",
	} {
		if got := NetworkOf(address); got != want {
			t.Errorf("NetworkOf(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestNetworksOfAReportAreAddedUp(t *testing.T) {
	var list []KeyNetwork
	add := func(key, network, country, tool string, at int64) {
		list = AddNetwork(list, &KeyNetwork{KeyID: key, Network: network, Country: country, Tools: []string{tool}, First: at, Last: at, Requests: 1}, 2)
	}
	add("a", "10.0.0.0/24", "", "curl", 5)
	add("b", "10.0.0.0/24", "DE", "curl", 6)
	add("a", "10.0.1.0/24", "", "curl", 7) // does not fit
	for i, tool := range []string{"codex", "curl", "1", "2", "3"} {
		add("a", "10.0.0.0/24", "FR", tool, int64(3+i))
	}
	if len(list) != 2 || list[0].Requests != 6 || list[0].First != 3 || list[0].Last != 7 || list[0].Country != "FR" ||
		len(list[0].Tools) != maxNetworkTools || list[1].Country != "DE" || !list[0].Valid() {
		t.Errorf("got %+v", list)
	}
}
