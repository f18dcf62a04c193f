package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/pkg/machine/storage"
)

// A turn that waits longer for another server fails; so does one that the database has not heard
// from for idleTime: its server has stopped.
const (
	lockTime = "10s"
	idleTime = "15s"
)

const (
	lockSQL = `SELECT set_config('lock_timeout', '` + lockTime + `', true),
		set_config('idle_in_transaction_session_timeout', '` + idleTime + `', true),
		pg_advisory_xact_lock(hashtextextended($1, 0))`
	versionSQL = `SELECT version, pruned FROM weir_machines WHERE id = $1`
	// A cold row that has changed is only named.
	changesSQL = `SELECT key, CASE WHEN NOT cold THEN value END, cold FROM weir_rows
		WHERE machine = $1 AND version > $2 AND ($2 > 0 OR NOT cold AND value IS NOT NULL) ORDER BY key`
	getSQL  = `SELECT value FROM weir_rows WHERE machine = $1 AND key = $2`
	listSQL = `SELECT key, value FROM weir_rows WHERE machine = $1 AND key >= $2 AND key <> $3
		AND ($4::bytea IS NULL OR key < $4) AND value IS NOT NULL ORDER BY key LIMIT $5`
	// writeSQL changes nothing unless the machine has the version that the turn has read, and the
	// tables a format that this server knows.
	writeSQL = `WITH m AS (
		INSERT INTO weir_machines AS m (id, version, alarm, changed, writes)
		SELECT $1, $2::bigint + 1, CASE WHEN $5::bigint > 0 THEN $5 END,
			CASE WHEN $4::boolean THEN pg_current_xact_id() ELSE '0'::xid8 END, ARRAY[$3::bigint]
			FROM weir_meta WHERE format <= $9
		ON CONFLICT (id) DO UPDATE SET version = m.version + 1,
			alarm = CASE WHEN $5 < 0 THEN m.alarm WHEN $5 > 0 THEN $5 END,
			changed = CASE WHEN $4 THEN pg_current_xact_id() ELSE m.changed END,
			writes = (array_prepend($3, m.writes))[1:16]
		WHERE m.version = $2 RETURNING version, changed
	), r AS (
		INSERT INTO weir_rows (machine, key, value, cold, version)
		SELECT $1, t.key, t.value, t.cold, m.version
			FROM m, unnest($6::bytea[], $7::bytea[], $8::boolean[]) AS t (key, value, cold)
		ON CONFLICT (machine, key) DO UPDATE SET value = excluded.value, version = excluded.version
	) SELECT version, changed::text FROM m`
	// settleSQL moves the version on from the one that a write has read, so that it changes nothing
	// any more if it is still under way, and reports whether it had been stored before. Asked again,
	// it moves nothing: only writes may use up the numbers that are known.
	settleSQL = `INSERT INTO weir_machines AS m (id, version, changed) VALUES ($1, $2::bigint + 1, pg_current_xact_id())
		ON CONFLICT (id) DO UPDATE SET version = greatest(m.version, excluded.version)
		RETURNING version, $3::bigint = ANY (writes)`
)

const (
	settleTime  = 20 * time.Second // for which the outcome of a write is asked
	knownWrites = 16               // numbers of the last writes that a machine has, as in writeSQL
)

var (
	// errTaken reports that another server has written since the turn began: it had lost its lock.
	errTaken   = errors.New("another server has changed the machine")
	errUnknown = errors.New("the outcome of a write is unknown")
)

// machine is what this process knows of a machine. Only its turn uses it.
type machine struct {
	conn *pgxpool.Conn // holds the lock; nil between turns
	// version is that of the rows in memory. turn is that of the turn, -1 before its first
	// access: what it has read since is of no use when another server has written.
	version, turn int64

	hot  map[string][]byte
	keys []string          // of hot, in order
	cold map[string][]byte // those that were read, nil for a missing one

	bytes int // of the rows in memory

	// The next ones are under Engine.mu.
	counted int // bytes in Engine.size
	used    int64
	busy    bool   // a turn has accessed it
	told    string // the transaction of the last change of this server that others are told of
}

