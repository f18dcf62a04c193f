package manage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// MaxSeen is the number of adopted documents that are remembered.
const MaxSeen = 64

// AdoptDocument adopts a document within the turn. A refusal is logged by its field.
func (o *Manager) AdoptDocument(r *storage.Call, raw []byte) (bool, error) {
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	var seen []string
	r.Load(storage.SeenRow, &seen)
	if slices.Contains(seen, digest) {
		return false, nil
	}
	var doc *document
	var e *apierr.Error
	switch {
	case r.Meta.DeletedAt > 0:
		e = apierr.New(422, "seed_refused", "%s", storage.StillDeleted)
	case r.Exists() && !o.Reseed:
		e = apierr.New(422, "seed_refused", "The machine already exists; set ALLOW_RESEED=true to let a document change it.")
	default:
		doc, e = o.readDocument(r.ID, raw)
	}
	if e == nil {
		e = seedConflict(r.Tx, doc)
	}
	if e != nil {
		o.WriteLog(fmt.Sprintf("machine %s: the document in KV was refused: %s", r.ID, e.Message))
		e.Status = 422
		return false, e
	}
	for _, note := range doc.notes {
		o.WriteLog(fmt.Sprintf("machine %s: the document in KV: %s", r.ID, note))
	}
	if seen = append(seen, digest); len(seen) > MaxSeen {
		seen = seen[len(seen)-MaxSeen:]
	}
	r.Create("")
	old := dropSeeded(r.Tx)
	nameConnections(r.Tx, doc.conns...)
	for _, c := range doc.conns {
		if was, ok := old[c.row.ID]; ok { // its tokens may be newer than the document
			c.row.TokenGeneration, c.row.CreatedAt = was.TokenGeneration, was.CreatedAt
		}
		if err := o.finishConnection(r.Tx, c); err != nil {
			return false, err
		}
	}
	for _, k := range doc.keys {
		var row storage.Key
		if r.Load(storage.KeyPrefix+k.ID, &row) { // made by the machine itself
			continue
		}
		k.CreatedAt = r.Now
		r.PutKey(&storage.Key{Key: k, Own: storage.Own{Seeded: true}})
	}
	for i := range doc.combos {
		doc.combos[i].CreatedAt, doc.combos[i].UpdatedAt = r.Now, r.Now
		r.PutCombo(&doc.combos[i])
	}
	for _, m := range doc.customs {
		r.PutCustom(&storage.CustomModel{CustomModel: m, Own: storage.Own{Seeded: true}})
	}
	for i := range doc.aliases {
		r.PutAlias(&doc.aliases[i])
	}
	for _, d := range doc.disabled {
		var row storage.DisabledModels
		if !r.Load(storage.DisabledPrefix+d.ProviderAlias, &row) {
			row.Seeded = true
		}
		d.IDs = merged(row.IDs, d.IDs)
		row.DisabledModels = d
		r.PutDisabled(&row)
	}
	r.Put(storage.SeenRow, seen)
	r.Touch()
	if err := r.CheckSize(); err != nil {
		r.Reload(o.Now())
		return false, err
	}
	r.Due = true
	r.Audit("seed", "adopt", "", []string{"connections", "apiKeys", "combos", "customModels", "modelAliases",
		"disabledModels"})
	return true, nil
}

// seedConflict refuses a document that would take over rows made by hand.
func seedConflict(t *storage.Tx, doc *document) *apierr.Error {
	for i := range doc.conns {
		var row storage.Connection
		if t.Load(storage.ConnectionPrefix+doc.conns[i].row.ID, &row) && !row.Seeded {
			return apierr.Invalid("connections", "connections[%d].id belongs to an account that was not seeded.", i)
		}
	}
	combos := slices.Clone(doc.combos)
	taken := map[string]bool{}
	for _, c := range t.Combos() {
		if !c.Seeded {
			combos = append(combos, c)
			taken[c.ID] = true
		}
	}
	for i := range doc.combos {
		if id := doc.combos[i].ID; taken[id] {
			return apierr.Invalid("combos", "combos[%d].id belongs to another combo.", i)
		} else {
			taken[id] = true
		}
	}
	if e := checkCombos(combos); e != nil {
		return apierr.Invalid("combos", "combos are refused: %s", e.Message)
	}
	return nil
}

// dropSeeded removes the records of the last document, and returns its
// connections.
func dropSeeded(t *storage.Tx) map[string]storage.Connection {
	old := map[string]storage.Connection{}
	for _, c := range t.Connections() {
		if c.Seeded {
			old[c.ID] = c
			t.Del(storage.ConnectionPrefix + c.ID)
		}
	}
	for _, k := range t.Keys() {
		if k.Seeded {
			t.Del(storage.KeyPrefix + k.ID)
		}
	}
	for _, c := range t.Combos() {
		if c.Seeded {
			t.Del(storage.ComboPrefix + c.ID)
		}
	}
	for _, c := range t.CustomModels() {
		if c.Seeded {
			t.Del(storage.CustomModelKey(c.Type, c.ProviderAlias, c.ID))
		}
	}
	for _, a := range t.Aliases() {
		if a.Seeded {
			t.Del(storage.AliasPrefix + a.Alias)
		}
	}
	for _, d := range t.Disabled() {
		if d.Seeded {
			t.Del(storage.DisabledPrefix + d.ProviderAlias)
		}
	}
	return old
}
