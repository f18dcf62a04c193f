package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"weir/server/cli"
	"weir/server/upgrade"
)

// releases returns where newer releases are, from an address of the files of one if it is set.
func (r *run) releases(from string) upgrade.Source {
	return upgrade.Source{Releases: r.Releases, From: from, Signer: r.Signer, System: runtime.GOOS + "-" + runtime.GOARCH,
		Client: upgrade.NewClient()}
}

// programPath returns the file of this program.
func programPath() (string, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return path, nil
}

// upgrade serves weir upgrade.
func (r *run) upgrade(f *flags) error {
	own, ctx := r.version(), context.Background()
	path, err := programPath()
	if err != nil {
		return err
	}
	manager, command := upgrade.Manager(path)
	if manager != "" && !f.check {
		return fmt.Errorf("%s was installed by a package manager (%s); upgrade it by that: %s", path, manager, command)
	}
	release, err := r.releases(f.from).Find(ctx, f.version)
	if err != nil {
		return err
	}
	if manager == "" {
		command = "weir upgrade"
		if f.from != "" {
			command += " --from " + cli.ShellWord(f.from)
		}
	}
	comparable := f.version == "" && upgrade.IsRelease(own) && upgrade.IsRelease(release.Version)
	switch {
	case comparable && upgrade.Newer(own, release.Version):
		fmt.Fprintf(r.stdout, "weir %s is newer than the latest release, %s; nothing was changed.\n", own, release.Version)
		if manager == "" {
			fmt.Fprintf(r.stdout, "To install the older one: %s --version %s\n", command, release.Version)
		}
		return nil
	case f.version == "" && release.Version == own, comparable && !upgrade.Newer(release.Version, own):
		fmt.Fprintf(r.stdout, "weir %s is the latest release.\n", own)
		return nil
	}
	if f.check {
		if manager == "" && f.version != "" {
			command += " --version " + f.version
		}
		fmt.Fprintf(r.stdout, "weir %s is available; this is %s. To install it: %s\n", release.Version, own, command)
		return nil
	}
	fmt.Fprintf(r.stdout, "Downloading weir %s\n", release.Version)
	program, err := release.Program(ctx)
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	old, err := upgrade.Replace(path, program)
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	fmt.Fprintf(r.stdout, "Replaced %s by weir %s; %s is the one before.\nA server that runs uses it after a restart.\n", path, release.Version, old)
	return nil
}
