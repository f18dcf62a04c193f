package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir/pkg/machine/storage"
	"weir/server/store"
)

// Each calls fn for each machine, in the order of their ids, as all are at one moment.
func (e *Engine) Each(ctx context.Context, fn func(id string, rows []storage.Row, alarm int64) error) error {
	if !e.ready.Load() {
		return e.describe(errNotReady)
	}
	var own error // of fn
	err := pgx.BeginTxFunc(ctx, e.writes, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			for id, more := "", true; more; {
				var alarm *int64
				err := tx.QueryRow(ctx, `SELECT id, alarm FROM weir_machines WHERE id > $1 ORDER BY id LIMIT 1`, id).Scan(&id, &alarm)
				if errors.Is(err, pgx.ErrNoRows) {
					return nil
				} else if err != nil {
					return err
				}
				rows, err := query(ctx, tx, id, "", "", 0)
				if err != nil {
					return err
				}
				if alarm == nil {
					alarm = new(int64)
				}
				if len(rows) == 0 && *alarm == 0 {
					continue
				}
				if own = fn(id, rows, *alarm); own != nil {
					return own
				}
			}
			return nil
		})
	if own != nil || err == nil {
		return own
	}
	return e.describe(err)
}

// Backup writes all machines as a data file of store.Store.
func (e *Engine) Backup(w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "weir-backup-") // mode 700
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	st, err := store.Open(dir)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := e.Each(e.ctx, func(id string, rows []storage.Row, alarm int64) error {
		return st.Rows(id).Write(rows, alarm)
	}); err != nil {
		return err
	}
	return st.Backup(w)
}

// Others returns an error if other servers use the database.
func (e *Engine) Others(ctx context.Context) error {
	var n int
	err := e.writes.QueryRow(ctx, `SELECT count(*) FROM weir_replicas WHERE id <> $1 AND beat > $2`, e.replica,
		e.Now().Add(-deadAfter)).Scan(&n)
	if err != nil {
		return e.describe(err)
	}
	if n > 0 {
		return fmt.Errorf("database %s: servers that use it: %d; stop them first", e.name, n)
	}
	return nil
}

// Alive reports whether a server has noted within some seconds that it lives.
func (e *Engine) Alive(replica string) bool {
	living := e.living.Load()
	return replica == e.replica || living == nil || slices.Contains(*living, replica)
}

// Digests returns the digests of the secrets of the servers, "" if none is stored.
func (e *Engine) Digests() (text string, err error) {
	ctx, cancel := e.limit()
	defer cancel()
	return text, e.writes.QueryRow(ctx, `SELECT secrets FROM weir_meta`).Scan(&text)
}

// SetDigests stores the digests of the secrets.
func (e *Engine) SetDigests(text string) error {
	ctx, cancel := e.limit()
	defer cancel()
	_, err := e.writes.Exec(ctx, `UPDATE weir_meta SET secrets = $1`, text)
	return err
}
