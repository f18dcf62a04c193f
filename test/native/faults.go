package main

import (
	"fmt"

	"weir/pkg/machine/storage"
	"weir/server/objects"
)

// engine returns an engine of which some accesses fail.
func (t *tester) engine(e objects.Engine) objects.Engine { return faultyEngine{e, t} }

// faultyEngine is an engine whose storages fail.
type faultyEngine struct {
	objects.Engine
	t *tester
}

func (e faultyEngine) Rows(machineID string) storage.Storage {
	return faulty{e.t, e.Engine.Rows(machineID)}
}

type faulty struct {
	*tester
	next storage.Storage
}

// access fails if it is its turn.
func (f faulty) access() error {
	every := uint64(f.every.Load())
	n := f.tester.access.Add(1)
	if every > 0 && (n*2654435761>>8)%every == 0 {
		f.thrown.Add(1)
		return fmt.Errorf("%w: an injected fault", storage.ErrStorage)
	}
	return nil
}

func (f faulty) Get(key string) ([]byte, error) {
	if err := f.access(); err != nil {
		return nil, err
	}
	return f.next.Get(key)
}

func (f faulty) Write(rows []storage.Row, alarm int64) error {
	if err := f.access(); err != nil {
		return err
	}
	return f.next.Write(rows, alarm)
}

func (f faulty) List(prefix, start string, limit int) ([]storage.Row, error) {
	if err := f.access(); err != nil {
		return nil, err
	}
	return f.next.List(prefix, start, limit)
}
