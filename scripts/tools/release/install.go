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
	file := r.public
	if r.key != "" {
		file = r.key + ".pub"
	}
	if file != "" {
		public, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		fields := strings.Fields(string(public)) // the third is a comment
		if len(fields) < 2 || fields[0] != "ssh-ed25519" {
			return "", "", fmt.Errorf("%s is not an Ed25519 key of ssh-keygen", file)
		}
		signer = fields[0] + " " + fields[1]
	}
	return releases, signer, nil
}

// writeInstallers writes install.sh and install.ps1 with the address of the releases and the key
// that signs them.
func (r *release) writeInstallers() error {
	releases, signer, err := r.settings()
	if err != nil {
		return err
	}
	for _, one := range []struct{ name, form string }{{"install.sh", "\n%s='%s' "}, {"install.ps1", "\n$%s = '%s' "}} {
		script, err := os.ReadFile(filepath.Join(r.root, "deploy", one.name))
		if err != nil {
			return err
		}
		for _, setting := range [][2]string{{"releases", releases}, {"signer", signer}} {
			empty := fmt.Appendf(nil, one.form, setting[0], "")
			if bytes.Count(script, empty) != 1 {
				return fmt.Errorf("deploy/%s does not have one line %s", one.name, bytes.TrimSpace(empty))
			}
			script = bytes.Replace(script, empty, fmt.Appendf(nil, one.form, setting[0], setting[1]), 1)
		}
		if err := os.WriteFile(filepath.Join(r.out, one.name), script, 0o755); err != nil {
			return err
		}
	}
	return nil
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
