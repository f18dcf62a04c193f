package program

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/server/objects"
	"weir/server/postgres"
	"weir/server/store"
)

// migrate copies all machines from one place to another, of which no server may be running. A
// machine is copied as a whole and read again. One that is there already is left if it is the same.
func (r *run) migrate(f *flags) error {
	if f.from == "" || f.to == "" {
		return usagef("migrate: name both places, as in weir migrate --from /var/lib/weir --to postgres://weir@db/weir")
	}
	ctx, release := signal.NotifyContext(context.Background(), stopSignals[:]...)
	defer release()
	source, err := r.openPlace(ctx, f.from, true)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := r.openPlace(ctx, f.to, false)
	if err != nil {
		return err
	}
	defer target.Close()
	var copied, same, all int
	err = source.Each(ctx, func(id string, rows []storage.Row, alarm int64) error {
		if id == codeID {
			return nil
		}
		done, err := copyMachine(target, id, rows, alarm)
		if err != nil {
			return err
		}
		switch all += len(rows); {
		case id == rpc.RegistryID: // the list of machines
		case done:
			copied++
		default:
			same++
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return errors.New("migrate: interrupted; the same command goes on")
	case err != nil:
		return err
	}
	fmt.Fprintf(r.stdout, "Machines copied and compared: %d, there already: %d; %d rows in all.\nThe secrets are not copied: the servers need the same ADMIN_TOKEN, API_KEY_SECRET and CREDENTIALS_KEY, from %s or the environment.\n",
		copied, same, all, secretsName)
	return nil
}

// openPlace opens a data directory or a database that no server uses.
func (r *run) openPlace(ctx context.Context, place string, exists bool) (objects.Engine, error) {
	if postgres.IsAddress(place) {
		e, err := r.openDatabase(ctx, place)
		if err != nil {
			return nil, err
		}
		if err := e.Others(ctx); err != nil {
			e.Close()
			return nil, err
		}
		return e, nil
	}
	dir, err := filepath.Abs(place)
	if err != nil {
		return nil, usagef("migrate: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, store.FileName)); exists && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no database in %s: name the server's data directory with --from", dir)
	}
	if err := checkDataDir(dir, ""); err != nil {
		return nil, err
	}
	return store.Open(dir)
}

// copyMachine copies a machine and compares it. It reports false if the machine is there already.
func copyMachine(target objects.Engine, id string, rows []storage.Row, alarm int64) (copied bool, err error) {
	defer target.Release(id)
	st := target.Rows(id)
	there, err := st.List("", "", 0)
	switch want := digestOf(rows); {
	case err != nil:
		return false, err
	case len(there) > 0 && digestOf(there) == want:
		return false, nil
	case len(there) > 0:
		return false, fmt.Errorf("machine %s: the target has it already, with other rows; name an empty target", id)
	default:
		if err := st.Write(rows, alarm); err != nil {
			return false, err
		}
		target.Release(id)
		if there, err = st.List("", "", 0); err == nil && digestOf(there) != want {
			err = fmt.Errorf("machine %s: the target has other rows than were copied", id)
		}
		return true, err
	}
}

// digestOf returns a digest of rows in their order.
func digestOf(rows []storage.Row) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, row := range rows {
		for _, part := range []string{row.Key, string(row.Value)} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			h.Write([]byte(part))
		}
	}
	h.Sum(sum[:0])
	return sum
}
