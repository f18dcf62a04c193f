package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The npm packages are one for each platform, with the program, and one that npm installs with
// the one of the computer and whose command runs it: npx NAME serve. No script runs at the
// installation.

// validNPM is a name of an npm package, with a scope or without one.
var validNPM = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)

// semver is a version that npm takes, without the v of a tag.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// manifestNPM is a package.json. The order of the fields is that of the file.
type manifestNPM struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	Repository  string            `json:"repository,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Bin         map[string]string `json:"bin,omitempty"`
	Files       []string          `json:"files"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
}

// launcher is the command of the main package. %s is its name.
const launcher = `#!/usr/bin/env node
// Runs the program of the package for this platform.
const { spawn } = require("node:child_process");
const name = ` + "`%s-${process.platform}-${process.arch}`" + `;
const file = process.platform === "win32" ? "weir.exe" : "weir";
let program;
try {
  program = require.resolve(` + "`${name}/bin/${file}`" + `);
} catch {
  console.error(` + "`weir: ${name} is missing: not for this platform, or npm has left out optional packages.`" + `);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The program gets the signals of the terminal itself, and says when it has ended.
for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (error) => {
  console.error(` + "`weir: ${error.message}`" + `);
  process.exit(1);
});
child.on("exit", (status, signal) => {
  process.exit(signal ? 128 + require("node:os").constants.signals[signal] : status);
});
`

// nodeName returns a target as Node.js names it.
func (t target) nodeName() (system, arch string) {
	system, arch = t.os, t.arch
	if system == "windows" {
		system = "win32"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return system, arch
}

// npmManifest returns the package.json that all packages share.
func (r *release) npmManifest(name string) manifestNPM {
	version := strings.TrimPrefix(r.version, "v")
	if !semver.MatchString(version) {
		version = "0.0.0-" + strings.NewReplacer("_", "-").Replace(version)
	}
	return manifestNPM{Name: name, Version: version, Description: summary, License: "MIT",
		Repository: r.repository, Files: []string{"bin"}}
}

// writeNPM writes the package of a target.
func (r *release) writeNPM(t target, program, notices []byte) error {
	system, arch := t.nodeName()
	m := r.npmManifest(fmt.Sprintf("%s-%s-%s", r.npm, system, arch))
	m.OS, m.CPU = []string{system}, []string{arch}
	return r.packNPM(m, entry{name: "bin/" + t.program(), mode: 0o755, content: program},
		entry{name: "THIRD-PARTY.txt", mode: 0o644, content: notices})
}

// writeMainNPM writes the package that people name.
func (r *release) writeMainNPM() error {
	m := r.npmManifest(r.npm)
	m.Bin = map[string]string{"weir": "bin/weir.js"}
	m.Optional = map[string]string{}
	for _, t := range parseTargets(allTargets) {
		system, arch := t.nodeName()
		m.Optional[fmt.Sprintf("%s-%s-%s", r.npm, system, arch)] = m.Version
	}
	readme, err := os.ReadFile(filepath.Join(r.root, "deploy/npm.txt"))
	if err != nil {
		return err
	}
	readme = []byte(strings.ReplaceAll(string(readme), "NAME", r.npm))
	return r.packNPM(m, entry{name: "bin/weir.js", mode: 0o755, content: fmt.Appendf(nil, launcher, r.npm)},
		entry{name: "README.md", mode: 0o644, content: readme})
}

// packNPM writes a package as `npm pack` does, with the licence.
func (r *release) packNPM(m manifestNPM, files ...entry) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	all := append([]entry{{name: "package.json", mode: 0o644, content: append(text, '\n')},
		{name: "LICENSE", mode: 0o644, content: licence}}, files...)
	for i := range all {
		all[i].name = path.Join("package", all[i].name)
	}
	b, err := packed(all)
	if err != nil {
		return err
	}
	name := strings.NewReplacer("@", "", "/", "-").Replace(m.Name)
	return r.write("npm-"+name+"-"+m.Version+".tgz", b)
}
