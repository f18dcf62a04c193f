// Package postgres has the rows and alarms of machines in a PostgreSQL database that several
// servers share. See docs/decisions/0190-several-servers.md.
//
// The turn of a machine is an advisory lock of a transaction; it is held by a connection of its
// own, which writes nothing. Safety does not depend on it: each write is one statement that
// changes nothing unless the machine's version is the one that the turn has read.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/pkg/machine/storage"
)

const (
	turnsAtOnce  = 16 // connections that hold a turn, unless the URL has pool_max_conns
	writesAtOnce = 8  // connections that write
	startTime    = 10 * time.Second
	callTime     = 10 * time.Second // of one exchange with the database
	CloseTime    = time.Second      // of Close at most
	maxCache     = 256 << 20        // bytes of rows in memory
)

// Engine is the database. It implements objects.Engine.
type Engine struct {
	name          string // host and database, without the user and the password
	build         string
	turns, writes *pgxpool.Pool
	log           func(level int, line string)
	replica       string
	clock         clock
	ready         atomic.Bool               // the tables were checked
	away          atomic.Pointer[time.Time] // since when it does not answer; nil if it does
	living        atomic.Pointer[[]string]  // the servers that live, by the last tick
	settled       atomic.Int64              // writes whose outcome was asked for

	mu       sync.Mutex
	machines map[string]*machine
	size     int // of the rows of machines
	maxCache int
	uses     int64 // counts accesses, for eviction

	stop context.CancelFunc // of what Watch has begun
	done sync.WaitGroup
	ctx  context.Context
}

// Open opens a database. One that cannot be reached is not an error: it is tried again until it
// answers, and all accesses fail until then. An error is one line that says what is wrong and
// what to do.
func Open(address, build string, log func(level int, line string)) (*Engine, error) {
	turns, err := pgxpool.ParseConfig(address)
	if err != nil || strings.Contains(turns.ConnConfig.Host, "@") { // the end of a password
		return nil, invalid(err)
	}
	c := turns.ConnConfig
	e := &Engine{name: fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database), build: build, log: log,
		machines: map[string]*machine{}, maxCache: maxCache, replica: fmt.Sprintf("%016x", uint64(number()))}
	if !strings.Contains(address, "pool_max_conns") {
		turns.MaxConns = turnsAtOnce
	}
	// Prepared statements do not pass a pooler in transaction mode.
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, callTime/2)
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], "weir")
	turns.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > callTime }
	writes := turns.Copy()
	writes.MaxConns = max(2, min(writesAtOnce, turns.MaxConns))
	e.ctx, e.stop = context.WithCancel(context.Background())
	if e.turns, err = pgxpool.NewWithConfig(e.ctx, turns); err != nil {
		return nil, e.describe(err)
	}
	if e.writes, err = pgxpool.NewWithConfig(e.ctx, writes); err != nil {
		return nil, e.describe(err)
	}
	ctx, cancel := context.WithTimeout(e.ctx, startTime)
	defer cancel()
	switch err := e.start(ctx); {
	case isUnfit(err):
		e.Close()
		return nil, e.describe(err)
	case err != nil:
		log(2, e.describe(err).Error())
	}
	return e, nil
}

// invalid returns the error of an address. The password may be anywhere in one that does not parse.
func invalid(err error) error {
	var p *pgconn.ParseConfigError
	if errors.As(err, &p) {
		bare := *p
		bare.ConnString = ""
		if _, why, ok := strings.Cut(bare.Error(), "`: "); ok && !strings.HasPrefix(why, "failed to parse") && why != "invalid port" {
			return fmt.Errorf("database: the address is not valid: %s", why)
		}
	}
	return errors.New("database: the address is not valid; it must be like postgres://user:password@host:5432/weir, " +
		"with %40 for @ in the password, and so on")
}

// start makes the engine ready, if it is not.
func (e *Engine) start(ctx context.Context) error {
	if e.ready.Load() {
		return nil
	}
	if err := e.prepare(ctx); err != nil {
		e.noteAway(true)
		return err
	}
	e.ready.Store(true)
	e.noteAway(false)
	return nil
}

// IsAddress reports whether the value of a setting is the address of a database.
func IsAddress(v string) bool {
	return strings.HasPrefix(v, "postgres://") || strings.HasPrefix(v, "postgresql://")
}

// Redact returns an address without its password.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "postgres://…"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// Name returns where the database is.
func (e *Engine) Name() string { return e.name }

// Replica returns the name of this process among the servers.
func (e *Engine) Replica() string { return e.replica }

// Ready reports whether the database has answered since Open.
func (e *Engine) Ready() bool { return e.ready.Load() }

// Away returns for how long the database has not answered: 0 if it does, and from the start on
// as good as for ever.
func (e *Engine) Away() time.Duration {
	switch at := e.away.Load(); {
	case at == nil:
		return 0
	case !e.ready.Load():
		return time.Hour
	default:
		return max(time.Since(*at), 1)
	}
}

// noteAway notes whether the database has answered.
func (e *Engine) noteAway(away bool) {
	if now := time.Now(); !away {
		e.away.Store(nil)
	} else {
		e.away.CompareAndSwap(nil, &now)
	}
}

// Close ends the connections.
func (e *Engine) Close() error {
	e.stop()
	e.done.Wait()
	if e.ready.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), CloseTime)
		defer cancel()
		e.writes.Exec(ctx, `DELETE FROM weir_replicas WHERE id = $1`, e.replica)
	}
	e.turns.Close()
	e.writes.Close()
	return nil
}

// Rows returns the storage of a machine.
func (e *Engine) Rows(machineID string) storage.Storage { return rows{e, machineID} }

// Alarms returns nil: Watch rings them.
func (e *Engine) Alarms() (map[string]int64, error) { return nil, nil }

// limit returns the context of one exchange.
func (e *Engine) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.ctx, callTime)
}

// failed returns the error of a storage that fails with err, nil for none.
func (e *Engine) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", storage.ErrStorage, e.describe(err))
}

var errNotReady = errors.New("it has not answered since the start")

// number returns a random number, of a write or of a process.
func number() int64 {
	var b [8]byte
	rand.Read(b[:])
	return int64(binary.BigEndian.Uint64(b[:]))
}
