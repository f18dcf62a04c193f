package storage_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

// chain is an audit that a test breaks: records with the hash before each.
type chain struct {
	*objects.Storage
	hash string // of the last record
	meta struct {
		Generation int64  `json:"generation"`
		AuditSeq   int64  `json:"auditSeq"`
		AuditHash  string `json:"auditHash"`
		AuditBase  string `json:"auditBase"`
	}
}

// add stores a record under a number.
func (c *chain) add(seq int64, record string) {
	sum := sha256.Sum256([]byte(c.hash + record))
	c.hash = hex.EncodeToString(sum[:])
	c.Rows[storage.AuditKey(seq)] = storage.Encode(storage.AuditRow{Record: json.RawMessage(record), Hash: c.hash})
	c.meta.AuditSeq, c.meta.AuditHash = seq, c.hash
}

// turn starts a turn over the chain.
func (c *chain) turn() *storage.Tx {
	c.meta.Generation = 1
	c.Rows["meta"] = storage.Encode(c.meta)
	return at(c, noon)
}

func TestFirstBrokenRecordIsFound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write func(c *chain)
		want  int64
	}{
		{"none", func(*chain) {}, 0},
		{"whole", func(c *chain) { c.add(1, `{"seq":1}`); c.add(2, `{"seq":2}`); c.add(3, `{"seq":3}`) }, 0},
		{"pruned", func(c *chain) {
			c.hash, c.meta.AuditBase = "base", "base"
			c.add(7, `{"seq":7}`)
			c.add(8, `{"seq":8}`)
		}, 0},
		{"deleted", func(c *chain) { c.meta.AuditSeq, c.meta.AuditHash, c.meta.AuditBase = 9, "last", "last" }, 0},
		{"unreadable row", func(c *chain) {
			c.add(1, `{"seq":1}`)
			c.add(2, `{"seq":2}`)
			c.Rows[storage.AuditKey(2)] = []byte("[]")
		}, 2},
		{"record of another type", func(c *chain) { c.add(1, `{"seq":1}`); c.add(2, `{"seq":2,"at":"noon"}`) }, 2},
		{"record of another number", func(c *chain) { c.add(1, `{"seq":1}`); c.add(2, `{"seq":3}`) }, 2},
		{"gap", func(c *chain) { c.add(1, `{"seq":1}`); c.add(3, `{"seq":3}`) }, 3},
		{"changed", func(c *chain) {
			c.add(1, `{"seq":1}`)
			c.add(2, `{"seq":2}`)
			c.Rows[storage.AuditKey(1)] = storage.Encode(storage.AuditRow{Record: json.RawMessage(`{"seq":1,"at":2}`), Hash: c.hash})
		}, 1},
		{"last one gone", func(c *chain) {
			c.add(1, `{"seq":1}`)
			c.add(2, `{"seq":2}`)
			delete(c.Rows, storage.AuditKey(2))
		}, 2},
		{"all gone", func(c *chain) { c.meta.AuditSeq, c.meta.AuditHash = 2, "hash" }, 1},
		{"another hash of the last", func(c *chain) { c.add(1, `{"seq":1}`); c.meta.AuditHash = "hash" }, 2},
		{"another number of the last", func(c *chain) { c.add(1, `{"seq":1}`); c.meta.AuditSeq = 2 }, 2},
	} {
		c := &chain{Storage: objects.NewStorage()}
		tt.write(c)
		if got := c.turn().ChainBreak(); got != tt.want {
			t.Errorf("%s: breaks at %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestAuditRecordsAreChained(t *testing.T) {
	c := &chain{Storage: objects.NewStorage()}
	tx := c.turn()
	for range 3 {
		tx.Audit("operator", "test", "", nil)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	c.Flush()
	if tx = at(c, noon); tx.Meta.AuditSeq != 3 || tx.ChainBreak() != 0 || len(tx.List(storage.AuditPrefix)) != 3 {
		t.Errorf("%d records, the last %d, breaks at %d", len(tx.List(storage.AuditPrefix)), tx.Meta.AuditSeq, tx.ChainBreak())
	}
}

// A new record drops the one that is twice the limit behind it.
func TestNewRecordDropsTheOldest(t *testing.T) {
	for _, seq := range []int64{2*storage.MaxAudit - 1, 2 * storage.MaxAudit} {
		c := &chain{Storage: objects.NewStorage()}
		c.add(1, `{"seq":1}`)
		first := c.hash
		c.add(2, `{"seq":2}`)
		c.meta.AuditSeq = seq
		tx := c.turn()
		tx.Audit("operator", "test", "", nil)
		_, stays := tx.Get(storage.AuditKey(1))
		_, next := tx.Get(storage.AuditKey(2))
		_, added := tx.Get(storage.AuditKey(seq + 1))
		if dropped := seq+1 > 2*storage.MaxAudit; stays == dropped || (tx.Meta.AuditBase == first) != dropped || !next || !added {
			t.Errorf("record %d: the first stays %v, base %q, the second stays %v, added %v", seq+1, stays, tx.Meta.AuditBase, next, added)
		}
	}
}

func TestPruneKeepsTheNewestRecords(t *testing.T) {
	c := &chain{Storage: objects.NewStorage()}
	c.add(1, `{"seq":1}`)
	c.add(2, `{"seq":2}`)
	second := c.hash
	c.add(3, `{"seq":3}`)
	c.meta.AuditSeq = storage.MaxAudit + 2
	tx := c.turn()
	tx.PruneAudit()
	left := tx.List(storage.AuditPrefix)
	if len(left) != 1 || left[0].Key != storage.AuditKey(3) || tx.Meta.AuditBase != second {
		t.Errorf("%d left, base %q, want %q", len(left), tx.Meta.AuditBase, second)
	}
}

func TestPruneRemovesABoundedNumberOfRecords(t *testing.T) {
	c := &chain{Storage: objects.NewStorage()}
	for seq := range int64(storage.MaxRemoved + 20) {
		c.Rows[storage.AuditKey(seq+1)] = []byte(`{}`)
	}
	c.meta.AuditSeq = 3 * storage.MaxAudit
	tx := c.turn()
	if tx.PruneAudit(); len(tx.Order) != storage.MaxRemoved {
		t.Errorf("%d removed in one turn", len(tx.Order))
	}
}
