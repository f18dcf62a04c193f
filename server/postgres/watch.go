package postgres

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// A server asks once a second, in one exchange, what others have changed and which alarms are
// due, and notes that it lives. NOTIFY would be a fifth of a second faster and needs a
// connection that no pooler passes.
const (
	tickEvery   = time.Second
	beatEvery   = 3 // ticks
	pruneEvery  = 5 * 60
	deadAfter   = 10 * time.Second               // without a beat
	singleAfter = int(2 * deadAfter / tickEvery) // ticks that have found no other server
	maxAlarms   = 32                             // that a server runs at once
	claimFor    = int64(60_000)
	alarmAgain  = int64(5_000) // after a failure
	complain    = time.Minute  // between two lines about a database that is away

	upgradeEvery = 5 * time.Second // after one that has failed
)

const (
	// startedSQL is asked first: whatever is not finished then is asked for again.
	startedSQL = `SELECT clock_timestamp(), pg_snapshot_xmin(pg_current_snapshot())::text, format FROM weir_meta`
	changedSQL = `SELECT id, changed::text FROM weir_machines WHERE changed >= $1::text::xid8`
	// dueSQL takes alarms that are due for some time. Should this server end meanwhile, they ring
	// at another one.
	dueSQL = `UPDATE weir_machines SET alarm = $2::bigint WHERE id IN (
		SELECT id FROM weir_machines WHERE alarm <= $1::bigint ORDER BY alarm LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING id`
	beatSQL = `INSERT INTO weir_replicas (id, build, format, beat) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET beat = excluded.beat`
	livingSQL = `SELECT id, format, beat FROM weir_replicas WHERE beat > $1`
	rangSQL   = `UPDATE weir_machines SET alarm = CASE WHEN $3::bigint > 0 THEN $3 END WHERE id = $1 AND alarm = $2`
	// pruneSQL removes what is left of removed rows an hour after that. Servers that have not had a
	// turn of the machine since read all of it.
	pruneSQL = `WITH once AS (UPDATE weir_meta SET pruned = now() WHERE pruned < now() - interval '1 hour' RETURNING 1),
		m AS (UPDATE weir_machines SET pruned = prunable, prunable = version
			WHERE EXISTS (SELECT FROM once) AND (prunable <> version OR pruned <> prunable) RETURNING id, pruned),
		gone AS (DELETE FROM weir_replicas WHERE EXISTS (SELECT FROM once) AND beat < now() - interval '1 day')
		DELETE FROM weir_rows r USING m WHERE r.machine = m.id AND r.value IS NULL AND r.version <= m.pruned`
)

// watcher is the state of Watch.
type watcher struct {
	*Engine
	changed   func(machineID string)
	confirmed func(since, at time.Time)
	ring      func(machineID string) error

	xmin     string            // of the tick before; "" before the first
	started  time.Time         // the tick before
	told     map[string]string // changes that were reported and may be seen again
	free     chan struct{}     // has an element for each alarm that runs
	ticks    int
	single   int       // ticks in a row without another server
	newest   time.Time // when another server has last noted that it lives
	silent   time.Time // no line about the database until then
	complete bool      // a tick has answered since the last failure

	nextUpgrade time.Time // no upgrade of the tables is tried until then
}

// Watch reports changes of other servers and of the alarms that are due here.
func (e *Engine) Watch(changed func(machineID string), confirmed func(since, at time.Time),
	ring func(machineID string) error) {
	w := &watcher{Engine: e, changed: changed, confirmed: confirmed, ring: ring, free: make(chan struct{}, maxAlarms),
		complete: true}
	e.done.Go(w.run)
}

func (w *watcher) run() {
	for {
		if err := w.tick(); err != nil && w.ctx.Err() == nil {
			w.noteAway(true)
			w.complete = false
			if now := time.Now(); now.After(w.silent) {
				w.silent = now.Add(complain)
				w.log(2, w.describe(err).Error())
			}
		} else if err == nil && !w.complete {
			w.complete, w.silent = true, time.Time{}
			w.noteAway(false)
			w.log(1, "database "+w.name+": it answers again")
		}
		select {
		case <-time.After(tickEvery*9/10 + rand.N(tickEvery/5)):
		case <-w.ctx.Done():
			return
		}
	}
}

