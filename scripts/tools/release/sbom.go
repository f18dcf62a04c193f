package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// page is the first file of the embedded dashboard.
const page = "server/dashboard/files/index.html"

// module is a part of the programs that comes from elsewhere.
type module struct {
	kind    string // of a package URL: golang or npm
	path    string
	version string
	hash    cdx.Hash // zero if unknown
	dir     string   // of an npm package: its folder, as the lock file names it
}

func (m module) purl() string { return "pkg:" + m.kind + "/" + m.path + "@" + m.version }

// modulesOf returns the Go modules that are in any of the programs, the
// standard library as std, in order.
func modulesOf(binaries []string) ([]module, error) {
	var all []module
	for _, bin := range binaries {
		info, err := buildinfo.ReadFile(bin)
		if err != nil {
			return nil, err
		}
		version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
		all = append(all, module{kind: "golang", path: "std", version: version})
		for _, m := range info.Deps {
			if m.Replace != nil {
				return nil, fmt.Errorf("module %s is replaced by %s: release without replacements", m.Path, m.Replace.Path)
			}
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
			if err != nil {
				return nil, fmt.Errorf("sum of module %s: %w", m.Path, err)
			}
			all = append(all, module{kind: "golang", path: m.Path, version: m.Version,
				hash: cdx.Hash{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}})
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
	return slices.Compact(all), nil
}

// writeSBOM writes the list of modules. It has no serial number and no time, so
// that the same release has the same list.
func (r *release) writeSBOM(modules []module) error {
	self := "pkg:generic/weir@" + r.version
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: self, Type: cdx.ComponentTypeApplication, Name: "weir", Version: r.version, PackageURL: self,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}},
	}}
	var components []cdx.Component
	var refs []string
	for _, m := range modules {
		c := cdx.Component{BOMRef: m.purl(), Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version,
			PackageURL: m.purl(), Scope: cdx.ScopeRequired}
		if m.hash.Value != "" {
			c.Hashes = &[]cdx.Hash{m.hash}
		}
		components = append(components, c)
		refs = append(refs, m.purl())
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: self, Dependencies: &refs}}
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
		cdx.SpecVersion1_6); err != nil {
		return err
	}
	return r.write("weir-"+r.version+".cdx.json", b.Bytes())
}

// licenceFile matches the names of files that must stay with copies of a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

// notices returns the licences of all modules, one after another.
func (r *release) notices(modules []module) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("weir contains the following works of others.\n")
	for _, m := range modules {
		dir, err := r.folder(m)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 80), m.path, m.version)
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		any := false
		for _, f := range files {
			if f.IsDir() || !licenceFile.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", f.Name(), bytes.TrimSpace(text))
			any = true
		}
		if !any {
			return nil, fmt.Errorf("module %s has no licence in %s", m.path, dir)
		}
	}
	return b.Bytes(), nil
}

// folder returns where the sources of a module are.
func (r *release) folder(m module) (string, error) {
	args := []string{"list", "-m", "-f", "{{.Dir}}", m.path}
	switch {
	case m.kind == "npm":
		return filepath.Join(r.root, m.dir), nil
	case m.path == "std":
		args = []string{"env", "GOROOT"}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of %s: %w", m.path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// pagePackages are the npm packages that the dashboard's files import. The lock
// file has those that these need in turn.
var pagePackages = []string{"markdown-it", "preact", "uplot"}

// commandOnly are packages that only the command lines of others need, so that
// no file of the dashboard contains them.
var commandOnly = []string{"argparse"}

// lockedPackage is an entry of package-lock.json.
type lockedPackage struct {
	Version, Integrity string
	Dependencies       map[string]string
}

// pageModules returns the npm packages of the embedded dashboard, in the
// versions of the lock file, and none without a dashboard.
func (r *release) pageModules() ([]module, error) {
	if _, err := os.Stat(filepath.Join(r.root, page)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var lock struct{ Packages map[string]lockedPackage }
	b, err := os.ReadFile(filepath.Join(r.root, "package-lock.json"))
	if err == nil {
		err = json.Unmarshal(b, &lock)
	}
	if err != nil {
		return nil, fmt.Errorf("read package-lock.json: %w", err)
	}
	var out []module
	seen := map[string]bool{}
	var add func(name, parent string) error
	add = func(name, parent string) error {
		dir := lockedFolder(lock.Packages, name, parent)
		if seen[dir] {
			return nil
		}
		seen[dir] = true
		p := lock.Packages[dir]
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil || p.Version == "" {
			return fmt.Errorf("package-lock.json has no version and sha512 of %s", name)
		}
		out = append(out, module{kind: "npm", path: name, version: p.Version,
			hash: cdx.Hash{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}, dir: dir})
		for _, needed := range slices.Sorted(maps.Keys(p.Dependencies)) {
			if slices.Contains(commandOnly, needed) {
				continue
			}
			if err := add(needed, dir); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range pagePackages {
		if err := add(name, ""); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
	return out, nil
}

// lockedFolder returns the folder of the package that Node finds by a name in
// the files of another: its own folder's, or that of the nearest one above.
func lockedFolder(locked map[string]lockedPackage, name, parent string) string {
	for parent != "" {
		if dir := parent + "/node_modules/" + name; locked[dir].Version != "" {
			return dir
		}
		i := strings.LastIndex(parent, "/node_modules/")
		parent = parent[:max(i, 0)]
	}
	return "node_modules/" + name
}
