package storage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"weir/pkg/wire/apierr"
)

// meta is the row "meta": what an object knows of itself.
type meta struct {
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	CreatedAt  int64  `json:"createdAt"`
	Generation int64  `json:"generation"` // 0: no such machine
	Deleted    bool   `json:"deleted,omitempty"`
	Seq        int64  `json:"seq"` // of the rows, in the order of their creation
	// Changed has the generation of the last change of each collection.
	Changed map[string]int64 `json:"changed,omitempty"`

	AuditSeq  int64  `json:"auditSeq,omitempty"`
	AuditHash string `json:"auditHash,omitempty"` // of the last record
	AuditBase string `json:"auditBase,omitempty"` // of the last record that was pruned

	Dirty        bool  `json:"dirty,omitempty"` // KV is behind
	PutAt        int64 `json:"putAt,omitempty"` // last attempt to write KV
	PutFails     int   `json:"putFails,omitempty"`
	Unregistered bool  `json:"unregistered,omitempty"` // the registry is behind
	RegisterFrom int64 `json:"registerFrom,omitempty"` // not before
	RegisterFail int   `json:"registerFail,omitempty"`
	RefreshAt    int64 `json:"refreshAt,omitempty"` // the next refresh ahead of expiry
	PruneAt      int64 `json:"pruneAt,omitempty"`
	AlarmAt      int64 `json:"alarmAt,omitempty"` // as it was set last; 0 for none

	Idem    int   `json:"idem,omitempty"`    // idempotency keys, counted again when pruned
	ProbeAt int64 `json:"probeAt,omitempty"` // minute of the count
	Probes  int   `json:"probes,omitempty"`
	Size    int   `json:"size,omitempty"` // upper bound of the replica's size; 0 if not known
	// DeriveAt is the minute in which Derives keys were derived from passphrases.
	DeriveAt int64 `json:"deriveAt,omitempty"`
	Derives  int   `json:"derives,omitempty"`
}

// maxValueBytes is the largest value that is stored; the platform takes 2 MB.
const maxValueBytes = 1 << 20

// ErrStorage is the panic and the cause of a storage failure, which changes
// nothing.
var ErrStorage = errors.New("object storage failed")

// StorageFailed returns the caller's error for a storage failure.
func StorageFailed(cause error) *apierr.Error {
	e := apierr.New(503, "storage_failed", "The storage of this machine failed. Try again, and ask the operator if it lasts.")
	e.RetryAfter, e.Err = time.Second, cause
	return e
}

// Tx gathers the changes of one synchronous turn. They are written together
// at its end, so a mistake found half way has changed nothing.
type Tx struct {
	St     Storage
	ID     string
	Now    int64 // Unix milliseconds
	Meta   meta
	before []byte // the meta row as it was read
	writes map[string][]byte
	Order  []string
	moved  bool
	Due    bool // the next refresh must be found again
	// Unpublished reports that the platform has no replicas, so none is due.
	Unpublished bool
	// nextRefresh returns when the next token must be refreshed, 0 for never.
	nextRefresh func(t *Tx) int64
}

// Reload starts a new turn: everything is read again.
func (t *Tx) Reload(now time.Time) {
	t.Now, t.Meta, t.moved, t.Due, t.writes, t.Order = now.UnixMilli(), meta{}, false, false, nil, nil
	raw, ok := t.St.Get("meta")
	t.before = raw
	if ok {
		json.Unmarshal(raw, &t.Meta)
	}
	if t.ID == "" { // an alarm may not know whose it is
		t.ID = t.Meta.ID
	}
}

// Exists reports whether the machine is there.
func (t *Tx) Exists() bool { return t.Meta.Generation > 0 && !t.Meta.Deleted }

// Get returns a row, as this turn has left it.
func (t *Tx) Get(key string) ([]byte, bool) {
	if v, ok := t.writes[key]; ok {
		return v, v != nil
	}
	return t.St.Get(key)
}

// Load reads a row into v.
func (t *Tx) Load(key string, v any) bool {
	raw, ok := t.Get(key)
	return ok && json.Unmarshal(raw, v) == nil
}

// Put writes a row at the end of the turn, del removes it.
func (t *Tx) Put(key string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("machine: a row that has no JSON form") // the types are ours
	}
	t.Set(key, b)
}

func (t *Tx) Del(key string) { t.Set(key, nil) }

func (t *Tx) Set(key string, value []byte) {
	if t.writes == nil {
		t.writes = map[string][]byte{}
	}
	if _, ok := t.writes[key]; !ok {
		t.Order = append(t.Order, key)
	}
	t.writes[key] = value
}

