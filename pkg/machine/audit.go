package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"weir/pkg/wire/apierr"
)

// maxAudit is the number of records kept; maxAuditPage those of one answer.
const (
	maxAudit     = 10_000
	maxAuditPage = 500
)

// Record is what was done to a machine, without any value. It is written in
// the same turn as the change.
type Record struct {
	Seq        int64    `json:"seq"`
	At         int64    `json:"at"`    // Unix milliseconds
	Actor      string   `json:"actor"` // operator, seed, system, or key:<masked id>
	Action     string   `json:"action"`
	Target     string   `json:"target,omitempty"`
	Fields     []string `json:"fields,omitempty"`
	Generation int64    `json:"generation"`
}

// auditRow is a stored record; Hash = SHA-256(hash of the one before ‖ Record),
// in hex.
type auditRow struct {
	Record json.RawMessage `json:"record"`
	Hash   string          `json:"hash"`
}

func auditKey(seq int64) string { return fmt.Sprintf("%s%016d", auditPrefix, seq) }

func auditHash(before string, record []byte) string {
	sum := sha256.Sum256(append([]byte(before), record...))
	return hex.EncodeToString(sum[:])
}

// audit adds a record to the turn.
func (t *tx) audit(o *Object, actor, action, target string, fields []string) {
	t.meta.AuditSeq++
	rec, _ := json.Marshal(Record{t.meta.AuditSeq, t.now, actor, action, target, fields, t.meta.Generation})
	t.meta.AuditHash = auditHash(t.meta.AuditHash, rec)
	t.put(auditKey(t.meta.AuditSeq), auditRow{rec, t.meta.AuditHash})
	// The hour's work drops the oldest; who writes faster than that drops them.
	if old := t.meta.AuditSeq - 2*maxAudit; old > 0 {
		if raw, ok := t.get(auditKey(old)); ok {
			t.dropRecord(old, raw, 2*maxAudit)
		}
	}
}

// pruneAudit drops the oldest records and keeps the hash that the rest start
// from.
func (t *tx) pruneAudit() {
	t.pages(auditPrefix, smallRows, func(r Row) bool {
		seq, _ := strconv.ParseInt(r.Key[len(auditPrefix):], 10, 64)
		return t.dropRecord(seq, r.Value, maxAudit) && len(t.order) < pruneMost
	})
}

// dropRecord drops a record unless it is one of the newest.
func (t *tx) dropRecord(seq int64, raw []byte, newest int64) bool {
	if seq > t.meta.AuditSeq-newest {
		return false
	}
	var a auditRow
	if json.Unmarshal(raw, &a) == nil {
		t.meta.AuditBase = a.Hash
	}
	t.del(auditKey(seq))
	return true
}

// chainBreak gives the number of the first record that is not the one that was
// written, or 0. A record that is gone counts as broken where the next begins.
func (t *tx) chainBreak() int64 {
	hash := t.meta.AuditBase
	last, broken := int64(0), int64(0)
	t.pages(auditPrefix, smallRows, func(r Row) bool {
		seq, _ := strconv.ParseInt(r.Key[len(auditPrefix):], 10, 64)
		var a auditRow
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
	if hash != t.meta.AuditHash || last != 0 && last != t.meta.AuditSeq {
		return last + 1
	}
	return 0
}

// auditList answers GET /api/audit?after=&limit=&verify=true: the newest
// records first, those before the number "before" when it is given.
func (c *change) auditList() (any, error) {
	number := func(name string, otherwise, least, most int64) (int64, error) {
		v := c.query(name)
		if v == "" {
			return otherwise, nil
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > most {
			return 0, apierr.Invalid(name, "%s must be an integer from %d to %d", name, least, most)
		}
		return n, nil
	}
	limit, err := number("limit", 100, 1, maxAuditPage)
	if err != nil {
		return nil, err
	}
	before, err := number("before", c.meta.AuditSeq+1, 1, 1<<53)
	if err != nil {
		return nil, err
	}
	out := struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
		More   bool              `json:"has_more"`
		Chain  *chainState       `json:"chain,omitempty"`
	}{Object: "list", Data: []json.RawMessage{}}
	for seq := min(before, c.meta.AuditSeq+1) - 1; seq > 0; seq-- {
		var a auditRow
		if !c.load(auditKey(seq), &a) {
			break
		}
		if int64(len(out.Data)) == limit {
			out.More = true
			break
		}
		out.Data = append(out.Data, a.Record)
	}
	if c.query("verify") == "true" {
		at := c.chainBreak()
		out.Chain = &chainState{at == 0, at}
	}
	return out, nil
}

type chainState struct {
	OK       bool  `json:"ok"`
	BrokenAt int64 `json:"brokenAt,omitempty"`
}
