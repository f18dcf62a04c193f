package storage

import (
	"bytes"
	"encoding/json"
	"testing"

	"weir/internal/codectest"
)

func TestGeneratedCodeHasEveryField(t *testing.T) {
	codectest.Check(t, &meta{})
	codectest.Check(t, &Connection{})
	codectest.Check(t, &Key{})
	codectest.Check(t, &Combo{})
	codectest.Check(t, &CustomModel{})
	codectest.Check(t, &DisabledModels{})
	codectest.Check(t, &Alias{})
	codectest.Check(t, &Health{})
	codectest.Check(t, &KeyUse{})
	codectest.Check(t, &UsageRow{})
	codectest.Check(t, &usageRows{})
}

// An unchanged meta row has the same bytes each time: it is compared with the stored one.
func TestMetaHasOneForm(t *testing.T) {
	m := meta{ID: "m", Changed: generations{"settings": 3, "alias": 1, "keys": 2, "combos": 4}}
	want, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got, ok := generated(m); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}
