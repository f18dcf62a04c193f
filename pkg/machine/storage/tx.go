package storage

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// meta is the row "meta": what an object knows of itself.
//
//easyjson:json
type meta struct {
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	CreatedAt  int64  `json:"createdAt"`
	Generation int64  `json:"generation"` // 0: no such machine
	Deleted    bool   `json:"deleted,omitempty"`
	DeletedAt  int64  `json:"deletedAt,omitempty"` // while it can be restored, see RestorableFor; then 0
	Seq        int64  `json:"seq"`                 // of the rows, in the order of their creation
	// Changed has the generation of the last change of each collection.
	Changed generations `json:"changed,omitempty"`

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
	SendAt       int64 `json:"alertAt,omitempty"`     // the next try of the outbox; the name is that of earlier versions
	JudgeAt      int64 `json:"judgeAt,omitempty"`     // when Judge is due by the clock
	LogAt        int64 `json:"logAt,omitempty"`       // the next batch of a log of requests
	MetricsAt    int64 `json:"metricsAt,omitempty"`   // the next export of metrics; 0 for none
	MetricsSent  int64 `json:"metricsSent,omitempty"` // the last one
	EraseAt      int64 `json:"eraseAt,omitempty"`     // when a deleted connection is erased
	AlarmAt      int64 `json:"alarmAt,omitempty"`     // as it was set last; 0 for none
	// RunUntil is set while a run of the alarm waits for answers: the next one begins then,
	// should the program be killed.
	RunUntil int64 `json:"runUntil,omitempty"`

	Idem    int   `json:"idem,omitempty"`    // idempotency keys, counted again when pruned
	ProbeAt int64 `json:"probeAt,omitempty"` // minute of the count
	Probes  int   `json:"probes,omitempty"`
	// Observed moves with every change of a State, as Generation does with every
	// change of the configuration. It is a time, so that it never returns to a
	// former value when changes are lost that were not written yet.
	Observed int64 `json:"observed,omitempty"`
	Size     int   `json:"size,omitempty"` // upper bound of the replica's size; 0 if not known
	// CompareAt is the minute in which Compares comparisons found another secret.
	CompareAt int64 `json:"compareAt,omitempty"`
	Compares  int   `json:"compares,omitempty"`
	// DeriveAt is the minute in which Derives keys were derived from passphrases.
	DeriveAt int64 `json:"deriveAt,omitempty"`
	Derives  int   `json:"derives,omitempty"`
	// Lifetime is the last day that the row LifetimeRow has; "" without the row.
	Lifetime string `json:"lifetime,omitempty"`
	// Captures reports that there is a list of captures.
	Captures bool `json:"captures,omitempty"`
	// Logs reports that there are queues of logs.
	Logs bool `json:"logs,omitempty"`
	// Traced reports that a collector takes the requests, as it was when they were last written.
	Traced bool `json:"traced,omitempty"`
}

// maxValueBytes is the largest value that is stored; the platform takes 2 MB.
const maxValueBytes = 1 << 20

// ErrStorage is the cause of a storage failure, which changes nothing.
var ErrStorage = errors.New("object storage failed")

// storageFailed returns the caller's error for a storage failure.
func storageFailed(cause error) *apierr.Error {
	e := apierr.New(503, "storage_failed", "The storage of this machine failed. Try again, and ask the operator if it lasts.")
	e.RetryAfter, e.Err = time.Second, cause
	return e
}

