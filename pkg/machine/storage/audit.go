package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// MaxAudit is the number of stored records, MaxAuditPage that of one answer.
const (
	MaxAudit     = 10_000
	MaxAuditPage = 500
)

// Record is what was done to a machine, without any value but the name of what was deleted. It
// is written in the same turn as the change.
type Record struct {
	Seq        int64    `json:"seq"`
	At         int64    `json:"at"`    // Unix milliseconds
	Actor      string   `json:"actor"` // operator, seed, system, or key:<masked id>
	Action     string   `json:"action"`
	Target     string   `json:"target,omitempty"`
	Name       string   `json:"name,omitempty"` // of a target that is deleted or removed
	Fields     []string `json:"fields,omitempty"`
	Generation int64    `json:"generation"`
}

// AuditRow is a stored record; Hash = SHA-256(hash of the one before ‖ Record),
// in hex.
type AuditRow struct {
	Record json.RawMessage `json:"record"`
	Hash   string          `json:"hash"`
}

func AuditKey(seq int64) string { return fmt.Sprintf("%s%016d", AuditPrefix, seq) }

func auditHash(before string, record []byte) string {
	sum := sha256.Sum256(append([]byte(before), record...))
	return hex.EncodeToString(sum[:])
}

// Audit adds a record to the turn.
func (t *Tx) Audit(actor, action, target string, fields []string) {
	t.AuditRecord(Record{Actor: actor, Action: action, Target: target, Fields: fields})
}

// AuditRecord adds a record to the turn, with its number and time.
func (t *Tx) AuditRecord(r Record) {
	t.Meta.AuditSeq++
	r.Seq, r.At, r.Generation = t.Meta.AuditSeq, t.Now, t.Meta.Generation
	rec, _ := json.Marshal(r)
	t.Meta.AuditHash = auditHash(t.Meta.AuditHash, rec)
	t.Put(AuditKey(t.Meta.AuditSeq), AuditRow{rec, t.Meta.AuditHash})
	// The hour's work drops the oldest; who writes faster than that drops them.
	if old := t.Meta.AuditSeq - 2*MaxAudit; old > 0 {
		if raw, ok := t.Get(AuditKey(old)); ok {
			t.dropRecord(old, raw, 2*MaxAudit)
		}
	}
}

// PruneAudit drops the oldest records and keeps the hash that the rest start
// from.
func (t *Tx) PruneAudit() {
	t.Pages(AuditPrefix, SmallPage, func(r Row) bool {
		seq, _ := strconv.ParseInt(r.Key[len(AuditPrefix):], 10, 64)
		return t.dropRecord(seq, r.Value, MaxAudit) && len(t.Order) < MaxRemoved
	})
}

// dropRecord drops a record unless it is one of the newest.
func (t *Tx) dropRecord(seq int64, raw []byte, newest int64) bool {
	if seq > t.Meta.AuditSeq-newest {
		return false
	}
	var a AuditRow
	if json.Unmarshal(raw, &a) == nil {
		t.Meta.AuditBase = a.Hash
	}
	t.Del(AuditKey(seq))
	return true
}

// ChainBreak returns the number of the first record that is not the one that
// was written, or 0. A record that is gone counts as broken where the next
// begins.
func (t *Tx) ChainBreak() int64 {
	hash := t.Meta.AuditBase
	last, broken := int64(0), int64(0)
	t.Pages(AuditPrefix, SmallPage, func(r Row) bool {
		seq, _ := strconv.ParseInt(r.Key[len(AuditPrefix):], 10, 64)
		var a AuditRow
		var rec Record
		if json.Unmarshal(r.Value, &a) != nil || json.Unmarshal(a.Record, &rec) != nil || rec.Seq != seq ||
			last != 0 && seq != last+1 || auditHash(hash, a.Record) != a.Hash {
			broken = seq
			return false
		}
		hash, last = a.Hash, seq
		return true
	})
	if broken != 0 {
		return broken
	}
	if hash != t.Meta.AuditHash || last != 0 && last != t.Meta.AuditSeq {
		return last + 1
	}
	return 0
}