const maxColdKeys = 1000

// machine returns what is known of a machine.
func (e *Engine) machine(id string) *machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.machines[id]
	if m == nil {
		m = &machine{turn: -1}
		m.clear()
		e.machines[id] = m
	}
	e.uses++
	m.used, m.busy = e.uses, true
	return m
}

func (m *machine) clear() {
	m.version, m.hot, m.keys, m.cold, m.bytes = 0, map[string][]byte{}, nil, map[string][]byte{}, 0
}

// put notes a row.
func (m *machine) put(key string, value []byte) {
	at, known := slices.BinarySearch(m.keys, key)
	m.bytes += len(value) - len(m.hot[key])
	switch {
	case value == nil && known:
		m.keys = slices.Delete(m.keys, at, at+1)
		delete(m.hot, key)
	case value == nil:
	case !known:
		m.keys = slices.Insert(m.keys, at, key)
		fallthrough
	default:
		m.hot[key] = value
	}
}

// putCold notes a cold row.
func (m *machine) putCold(key string, value []byte) {
	if len(m.cold) >= maxColdKeys {
		for key := range m.cold {
			m.dropCold(key)
		}
	}
	m.bytes += len(value) - len(m.cold[key])
	m.cold[key] = value
}

func (m *machine) dropCold(key string) {
	m.bytes -= len(m.cold[key])
	delete(m.cold, key)
}

// rows is the storage.Storage of one machine.
type rows struct {
	e  *Engine
	id string
}

// locked returns the machine in a turn that is locked. The first access of a turn, and the first
// after a write that has failed, asks the database.
func (r rows) locked(ctx context.Context) (*machine, error) {
	m := r.e.machine(r.id)
	if m.conn != nil {
		return m, nil
	}
	if err := r.e.lock(ctx, r.id, m); err != nil {
		r.e.unlock(m)
		if !errors.As(err, new(*pgconn.PgError)) {
			r.e.noteAway(true)
		}
		return nil, err
	}
	r.e.noteAway(false)
	if m.turn >= 0 && m.turn != m.version {
		r.e.unlock(m)
		return nil, errTaken
	}
	m.turn = m.version
	return m, nil
}

// lock takes the lock of a machine and reads what has changed, in one exchange.
func (e *Engine) lock(ctx context.Context, id string, m *machine) (err error) {
	if !e.ready.Load() {
		return errNotReady
	}
	if m.conn, err = e.turns.Acquire(ctx); err != nil {
		return err
	}
	version, pruned, err := e.read(ctx, id, m, true)
	if err == nil && (pruned > m.version && m.version > 0 || version < m.version) {
		m.clear() // removals are forgotten that this process has not seen
		version, _, err = e.read(ctx, id, m, false)
	}
	if err != nil {
		m.clear()
		return err
	}
	m.version = version
	return nil
}

