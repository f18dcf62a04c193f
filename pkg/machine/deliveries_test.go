package machine

import (
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/sealed"
)

// After a rotation of CREDENTIALS_KEY the hour's work seals the secrets of destinations
// again, so that the older key can go.
func TestSecretsOfDestinationsAreResealed(t *testing.T) {
	w := newWorld(t)
	hook := &fake.Upstream{Clock: w.Clock}
	w.obj.Do = hook
	w.Create()
	older, newer := strings.Repeat("o", 40), strings.Repeat("n", 40)
	w.obj.Keyring = sealed.Keys(t, older)
	id := w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/a?sig=1"}}`).Get("id").Str
	w.obj.Keyring = sealed.Keys(t, newer, older)
	w.Clock.Add(61 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	w.obj.Keyring = sealed.Keys(t, newer)
	if a := w.OK("POST", "/api/destinations/"+id+"/test", ""); !a.Get("delivered").Bool() || hook.Seen[0].URL != "https://hooks.example.com/a?sig=1" {
		t.Errorf("after a rotation: %s", a.Raw)
	}
}
