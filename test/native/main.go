// The native server with what the end-to-end tests need: see test/e2e/hosts/native.mjs.
//
//	weir-test rows PLACE           prints the stored rows as JSON, of a directory or a database
//	weir-test put PLACE            stores the rows that standard input has
//	weir-test forget-alarms PLACE  removes all alarms
//	weir-test postgres [SETTING…]  runs a PostgreSQL server until standard input ends, and prints its URL
//	weir-test database URL NAME    creates a database there, if it is missing, and prints its URL
//	weir-test COMMAND …          is weir COMMAND …
//
// VENDORS_URL is a test upstream that answers for every host that is not loopback.
// On file descriptor 3 it takes commands in lines of JSON: see control.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/pkg/machine/storage"
	"weir/server/objects"
	"weir/server/postgres"
	"weir/server/postgres/postgrestest"
	"weir/server/program"
	"weir/server/store"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 2 && args[0] == "rows":
		err = withStore(args[1], func(e objects.Engine) error { return writeRows(os.Stdout, e) })
	case len(args) > 0 && args[0] == "postgres":
		err = runPostgres(args[1:])
	case len(args) == 3 && args[0] == "database":
		err = createDatabase(args[1], args[2])
	case len(args) == 2 && args[0] == "put":
		err = withStore(args[1], func(e objects.Engine) error { return putRows(e, os.Stdin) })
	case len(args) == 2 && args[0] == "forget-alarms":
		err = withStore(args[1], forgetAlarms)
	default:
		t := newTester(os.Getenv("VENDORS_URL"))
		os.Exit(program.Options{Transport: t.transport, Engine: t.engine, Started: t.started}.
			Main(args, os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weir-test:", err)
		os.Exit(1)
	}
}

// row is a stored row. JSON has its value in base64.
type row struct {
	Machine string `json:"machine"`
	Key     string `json:"key"`
	Value   []byte `json:"value"`
}

func withStore(place string, use func(objects.Engine) error) error {
	e, err := open(place)
	if err != nil {
		return err
	}
	if err := use(e); err != nil {
		return err
	}
	return e.Close()
}

func open(place string) (objects.Engine, error) {
	if postgres.IsAddress(place) {
		return postgres.Open(place, "test", func(_ int, line string) { fmt.Fprintln(os.Stderr, line) })
	}
	return store.Open(place)
}

// rowsOf returns the rows of all machines.
func rowsOf(e objects.Engine) (rows []row, err error) {
	rows = []row{}
	err = e.Each(context.Background(), func(id string, list []storage.Row, _ int64) error {
		for _, r := range list {
			rows = append(rows, row{id, r.Key, r.Value})
		}
		return nil
	})
	return rows, err
}

func writeRows(w io.Writer, e objects.Engine) error {
	rows, err := rowsOf(e)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(rows)
}

func putRows(e objects.Engine, r io.Reader) error {
	var rows []row
	if err := json.NewDecoder(r).Decode(&rows); err != nil {
		return err
	}
	for _, row := range rows {
		err := e.Rows(row.Machine).Write([]storage.Row{{Key: row.Key, Value: row.Value}}, storage.KeepAlarm)
		e.Release(row.Machine)
		if err != nil {
			return err
		}
	}
	return nil
}

func forgetAlarms(e objects.Engine) error {
	return e.Each(context.Background(), func(id string, _ []storage.Row, alarm int64) error {
		defer e.Release(id)
		if alarm == 0 {
			return nil
		}
		return e.Rows(id).Write(nil, 0)
	})
}

// runPostgres runs a PostgreSQL server until standard input ends.
func runPostgres(settings []string) error {
	s, err := postgrestest.New(append([]string{"fsync=off", "max_connections=400"}, settings...)...)
	if err != nil {
		return err
	}
	defer s.Remove()
	fmt.Println(s.URL("postgres"))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// createDatabase creates a database, unless there is one of the name.
func createDatabase(address, name string) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var refused *pgconn.PgError
	if _, err := c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); errors.As(err, &refused) {
		if refused.Code != "42P04" { // there is one
			return err
		}
	} else if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	u.Path = "/" + name
	fmt.Println(u)
	return nil
}
