package program

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"weir/pkg/machine/storage"
	keyring "weir/pkg/store"
	"weir/server/store"
)

const (
	secretsName = "secrets.json"  // in the data directory
	checkName   = "secrets.check" // digests of the environment's, where that file does not exist
	minSecret   = 32              // bytes
)

// secrets are the three secrets of the program.
type secrets struct {
	AdminToken     string `json:"ADMIN_TOKEN,omitempty"`
	KeySecret      string `json:"API_KEY_SECRET,omitempty"`
	CredentialsKey string `json:"CREDENTIALS_KEY,omitempty"`
}

// field is one secret by its name.
type field struct {
	name  string
	value *string
}

func (s *secrets) fields() []field {
	return []field{{"ADMIN_TOKEN", &s.AdminToken}, {"API_KEY_SECRET", &s.KeySecret},
		{"CREDENTIALS_KEY", &s.CredentialsKey}}
}

// over returns the secrets with those of weaker in place of missing ones, and the
// names of those that both lack.
func (s secrets) over(weaker secrets) (out secrets, missing []string) {
	mine, others := s.fields(), weaker.fields()
	for i, f := range out.fields() {
		*f.value = cmp.Or(*mine[i].value, *others[i].value)
		if *f.value == "" {
			missing = append(missing, f.name)
		}
	}
	return out, missing
}

// checkDataDir creates the data directory, or returns an error if it cannot be used
// or has files of others in it. socket is the name of the server's own, if it is there.
func checkDataDir(dir, socket string) error {
	if err := store.MakeDir(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return store.Unusable(dir, err)
	}
	var foreign []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == store.FileName, name == secretsName, name == checkName, name == store.LockName:
			return nil
		case strings.HasPrefix(name, "."), name == "lost+found", name == socket:
		default:
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("data directory %s: it has files that are not weir's, such as %s; choose an empty one with --data",
			dir, foreign[0])
	}
	return nil
}

// loadSecrets returns the secrets: those of the environment, else those of the data
// directory. A directory without a database gets the missing ones; one with a
// database must have them, since new ones would not open what is stored.
func (r *run) loadSecrets(s *settings) (own secrets, created bool, err error) {
	if s.database != "" {
		own, missing := s.secretEnvironment.over(secrets{})
		if len(missing) > 0 {
			return own, false, usagef("%s: not set; servers that share a database need the same values of all three, as openssl rand -hex 32 prints them",
				strings.Join(missing, ", "))
		}
		return own, false, nil
	}
	path := filepath.Join(s.data, secretsName)
	_, err = os.Stat(filepath.Join(s.data, store.FileName))
	database := !errors.Is(err, fs.ErrNotExist)
	file, exists, err := r.readSecrets(path)
	if err != nil {
		return own, false, err
	}
	own, missing := s.secretEnvironment.over(file)
	if database {
		r.warnOfOtherSecrets(s.secretEnvironment, file, path)
	}
	switch {
	case len(missing) == 0 && !exists:
		return own, false, r.checkSecrets(s.data, own, database)
	case len(missing) == 0:
		return own, false, nil
	case database:
		return own, false, fmt.Errorf("%s: %s missing, but %s holds what they protect; copy the file from a backup of the data directory, or set the variables", path, strings.Join(missing, ", "), store.FileName)
	case exists:
		return own, false, fmt.Errorf("%s: %s missing; set the variables, or delete the file to create all of them", path,
			strings.Join(missing, ", "))
	}
	var fresh secrets
	for _, f := range fresh.fields() {
		if slices.Contains(missing, f.name) {
			*f.value = newSecret()
		}
	}
	if err := writeSecrets(s.data, fresh); errors.Is(err, fs.ErrExist) { // another process was first
		return r.loadSecrets(s)
	} else if err != nil {
		return own, false, store.Unusable(s.data, err)
	}
	own, _ = own.over(fresh)
	return own, true, nil
}

// readSecrets reads the file of secrets, if it exists.
func (r *run) readSecrets(path string) (s secrets, exists bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, true, fmt.Errorf("%s: %w; make it readable for the user that runs weir", path, store.Cause(err))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || d.More() {
		return s, true, fmt.Errorf("%s: the file is damaged; restore it from a backup of the data directory", path)
	}
	for _, f := range s.fields() {
		if *f.value != "" && len(*f.value) < minSecret {
			return s, true, fmt.Errorf("%s: %s has fewer than %d bytes; restore the file from a backup of the data directory",
				path, f.name, minSecret)
		}
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		r.warn("%s: other users can read it; run chmod 600 %s", path, path)
	}
	return s, true, nil
}

// warnOfOtherSecrets names the secrets of the environment that differ from those
// with which the database was created.
func (r *run) warnOfOtherSecrets(environment, file secrets, path string) {
	var names []string
	mine, others := environment.fields(), file.fields()
	for i := range mine {
		a, b := *mine[i].value, *others[i].value
		if a == "" || b == "" || a == b || slices.Contains(strings.Split(a, ","), b) { // a new key before the old one
			continue
		}
		names = append(names, mine[i].name)
	}
	if len(names) > 0 {
		r.warn("secrets of the environment differ from those in %s, with which the database was created: %s", path,
			strings.Join(names, ", "))
	}
}

