package program

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/server/cli"
	"weir/server/store"
)

// newSecret returns a secret as secrets.json has them.
func newSecret() string {
	var b [minSecret]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// token serves weir token rotate: another operator token in the file of secrets, which a server reads
// when it starts.
func (r *run) token(f *flags) error {
	if len(f.args) != 1 {
		return usagef("token: it takes rotate")
	}
	if f.args[0] != "rotate" {
		return cli.Mistyped("token", f.args[0], f.args[0], []string{"rotate"})
	}
	s, err := r.readSettings(f)
	if err != nil {
		return err
	}
	if s.database != "" || s.secretEnvironment.AdminToken != "" {
		return errors.New("ADMIN_TOKEN is in the environment or in the file that ADMIN_TOKEN_FILE names; set another value there (openssl rand -hex 32 prints one), and restart every server")
	}
	path := filepath.Join(s.data, secretsName)
	own, exists, err := r.readSecrets(path)
	if err != nil {
		return err
	}
	if !exists || own.AdminToken == "" {
		return fmt.Errorf("%s: it has no ADMIN_TOKEN; weir serve creates one", path)
	}
	own.AdminToken = newSecret()
	raw, err := json.MarshalIndent(own, "", "  ")
	if err != nil {
		return err
	}
	write := func(f *os.File) error { _, err := f.Write(append(raw, '\n')); return err }
	if err := createFile(path, write, true); err != nil {
		return store.Unusable(s.data, err)
	}
	fmt.Fprintf(r.stderr, "The operator token is replaced in %s. Restart the server: until then it accepts the one before.\n", path)
	fmt.Fprintln(r.stdout, own.AdminToken)
	return nil
}
