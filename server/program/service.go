package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"weir/server/cli"
	"weir/server/service"
	"weir/server/store"
)

// service serves weir service.
func (r *run) service(f *flags) error {
	if len(f.args) != 1 {
		return usagef("service: it takes install, uninstall or status")
	}
	plan, err := r.servicePlan(f)
	if err != nil {
		return err
	}
	switch f.args[0] {
	case "install":
		return r.installService(plan)
	case "uninstall":
		return r.uninstallService(plan)
	case "status":
		return r.execute(plan.Status)
	}
	return cli.Mistyped("service", f.args[0], f.args[0], []string{"install", "uninstall", "status"})
}

// servicePlan returns how the service of this user is installed, with these flags.
func (r *run) servicePlan(f *flags) (*service.Plan, error) {
	program, err := programPath()
	if err != nil {
		return nil, err
	}
	home, _ := r.env("HOME")
	config, _ := r.env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(home, ".config")
	}
	req := service.Request{System: runtime.GOOS, Program: program, Home: home, Config: config, UID: os.Getuid()}
	s, err := r.readSettings(f)
	if err != nil {
		return nil, err
	}
	c, _ := find("service")
	for _, name := range c.settings {
		v, ok := f.set(name)
		if !ok {
			continue
		}
		switch { // the service has another working folder
		case name == "data" && s.database == "", name == "config", name == "tls-cert", name == "tls-key":
			if v, err = filepath.Abs(v); err != nil {
				return nil, err
			}
		}
		req.Args = append(req.Args, "--"+name+"="+v)
	}
	if _, err := os.Stat("/usr/lib/systemd/system/weir.service"); err == nil && program == "/usr/bin/weir" {
		req.Package = true
	}
	return req.Plan()
}

// installService writes the files of a service and has the system start it. A service that is there
// is replaced.
func (r *run) installService(p *service.Plan) error {
	for _, f := range p.Files {
		if _, err := os.Stat(f.Path); err == nil && runtime.GOOS == "darwin" {
			_ = r.execute(p.Uninstall) // fails if the agent is not loaded
		}
		err := os.MkdirAll(filepath.Dir(f.Path), 0o755)
		if err == nil {
			err = os.WriteFile(f.Path, []byte(f.Content), 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, store.Cause(err))
		}
		fmt.Fprintf(r.stdout, "Wrote %s\n", f.Path)
	}
	if err := r.execute(p.Install); err != nil {
		if exit := (*exitError)(nil); !errors.As(err, &exit) { // the system has no services
			err = errors.Join(err, removeFiles(p))
		}
		return err
	}
	fmt.Fprintf(r.stdout, "The service weir is installed and runs.\n%s\n", p.Next)
	return nil
}

// uninstallService stops a service and removes its files. Its data stays.
func (r *run) uninstallService(p *service.Plan) error {
	failed := r.execute(p.Uninstall[:1])
	if err := removeFiles(p); err != nil {
		return err
	}
	if err := errors.Join(failed, r.execute(p.Uninstall[1:])); err != nil {
		return err
	}
	fmt.Fprintln(r.stdout, "The service weir is removed. "+p.Stays)
	return nil
}

// removeFiles removes the files of a service, links to them, and folders that are empty then.
func removeFiles(p *service.Plan) error {
	paths := slices.Clone(p.Links)
	for _, f := range p.Files {
		paths = append(paths, f.Path)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, store.Cause(err))
		}
	}
	for _, folder := range p.Folders {
		_ = os.Remove(folder) // fails if something is in it
	}
	return nil
}

// execute runs commands of the system until one fails, whose exit code it returns.
func (r *run) execute(commands [][]string) error {
	for _, words := range commands {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return &exitError{Code: exit.ExitCode()}
		}
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%s is not installed; have the system start weir serve by its own means", words[0])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
	}
	return nil
}
