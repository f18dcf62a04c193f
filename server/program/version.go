package program

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

func (r *run) printVersion(*flags) error {
	fmt.Fprintf(r.stdout, "weir %s %s/%s %s\n", r.version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return nil
}

// version returns the version of the release, else what the Go command recorded of
// the build.
func (r *run) version() string {
	if r.Version != "" {
		return r.Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	version := cmp.Or(info.Main.Version, "(devel)")
	if revision != "" && (modified != "" || !strings.Contains(version, revision)) {
		version += " (" + revision + modified + ")"
	}
	return version
}