// checkSecrets warns if secrets of the environment are not those of the last start:
// other ones open no stored credential, and refuse every key. A secret is recognized by
// a digest in the data directory. CREDENTIALS_KEY may have a new key before the old one.
func (r *run) checkSecrets(dir string, own secrets, database bool) error {
	path, raw := filepath.Join(dir, checkName), []byte(nil)
	if database {
		raw, _ = os.ReadFile(path) // one that is missing or damaged is written again
	}
	text := r.compareSecrets(raw, own, store.FileName, "delete "+path)
	if text == nil {
		return nil
	}
	err := createFile(path, func(f *os.File) error { _, err := f.Write(append(text, '\n')); return err }, true)
	if err != nil {
		return store.Unusable(dir, err)
	}
	return nil
}

// checkSharedSecrets is checkSecrets for a database, where the digests are a row. One that does
// not answer is not asked again.
func (r *run) checkSharedSecrets(k *stack) error {
	raw, err := k.database.Digests()
	if err != nil {
		return nil
	}
	text := r.compareSecrets([]byte(raw), k.secrets, k.database.Name(), "run UPDATE weir_meta SET secrets = ''")
	if text == nil || k.database.SetDigests(string(text)) == nil {
		return nil
	}
	return fmt.Errorf("database %s: it cannot be written", k.database.Name())
}

// compareSecrets warns of secrets that are not those whose digests are stored, and returns the
// digests to store, nil to leave them.
func (r *run) compareSecrets(raw []byte, own secrets, database, forget string) []byte {
	digest := func(name, value string) string {
		sum := sha256.Sum256([]byte("weir secrets.check " + name + "\n" + value))
		return hex.EncodeToString(sum[:8])
	}
	known := map[string]string{}
	_ = json.Unmarshal(raw, &known)
	var wrong []string
	now := map[string]string{}
	for _, f := range own.fields()[1:] { // another ADMIN_TOKEN harms nothing
		values := strings.Split(*f.value, ",")
		now[f.name] = digest(f.name, values[0])
		if was := known[f.name]; was != "" && !slices.ContainsFunc(values,
			func(v string) bool { return digest(f.name, v) == was }) {
			wrong = append(wrong, f.name)
		}
	}
	if len(wrong) > 0 {
		r.warn("%s: not the value of earlier starts, so what it protects in %s cannot be used; set the earlier value, or %s to keep this one",
			strings.Join(wrong, ", "), database, forget)
		return nil
	}
	if maps.Equal(known, now) {
		return nil
	}
	text, _ := json.Marshal(now)
	return text
}

// warnOfSealed says how many accounts have credentials that CREDENTIALS_KEY does not open: it is the key of
// other data, or a rotation has ended too early. Each machine has an alarm.
func (v *server) warnOfSealed() error {
	alarms, err := v.engine.Alarms()
	if err != nil {
		return err
	}
	keys, err := keyring.NewKeyring(v.secrets.CredentialsKey)
	if err != nil {
		return err
	}
	accounts, machines := 0, 0
	for id := range alarms {
		t, before := storage.Open(v.engine.Rows(id), id, v.began, nil), accounts
		for _, c := range t.Connections() {
			if t.Exists() && !keys.Has(c.Secrets) {
				accounts++
			}
		}
		if accounts > before {
			machines++
		}
	}
	if accounts > 0 {
		v.warn("accounts whose credentials CREDENTIALS_KEY does not open, so that their calls fail: %d, on machines: %d. Set the key that sealed them, alone or as new,old, and restart; or store new credentials: weir accounts rotate NAME",
			accounts, machines)
	}
	return nil
}

// warnOfWritable names a data directory in which every user can replace files.
func (r *run) warnOfWritable(dir string) {
	if info, err := os.Stat(dir); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		r.warn("data directory %s: all users can change its files; run chmod 700 %s", dir, dir)
	}
}

// writeSecrets creates the file of secrets, whole or not at all. The error is
// fs.ErrExist if there is one.
func writeSecrets(dir string, s secrets) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return createFile(filepath.Join(dir, secretsName), func(f *os.File) error {
		_, err := f.Write(append(raw, '\n'))
		return err
	}, false)
}

// createFile writes a file of mode 600 under a temporary name, syncs it, and moves
// it to path. An existing file is replaced only on request; else the error is
// fs.ErrExist.
func createFile(path string, write func(*os.File) error, replace bool) (err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of no effect once it is renamed
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if replace {
		err = os.Rename(f.Name(), path)
	} else if err = os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without links: between this check and the rename another
		// process may be first, which links exclude.
		if _, there := os.Lstat(path); there == nil {
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable, where the system can.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
