//go:build unix

package cluster

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/server/postgres/postgrestest"
)

// Three servers of 10,000 machines without calls send the database fewer than 400 statements a
// minute each.
func TestQuietMachinesCostFewStatements(t *testing.T) {
	t.Parallel()
	const servers, machines, most = 3, 10_000, 400
	length := 20 * time.Second
	if os.Getenv("SOAK") == "1" {
		length = time.Minute
	}
	database := postgrestest.Start(t, "fsync=off", "shared_preload_libraries=pg_stat_statements")
	t.Cleanup(database.Remove)
	w := newWorldOn(t, database.Database(t), servers, "")
	id, key := w.servers[0].machine()
	if res := w.servers[0].chat(key, "up/m"); res.status != 200 {
		t.Fatalf("%d %s", res.status, res.body)
	}
	w.until(90*time.Second, "the work after a call", func() bool {
		time.Sleep(time.Second)
		return w.count(`SELECT count(*) FROM weir_machines WHERE alarm < extract(epoch FROM now() + interval '5 minutes') * 1000`) == 0
	})
	ctx := context.Background()
	c, err := pgx.Connect(ctx, w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for _, sql := range []string{
		`INSERT INTO weir_machines (id, version, alarm, changed) SELECT 'quiet' || lpad(n::text, 11, '0'), version, alarm, '0'
			FROM weir_machines, generate_series(2, $2::int) n WHERE id = $1`,
		`INSERT INTO weir_rows (machine, key, value, cold, version) SELECT 'quiet' || lpad(n::text, 11, '0'), key, value, cold, version
			FROM weir_rows, generate_series(2, $2::int) n WHERE machine = $1`,
	} {
		if _, err := c.Exec(ctx, sql, id, machines); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Exec(ctx, `CREATE EXTENSION pg_stat_statements`); err != nil {
		t.Fatal(err)
	}
	const sum = `SELECT sum(calls)::bigint FROM pg_stat_statements`
	before := w.count(sum)
	time.Sleep(length)
	n := (w.count(sum) - before) * int(time.Minute/length) / servers
	t.Logf("%d statements a minute of each server, %d machines", n, w.count(`SELECT count(*) FROM weir_machines`))
	if n >= most || n == 0 {
		t.Errorf("%d statements a minute of each server, at most %d are wanted", n, most)
	}
}
