package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"

	"weir/server/postgres"
	"weir/server/store"
)

func (r *run) backup(f *flags) error {
	if len(f.args) != 1 {
		return usagef("backup: name one file, as in weir backup weir-2026-11-22.db, or - for the standard output")
	}
	s, err := r.readSettings(f)
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.data); err != nil && s.database == "" {
		return store.Unusable(s.data, err)
	}
	path := f.args[0]
	if path == "-" {
		return r.writeBackup(context.Background(), s, r.stdout)
	}
	// An interrupted backup removes its temporary file.
	ctx, release := signal.NotifyContext(context.Background(), stopSignals[:]...)
	defer release()
	var size int64
	err = createFile(path, func(file *os.File) error {
		if err := r.writeBackup(ctx, s, file); err != nil {
			return err
		}
		info, err := file.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	}, f.force)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists; choose another name, or replace it with --force", path)
	case ctx.Err() != nil:
		return errors.New("backup: interrupted")
	case isFileError(err):
		return fmt.Errorf("%s: %w; choose another place for the backup", path, store.Cause(err))
	case err != nil:
		return err
	}
	secrets := filepath.Join(s.data, secretsName)
	if _, err := os.Stat(secrets); s.database != "" || errors.Is(err, fs.ErrNotExist) {
		secrets = "API_KEY_SECRET and CREDENTIALS_KEY"
	}
	fmt.Fprintf(r.stdout, "%s has the database, %d bytes. The secrets are not in it: keep a copy of %s elsewhere.\n", path,
		size, secrets)
	return nil
}

// isFileError reports whether an error is of a file operation itself.
func isFileError(err error) bool {
	switch err.(type) {
	case *fs.PathError, *os.LinkError:
		return true
	}
	return false
}

// writeBackup writes the database of a data directory: through the server that
// runs on it, else from the file. A shared database is read as it is at one moment.
func (r *run) writeBackup(ctx context.Context, s *settings, w io.Writer) error {
	if s.database != "" {
		e, err := r.openDatabase(ctx, s.database)
		if err != nil {
			return err
		}
		defer e.Close()
		return e.Backup(untilDone{ctx, w})
	}
	dir := s.data
	res, err := control(ctx, dir, "GET", "/backup", nil)
	if err == nil {
		defer res.Body.Close()
		if _, err := io.Copy(w, res.Body); err != nil {
			return backupError(err)
		}
		return nil
	}
	if !errors.Is(err, errNotRunning) {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, store.FileName)); err != nil {
		return fmt.Errorf("no database in %s: name the server's data directory with --data", dir)
	}
	st, err := store.Open(dir)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Backup(untilDone{ctx, w}); err != nil {
		return backupError(err)
	}
	return nil
}

// openDatabase opens a database that must answer.
func (r *run) openDatabase(ctx context.Context, url string) (*postgres.Engine, error) {
	var last string
	e, err := postgres.Open(url, r.version(), func(_ int, line string) { last = line })
	if err == nil && !e.Ready() {
		e.Close()
		err = errors.New(last)
	}
	return e, err
}

// untilDone is a writer that fails once its context is done.
type untilDone struct {
	context.Context
	w io.Writer
}

func (u untilDone) Write(p []byte) (int, error) {
	if err := u.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// backupError keeps the errors of the written file as they are.
func backupError(err error) error {
	if isFileError(err) {
		return err
	}
	return fmt.Errorf("backup: %w", err)
}
