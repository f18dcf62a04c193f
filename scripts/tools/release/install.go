package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// validRepository is an address without what a shell would read.
var validRepository = regexp.MustCompile(`^https://[0-9A-Za-z.:-]+(/[0-9A-Za-z._-]+)+$`)

// settings returns the address of the releases and the public key that signs them. Both may
// be "".
func (r *release) settings() (releases, signer string, err error) {
	if r.repository != "" {
		if !validRepository.MatchString(r.repository) {
			return "", "", fmt.Errorf("the repository is %q: it must be an address such as https://github.com/owner/weir", r.repository)
		}
		releases = r.repository + "/releases"
	}
	if r.key != "" {
		public, err := os.ReadFile(r.key + ".pub")
		if err != nil {
			return "", "", err
		}
		fields := strings.Fields(string(public)) // the third is a comment
		if len(fields) < 2 || fields[0] != "ssh-ed25519" {
			return "", "", fmt.Errorf("%s.pub is not an Ed25519 key of ssh-keygen", r.key)
		}
		signer = fields[0] + " " + fields[1]
	}
	return releases, signer, nil
}

// writeInstaller writes install.sh with the address of the releases and the key that
// signs them.
func (r *release) writeInstaller() error {
	script, err := os.ReadFile(filepath.Join(r.root, "deploy/install.sh"))
	if err != nil {
		return err
	}
	set := func(name, value string) error {
		empty := []byte("\n" + name + "='' ")
		if bytes.Count(script, empty) != 1 {
			return fmt.Errorf("deploy/install.sh does not have one line %s=''", name)
		}
		script = bytes.Replace(script, empty, []byte("\n"+name+"='"+value+"' "), 1)
		return nil
	}
	releases, signer, err := r.settings()
	if err != nil {
		return err
	}
	if releases != "" {
		if err := set("releases", releases); err != nil {
			return err
		}
	}
	if signer != "" {
		if err := set("signer", signer); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.out, "install.sh"), script, 0o755)
}

// sign writes SHA256SUMS.sig, if there is a key.
func (r *release) sign() error {
	if r.key == "" {
		return nil
	}
	cmd := exec.Command("ssh-keygen", "-Y", "sign", "-f", r.key, "-n", "weir-release", filepath.Join(r.out, "SHA256SUMS"))
	cmd.Stdin = nil // no passphrase is asked for
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sign SHA256SUMS: %w\n%s", err, out)
	}
	return nil
}
