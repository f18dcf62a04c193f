package storage_test

import (
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// A change of settings by an older version once removed the prices that a newer one knew.
func TestFieldsOfANewerVersionAreKept(t *testing.T) {
	for _, tt := range []struct {
		key    string
		stored string // by the newer version
		change func(tx *storage.Tx)
		want   map[string]string // JSON of the fields afterwards, "" for none
	}{
		{storage.SettingsRow, `{"strategy":"weighted","firstByteSeconds":5,"timeZone":"Europe/Berlin","newer":{"a":[1,"x"]},"modelPrices":{"up/m":"1"}}`, func(tx *storage.Tx) {
			s := tx.Settings()
			s.FirstByteSeconds, s.TimeZone, s.ModelPrices = 9, "", map[string]string{"up/n": "2"}
			tx.Put(storage.SettingsRow, s)
		}, map[string]string{"strategy": `"weighted"`, "firstByteSeconds": "9", "newer": `{"a":[1,"x"]}`, "timeZone": "", "modelPrices": `{"up/n":"2"}`}},
		{storage.ConnectionPrefix + "a", `{"id":"a","provider":"openai","name":"x","priority":1,"newer":true,"secrets":{"apiKey":"1","accessToken":"2"},"providerSpecificData":{"newer":"1","baseUrl":"https://a.example","prefix":"p","other":{"a":1,"b":2}},"createdAt":0,"updatedAt":0,"generation":1,"seq":1}`, func(tx *storage.Tx) {
			c := tx.Connections()[0]
			c.Name, c.Data.BaseURL, c.Data.Other = "", "https://b.example", map[string]json.RawMessage{"b": json.RawMessage("3")}
			delete(c.Secrets, store.AccessToken)
			tx.PutConnection(&c)
		}, map[string]string{"name": "", "newer": "true", "priority": "1", "secrets": `{"apiKey":"1"}`, "providerSpecificData": `{"baseUrl":"https://b.example","prefix":"p","other":{"b":3},"newer":"1"}`, "generation": "2"}},
		{storage.KeyPrefix + "a", `{"id":"a","digest":"d","rpm":5,"newer":[{}],"earlier":{"digest":"e","until":9,"newer":1},"generation":1,"seq":1}`, func(tx *storage.Tx) {
			k := tx.Keys()[0]
			k.RPM, k.Earlier = 0, &store.EarlierKey{Digest: "f", Until: 10}
			tx.PutKey(&k)
		}, map[string]string{"rpm": "", "newer": "[{}]", "earlier": `{"digest":"f","until":10,"newer":1}`}},
		{storage.ComboPrefix + "a", `{"id":"a","name":"x","models":["m"],"newer":1.5e3,"createdAt":0,"updatedAt":0,"generation":1,"seq":1}`, func(tx *storage.Tx) {
			c := tx.Combos()[0]
			c.Models = []string{"n"}
			tx.PutCombo(&c)
		}, map[string]string{"models": `["n"]`, "newer": "1.5e3"}},
		{storage.BudgetPrefix + "a", `{"id":"a","unit":"usd","limit":5,"newer":{},"seq":1}`, func(tx *storage.Tx) {
			b := tx.Budgets()[0]
			b.Limit = 6
			tx.PutBudget(&b)
		}, map[string]string{"limit": "6", "newer": "{}"}},
		{storage.AliasPrefix + "a", `{"alias":"a","model":"m","newer":"\"<\u00e9"}`, func(tx *storage.Tx) {
			tx.PutAlias(&storage.Alias{Alias: "a", Model: "n"})
		}, map[string]string{"model": `"n"`, "newer": `"\"<\u00e9"`}},
		{storage.AliasPrefix + "b", `{"alias":"b","model":"m","newer":1}`, func(tx *storage.Tx) { // another one of this name
			tx.Del(storage.AliasPrefix + "b")
			tx.PutAlias(&storage.Alias{Alias: "b", Model: "n"})
		}, map[string]string{"model": `"n"`, "newer": ""}},
		{storage.DisabledPrefix + "up", `{"providerAlias":"up","ids":["m"],"newer":null,"seq":1}`, func(tx *storage.Tx) {
			d := tx.Disabled()[0]
			d.IDs = nil
			tx.PutDisabled(&d)
		}, map[string]string{"ids": "null", "newer": "null"}},
		{storage.CustomModelKey("", "up", "m"), `{"id":"m","providerAlias":"up","name":"x","newer":0,"seq":1}`, func(tx *storage.Tx) {
			m := tx.CustomModels()[0]
			m.Name = "y"
			tx.PutCustom(&m)
		}, map[string]string{"name": `"y"`, "newer": "0"}},
		{storage.KeyUsePrefix + "a", `{"last":5,"newer":1}`, func(tx *storage.Tx) { // what a newer version counts itself
			tx.Put(storage.KeyUsePrefix+"a", storage.KeyUse{})
		}, map[string]string{"newer": ""}},
		{storage.AliasPrefix + "c", `damaged`, func(tx *storage.Tx) {
			tx.PutAlias(&storage.Alias{Alias: "c", Model: "n"})
		}, map[string]string{"model": `"n"`}},
	} {
		st := objects.NewStorage()
		st.Rows["meta"] = []byte(`{"id":"x","generation":1}`)
		st.Rows[tt.key] = []byte(tt.stored)
		tx := at(st, noon)
		tt.change(tx)
		tx.Due = false
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		row, _ := at(st, noon).Get(tt.key)
		if !gjson.ValidBytes(row) {
			t.Errorf("%s: %s", tt.key, row)
		}
		for name, want := range tt.want {
			if got := gjson.GetBytes(row, name).Raw; got != want {
				t.Errorf("%s: %s is %s, want %s, in %s", tt.key, name, got, want, row)
			}
		}
	}
}
