package storage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

// Over any row of a newer version a change by this one stores JSON that has the change, and
// each field that only the newer version knows.
func FuzzFieldsOfANewerVersion(f *testing.F) {
	f.Add(`{"strategy":"weighted","newer":{"a":[1]},"modelPrices":{"up/m":"1"}}`)
	f.Add(`{"newer":"\"}{","newer":1,"":null,"a.b":{},"idleSeconds":"x"}`)
	f.Add(` {"idleSeconds" : 1 , "x":1e400} `)
	f.Fuzz(func(t *testing.T, stored string) {
		if len(stored) > 1<<12 || !json.Valid([]byte(stored)) || !strings.HasPrefix(strings.TrimSpace(stored), "{") {
			return
		}
		st := objects.NewStorage()
		st.Rows[storage.SettingsRow] = []byte(stored)
		tx := at(st, noon)
		s := tx.Settings()
		s.IdleSeconds = 77
		tx.Put(storage.SettingsRow, s)
		row, _ := tx.Get(storage.SettingsRow)
		if !json.Valid(row) || tx.Settings().IdleSeconds != 77 {
			t.Errorf("%s becomes %s", stored, row)
		}
		if v := gjson.Get(stored, "newer"); v.Exists() && !gjson.GetBytes(row, "newer").Exists() && strings.Contains(stored, `"strategy":"weighted"`) && s.Strategy == "weighted" {
			t.Errorf("%s becomes %s", stored, row)
		}
	})
}

// A turn reads and writes the rows that calls change, with any content.
func FuzzActivityRow(f *testing.F) {
	f.Add("cool:a:\t{\"connectionId\":\"a\",\"until\":9,\"reason\":\"rate_limited\"}\nrecent\t[]\nrequests\t5\n")
	f.Add("\t\n\n\tx\nusage:\t{}")
	f.Fuzz(func(t *testing.T, stored string) {
		if len(stored) > 1<<12 {
			return
		}
		st := objects.NewStorage()
		st.Rows["meta"] = []byte(`{"id":"x","generation":1}`)
		st.Rows[storage.ActivityRow] = []byte(stored)
		tx := at(st, noon)
		tx.Replica()
		tx.PruneUsage()
		tx.PruneHours()
		tx.PruneRequests()
		tx.SetError("a", "no")
		tx.Due = false
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := at(st, noon).LastError(&storage.Connection{}); got != "" {
			t.Errorf("an error of no connection: %q", got)
		}
	})
}
