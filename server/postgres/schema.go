package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// changes are what makes tables of format 2 of those of format 1, and so on: statements each. They are
// run when all servers that live know the result, so this package reads and writes both until then.
var changes = [...]string{}

// format is the newest version of the tables that this package reads and writes.
const format = 1 + len(changes)

// tables creates the tables. version moves with each write of a machine. A removed row keeps
// its key without a value until all servers have seen that, see prune. writes are the numbers
// of the last writes, by which one whose outcome was lost is found. changed is the transaction
// of the last change that other servers are told of. Values are sealed, so compression would
// gain nothing. A cold row is not held in memory: storage.IsCold, whose result is a part of
// the format.
const tables = `
CREATE TABLE weir_meta (
  format int NOT NULL,
  secrets text NOT NULL DEFAULT '',
  pruned timestamptz NOT NULL DEFAULT now()
);
INSERT INTO weir_meta (format) VALUES (1);
CREATE TABLE weir_machines (
  id text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  pruned bigint NOT NULL DEFAULT 0,
  prunable bigint NOT NULL DEFAULT 0,
  alarm bigint,
  changed xid8 NOT NULL,
  writes bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX weir_machines_alarm ON weir_machines (alarm) WHERE alarm IS NOT NULL;
CREATE INDEX weir_machines_changed ON weir_machines (changed);
CREATE TABLE weir_rows (
  machine text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  value bytea,
  cold boolean NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (machine, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE weir_rows ALTER value SET STORAGE EXTERNAL;
CREATE INDEX weir_rows_version ON weir_rows (machine, version);
CREATE INDEX weir_rows_removed ON weir_rows (machine) WHERE value IS NULL;
CREATE TABLE weir_replicas (id text PRIMARY KEY, build text NOT NULL, format int NOT NULL, beat timestamptz NOT NULL);
`

// unfit is the error of a database that cannot be used until its settings are changed.
type unfit struct{ text string }

func (u *unfit) Error() string { return u.text }

func unfitf(format string, args ...any) error { return &unfit{fmt.Sprintf(format, args...)} }

// prepare makes the database usable, and notes that this server lives.
func (e *Engine) prepare(ctx context.Context) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	if err := e.measure(ctx); err != nil {
		return err
	}
	err := e.alone(ctx, func(tx pgx.Tx) error {
		if err := e.upgrade(ctx, tx); err != nil {
			return err
		}
		// The numbers of transactions begin again in a database that was restored elsewhere.
		_, err := tx.Exec(ctx, `UPDATE weir_machines SET changed = '0' WHERE changed > pg_current_xact_id()`)
		return err
	})
	if err != nil {
		return err
	}
	_, err = e.writes.Exec(ctx, beatSQL, e.replica, e.build, format, e.Now())
	return err
}

