package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// maxSeen is the number of adopted documents that are remembered.
const maxSeen = 64

// adopt takes over a document that was put into KV by hand. A document that
// was adopted before is left alone, since KV may show old values for long; a
// new one replaces only the rows that the previous one created. An existing
// machine takes one only if the operator allows it. A refused document is removed
// from KV, since it contains plaintext secrets.
//
//	{"doc":{…}} → {"adopted":bool,"generation":n}
func (o *Object) adopt(r *request) (any, error) {
	doc := gjson.GetBytes(r.body, "doc").Raw
	adopted, err := r.adoptDoc(o, []byte(doc))
	if err != nil {
		o.dropSeed(r, []byte(doc))
		return nil, err
	}
	return struct {
		Adopted    bool  `json:"adopted"`
		Generation int64 `json:"generation"`
	}{adopted, r.meta.Generation}, nil
}

// adoptDoc adopts within the turn. A refusal is logged by its field.
func (r *request) adoptDoc(o *Object, raw []byte) (bool, error) {
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	var seen []string
	r.load(seenRow, &seen)
	if slices.Contains(seen, digest) {
		return false, nil
	}
	var doc *document
	var e *apierr.Error
	if r.exists() && !o.Reseed {
		e = apierr.New(422, "seed_refused", "the machine already exists; set ALLOW_RESEED=true to let a document change it")
	} else {
		doc, e = o.readDocument(r.id, raw)
	}
	if e == nil {
		e = r.seedConflict(doc)
	}
	if e != nil {
		o.log(fmt.Sprintf("machine %s: the document in KV was refused: %s", r.id, e.Message))
		e.Status = 422
		return false, e
	}
	for _, note := range doc.notes {
		o.log(fmt.Sprintf("machine %s: the document in KV: %s", r.id, note))
	}
	if seen = append(seen, digest); len(seen) > maxSeen {
		seen = seen[len(seen)-maxSeen:]
	}
	r.born("")
	old := r.dropSeeded()
	for i := range doc.conns {
		c := &doc.conns[i]
		if was, ok := old[c.row.ID]; ok { // its tokens may be newer than the document
			c.row.TokenGeneration, c.row.CreatedAt = was.TokenGeneration, was.CreatedAt
		}
		if err := o.finishConnection(r.tx, c); err != nil {
			return false, err
		}
	}
	for _, k := range doc.keys {
		var row keyRow
		if r.load(keyPrefix+k.ID, &row) { // made by the machine itself
			continue
		}
		k.CreatedAt = r.now
		r.putKey(&keyRow{Key: k, Seeded: true})
	}
	for i := range doc.combos {
		doc.combos[i].CreatedAt, doc.combos[i].UpdatedAt = r.now, r.now
		r.putCombo(&doc.combos[i])
	}
	for _, m := range doc.customs {
		r.putCustom(&customRow{CustomModel: m, Seeded: true})
	}
	for i := range doc.aliases {
		r.putAlias(&doc.aliases[i])
	}
	for _, d := range doc.disabled {
		var row disabledRow
		if !r.load(disabledPrefix+d.ProviderAlias, &row) {
			row.Seeded = true
		}
		d.IDs = merged(row.IDs, d.IDs)
		row.DisabledModels = d
		r.putDisabled(&row)
	}
	r.put(seenRow, seen)
	r.touch()
	if err := r.small(o); err != nil {
		r.reload(o.Now())
		return false, err
	}
	r.due = true
	r.audit(o, "seed", "adopt", "", []string{"connections", "apiKeys", "combos", "customModels", "modelAliases", "disabledModels"})
	return true, nil
}

// dropSeed removes a refused document from KV: the replica of an existing machine
// overwrites it; otherwise it is deleted, unless another document has replaced
// it.
func (o *Object) dropSeed(r *request, raw []byte) {
	if r.exists() {
		r.meta.Dirty = true
		if err := r.commit(); err != nil {
			o.log(fmt.Sprintf("machine %s: cannot remove the refused document from KV: %v", r.id, err))
		}
		return
	}
	found, err := o.KV.Get(r.ctx, kvKey(r.id))
	if err == nil && bytes.Equal(bytes.TrimSpace(found), bytes.TrimSpace(raw)) {
		err = o.KV.Delete(r.ctx, kvKey(r.id))
	}
	if err != nil {
		o.log(fmt.Sprintf("machine %s: cannot remove the refused document from KV: %v", r.id, err))
	}
}

// born makes the machine exist.
func (t *tx) born(name string) {
	if t.exists() {
		return
	}
	t.meta.ID, t.meta.Name, t.meta.CreatedAt, t.meta.Deleted = t.id, name, t.now, false
	t.meta.Unregistered, t.meta.RegisterFrom, t.meta.RegisterFail = true, t.now, 0
	t.touch("providers", "keys", "combos", "custom", "alias", "disabled", "settings")
}

// seedConflict refuses a document that would take over rows made by hand.
func (r *request) seedConflict(doc *document) *apierr.Error {
	for i := range doc.conns {
		var row connRow
		if r.load(connPrefix+doc.conns[i].row.ID, &row) && !row.Seeded {
			return apierr.Invalid("connections", "connections[%d].id belongs to a connection that was not seeded", i)
		}
	}
	combos := slices.Clone(doc.combos)
	taken := map[string]bool{}
	for _, c := range r.combos() {
		if !c.Seeded {
			combos = append(combos, c)
			taken[c.ID] = true
		}
	}
	for i := range doc.combos {
		if id := doc.combos[i].ID; taken[id] {
			return apierr.Invalid("combos", "combos[%d].id belongs to another combo", i)
		} else {
			taken[id] = true
		}
	}
	if e := checkCombos(combos); e != nil {
		return apierr.Invalid("combos", "combos are refused: %s", e.Message)
	}
	return nil
}

// dropSeeded removes what the last document brought, and gives the connections.
func (r *request) dropSeeded() map[string]connRow {
	old := map[string]connRow{}
	for _, c := range r.conns() {
		if c.Seeded {
			old[c.ID] = c
			r.del(connPrefix + c.ID)
		}
	}
	for _, k := range r.keys() {
		if k.Seeded {
			r.del(keyPrefix + k.ID)
		}
	}
	for _, c := range r.combos() {
		if c.Seeded {
			r.del(comboPrefix + c.ID)
		}
	}
	for _, c := range r.customs() {
		if c.Seeded {
			r.del(customKey(c.Type, c.ProviderAlias, c.ID))
		}
	}
	for _, a := range r.aliases() {
		if a.Seeded {
			r.del(aliasPrefix + a.Alias)
		}
	}
	for _, d := range r.disabled() {
		if d.Seeded {
			r.del(disabledPrefix + d.ProviderAlias)
		}
	}
	return old
}
