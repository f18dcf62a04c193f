//go:build unix

package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	memory "weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/server/objects"
	"weir/server/postgres/postgrestest"
)

var _ objects.Engine = (*Engine)(nil)

// databases are those of the tests.
var databases postgrestest.Databases

func TestMain(m *testing.M) { os.Exit(databases.Run(m)) }

// open opens a database as one server.
func open(t testing.TB, url string) *Engine {
	t.Helper()
	e, err := Open(url, "test", func(_ int, line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func put(key, value string) []storage.Row { return []storage.Row{{Key: key, Value: []byte(value)}} }

// write writes rows in a turn of their own.
func write(t testing.TB, e *Engine, id string, rows []storage.Row, alarm int64) {
	t.Helper()
	defer e.Release(id)
	if err := e.Rows(id).Write(rows, alarm); err != nil {
		t.Fatal(err)
	}
}

// want compares a row as a server reads it in a new turn.
func want(t testing.TB, e *Engine, id, key, value string) {
	t.Helper()
	defer e.Release(id)
	got, err := e.Rows(id).Get(key)
	if string(got) != value || err != nil {
		t.Errorf("%s of %s: got %q, %v, want %q", key, id, got, err, value)
	}
}

// exec runs statements of a test.
func exec(t testing.TB, e *Engine, sql string, args ...any) {
	t.Helper()
	if _, err := e.writes.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Three servers answer as one storage in memory does, whichever has the turn.
func TestServersShareRows(t *testing.T) {
	t.Parallel()
	url := databases.New(t)
	servers := []*Engine{open(t, url), open(t, url), open(t, url)}
	servers[2].maxCache = 0 // has nothing in memory
	model := memory.NewStorage()
	random := rand.New(rand.NewPCG(1, 2))
	prefixes := []string{"conn:", "key:", "audit:", "usage:", "requests:", "requests", "idem:", "m\xff", ""}
	key := func() string { return prefixes[random.IntN(len(prefixes))] + fmt.Sprint(random.IntN(12)) }
	for turn := range 800 {
		e := servers[random.IntN(len(servers))]
		st := e.Rows("abc")
		for range random.IntN(4) {
			switch random.IntN(3) {
			case 0:
				k := key()
				got, err := st.Get(k)
				stored, _ := model.Get(k)
				if err != nil || string(got) != string(stored) || (got == nil) != (stored == nil) {
					t.Fatalf("turn %d: %s is %q, %v, want %q", turn, k, got, err, stored)
				}
			case 1:
				p, start, limit := prefixes[random.IntN(len(prefixes))], "", random.IntN(4)
				if random.IntN(2) == 0 {
					start = key()
				}
				got, err := st.List(p, start, limit)
				list, _ := model.List(p, start, limit)
				if err != nil || len(got) != len(list) || len(got) > 0 && !reflect.DeepEqual(got, list) {
					t.Fatalf("turn %d: %q from %q, %d: %q, %v, want %q", turn, p, start, limit, got, err, list)
				}
			default:
				rows := []storage.Row{}
				for range 1 + random.IntN(3) { // a key may come twice
					r := storage.Row{Key: key(), Value: []byte(fmt.Sprint(turn))}
					if random.IntN(3) == 0 {
						r.Value = nil
					}
					rows = append(rows, r)
				}
				if err := st.Write(rows, storage.KeepAlarm); err != nil {
					t.Fatal(err)
				}
				model.Write(rows, storage.KeepAlarm)
				model.Flush()
			}
		}
		e.Release("abc")
		if turn%100 == 99 { // what is left of removed rows goes, at most an hour after it
			exec(t, e, `UPDATE weir_meta SET pruned = now() - interval '2 hours'`)
			exec(t, e, pruneSQL)
		}
	}
	for _, e := range servers {
		e.mu.Lock()
		if m := e.machines["abc"]; m != nil {
			bytes := 0
			for _, v := range m.hot {
				bytes += len(v)
			}
			for _, v := range m.cold {
				bytes += len(v)
			}
			if bytes != m.bytes || e.size != m.counted || len(m.keys) != len(m.hot) || !slices.IsSorted(m.keys) {
				t.Errorf("%d bytes are counted as %d, in all %d, %d of %d keys", bytes, m.bytes, e.size, len(m.keys), len(m.hot))
			}
		}
		e.mu.Unlock()
	}
	err := servers[0].Each(t.Context(), func(id string, rows []storage.Row, alarm int64) error {
		list, _ := model.List("", "", 0)
		if id != "abc" || alarm != 0 || !reflect.DeepEqual(rows, list) {
			t.Errorf("%s has %d rows, alarm %d, want %d rows", id, len(rows), alarm, len(list))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Turns of one machine do not overlap, whichever servers have them.
func TestTurnsOfServersDoNotOverlap(t *testing.T) {
	url := databases.New(t) + "&default_transaction_isolation=serializable" // no setting of the database may weaken it
	var done sync.WaitGroup
	var inside atomic.Int32
	for range 3 {
		e := open(t, url)
		done.Go(func() {
			for i := range 40 {
				st := e.Rows("m")
				v, err := st.Get("n")
				if err != nil || inside.Add(1) != 1 {
					t.Errorf("turn %d: %v, %d are in it", i, err, inside.Load())
				}
				n := 0
				fmt.Sscan(string(v), &n)
				if i%2 == 0 {
					err = errors.Join(st.Write(put("n", fmt.Sprint(n+1)), storage.KeepAlarm),
						st.Write(put("n", fmt.Sprint(n+2)), storage.KeepAlarm))
				}
				if err != nil {
					t.Error(err)
				}
				inside.Add(-1)
				e.Release("m")
			}
		})
	}
	done.Wait()
	want(t, open(t, url), "m", "n", "120")
}

// A server that has lost its lock, because it was stopped or cut off, changes nothing, and its
// turn reads nothing more.
func TestServerThatLostItsLockIsFenced(t *testing.T) {
	url := databases.New(t)
	a, b := open(t, url), open(t, url)
	write(t, a, "m", put("conn:1", "one"), storage.KeepAlarm)
	st := a.Rows("m")
	if v, err := st.Get("conn:1"); string(v) != "one" || err != nil {
		t.Fatal(v, err)
	}
	exec(t, b, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'`)
	write(t, b, "m", put("conn:1", "two"), storage.KeepAlarm)
	for _, key := range []string{"conn:1", "conn:2"} {
		err := st.Write(put(key, "late"), storage.KeepAlarm)
		if !errors.Is(err, storage.ErrStorage) || !strings.Contains(err.Error(), "another server") {
			t.Errorf("a late write: %v", err)
		}
	}
	if v, err := st.Get("conn:1"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("a late read: %q, %v", v, err)
	}
	a.Release("m")
	want(t, a, "m", "conn:1", "two")
	want(t, a, "m", "conn:2", "")
}

// A lock that is lost while no other server writes costs nothing.
func TestLostLockIsTakenAgain(t *testing.T) {
	url := databases.New(t)
	a, b := open(t, url), open(t, url)
	st := a.Rows("m")
	st.Write(put("conn:1", "one"), storage.KeepAlarm)
	exec(t, b, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'`)
	if err := st.Write(put("conn:1", "two"), storage.KeepAlarm); err != nil {
		t.Error(err)
	}
	if _, err := st.Get("audit:1"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("a read through the lost connection: %v", err)
	}
	if v, err := st.Get("audit:1"); v != nil || err != nil {
		t.Errorf("through a new one: %q, %v", v, err)
	}
	a.Release("m")
	want(t, b, "m", "conn:1", "two")
}

// While connections are cut, delayed and made deaf in one direction, a write that was
// acknowledged is stored once, and one that has failed is not stored, unless the error says that
// its outcome is unknown.
func TestOutcomesOfCutWritesAreFound(t *testing.T) {
	t.Parallel()
	direct := databases.New(t)
	u, _ := url.Parse(direct)
	p := postgrestest.NewProxy(t, u.Host)
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.Port())
	servers := []*Engine{open(t, u.String()), open(t, u.String())}
	stop := make(chan struct{})
	var turns [2][4]sync.Mutex // of the machines within a server, as a Runner has them
	var disturbed, done sync.WaitGroup
	cuts, random := 0, rand.New(rand.NewPCG(3, 4))
	disturbed.Go(func() {
		for ; ; cuts++ {
			select {
			case <-stop:
				p.Delay(0)
				p.Lose(0)
				return
			case <-time.After(time.Duration(10+random.IntN(60)) * time.Millisecond):
			}
			p.Delay(time.Duration(random.IntN(2)) * time.Millisecond)
			if cuts%40 == 39 {
				p.Lose(int32(1 + random.IntN(2)))
				time.Sleep(10 * time.Millisecond)
				p.Lose(0)
			} else {
				p.Cut()
			}
		}
	})
	type outcome struct {
		machine, key string
		err          error
	}
	var mu sync.Mutex
	var outcomes []outcome
	for worker := range 6 {
		done.Go(func() {
			e := servers[worker%2]
			for i := range 60 {
				id, key := fmt.Sprint("m", (worker+i)%4), fmt.Sprintf("conn:%d-%d", worker, i)
				turn := &turns[worker%2][(worker+i)%4]
				turn.Lock()
				st := e.Rows(id)
				st.Get("meta")
				err := st.Write(put(key, "x"), storage.KeepAlarm)
				e.Release(id)
				turn.Unlock()
				mu.Lock()
				outcomes = append(outcomes, outcome{id, key, err})
				mu.Unlock()
			}
		})
	}
	done.Wait()
	close(stop)
	disturbed.Wait()
	check := open(t, direct)
	stored, failed, unknown := 0, 0, 0
	for _, o := range outcomes {
		v, err := check.Rows(o.machine).Get(o.key)
		check.Release(o.machine)
		switch {
		case err != nil:
			t.Fatal(err)
		case o.err == nil && v == nil:
			t.Errorf("%s of %s was acknowledged and is not stored", o.key, o.machine)
		case errors.Is(o.err, errUnknown):
			unknown++
		case o.err != nil && v != nil:
			t.Errorf("%s of %s is stored, and its write has failed: %v", o.key, o.machine, o.err)
		case o.err == nil:
			stored++
		default:
			failed++
		}
	}
	t.Logf("%d cuts, %d stored, %d failed, %d unknown, %d settled", cuts, stored, failed, unknown,
		servers[0].settled.Load()+servers[1].settled.Load())
	if cuts < 20 || stored == 0 || failed == 0 {
		t.Error("nothing was disturbed")
	}
}

// news is what a server is told.
type news struct {
	mu        sync.Mutex
	changed   []string
	rang      []string
	confirmed int
	fails     error
}

func (n *news) watch(e *Engine) {
	e.Watch(func(id string) { n.mu.Lock(); n.changed = append(n.changed, id); n.mu.Unlock() },
		func(since, at time.Time) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.confirmed++; !since.Before(at) {
				n.confirmed = -1 << 20
			}
		},
		func(id string) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.rang = append(n.rang, id)
			return n.fails
		})
}

func (n *news) get() (changed, rang string, confirmed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.changed, " "), strings.Join(n.rang, " "), n.confirmed
}

// until waits until a condition holds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 400 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("not within 20 s: %s", what)
}

func meta(generation, observed int) []storage.Row {
	return put("meta", fmt.Sprintf(`{"generation":%d,"observed":%d}`, generation, observed))
}

// A change is told to the servers that have not made it, once.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	url := databases.New(t)
	a, b := open(t, url), open(t, url)
	write(t, a, "old", meta(1, 1), storage.KeepAlarm)
	var atA, atB news
	atA.watch(a)
	atB.watch(b)
	until(t, "two ticks", func() bool { _, _, n := atB.get(); _, _, m := atA.get(); return n >= 1 && m >= 1 })
	write(t, a, "config", meta(1, 1), storage.KeepAlarm)
	write(t, a, "old", meta(1, 2), storage.KeepAlarm)
	write(t, a, "quiet", put("activity", "x"), storage.KeepAlarm)
	write(t, a, "quiet", put("activity", "y"), storage.KeepAlarm)
	until(t, "told", func() bool { c, _, _ := atB.get(); return strings.Contains(c, "config") && strings.Contains(c, "old") })
	_, _, n := atB.get()
	until(t, "three more ticks", func() bool { _, _, m := atB.get(); return m > n+3 })
	changed, _, _ := atB.get()
	if got := strings.Fields(changed); len(got) > 3 || strings.Count(changed, "config") != 1 {
		t.Errorf("told: %s", changed)
	}
	if changed, _, _ := atA.get(); changed != "" {
		t.Errorf("the server that made the changes is told: %s", changed)
	}
}

// An alarm rings at one server; one that fails, or whose server ends, rings again.
func TestAlarmRingsOnce(t *testing.T) {
	t.Parallel()
	url := databases.New(t)
	a, b := open(t, url), open(t, url)
	now := a.Now().UnixMilli()
	write(t, a, "due", put("conn:1", "x"), now-1000)
	write(t, a, "later", put("conn:1", "x"), now+3_600_000)
	write(t, a, "never", put("conn:1", "x"), now-1000)
	write(t, a, "never", put("conn:1", "x"), 0)
	write(t, a, "due", put("conn:1", "y"), storage.KeepAlarm)
	var atA, atB news
	atB.fails = errors.New("failed")
	atA.watch(a)
	until(t, "rung", func() bool { _, r, _ := atA.get(); return r != "" })
	atB.watch(b)
	until(t, "three ticks", func() bool { _, _, n := atB.get(); return n > 2 })
	_, first, _ := atA.get()
	_, second, _ := atB.get()
	if first != "due" || second != "" {
		t.Errorf("rang: %s and %s", first, second)
	}
	var left int64
	until(t, "the alarm goes", func() bool {
		return a.writes.QueryRow(t.Context(), `SELECT count(*) FROM weir_machines WHERE alarm IS NOT NULL`).Scan(&left) == nil && left == 1
	})
	a.Close()
	write(t, b, "due", nil, now)
	until(t, "rung again", func() bool { _, r, _ := atB.get(); return strings.Count(r, "due") == 2 })
}

// The clock of all servers is the database's, also if that of the computer is set.
func TestClockIsTheDatabases(t *testing.T) {
	e := open(t, databases.New(t))
	var at time.Time
	if err := e.writes.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	if d := e.Now().Sub(at); d < -time.Second || d > time.Second {
		t.Errorf("it differs by %v", d)
	}
	now := time.Now()
	e.clock.set(at.Add(time.Hour), now.Add(-time.Second), now, true)
	if d := e.Now().Sub(at); d > time.Minute {
		t.Errorf("a slow answer counts: %v", d)
	}
	for _, step := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		before := e.Now()
		e.clock.set(at.Add(step), now, now, true)
		if d := e.Now().Sub(before).Abs(); d > 2*time.Second {
			t.Errorf("with others, a step of %v is one of %v", step, d)
		}
		e.clock.set(at.Add(step), now, now, false)
		if d := e.Now().Sub(at) - step; d < 0 || d > time.Minute {
			t.Errorf("alone, a step of %v is not followed: %v", step, d)
		}
		e.clock.set(at, now, now, false)
	}
	e.clock.set(at.Add(time.Hour), now, now, true)
	if d := e.Now().Sub(at); d < time.Hour {
		t.Errorf("a clock that was wrong for long: %v", d)
	}
}

// While other servers live, a step of the database's clock is followed so slowly that no wait of theirs
// ends early, also by a server that starts after it; and they know that the others live. A server alone
// has the clock of the database at once.
func TestStepOfTheClockEndsNoWait(t *testing.T) {
	t.Parallel()
	s := postgrestest.StartSmall(t, 200, "max_wal_size=48MB", "min_wal_size=32MB")
	t.Cleanup(s.Remove)
	url := s.Database(t)
	a := open(t, url)
	var at news
	at.watch(a)
	for _, step := range []time.Duration{5 * time.Minute, 0} {
		before, began := a.Now(), time.Now()
		if !s.Step(step) {
			t.Skip("only root can have a clock of its own, with the package faketime")
		}
		_, _, n := at.get()
		until(t, "two ticks", func() bool { _, _, m := at.get(); return m > n+2 })
		b := open(t, url)
		var told news
		told.watch(b)
		until(t, "ticks of both", func() bool { _, _, m := told.get(); return m > 6 })
		passed := time.Since(began)
		for _, e := range []*Engine{a, b} {
			if d := e.Now().Sub(before) - passed; d.Abs() > passed/5+5*time.Second {
				t.Errorf("step to %v: the clock has moved by %v more than the %v that have passed", step, d, passed)
			}
			if !e.Alive(a.Replica()) || !e.Alive(b.Replica()) {
				t.Errorf("step to %v: a server that lives is not known", step)
			}
		}
		b.Close()
	}
	s.Step(5 * time.Minute)
	a.Close()
	if d := open(t, url).Now().Sub(time.Now().Add(5 * time.Minute)); d.Abs() > time.Second {
		t.Errorf("alone, the clock differs by %v", d)
	}
}

// A server whose computer has stood still, and its monotonic clock with it, has the clock of the others
// at once.
func TestClockThatStoodStillCatchesUp(t *testing.T) {
	t.Parallel()
	url := databases.New(t)
	var servers [2]*Engine
	var told [2]news
	for i := range servers {
		servers[i] = open(t, url)
		told[i].watch(servers[i])
	}
	for i := range servers {
		until(t, "five ticks", func() bool { _, _, n := told[i].get(); return n > 5 })
	}
	still := &servers[0].clock
	still.mu.Lock()
	still.at = still.at.Add(-5 * time.Minute)
	still.mu.Unlock()
	until(t, "the clock of the others", func() bool { return servers[1].Now().Sub(servers[0].Now()) < 5*time.Second })
	if d := time.Since(servers[1].Now()).Abs(); d > 5*time.Second {
		t.Errorf("the other clock has moved by %v", d)
	}
}

// A pooler may stand between in transaction mode; one in statement mode is named.
func TestPoolerInTransactionMode(t *testing.T) {
	u, _ := url.Parse(databases.New(t))
	u.Host = fmt.Sprintf("127.0.0.1:%d", databases.Server().Pooler(t, "transaction"))
	e := open(t, u.String())
	var told news
	told.watch(e)
	var done sync.WaitGroup
	for worker := range 12 {
		done.Go(func() {
			id := fmt.Sprint("m", worker)
			for i := range 20 {
				st := e.Rows(id)
				if _, err := st.Get("audit:1"); err != nil {
					t.Error(err)
				}
				if err := st.Write(put("audit:1", fmt.Sprint(i)), storage.KeepAlarm); err != nil {
					t.Error(err)
				}
				e.Release(id)
			}
		})
	}
	done.Wait()
	until(t, "two ticks", func() bool { _, _, n := told.get(); return n > 1 })
	u.Host = fmt.Sprintf("127.0.0.1:%d", databases.Server().Pooler(t, "statement"))
	if e, err := Open(u.String(), "test", func(_ int, line string) { t.Log(line) }); err == nil {
		e.Close()
		t.Error("statement mode was accepted")
	} else if !strings.Contains(err.Error(), "must be in transaction or session mode") {
		t.Error(err)
	}
}

func TestUnfitDatabaseIsNamed(t *testing.T) {
	refused := func(url, text string) {
		t.Helper()
		e, err := Open(url, "test", func(_ int, line string) { t.Log(line) })
		if err == nil {
			e.Close()
			t.Errorf("%s was opened", Redact(url))
		} else if got := err.Error(); !strings.Contains(got, text) || strings.ContainsAny(got, "\n") || strings.Contains(got, "hidden") {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	url := databases.New(t)
	postgrestest.Exec(t, url, `CREATE TABLE users (id int)`)
	refused(url, "tables of another program, such as users; name an empty database")
	postgrestest.Exec(t, url, `DROP TABLE users`)
	open(t, url).Close()
	open(t, url)
	postgrestest.Exec(t, url, `UPDATE weir_meta SET format = 2`)
	refused(url, "format 2 of a newer weir, and this one knows 1; run the newer version")

	refused(databases.New(t)+"&default_transaction_read_only=on", "read-only")
	refused(databases.New(t)+"&synchronous_commit=off", "acknowledged writes")
	url = databases.New(t)
	postgrestest.Exec(t, url, `CREATE USER guest; REVOKE CREATE ON SCHEMA public FROM public`)
	refused(strings.Replace(url, "weir@", "guest:hidden@", 1), "GRANT this user the rights")
	refused(strings.Replace(url, "/test", "/missing", 1), "does not exist; create it")
	for _, address := range []string{"postgres://weir:hidden@[", "postgres://weir:a@hidden@b:5432/weir", "postgres://weir:hid/hidden@b:5432/weir"} {
		refused(address, "must be like postgres://")
	}
	refused("postgres://weir:hidden@b:5432/c?sslmode=maybe", "sslmode is invalid")
	refused("postgres://weir:hidden@a/b?sslmode=verify-full&sslrootcert=/missing.pem", "open /missing.pem: no such file")
	refused(strings.Replace(databases.New(t), "=disable", "=require", 1), "refused TLS connection; set ssl = on at the server")
	e := open(t, url)
	certificate := e.describe(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}).Error()
	if !strings.Contains(certificate, "signed by unknown authority; name the certificate of its authority as sslrootcert") {
		t.Error(certificate)
	}
}

// A server that was away, or not known, while the tables were upgraded stores nothing any more and
// says why; it does not wait for its next tick. Another one serves on.
func TestServerOfAnEarlierFormatStops(t *testing.T) {
	t.Parallel()
	url := databases.New(t)
	var mu sync.Mutex
	var lines []string
	e, err := Open(url, "test", func(_ int, line string) { mu.Lock(); lines = append(lines, line); mu.Unlock() })
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	write(t, e, "m", put("conn:1", "one"), storage.KeepAlarm)
	postgrestest.Exec(t, url, fmt.Sprintf(`UPDATE weir_meta SET format = %d`, format+1))
	for _, id := range []string{"m", "new"} {
		if err := e.Rows(id).Write(put("conn:1", "late"), storage.KeepAlarm); !errors.Is(err, storage.ErrStorage) {
			t.Errorf("a write to %s: %v", id, err)
		}
		e.Release(id)
	}
	var told news
	told.watch(e)
	until(t, "named", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(lines, "\n"), "of a newer weir, and this one knows") && e.Away() >= time.Hour
	})
	if v, err := e.Rows("m").Get("conn:1"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("a read: %q, %v", v, err)
	}
	e.Release("m")
	postgrestest.Exec(t, url, fmt.Sprintf(`UPDATE weir_meta SET format = %d`, format))
	until(t, "ready again", func() bool { return e.Away() == 0 })
	want(t, e, "m", "conn:1", "one")
	want(t, e, "new", "conn:1", "")
}

// A server that starts without its database serves as soon as there is one.
func TestDatabaseMayComeLater(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	defer s.Stop()
	url := s.Database(t)
	s.Stop()
	e := open(t, url)
	var told news
	told.watch(e)
	if v, err := e.Rows("m").Get("conn:1"); !errors.Is(err, storage.ErrStorage) || e.Away() == 0 {
		t.Errorf("without a database: %q, %v, away: %v", v, err, e.Away())
	}
	e.Release("m")
	for range 2 {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "there", func() bool { return e.Away() == 0 })
		until(t, "served", func() bool {
			defer e.Release("m")
			return e.Rows("m").Write(put("conn:1", "x"), storage.KeepAlarm) == nil
		})
		s.Stop()
		until(t, "away", func() bool { return e.Away() > 0 })
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
}

// The password is changed in PostgreSQL and then at one server after the other (docs/security.md):
// a server with the old one goes on with the connections that it has, and one with the old one
// cannot start.
func TestPasswordIsReplaced(t *testing.T) {
	t.Parallel()
	s := postgrestest.Start(t)
	defer s.Remove()
	url := s.Database(t)
	postgrestest.Exec(t, url, `CREATE USER server PASSWORD 'hidden-1'; ALTER SCHEMA public OWNER TO server`)
	postgrestest.Exec(t, url, `DO $$ BEGIN EXECUTE format('COPY (VALUES (''host all server 127.0.0.1/32 scram-sha-256''),
		(''host all all 127.0.0.1/32 trust'')) TO %L', current_setting('hba_file')); END $$`)
	postgrestest.Exec(t, url, `SELECT pg_reload_conf()`)
	by := func(password string) string { return strings.Replace(url, "weir@", "server:"+password+"@", 1) }
	refused := func(password string) bool {
		e, err := Open(by(password), "test", func(_ int, line string) { t.Log(line) })
		if err == nil {
			e.Close()
			return false
		}
		return strings.Contains(err.Error(), "check the user, the password and sslmode of the URL") && !strings.Contains(err.Error(), "hidden")
	}
	until(t, "passwords count", func() bool { return refused("hidden-0") })
	one, two := open(t, by("hidden-1")), open(t, by("hidden-1"))
	write(t, one, "m", put("conn:1", "before"), storage.KeepAlarm)
	want(t, two, "m", "conn:1", "before")
	postgrestest.Exec(t, url, `ALTER USER server PASSWORD 'hidden-2'`)
	write(t, two, "m", put("conn:1", "between"), storage.KeepAlarm)
	one.Close()
	if !refused("hidden-1") {
		t.Error("the old password is not refused by what to check")
	}
	one = open(t, by("hidden-2"))
	want(t, one, "m", "conn:1", "between")
	write(t, one, "m", put("conn:1", "after"), storage.KeepAlarm)
	want(t, two, "m", "conn:1", "after")
}

// BenchmarkTurn measures turns of one server: one that reads, and one that writes two rows.
func BenchmarkTurn(b *testing.B) {
	e := open(b, databases.New(b))
	value := make([]byte, 600)
	for _, writes := range []bool{false, true} {
		b.Run(fmt.Sprint("writes=", writes), func(b *testing.B) {
			for b.Loop() {
				st := e.Rows("m")
				if _, err := st.Get("meta"); err != nil {
					b.Fatal(err)
				}
				if writes {
					if err := st.Write([]storage.Row{{Key: "meta", Value: value}, {Key: "activity", Value: value}}, storage.KeepAlarm); err != nil {
						b.Fatal(err)
					}
				}
				e.Release("m")
			}
		})
	}
}

// The outcome of a write stays known however often it is asked for, and an unknown one is named.
func TestOutcomeStaysKnown(t *testing.T) {
	e := open(t, databases.New(t))
	write(t, e, "m", put("conn:1", "one"), storage.KeepAlarm)
	for _, written := range []string{"m", "other"} {
		for range 20 {
			if stored, _, err := e.settle(written, 1, 7); stored || err != nil {
				t.Fatal(stored, err)
			}
		}
	}
	if err := e.failed(fmt.Errorf("%w: %w", errUnknown, errTaken)); !errors.Is(err, errUnknown) ||
		strings.Count(err.Error(), errUnknown.Error()) != 1 {
		t.Error(err)
	}
}

// Neither the collation of a database nor its encoding changes the order of rows or their text.
func TestCollationOfTheDatabaseIsNoMatter(t *testing.T) {
	t.Parallel()
	databases.New(t)
	s := databases.Server()
	all := map[string]string{
		"latin1": `ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'`,
		"ascii":  `ENCODING SQL_ASCII LC_COLLATE 'C' LC_CTYPE 'C'`,
	}
	if s.Version() >= 15 {
		all["icu"] = `LOCALE_PROVIDER icu ICU_LOCALE 'de-u-kn-true' ENCODING UTF8`
	}
	for name, options := range all {
		postgrestest.Exec(t, s.URL("postgres"), `CREATE DATABASE `+name+` TEMPLATE template0 `+options)
		e := open(t, s.URL(name))
		keys := []string{"alias:A", "alias:a10", "alias:a9", "alias:B", "alias:ä", "alias:ж", "alias:\xff", "audit:ж", "audit:b", "audit:B"}
		var rows []storage.Row
		for _, key := range keys {
			rows = append(rows, storage.Row{Key: key, Value: []byte("ж\x00")})
		}
		write(t, e, "m", rows, storage.KeepAlarm)
		slices.Sort(keys)
		other := open(t, s.URL(name))
		for _, prefix := range []string{"alias:", "audit:"} {
			var want, got []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			list, err := other.Rows("m").List(prefix, "", 0)
			other.Release("m")
			for _, row := range list {
				got = append(got, row.Key)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v, want %q", name, got, err, want)
			}
		}
	}
}

// refused checks the text of a failed access: one line that begins with the database and says what
// is wrong and what to do.
func refused(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, storage.ErrStorage) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, text := range append(texts, "database 127.0.0.1:") {
		if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want %q in it", what, err, text)
		}
	}
}

