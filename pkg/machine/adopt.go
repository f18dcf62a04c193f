package machine

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/storage"
)

// adopt takes over a document that was put into KV by hand. A document that
// was adopted before is left alone, since KV may show old values for long; a
// new one replaces only the rows that the previous one created. An existing
// machine takes one only if the operator allows it. A refused document is removed
// from KV, since it contains plaintext secrets.
//
//	{"doc":{…}} → {"adopted":bool,"generation":n}
func (o *Object) adopt(r *storage.Call) (any, error) {
	doc := gjson.GetBytes(r.Body, "doc").Raw
	adopted, err := o.AdoptDocument(r, []byte(doc))
	if err != nil {
		o.dropSeed(r, []byte(doc))
		return nil, err
	}
	return struct {
		Adopted    bool  `json:"adopted"`
		Generation int64 `json:"generation"`
	}{adopted, r.Meta.Generation}, nil
}

// dropSeed removes a refused document from KV: the replica of an existing machine
// overwrites it; otherwise it is deleted, unless another document has replaced
// it.
func (o *Object) dropSeed(r *storage.Call, raw []byte) {
	if o.KV == nil {
		return
	}
	if r.Exists() {
		r.Meta.Dirty = true
		if err := r.Commit(); err != nil {
			o.WriteLog(fmt.Sprintf("machine %s: cannot remove the refused document from KV: %v", r.ID, err))
		}
		return
	}
	ctx, err := r.Outside()
	if err != nil {
		return
	}
	found, err := o.KV.Get(ctx, kvKey(r.ID))
	if err == nil && bytes.Equal(bytes.TrimSpace(found), bytes.TrimSpace(raw)) {
		err = o.KV.Delete(ctx, kvKey(r.ID))
	}
	if err != nil {
		o.WriteLog(fmt.Sprintf("machine %s: cannot remove the refused document from KV: %v", r.ID, err))
	}
}
