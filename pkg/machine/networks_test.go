package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
)

// A key that is used from its third new network of a day is told of once. Deletion and the setting
// remove what is stored.
func TestKeyOnNewNetworksIsTold(t *testing.T) {
	w := newNotified(t, "")
	of := func(route, id string) func(*rpc.ManageCall) {
		return func(c *rpc.ManageCall) { c.Route, c.Params = route, []string{id} }
	}
	w.OK("PUT", "/api/destinations", `{"events":["key.networks"]}`, of("/api/destinations/{id}", w.target))
	id := w.OK("POST", "/api/keys", `{"name":"laptop"}`).Get("id").Str
	now := func() int64 { return w.Clock.Now().UnixMilli() }
	used := func(networks ...string) {
		t.Helper()
		var list []string
		for _, n := range networks {
			list = append(list, fmt.Sprintf(`{"keyId":%q,"network":%q,"country":"DE","tools":["codex"],"firstAt":%d,"lastAt":%d,"requests":2}`, id, n, now(), now()))
		}
		w.Want(200, "report", `{"networks":[`+strings.Join(list, ",")+`]}`)
		w.Clock.Add(11 * time.Second)
	}
	networks := func() string {
		a := w.OK("GET", "/api/keys", "", of("/api/keys/{id}/networks", id))
		return fmt.Sprint(a.Get("data.#.network").Raw, " ", a.Get("newToday").Int())
	}
	used("203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24", "10.0.0.0/24")
	if got := w.told(); got != "" {
		t.Errorf("on its first day: %s", got)
	}
	w.Clock.Add(24 * time.Hour)
	used("203.0.113.0/24", "10.0.1.0/24", "10.0.2.0/24")
	if got := w.told(); got != "" {
		t.Errorf("after two networks: %s", got)
	}
	used("2001:db8:1::/48", "10.0.3.0/24")
	if got := w.told(); got != "key.networks " || !strings.Contains(w.last().Raw, "laptop") || w.last().Get("data.keyId").Str != id {
		t.Errorf("after the third network: %q %s", got, w.last().Raw)
	}
	if got := networks(); !strings.HasPrefix(got, `["`) || !strings.HasSuffix(got, "] 4") || strings.Count(got, "/") != 8 {
		t.Errorf("got %s", got)
	}
	w.OK("PATCH", "/api/settings", `{"keyNetworks":"off"}`)
	used("10.9.0.0/24")
	if got := networks(); got != "[] 0" {
		t.Errorf("with the setting off: %s", got)
	}
	w.OK("PATCH", "/api/settings", `{"keyNetworks":null}`)
	used("10.9.0.0/24")
	if got := networks(); got != `["10.9.0.0/24"] 0` {
		t.Errorf("with the setting on: %s", got)
	}
}