// List returns the rows under a prefix in the order of their keys, as this turn
// has left them.
func (t *Tx) List(prefix string) []Row {
	rows := t.St.List(prefix, "", 0)
	if len(t.writes) == 0 {
		return rows
	}
	current := rows[:0:0]
	for _, r := range rows {
		if _, ok := t.writes[r.Key]; !ok {
			current = append(current, r)
		}
	}
	for k, v := range t.writes {
		if v != nil && strings.HasPrefix(k, prefix) {
			current = append(current, Row{k, v})
		}
	}
	sort.Slice(current, func(i, j int) bool { return current[i].Key < current[j].Key })
	return current
}

// How many rows are looked at together where there may be any number of them.
const (
	Page      = 100 // the largest hold an answer of 64 KiB
	SmallPage = 1000
)

// Pages returns the stored rows under a prefix one by one, without those that
// this turn has changed, and holds a page of them at a time. It ends when more
// is false.
func (t *Tx) Pages(prefix string, size int, each func(r Row) (more bool)) {
	for start := ""; ; {
		rows := t.St.List(prefix, start, size)
		for _, r := range rows {
			if _, changed := t.writes[r.Key]; !changed && !each(r) {
				return
			}
		}
		if len(rows) < size {
			return
		}
		start = rows[len(rows)-1].Key
	}
}

// RowsOf reads the rows under a prefix.
func RowsOf[T any](t *Tx, prefix string) []T {
	rows := t.List(prefix)
	if len(rows) == 0 {
		return nil
	}
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		var v T
		if json.Unmarshal(r.Value, &v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// Touch moves the generation, once per turn, and makes the replica due. The
// collections named have changed.
func (t *Tx) Touch(collections ...string) int64 {
	if !t.moved {
		t.moved = true
		t.Meta.Generation++
		t.Meta.Dirty = true
	}
	if len(collections) > 0 && t.Meta.Changed == nil {
		t.Meta.Changed = map[string]int64{}
	}
	for _, c := range collections {
		t.Meta.Changed[c] = t.Meta.Generation
	}
	return t.Meta.Generation
}

// nextSeq numbers rows in the order of their creation.
func (t *Tx) nextSeq() int64 {
	t.Meta.Seq++
	return t.Meta.Seq
}

// Commit writes the turn's changes and sets the alarm that they ask for. When
// the storage fails, nothing has changed.
func (t *Tx) Commit() (err error) {
	if t.Due {
		t.Due = false
		t.Meta.RefreshAt = t.nextRefresh(t)
	}
	t.schedule()
	if t.before != nil || t.Meta.Generation > 0 {
		if b, _ := json.Marshal(t.Meta); !bytes.Equal(b, t.before) {
			t.Set("meta", b)
		}
	}
	if len(t.Order) == 0 {
		return nil
	}
	for _, k := range t.Order {
		if len(t.writes[k]) > maxValueBytes {
			return apierr.New(413, "too_large", "The record is too large to be stored.")
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = StorageFailed(fmt.Errorf("%w: %v", ErrStorage, p))
		}
	}()
	rows := make([]Row, len(t.Order))
	for i, k := range t.Order {
		rows[i] = Row{k, t.writes[k]}
	}
	alarm := int64(KeepAlarm)
	if at := t.Meta.AlarmAt; at != alarmOf(t.before) {
		alarm = at
	}
	t.St.Write(rows, alarm)
	if raw := t.writes["meta"]; raw != nil {
		t.before = raw
	}
	t.writes, t.Order, t.moved = nil, nil, false
	return nil
}

func alarmOf(raw []byte) int64 {
	var m struct {
		AlarmAt int64 `json:"alarmAt"`
	}
	json.Unmarshal(raw, &m)
	return m.AlarmAt
}

// Open begins a turn of an object. nextRefresh returns when the next token must
// be refreshed, Unix milliseconds, 0 for never.
func Open(st Storage, machineID string, now time.Time, nextRefresh func(t *Tx) int64) *Tx {
	t := &Tx{St: st, ID: machineID, nextRefresh: nextRefresh}
	t.Reload(now)
	return t
}

// Create makes the machine exist.
func (t *Tx) Create(name string) {
	if t.Exists() {
		return
	}
	t.Meta.ID, t.Meta.Name, t.Meta.CreatedAt, t.Meta.Deleted = t.ID, name, t.Now, false
	t.Meta.Unregistered, t.Meta.RegisterFrom, t.Meta.RegisterFail = true, t.Now, 0
	t.Touch("providers", "keys", "combos", "custom", "alias", "disabled", "settings")
}