// A disk that is full refuses changes and loses nothing; with room again they are stored.
func TestFullDiskRefusesChanges(t *testing.T) {
	t.Parallel()
	s := postgrestest.StartSmall(t, 200, "max_wal_size=48MB", "min_wal_size=32MB")
	t.Cleanup(s.Remove)
	e := open(t, s.Database(t))
	write(t, e, "m", put("conn:1", "one"), storage.KeepAlarm)
	if !s.Fill() {
		t.Skip("only root can have a disk of its own")
	}
	large := make([]byte, 1<<20)
	var err error
	for i := 0; err == nil && i < 200; i++ {
		err = e.Rows("m").Write([]storage.Row{{Key: fmt.Sprint("audit:", i), Value: large}}, storage.KeepAlarm)
		e.Release("m")
	}
	refused(t, "a full disk", err, "No space left on device; the server has no room or no connections left: free some")
	want(t, e, "m", "conn:1", "one")
	if err := s.Free(); err != nil {
		t.Fatal(err)
	}
	until(t, "stored again", func() bool {
		defer e.Release("m")
		return e.Rows("m").Write(put("conn:1", "two"), storage.KeepAlarm) == nil
	})
	want(t, e, "m", "conn:1", "two")
}

// A database that stops answering in the middle of a commit leaves its outcome open for as long as it
// is asked for. The error says so, and what is read afterwards is what is stored.
func TestSilentCommitIsNamed(t *testing.T) {
	t.Parallel()
	direct := databases.New(t)
	u, _ := url.Parse(direct)
	p := postgrestest.NewProxy(t, u.Host)
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.Port())
	e := open(t, u.String())
	write(t, e, "m", put("conn:1", "one"), storage.KeepAlarm)
	st := e.Rows("m")
	st.Get("conn:1")
	p.Lose(postgrestest.Answers)
	err := st.Write(put("conn:1", "two"), storage.KeepAlarm)
	refused(t, "a commit", err, "the outcome of a write is unknown", "read it again before you repeat it")
	e.Release("m")
	p.Lose(0)
	check := open(t, direct)
	v, _ := check.Rows("m").Get("conn:1")
	check.Release("m")
	stored := string(v)
	if stored != "one" && stored != "two" {
		t.Errorf("stored: %q", stored)
	}
	until(t, "read again", func() bool {
		defer e.Release("m")
		v, err := e.Rows("m").Get("conn:1")
		return err == nil && string(v) == stored
	})
}

// TestErrorWithoutCodeIsNotUnfit: the first two characters of a missing code were read, which ended the process.
func TestErrorWithoutCodeIsNotUnfit(t *testing.T) {
	for code, want := range map[string]bool{"": false, "5": false, "57P03": false, "42501": true, "08P01": true} {
		if got := isUnfit(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("code %q: %t, want %t", code, got, want)
		}
	}
}
