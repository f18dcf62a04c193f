package storage

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"weir/internal/codectest"
)

func TestGeneratedCodeHasEveryField(t *testing.T) {
	codectest.Check(t, &meta{})
	codectest.Check(t, &Own{})
	codectest.Check(t, &Given{})
	codectest.Check(t, &Alias{})
	codectest.Check(t, &Health{})
	codectest.Check(t, &KeyUse{})
	codectest.Check(t, &UsageRow{})
	codectest.Check(t, &usageRows{})
	codectest.Check(t, &KeyNetworks{})
}

// The records of testdata/rows.golden were written before Own stood in a type of its own, and
// stay as they are: the rows of existing machines are read in full and written as they were.
func TestStoredRecordsKeepTheirForm(t *testing.T) {
	golden, err := os.ReadFile("testdata/rows.golden")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(golden)), "\n")
	for i, line := range lines {
		name, row, _ := strings.Cut(line, "\t")
		made := map[string]func() any{
			"Connection": func() any { return &Connection{} }, "Key": func() any { return &Key{} },
			"Combo": func() any { return &Combo{} }, "CustomModel": func() any { return &CustomModel{} },
			"DisabledModels": func() any { return &DisabledModels{} }, "Budget": func() any { return &Budget{} },
			"Alias": func() any { return &Alias{} },
		}[name]
		got, want := made(), made()
		if err := decode([]byte(row), got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := json.Unmarshal([]byte(row), want); err != nil {
			t.Fatal(err)
		}
		for typ, n := reflect.TypeOf(got).Elem(), 0; name != "Alias" && n < typ.NumField(); n++ {
			if f := typ.Field(n); !f.Anonymous {
				t.Errorf("%s.%s: decode reads the parts that a record embeds", name, f.Name)
			}
		}
		full := i < len(lines)/2
		if !reflect.DeepEqual(got, want) || full && reflect.DeepEqual(got, made()) {
			t.Errorf("%s is read as\n%+v\nwant\n%+v", name, got, want)
		}
		if again := encode(got); string(again) != row {
			t.Errorf("%s is written as\n%s\nwant\n%s", name, again, row)
		}
	}
	if len(lines) != 14 {
		t.Errorf("%d rows", len(lines))
	}
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
