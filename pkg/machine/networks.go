package machine

import (
	"cmp"
	"fmt"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// addNetworks adds the networks of reports to those of the keys, and notifies of each key that is
// in its third new network of the day.
func (o *Object) addNetworks(t *storage.Tx, list []store.KeyNetwork) {
	if s := t.Settings(); s.KeyNetworks == "off" {
		return
	}
	for _, id := range t.AddNetworks(list) {
		var k storage.Key
		t.Load(storage.KeyPrefix+id, &k)
		title := fmt.Sprintf("Key %s was used from %d new networks today", cmp.Or(k.Name, "…"+k.Last4), storage.ManyNetworks)
		o.Notify(t, deliver.KeyNetworks, &deliver.Message{
			Level: deliver.Warn, Link: o.Link(t, "keys"), Title: title,
			Text: title + ". Its dialog lists them. If they are not yours, rotate the key.",
			Data: storage.EncodeJSON(struct {
				KeyID string `json:"keyId"`
			}{id}),
		}, nil)
	}
}