// read reads what has changed of a machine since its version.
func (e *Engine) read(ctx context.Context, id string, m *machine, lock bool) (version, pruned int64, err error) {
	b := &pgx.Batch{}
	if lock {
		b.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED`) // what follows the lock sees what it has waited for
		b.Queue(lockSQL, id)
	}
	b.Queue(versionSQL, id).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&version, &pruned); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	b.Queue(changesSQL, id, m.version).Query(func(list pgx.Rows) error {
		var key, value []byte
		var cold bool
		_, err := pgx.ForEachRow(list, []any{&key, &value, &cold}, func() error {
			if cold {
				m.dropCold(string(key))
			} else {
				m.put(string(key), slices.Clone(value))
			}
			return nil
		})
		return err
	})
	err = m.conn.SendBatch(ctx, b).Close()
	return version, pruned, err
}

// unlock ends the transaction that holds the lock. It has written nothing.
func (e *Engine) unlock(m *machine) {
	if m.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if m.conn.Conn().PgConn().TxStatus() != 'I' {
		m.conn.Conn().PgConn().Exec(ctx, `ROLLBACK`).Close()
	}
	m.conn.Release() // closes a connection whose transaction has not ended
	m.conn = nil
}

// Release ends the lock of a machine, and makes room in memory.
func (e *Engine) Release(id string) {
	e.mu.Lock()
	m := e.machines[id]
	e.mu.Unlock()
	if m == nil {
		return
	}
	e.unlock(m)
	m.turn = -1
	e.mu.Lock()
	defer e.mu.Unlock()
	m.busy = false
	size := m.bytes + perMachine + perRow*(len(m.keys)+len(m.cold))
	e.size += size - m.counted
	m.counted = size
	for e.size > e.maxCache && e.evict() {
	}
}

// perMachine and perRow are estimates of the memory besides the values, in bytes.
const perMachine, perRow = 1000, 200

// evict forgets the machine that was not used for the longest time. It reports false if all are
// in use. The caller has the lock.
func (e *Engine) evict() bool {
	var oldest string
	for id, m := range e.machines {
		if o := e.machines[oldest]; !m.busy && (o == nil || m.used < o.used) {
			oldest = id
		}
	}
	m := e.machines[oldest]
	if m == nil {
		return false
	}
	e.size -= m.counted
	delete(e.machines, oldest)
	return true
}

// Get returns the value of a key, nil if it is missing.
func (r rows) Get(key string) ([]byte, error) {
	ctx, cancel := r.e.limit()
	defer cancel()
	m, err := r.locked(ctx)
	if err != nil {
		return nil, r.e.failed(err)
	}
	if !storage.IsCold(key) {
		return slices.Clone(m.hot[key]), nil
	}
	value, known := m.cold[key]
	if !known {
		err := m.conn.QueryRow(ctx, getSQL, r.id, []byte(key)).Scan(&value)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			r.e.unlock(m)
			return nil, r.e.failed(err)
		}
		m.putCold(key, value)
	}
	return slices.Clone(value), nil
}

// List returns up to limit rows whose key begins with prefix and sorts after start, in order. A
// limit of 0 means all.
func (r rows) List(prefix, start string, limit int) (list []storage.Row, err error) {
	ctx, cancel := r.e.limit()
	defer cancel()
	m, err := r.locked(ctx)
	if err != nil {
		return nil, r.e.failed(err)
	}
	if storage.HasCold(prefix) {
		list, err := query(ctx, m.conn, r.id, prefix, start, limit)
		if err != nil {
			r.e.unlock(m)
		}
		return list, r.e.failed(err)
	}
	at, found := slices.BinarySearch(m.keys, max(prefix, start))
	if found && start != "" && m.keys[at] == start {
		at++
	}
	for ; at < len(m.keys) && strings.HasPrefix(m.keys[at], prefix); at++ {
		list = append(list, storage.Row{Key: m.keys[at], Value: slices.Clone(m.hot[m.keys[at]])})
		if limit > 0 && len(list) == limit {
			break
		}
	}
	return list, nil
}

// querier is a connection, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// query lists rows as List does, from the database.
func query(ctx context.Context, q querier, id, prefix, start string, limit int) ([]storage.Row, error) {
	var most *int
	if limit > 0 {
		most = &limit
	}
	list, err := q.Query(ctx, listSQL, id, []byte(max(prefix, start)), []byte(start), after(prefix), most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(list, func(row pgx.CollectableRow) (storage.Row, error) {
		var key, value []byte
		err := row.Scan(&key, &value)
		return storage.Row{Key: string(key), Value: value}, err
	})
}

// after returns the first key behind all that begin with a prefix, nil without one.
func after(prefix string) []byte {
	for end := []byte(prefix); len(end) > 0; end = end[:len(end)-1] {
		if last := len(end) - 1; end[last] < 0xff {
			end[last]++
			return end
		}
	}
	return nil
}

// Write stores rows and sets the alarm. It returns when they are durable.
func (r rows) Write(list []storage.Row, alarm int64) error {
	if len(list) == 0 && alarm == storage.KeepAlarm {
		return nil
	}
	size := 0
	for _, row := range list {
		size += len(row.Value)
	}
	ctx, cancel := context.WithTimeout(r.e.ctx, callTime+time.Duration(size>>20)*time.Second) // a machine that moves
	defer cancel()
	m, err := r.locked(ctx)
	if err != nil {
		return r.e.failed(err)
	}
	version, err := r.e.write(ctx, r.id, m, list, alarm)
	if err != nil {
		m.clear()
		r.e.unlock(m)
		return r.e.failed(err)
	}
	if version == 0 { // stored, but the lock was lost meanwhile
		m.clear()
		r.e.unlock(m)
		return nil
	}
	m.version, m.turn = version, version
	for _, row := range list {
		if storage.IsCold(row.Key) {
			m.putCold(row.Key, slices.Clone(row.Value))
		} else {
			m.put(row.Key, slices.Clone(row.Value))
		}
	}
	return nil
}

// write writes rows in one statement and returns the new version, 0 if others may have written
// since. An error means that nothing has happened, except errUnknown.
func (e *Engine) write(ctx context.Context, id string, m *machine, list []storage.Row, alarm int64) (int64, error) {
	keys, values, cold := make([][]byte, 0, len(list)), make([][]byte, 0, len(list)), make([]bool, 0, len(list))
	at, tell := make(map[string]int, len(list)), false
	for _, row := range list {
		if i, twice := at[row.Key]; twice { // the last one counts
			values[i] = row.Value
			continue
		}
		at[row.Key] = len(keys)
		keys, values, cold = append(keys, []byte(row.Key)), append(values, row.Value), append(cold, storage.IsCold(row.Key))
		tell = tell || row.Key == "meta" && storage.IsNews(m.hot["meta"], row.Value)
	}
	mine, version, changed := number(), int64(0), ""
	err := e.writes.QueryRow(ctx, writeSQL, id, m.version, mine, tell, alarm, keys, values, cold, format).
		Scan(&version, &changed)
	var refusal *pgconn.PgError
	switch {
	case err == nil:
		if tell {
			e.mu.Lock()
			m.told = changed
			e.mu.Unlock()
		}
		return version, nil
	case errors.Is(err, pgx.ErrNoRows):
		return 0, errTaken
	case pgconn.SafeToRetry(err), errors.As(err, &refusal) && !strings.HasPrefix(refusal.Code, "57"):
		return 0, err // it was not sent, or refused
	}
	stored, version, failed := e.settle(id, m.version, mine)
	switch {
	case failed != nil:
		return 0, fmt.Errorf("%w: %w", errUnknown, failed)
	case !stored:
		return 0, err
	}
	held, cancel := e.limit()
	defer cancel()
	if _, err := m.conn.Exec(held, `SELECT 1`); err != nil || m.conn.Conn().PgConn().TxStatus() != 'T' {
		return 0, nil
	}
	return version, nil
}

// settle finds out whether a write was stored whose answer was lost, and makes sure that it is
// not stored later. An error of the question is no answer: it is asked again.
func (e *Engine) settle(id string, read, mine int64) (stored bool, version int64, err error) {
	e.settled.Add(1)
	all, cancel := context.WithTimeout(e.ctx, settleTime)
	defer cancel()
	for {
		ctx, done := context.WithTimeout(all, callTime/2)
		err = e.writes.QueryRow(ctx, settleSQL, id, read, mine).Scan(&version, &stored)
		done()
		if err == nil {
			if !stored && version-read >= knownWrites {
				return false, 0, errTaken // others have written too often to tell
			}
			return stored, version, nil
		}
		select {
		case <-all.Done():
			return false, 0, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