// Tx gathers the changes of one synchronous turn. They are written together
// at its end, so a mistake found half way has changed nothing.
//
// A read that fails returns no rows. After it no read returns any, Commit returns its
// error, and a call out of the object must not be made: see Err.
type Tx struct {
	*engine
	ID     string
	Now    int64 // Unix milliseconds
	Meta   meta
	before []byte // the meta row as it was read
	writes map[string][]byte
	Order  []string
	pack   map[string][]byte // see packed; nil if not read yet
	moved  bool
	seen   bool // Observe was called
	Due    bool // the next refresh must be found again
	// Unpublished reports that the platform has no replicas, so none is due.
	Unpublished bool
	// MaxRequests is the number of the latest requests that are listed. 0 is
	// storage.MaxRequests.
	MaxRequests int64
	// Began is that of api.Manager.
	Began int64
	// Keyring has the keys with which credentials are sealed. If it is nil, none is looked for.
	Keyring *store.Keyring
	// SeatAlive is that of machine.Object.
	SeatAlive func(seat string) bool
	// Buffer is the machine's buffer of reports. May be nil.
	Buffer Buffer
	// Flush writes what the buffer has put into the turn, even if the turn changes
	// nothing else.
	Flush bool
	// Rearmed sets the alarm again: the one that was set has run.
	Rearmed bool
	// Suspect reports that something has changed that Judge depends on. Commit calls it then,
	// within the turn: a notification is stored with its cause.
	Suspect bool
	Judge   func(t *Tx) // may be nil
	own     bool        // the turn has changes besides those of the buffer
	settled []byte      // the meta row with those of the buffer; nil without any
	// nextRefresh returns when the next token must be refreshed, 0 for never.
	nextRefresh func(t *Tx) int64
}

// Reload starts a new turn: everything is read again.
func (t *Tx) Reload(now time.Time) {
	t.Now, t.Meta, t.moved, t.seen, t.Due, t.writes, t.Order, t.pack = now.UnixMilli(), meta{}, false, false, false, nil,
		nil, nil
	t.own, t.settled, t.Flush, t.Suspect = false, nil, false, false
	t.before = t.get("meta")
	if t.before != nil {
		decode(t.before, &t.Meta)
	}
	if t.ID == "" { // an alarm may not know whose it is
		t.ID = t.Meta.ID
	}
	if t.Buffer != nil {
		t.Buffer.Reloaded()
	}
}

// Buffer holds reports about a machine until they are written together. It puts
// them into a turn between Settling and Settled.
type Buffer interface {
	// Reloaded is called when a turn begins again without being written.
	Reloaded()
	// Written is called when the turn was written.
	Written()
	// WakeAt returns when the object must run to write what is still buffered, 0
	// for never, and whether the alarm is set for it.
	WakeAt() (at int64, set bool)
}

// Settled notes that all changes so far come from the buffer. They are written
// with the turn's own ones; a turn without any leaves them to the buffer.
func (t *Tx) Settled() {
	t.own, t.seen = false, false
	t.settled, _ = generated(t.Meta)
}

// Exists reports whether the machine is there.
func (t *Tx) Exists() bool { return t.Meta.Generation > 0 && !t.Meta.Deleted }

// Get returns a row, as this turn has left it.
func (t *Tx) Get(key string) ([]byte, bool) {
	v, ok := t.writes[key]
	if !ok {
		v = t.stored(key)
	}
	return v, v != nil
}

// Load reads a row into v.
func (t *Tx) Load(key string, v any) bool {
	raw, ok := t.Get(key)
	return ok && decode(raw, v) == nil
}

// Put writes a row at the end of the turn, del removes it. A row that an owner has set
// keeps the fields that only a newer version knows.
func (t *Tx) Put(key string, v any) {
	row := encode(v)
	if isOwned(key) {
		if stored, ok := t.Get(key); ok {
			row = keepUnknown(row, stored, v)
		}
	}
	t.Set(key, row)
}

// Del removes a row.
func (t *Tx) Del(key string) { t.Set(key, nil) }

// Set stores the bytes of a row. Nil removes it.
func (t *Tx) Set(key string, value []byte) {
	if t.writes == nil {
		t.writes = map[string][]byte{}
	}
	if _, ok := t.writes[key]; !ok {
		t.Order = append(t.Order, key)
	}
	t.writes[key] = value
	t.own = true
}

// List returns the rows under a prefix in the order of their keys, as this turn
// has left them.
func (t *Tx) List(prefix string) []Row {
	rows := t.storedRows(prefix, "", 0)
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
	slices.SortFunc(current, func(a, b Row) int { return strings.Compare(a.Key, b.Key) })
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
	t.PagesFrom(prefix, "", size, each)
}