// tick is one exchange with the database.
func (w *watcher) tick() error {
	ctx, cancel := w.limit()
	defer cancel()
	if err := w.start(ctx); err != nil {
		return err
	}
	var database, answered, beat, newest time.Time
	var stored, knows int
	var xmin, id, change string
	told, due, living, oldest := map[string]string{}, []string{}, []string{}, format
	at := w.Now()
	claim := at.UnixMilli() + claimFor
	b := &pgx.Batch{}
	b.Queue(startedSQL).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&database, &xmin, &stored)
		answered = time.Now()
		return err
	})
	// Before the first tick nothing is known that could have changed.
	b.Queue(changedSQL, cmp.Or(w.xmin, "18446744073709551615")).Query(func(list pgx.Rows) error {
		_, err := pgx.ForEachRow(list, []any{&id, &change}, func() error { told[id] = change; return nil })
		return err
	})
	b.Queue(dueSQL, at.UnixMilli(), claim, cap(w.free)-len(w.free)).Query(func(list pgx.Rows) (err error) {
		due, err = pgx.CollectRows(list, pgx.RowTo[string])
		return err
	})
	b.Queue(livingSQL, at.Add(-deadAfter)).Query(func(list pgx.Rows) error {
		_, err := pgx.ForEachRow(list, []any{&id, &knows, &beat}, func() error {
			living, oldest = append(living, id), min(oldest, knows)
			if id != w.replica && beat.After(newest) {
				newest = beat
			}
			return nil
		})
		return err
	})
	if w.ticks%beatEvery == 0 {
		b.Queue(beatSQL, w.replica, w.build, format, at)
	}
	if w.ticks%pruneEvery == pruneEvery-1 {
		b.Queue(pruneSQL)
	}
	asked := time.Now()
	if err := w.writes.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if stored > format {
		w.ready.Store(false)
		return w.start(ctx) // says why
	}
	if now := time.Now(); stored < oldest && now.After(w.nextUpgrade) {
		w.nextUpgrade = now.Add(upgradeEvery)
		if err := w.alone(ctx, func(tx pgx.Tx) error { return w.upgrade(ctx, tx) }); err != nil {
			w.log(1, w.describe(err).Error())
		}
	}
	w.ticks++
	w.living.Store(&living)
	if w.single++; !newest.IsZero() {
		w.single = 0
	}
	others := w.single < singleAfter
	ahead := newest.Sub(at)
	if ahead > time.Second && ahead < maxStep && !w.newest.IsZero() && newest.After(w.newest) {
		database, others = newest, false // this computer has stood still, and its clock with it
	}
	w.newest = newest
	w.clock.set(database, asked, answered, others)
	for id, change := range told {
		if w.told[id] != change && !w.own(id, change) {
			w.changed(id)
		}
	}
	if w.xmin != "" {
		w.confirmed(w.started, at)
	}
	w.xmin, w.started, w.told = xmin, at, told
	for _, id := range due {
		w.free <- struct{}{}
		go w.alarm(id, claim)
	}
	return nil
}

// own reports whether this server has made a change.
func (e *Engine) own(id, change string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.machines[id]
	return m != nil && m.told == change
}

// alarm runs an alarm that this server has taken, and removes it unless it was set again.
func (w *watcher) alarm(id string, claimed int64) {
	defer func() { <-w.free }()
	next := int64(0)
	if err := w.ring(id); err != nil {
		next = w.Now().UnixMilli() + alarmAgain
	}
	ctx, cancel := w.limit()
	defer cancel()
	if _, err := w.writes.Exec(ctx, rangSQL, id, claimed, next); err != nil && !errors.Is(err, context.Canceled) {
		w.log(1, w.describe(err).Error()) // it rings again when the claim is over
	}
}
