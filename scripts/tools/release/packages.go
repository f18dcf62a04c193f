package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/rpmpack"
)

// Systems' packages have the program, the units of systemd and the licences. They neither start
// nor enable the service: whoever wants it says so.

const (
	summary    = "AI gateway: one address and one key for model providers"
	maintainer = "weir authors <weir@localhost>"
)

// afterInstall has the service use a new version, if it runs.
const afterInstall = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart weir.service
fi
`

// beforeRemoval stops the service, unless a new version follows.
const beforeRemoval = `#!/bin/sh
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now weir.socket weir.service || true
	fi
	;;
esac
`

// packageVersion returns the version as dpkg and rpm compare it: a part behind a hyphen comes
// before the version without one, which ~ says.
func (r *release) packageVersion() string {
	v := strings.TrimPrefix(r.version, "v")
	if v == "" || v[0] < '0' || v[0] > '9' {
		v = "0-" + v
	}
	return strings.NewReplacer("-", "~", "_", ".").Replace(v)
}

// packageFiles returns what a package installs.
func (r *release) packageFiles(program, notices []byte) ([]entry, error) {
	files := []entry{{name: "usr/bin/weir", mode: 0o755, content: program}}
	for _, f := range []struct{ from, to string }{
		{"deploy/weir.service", "usr/lib/systemd/system/weir.service"},
		{"deploy/weir.socket", "usr/lib/systemd/system/weir.socket"},
		{"LICENSE", "usr/share/doc/weir/copyright"},
		{"NOTICE", "usr/share/doc/weir/NOTICE"},
	} {
		content, err := os.ReadFile(filepath.Join(r.root, f.from))
		if err != nil {
			return nil, err
		}
		content = bytes.ReplaceAll(content, []byte("/usr/local/bin/weir"), []byte("/usr/bin/weir"))
		files = append(files, entry{name: f.to, mode: 0o644, content: content})
	}
	return append(files, entry{name: "usr/share/doc/weir/THIRD-PARTY.txt", mode: 0o644, content: notices}), nil
}

// writePackages writes the packages of Debian and of RPM for a Linux target.
func (r *release) writePackages(p platform, notices []byte) error {
	files, err := r.packageFiles(p.program, notices)
	if err != nil {
		return err
	}
	deb, err := r.deb(p.arch, files)
	if err != nil {
		return err
	}
	rpm, err := r.rpm(p.arch, files)
	if err != nil {
		return err
	}
	if err := r.write("weir-"+r.version+"-"+p.arch+".deb", deb); err != nil {
		return err
	}
	return r.write("weir-"+r.version+"-"+p.arch+".rpm", rpm)
}

// deb returns a package of Debian, see deb(5): an ar archive of the version of the format, the
// description with its scripts, and the files.
func (r *release) deb(arch string, files []entry) ([]byte, error) {
	size := 0
	for _, f := range files {
		size += len(f.content)
	}
	control := fmt.Sprintf("Package: weir\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSection: net\nPriority: optional\n%sDescription: %s\n",
		r.packageVersion(), arch, maintainer, (size+1023)/1024, homepage("Homepage: ", r.repository), summary)
	description, err := packed([]entry{{name: "control", mode: 0o644, content: []byte(control)},
		{name: "postinst", mode: 0o755, content: []byte(afterInstall)},
		{name: "prerm", mode: 0o755, content: []byte(beforeRemoval)}})
	if err != nil {
		return nil, err
	}
	data, err := packed(withFolders(files))
	if err != nil {
		return nil, err
	}
	b := []byte("!<arch>\n")
	for _, part := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", description}, {"data.tar.gz", data}} {
		b = fmt.Appendf(b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", part.name, epoch.Unix(), 0, 0, 0o100644, len(part.content))
		if b = append(b, part.content...); len(part.content)%2 == 1 {
			b = append(b, '\n')
		}
	}
	return b, nil
}

func homepage(field, address string) string {
	if address == "" {
		return ""
	}
	return field + address + "\n"
}

// withFolders returns entries with their folders before them, all below "./".
func withFolders(files []entry) (all []entry) {
	seen := map[string]bool{}
	for _, f := range files {
		for i, c := range f.name {
			if folder := f.name[:i+1]; c == '/' && !seen[folder] {
				seen[folder] = true
				all = append(all, entry{name: "./" + folder, mode: 0o755})
			}
		}
		f.name = "./" + f.name
		all = append(all, f)
	}
	return all
}

// packed returns a compressed tar file of entries.
func packed(entries []entry) ([]byte, error) {
	b, err := tarred(entries)
	if err != nil {
		return nil, err
	}
	return gzipped(b)
}

// rpm returns a package of RPM.
func (r *release) rpm(arch string, files []entry) ([]byte, error) {
	p, err := rpmpack.NewRPM(rpmpack.RPMMetaData{Name: "weir", Summary: summary, Description: summary,
		Version: r.packageVersion(), Release: "1", Arch: map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch], OS: "linux", URL: r.repository,
		Packager: maintainer, Licence: "MIT", BuildHost: "weir", BuildTime: epoch, Compressor: "gzip:9"})
	if err != nil {
		return nil, err
	}
	// The other folders belong to the system.
	p.AddFile(rpmpack.RPMFile{Name: "/usr/share/doc/weir", Mode: 0o40755, Owner: "root", Group: "root", MTime: uint32(epoch.Unix())})
	for _, f := range files {
		p.AddFile(rpmpack.RPMFile{Name: "/" + f.name, Body: f.content, Mode: uint(f.mode), Owner: "root", Group: "root",
			MTime: uint32(epoch.Unix())})
	}
	p.AddPostin(afterInstall)
	p.AddPreun(beforeRemoval)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