// PagesFrom is Pages for the rows whose keys are after start.
func (t *Tx) PagesFrom(prefix, start string, size int, each func(r Row) (more bool)) {
	for {
		rows := t.storedRows(prefix, start, size)
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
		if decode(r.Value, &v) == nil {
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

// Observe moves Meta.Observed, once per turn: the State of the machine changes.
func (t *Tx) Observe() {
	if !t.seen {
		t.seen = true
		t.Meta.Observed = max(t.Meta.Observed+1, t.Now)
	}
	t.own = true
}

// nextSeq numbers rows in the order of their creation.
func (t *Tx) nextSeq() int64 {
	t.Meta.Seq++
	return t.Meta.Seq
}

// Commit writes the turn's changes and sets the alarm that they ask for. When
// the storage fails, nothing has changed.
func (t *Tx) Commit() error {
	if t.Due {
		t.Due = false
		t.Meta.RefreshAt = t.nextRefresh(t)
	}
	if t.Suspect && t.Judge != nil && t.Exists() {
		t.Suspect = false
		t.Judge(t)
	}
	if err := t.Err(); err != nil {
		return err
	}
	t.schedule()
	row, _ := generated(t.Meta)
	if t.settled != nil && !t.own && !t.Flush && bytes.Equal(row, t.settled) {
		return nil
	}
	if (t.before != nil || t.Meta.Generation > 0) && !bytes.Equal(row, t.before) {
		t.Set("meta", row)
	}
	alarm := t.alarm()
	if len(t.Order) == 0 && alarm == KeepAlarm {
		return nil
	}
	for _, k := range t.Order {
		if len(t.writes[k]) > maxValueBytes {
			return apierr.New(413, "too_large", "The record is too large to be stored.")
		}
	}
	rows := t.rows()
	err := t.Err()
	if err == nil {
		err = t.write(rows, alarm)
	}
	if err != nil {
		t.pack = nil // read again, without the changes of the turn
		return err
	}
	if raw := t.writes["meta"]; raw != nil {
		t.before = raw
	}
	t.writes, t.Order, t.moved, t.seen = nil, nil, false, false
	t.own, t.settled, t.Flush, t.Rearmed = false, nil, false, false
	if t.Buffer != nil {
		t.Buffer.Written()
	}
	return nil
}

// alarm returns the alarm to set, or KeepAlarm.
func (t *Tx) alarm() int64 {
	at := t.Meta.AlarmAt
	changed := t.Rearmed || at != alarmOf(t.before)
	if t.Buffer != nil {
		if wake, set := t.Buffer.WakeAt(); wake > 0 && (at == 0 || wake < at) {
			at, changed = wake, changed || !set
		}
	}
	if changed {
		return at
	}
	return KeepAlarm
}

func alarmOf(raw []byte) int64 {
	return gjson.GetBytes(raw, "alarmAt").Int()
}

// Open begins a turn of an object. nextRefresh returns when the next token must
// be refreshed, Unix milliseconds, 0 for never.
func Open(st Storage, machineID string, now time.Time, nextRefresh func(t *Tx) int64) *Tx {
	t := &Tx{engine: &engine{st: st}, ID: machineID, nextRefresh: nextRefresh}
	t.Reload(now)
	return t
}

// Stored returns a turn of the object as it is stored, which shares the failure of t.
func (t *Tx) Stored() *Tx {
	s := &Tx{engine: t.engine, ID: t.ID}
	s.Reload(time.UnixMilli(t.Now))
	return s
}

// Rename changes the name of the machine, which the registry is yet to be told.
func (t *Tx) Rename(name string) {
	t.Meta.Name = name
	t.changeRegistered()
}

// changeRegistered makes the replica due, and the report to the registry.
func (t *Tx) changeRegistered() {
	t.Meta.Unregistered, t.Meta.RegisterFrom, t.Meta.RegisterFail = true, t.Now, 0
	t.Touch()
}

// Create makes the machine exist.
func (t *Tx) Create(name string) {
	if t.Exists() {
		return
	}
	t.Meta.ID, t.Meta.CreatedAt, t.Meta.Deleted = t.ID, t.Now, false
	t.Meta.Lifetime = ""
	t.Rename(name)
	t.Touch("providers", "keys", "combos", "custom", "alias", "disabled", "settings")
	// a machine without the row is older
	t.Put(SettingsRow, store.Settings{Strategy: store.Affinity, PromptCaching: store.CachingAuto})
}
