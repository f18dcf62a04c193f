// Command release builds what a release of the native server consists of:
//
//	weir-VERSION-OS-ARCH.tar.gz        the program, licences, the systemd units (.zip for Windows)
//	weir-VERSION.cdx.json              its modules (CycloneDX)
//	weir-VERSION-image.tar             a container image for every Linux target (OCI layout)
//	weir-VERSION-image-ARCH.tar        the same for one, which `docker load` reads too
//	compose.yaml, Caddyfile            the image behind a TLS front; -several: two over PostgreSQL
//	weir-VERSION-ARCH.deb, .rpm        packages of Linux, with the systemd units
//	npm-NAME-….tgz                     packages for npx: one for each target, and NAME itself
//	weir.rb                            formula of Homebrew, with -repository
//	install.sh, install.ps1            download and verify an archive
//	SHA256SUMS                         of all these files
//	SHA256SUMS.sig                     its signature (ssh-keygen -Y), with -key
//
// The bytes depend on the sources, the version, the repository, the key and the release
// of Go alone: not on the time, the folder or the user.
//
// goreleaser, ko and syft do not replace it: they are 369, 161 and 336 modules to compile,
// the first of them with a newer Go, and ko's images have no health check and no volume.
//
//	release -version VERSION [-root FOLDER] [-out FOLDER] [-targets OS/ARCH,…]
//	        [-repository ADDRESS] [-image NAME] [-key FILE | -public FILE] [-npm NAME]
//
// ADDRESS is where the releases are published, such as https://github.com/owner/weir. FILE
// is an Ed25519 key of ssh-keygen without a passphrase, with FILE.pub beside it; -public names the
// public key alone, for files that are signed elsewhere or compared with a release. NAME is
// that of the image in a registry, such as ghcr.io/owner/weir, and that of the npm package, such as
// @owner/weir.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// validVersion is what a tag of a container image may be, too.
var validVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$`)

// target is a platform that a release has a program for.
type target struct{ os, arch string }

func (t target) program() string {
	if t.os == "windows" {
		return "weir.exe"
	}
	return "weir"
}

// release is what is built, and where to.
type release struct {
	root, out, version string
	repository, key    string // address and file; may be ""
	public             string // file of the public key, without key; may be ""
	image              string // name of the image; one without a registry is in none
	npm                string // name of the package
	targets            []target
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "name of the version")
	flag.StringVar(&r.root, "root", ".", "folder of the sources")
	flag.StringVar(&r.out, "out", "build/release", "folder for the result, empty or missing")
	targets := flag.String("targets", allTargets, "platforms, separated by commas")
	flag.StringVar(&r.repository, "repository", "", "where the releases are published")
	flag.StringVar(&r.key, "key", "", "file of the key that signs the checksums")
	flag.StringVar(&r.public, "public", "", "file of the public key of another who signs")
	flag.StringVar(&r.image, "image", localImage, "name of the container image in a registry")
	flag.StringVar(&r.npm, "npm", "weir", "name of the npm package")
	flag.Parse()
	r.targets = parseTargets(*targets)
	if err := r.build(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// parseTargets reads a list of OS/ARCH, separated by commas.
func parseTargets(list string) []target {
	var out []target
	for t := range strings.SplitSeq(list, ",") {
		system, arch, _ := strings.Cut(t, "/")
		out = append(out, target{system, arch})
	}
	return out
}

// build writes all files of the release.
func (r *release) build() error {
	if !validVersion.MatchString(r.version) {
		return fmt.Errorf("the version is %q: it takes 1 to 64 letters, digits, points, underscores and hyphens", r.version)
	}
	if !validNPM.MatchString(r.npm) {
		return fmt.Errorf("the npm package is %q: it must be a name such as weir or @owner/weir", r.npm)
	}
	if !validImage.MatchString(r.image) {
		return fmt.Errorf("the image is %q: it must be a name such as weir or ghcr.io/owner/weir", r.image)
	}
	if old, _ := os.ReadDir(r.out); len(old) > 0 {
		return fmt.Errorf("%s is not empty: remove it first", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var binaries []string
	for _, t := range r.targets {
		bin := filepath.Join(work, t.os+"-"+t.arch, t.program())
		if err := r.compile(t, bin); err != nil {
			return err
		}
		binaries = append(binaries, bin)
	}
	modules, err := modulesOf(binaries)
	if err != nil {
		return err
	}
	pages, err := r.pageModules()
	if err != nil {
		return err
	}
	modules = append(modules, pages...)
	notices, err := r.notices(modules)
	if err != nil {
		return err
	}
	if err := r.writeSBOM(modules); err != nil {
		return err
	}
	var platforms []platform
	for i, t := range r.targets {
		content, err := os.ReadFile(binaries[i])
		if err != nil {
			return err
		}
		if err := r.archive(t, content, notices); err != nil {
			return err
		}
		if err := r.writeNPM(t, content, notices); err != nil {
			return err
		}
		if t.os == "linux" {
			p := platform{arch: t.arch, program: content}
			if err := r.writePackages(p, notices); err != nil {
				return err
			}
			platforms = append(platforms, p)
		}
	}
	if err := r.writeImages(platforms, notices); err != nil {
		return err
	}
	if err := r.writeCompose(); err != nil {
		return err
	}
	for _, write := range []func() error{r.writeMainNPM, r.writeInstallers, r.writeFormula, r.writeSums, r.sign} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// compile builds the program. The user's settings of Go do not change the result.
func (r *release) compile(t target, bin string) error {
	releases, signer, err := r.settings()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", bin, "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X main.version="+r.version+" -X main.releases="+releases+" -X 'main.signer="+signer+"'", "./server")
	cmd.Dir = r.root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOEXPERIMENT", "GOFIPS140", "CGO_ENABLED"}, name)
	})
	cmd.Env = append(cmd.Env, "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile for %s/%s: %w\n%s", t.os, t.arch, err, out)
	}
	return nil
}

// unreleased is the image of the compose files.
const unreleased = "image: weir:${WEIR_VERSION:-dev}"

// fromFile are the lines of the compose files about an image that is in no registry.
var fromFile = regexp.MustCompile(`(?m)^(#\tdocker load| *pull_policy: never) .*\n`)

// writeCompose writes the compose files with this version's image, and their Caddyfiles.
func (r *release) writeCompose() error {
	for _, suffix := range []string{"", "-several"} {
		name := "compose" + suffix + ".yaml"
		compose, err := os.ReadFile(filepath.Join(r.root, "deploy", name))
		if err != nil {
			return err
		}
		caddy, err := os.ReadFile(filepath.Join(r.root, "deploy/Caddyfile"+suffix))
		if err != nil {
			return err
		}
		if bytes.Count(compose, []byte(unreleased)) != 1 {
			return fmt.Errorf("deploy/%s does not have the line %q", name, unreleased)
		}
		compose = bytes.Replace(compose, []byte(unreleased), []byte("image: "+r.image+":"+r.version), 1)
		if r.image != localImage {
			compose = fromFile.ReplaceAll(compose, nil)
		}
		if err := errors.Join(r.write(name, compose), r.write("Caddyfile"+suffix, caddy)); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// writeSums writes the checksums in the form that `sha256sum -c` reads.
func (r *release) writeSums() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files { // in the order of their names
		content, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return r.write("SHA256SUMS", []byte(b.String()))
}
