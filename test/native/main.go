// The native server with what the end-to-end tests need: see test/e2e/hosts/native.mjs.
//
//	weir-test rows DIR           prints the stored rows as JSON
//	weir-test put DIR            stores the rows that standard input has
//	weir-test forget-alarms DIR  removes all alarms
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
	"os"

	"weir/pkg/machine/storage"
	"weir/server/objects"
	"weir/server/program"
	"weir/server/store"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 2 && args[0] == "rows":
		err = withStore(args[1], func(s *store.Store) error { return writeRows(os.Stdout, s) })
	case len(args) == 2 && args[0] == "put":
		err = withStore(args[1], func(s *store.Store) error { return putRows(s, os.Stdin) })
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

func withStore(dir string, use func(*store.Store) error) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	if err := use(s); err != nil {
		return err
	}
	return s.Close()
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

func writeRows(w io.Writer, s *store.Store) error {
	rows, err := rowsOf(s)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(rows)
}

func putRows(s *store.Store, r io.Reader) error {
	var rows []row
	if err := json.NewDecoder(r).Decode(&rows); err != nil {
		return err
	}
	for _, row := range rows {
		err := s.Rows(row.Machine).Write([]storage.Row{{Key: row.Key, Value: row.Value}}, storage.KeepAlarm)
		if err != nil {
			return err
		}
	}
	return nil
}

func forgetAlarms(s *store.Store) error {
	alarms, err := s.Alarms()
	for id := range alarms {
		err = errors.Join(err, s.Rows(id).Write(nil, 0))
	}
	return err
}
