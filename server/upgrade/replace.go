package upgrade

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// managers are package managers, by a part of the path of a program that they have installed.
var managers = []struct{ name, part, command string }{
	{"Homebrew", "/Cellar/", "brew upgrade weir"},
	{"npm", "/node_modules/", "npm update"},
	{"Nix", "/nix/store/", "nix profile upgrade weir"},
	{"Scoop", "/scoop/apps/", "scoop update weir"},
	// By the Filesystem Hierarchy Standard, what has no manager is in /usr/local.
	{"the system", "/usr/bin/", "apt-get or dnf with the package of the new version"},
}

// Manager returns the package manager that has installed the program of a path, and the command
// that upgrades it. Both are "" if none has.
func Manager(path string) (name, command string) {
	path = filepath.ToSlash(path)
	for _, m := range managers {
		if strings.Contains(path, m.part) && (m.part != "/usr/bin/" || strings.HasPrefix(path, m.part)) {
			return m.name, m.command
		}
	}
	return "", ""
}

// Replace puts another program in the place of the one at a path, which may run, and keeps that
// as path.old. The new one must run on this computer.
func Replace(path string, program []byte) (old string, err error) {
	fresh, old := path+".new", path+".old"
	if runtime.GOOS == "windows" { // which runs files by their ending
		name := strings.TrimSuffix(path, ".exe")
		fresh, old = name+".new.exe", name+".old.exe"
	}
	cannot := func(err error) (string, error) {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			err = cause
		}
		return "", fmt.Errorf("%s cannot be written: %w; run the command as a user who may, or install elsewhere", filepath.Dir(path), err)
	}
	if err := writeNew(fresh, program); err != nil {
		return cannot(err)
	}
	defer os.Remove(fresh) // of no effect once it is renamed
	if out, err := exec.Command(fresh, "version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("the new program does not run on this computer: %w %s", err, out)
	}
	if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return cannot(err)
	}
	// With a link there is a program at every moment. Windows replaces no program that runs, but
	// renames it; some file systems have no links.
	linked := runtime.GOOS != "windows" && os.Link(path, old) == nil
	if !linked {
		if err := os.Rename(path, old); err != nil {
			return cannot(err)
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		if !linked {
			err = errors.Join(err, os.Rename(old, path))
		}
		return cannot(err)
	}
	return old, nil
}

// writeNew writes a program to a new file, durably.
func writeNew(path string, program []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = f.Write(program)
	return errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close())
}
