package machine

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
	Seq        int64  `json:"seq"` // of the rows, in the order they were made
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

	Idem    int   `json:"idem,omitempty"`    // idempotency keys, counted anew when pruned
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

// storageFailed returns the caller's error for a storage failure.
func storageFailed(cause error) *apierr.Error {
	e := apierr.New(503, "storage_failed", "the storage of this machine failed; try again, and ask the operator if it lasts")
	e.RetryAfter, e.Err = time.Second, cause
	return e
}

// tx gathers the changes of one synchronous turn. They are written together
// at its end, so a mistake found half way has changed nothing.
type tx struct {
	st     Storage
	id     string
	now    int64 // Unix milliseconds
	meta   meta
	before []byte // the meta row as it was read
	writes map[string][]byte
	order  []string
	moved  bool
	due    bool // the next refresh must be found anew
	object *Object
}

// begin reads the object's own row. It is called again after a call out.
func (o *Object) begin(st Storage, machineID string) *tx {
	t := &tx{st: st, id: machineID, object: o}
	t.reload(o.Now())
	return t
}

// reload starts a new turn: everything is read again.
func (t *tx) reload(now time.Time) {
	t.now, t.meta, t.moved, t.due, t.writes, t.order = now.UnixMilli(), meta{}, false, false, nil, nil
	raw, ok := t.st.Get("meta")
	t.before = raw
	if ok {
		json.Unmarshal(raw, &t.meta)
	}
	if t.id == "" { // an alarm may not know whose it is
		t.id = t.meta.ID
	}
}

// exists tells whether the machine is there.
func (t *tx) exists() bool { return t.meta.Generation > 0 && !t.meta.Deleted }

// get gives a row, as this turn has left it.
func (t *tx) get(key string) ([]byte, bool) {
	if v, ok := t.writes[key]; ok {
		return v, v != nil
	}
	return t.st.Get(key)
}

// load reads a row into v.
func (t *tx) load(key string, v any) bool {
	raw, ok := t.get(key)
	return ok && json.Unmarshal(raw, v) == nil
}

// put writes a row at the end of the turn, del removes it.
func (t *tx) put(key string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("machine: a row that has no JSON form") // the types are ours
	}
	t.set(key, b)
}

func (t *tx) del(key string) { t.set(key, nil) }

func (t *tx) set(key string, value []byte) {
	if t.writes == nil {
		t.writes = map[string][]byte{}
	}
	if _, ok := t.writes[key]; !ok {
		t.order = append(t.order, key)
	}
	t.writes[key] = value
}

// list gives the rows under a prefix in the order of their keys, as this turn
// has left them.
func (t *tx) list(prefix string) []Row {
	rows := t.st.List(prefix, "", 0)
	if len(t.writes) == 0 {
		return rows
	}
	kept := rows[:0:0]
	for _, r := range rows {
		if _, ok := t.writes[r.Key]; !ok {
			kept = append(kept, r)
		}
	}
	for k, v := range t.writes {
		if v != nil && strings.HasPrefix(k, prefix) {
			kept = append(kept, Row{k, v})
		}
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].Key < kept[j].Key })
	return kept
}

// How many rows are looked at together where there may be any number of them.
const (
	pageRows  = 100 // the largest hold an answer of 64 KiB
	smallRows = 1000
)

// pages gives the stored rows under a prefix one by one, without those that
// this turn has changed, and holds a page of them at a time. It ends when more
// is false.
func (t *tx) pages(prefix string, size int, each func(r Row) (more bool)) {
	for start := ""; ; {
		rows := t.st.List(prefix, start, size)
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

// rowsOf reads the rows under a prefix.
func rowsOf[T any](t *tx, prefix string) []T {
	rows := t.list(prefix)
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

// touch moves the generation, once per turn, and makes the replica due. The
// collections named have changed.
func (t *tx) touch(collections ...string) int64 {
	if !t.moved {
		t.moved = true
		t.meta.Generation++
		t.meta.Dirty = true
	}
	if len(collections) > 0 && t.meta.Changed == nil {
		t.meta.Changed = map[string]int64{}
	}
	for _, c := range collections {
		t.meta.Changed[c] = t.meta.Generation
	}
	return t.meta.Generation
}

// nextSeq numbers rows in the order they are made.
func (t *tx) nextSeq() int64 {
	t.meta.Seq++
	return t.meta.Seq
}

// commit writes the turn's changes and sets the alarm that they ask for. When
// the storage fails, nothing has changed.
func (t *tx) commit() (err error) {
	if t.due {
		t.due = false
		t.meta.RefreshAt = t.refreshDue()
	}
	t.schedule()
	if t.before != nil || t.meta.Generation > 0 {
		if b, _ := json.Marshal(t.meta); !bytes.Equal(b, t.before) {
			t.set("meta", b)
		}
	}
	if len(t.order) == 0 {
		return nil
	}
	for _, k := range t.order {
		if len(t.writes[k]) > maxValueBytes {
			return apierr.New(413, "too_large", "the record is too large to be stored")
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = storageFailed(fmt.Errorf("%w: %v", ErrStorage, p))
		}
	}()
	rows := make([]Row, len(t.order))
	for i, k := range t.order {
		rows[i] = Row{k, t.writes[k]}
	}
	alarm := int64(KeepAlarm)
	if at := t.meta.AlarmAt; at != alarmOf(t.before) {
		alarm = at
	}
	t.st.Write(rows, alarm)
	if raw := t.writes["meta"]; raw != nil {
		t.before = raw
	}
	t.writes, t.order, t.moved = nil, nil, false
	return nil
}

func alarmOf(raw []byte) int64 {
	var m struct {
		AlarmAt int64 `json:"alarmAt"`
	}
	json.Unmarshal(raw, &m)
	return m.AlarmAt
}

func encode(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte(`{}`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