// check checks the database and creates the tables in an empty one.
func (e *Engine) check(ctx context.Context) error {
	return e.alone(ctx, func(tx pgx.Tx) error {
		var major int
		var readOnly, recovery, sync string
		err := tx.QueryRow(ctx, `SELECT current_setting('server_version_num')::int / 10000,
			current_setting('transaction_read_only'), pg_is_in_recovery()::text, current_setting('synchronous_commit')`).
			Scan(&major, &readOnly, &recovery, &sync)
		switch {
		case err != nil:
			return err
		case major < 14:
			return unfitf("it is PostgreSQL %d; weir needs 14 or newer", major)
		case recovery == "true":
			return unfitf("it is a standby, which is read-only; name the primary, or add target_session_attrs=read-write")
		case readOnly == "on":
			return unfitf("it is read-only; set default_transaction_read_only = off for this user")
		case sync == "off":
			return unfitf("synchronous_commit is off, so a crash loses acknowledged writes; set it to on with ALTER DATABASE")
		}
		var has bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('weir_meta') IS NOT NULL`).Scan(&has); err != nil {
			return err
		}
		if has {
			return nil
		}
		return createTables(ctx, tx)
	})
}

// createTables creates the tables, unless the database is another program's.
func createTables(ctx context.Context, tx pgx.Tx) error {
	var other *string
	err := tx.QueryRow(ctx, `SELECT min(relname) FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')`).Scan(&other)
	switch {
	case err != nil:
		return err
	case other != nil:
		return unfitf("it has tables of another program, such as %s; name an empty database, or an empty schema with search_path=NAME", *other)
	}
	_, err = tx.Conn().PgConn().Exec(ctx, tables).ReadAll()
	return err
}

// upgrade brings the tables to the format that all servers know which live. Writes wait meanwhile;
// one of a server that does not know the new format is refused then. The wait for locks is short: a
// turn that reads may wait for its write, and this for the turn.
func (e *Engine) upgrade(ctx context.Context, tx pgx.Tx) error {
	stored, known := 0, 0
	err := tx.QueryRow(ctx, `SELECT format, least($1, (SELECT min(format) FROM weir_replicas WHERE beat > $2)) FROM weir_meta`,
		format, e.Now().Add(-deadAfter)).Scan(&stored, &known)
	switch {
	case err != nil:
		return err
	case stored > format:
		return unfitf("its tables have format %d of a newer weir, and this one knows %d; run the newer version", stored, format)
	case known <= stored:
		return nil
	}
	steps := `SET LOCAL lock_timeout = '500ms'; LOCK TABLE weir_machines, weir_rows IN EXCLUSIVE MODE;` + strings.Join(changes[stored-1:known-1], ";") +
		fmt.Sprintf(`; UPDATE weir_meta SET format = %d`, known)
	if _, err := tx.Conn().PgConn().Exec(ctx, steps).ReadAll(); err != nil {
		return err
	}
	e.log(1, fmt.Sprintf("database %s: its tables have format %d now, which versions of weir that know only %d refuse",
		e.name, known, stored))
	return nil
}

// alone runs fn in a transaction that no other server's runs beside.
func (e *Engine) alone(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, e.writes, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir tables', 0))`); err != nil {
			return err
		}
		return fn(tx)
	})
}

// describe returns what is wrong with the database and what to do, on one line. It wraps
// errUnknown if the outcome of a write is unknown, and nothing else.
func (e *Engine) describe(err error) error {
	var u *unfit
	var p *pgconn.PgError
	text, hint := cause(err), ""
	switch {
	case errors.Is(err, errUnknown):
		return fmt.Errorf("database %s: %w%s; read it again before you repeat it", e.name, errUnknown,
			strings.TrimPrefix(text, errUnknown.Error()))
	case errors.As(err, &u), errors.Is(err, errTaken):
	case errors.As(err, &p):
		text, hint = p.Message, cmp.Or(hints[p.Code], hints[p.Code[:2]])
	default:
		hint = cmp.Or(tlsHint(err), "it is tried again until it answers")
	}
	if hint != "" {
		text += "; " + hint
	}
	return fmt.Errorf("database %s: %s", e.name, text)
}

// hints say what to do, by SQLSTATE or its class.
var hints = map[string]string{
	"28":    "check the user, the password and sslmode of the URL, and pg_hba.conf",
	"3D000": "create it: CREATE DATABASE",
	"3F":    "create the schema and GRANT this user USAGE and CREATE on it, or name another with search_path=NAME",
	"42501": "GRANT this user the rights: CONNECT on the database, USAGE and CREATE on the schema, ALL on its tables",
	"53":    "the server has no room or no connections left: free some",
	"25006": "the server is read-only; name the primary",
	"08P01": "a pooler must be in transaction or session mode (pool_mode)",
	"57P03": "it is tried again until it answers",
}

// isUnfit reports whether an error lasts until settings are changed.
func isUnfit(err error) bool {
	var u *unfit
	var p *pgconn.PgError
	return errors.As(err, &u) || tlsHint(err) != "" || errors.As(err, &p) &&
		slices.ContainsFunc([]string{"28", "3D", "3F", "42", "25006", "08P01"}, func(code string) bool {
			return strings.HasPrefix(p.Code, code)
		})
}

// tlsHint says what to do if TLS was refused, by one side or the other; else it is empty.
func tlsHint(err error) string {
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "name the certificate of its authority as sslrootcert, and the host as in its certificate"
	case err != nil && strings.Contains(err.Error(), "server refused TLS connection"):
		return "set ssl = on at the server, or sslmode=disable in the URL"
	}
	return ""
}

// cause returns the text of an error without the address and the user, which may be in it. An
// attempt with TLS and one without may have failed in the same way.
func cause(err error) string {
	var c *pgconn.ConnectError
	if errors.As(err, &c) {
		err = c.Unwrap()
	}
	return strings.Join(strings.Fields(strings.Join(slices.Compact(strings.Split(err.Error(), "\n")), " ")), " ")
}
