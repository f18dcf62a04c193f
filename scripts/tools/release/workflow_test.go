//go:build unix

package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// workflow is .github/workflows/release.yml.
type workflow struct {
	Permissions map[string]string
	Env         map[string]string
	Jobs        map[string]struct {
		Needs       any
		Permissions map[string]string
		Env         map[string]string
		Steps       []step
	}
}

type step struct {
	Name, Uses, Run string
	Env, With       map[string]string
}

func releaseWorkflow(t *testing.T) workflow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sources, ".github/workflows/release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// step returns the step of a job whose name begins so.
func (w workflow) step(t *testing.T, job, name string) step {
	t.Helper()
	for _, s := range w.Jobs[job].Steps {
		if strings.HasPrefix(s.Name, name) {
			return s
		}
	}
	t.Fatalf("job %s has no step %s", job, name)
	return step{}
}

// Code that comes into the build by a package of npm or a module of Go gets neither the key nor a
// right to write.
func TestCodeOfTheBuildSeesNoSecret(t *testing.T) {
	w := releaseWorkflow(t)
	if len(w.Permissions) > 0 {
		t.Errorf("all jobs have the permissions %v", w.Permissions)
	}
	builds := 0
	for name, job := range w.Jobs {
		text, err := yaml.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range job.Steps {
			if s.Uses != "" && !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`).MatchString(s.Uses) {
				t.Errorf("%s is not pinned by a commit", s.Uses)
			}
		}
		if !strings.Contains(string(text), "actions/checkout@") {
			continue
		}
		builds++
		for _, secret := range []string{"secrets.", "github.token"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("job %s has the code of the repository and %q", name, secret)
			}
		}
		if !maps.Equal(job.Permissions, map[string]string{"contents": "read"}) {
			t.Errorf("job %s has the code of the repository and the permissions %v", name, job.Permissions)
		}
		for _, s := range job.Steps {
			if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false" {
				t.Errorf("job %s leaves its token on the disk", name)
			}
		}
	}
	if builds != 1 {
		t.Errorf("%d jobs check the code out, want 1", builds)
	}
}

// host runs steps of the workflow with programs that write down how they were called.
type host struct {
	*computer
	dir string
}

func newHost(t *testing.T, version string, stubs map[string]string) *host {
	t.Helper()
	h := &host{newComputer(t), t.TempDir()}
	for name, script := range stubs {
		h.stub(t, name, `echo "`+name+` $*" >> "$HOME/calls"`+"\n"+script)
	}
	h.env = []string{"VERSION=" + version, "IMAGE=ghcr.io/owner/weir", "GITHUB_REPOSITORY=Owner/Weir", "GITHUB_ACTOR=owner",
		"GH_TOKEN=token", "NPM_TOKEN=token", "RUNNER_TEMP=" + h.home, "GITHUB_OUTPUT=" + filepath.Join(h.home, "output")}
	return h
}

// perform runs a step as GitHub does, and returns what it prints.
func (h *host) perform(t *testing.T, s step) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", s.Run)
	cmd.Dir = h.dir
	cmd.Env = append([]string{"HOME=" + h.home, "PATH=" + filepath.Join(h.home, "stubs") + ":" + os.Getenv("PATH")}, h.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", s.Name, err, out)
	}
	return string(out)
}

// calls returns the calls of a program that begin with some words.
func (h *host) calls(t *testing.T, words string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.home, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, words) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// put writes a file of the release.
func (h *host) put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(h.dir, "release"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "release", name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The job that builds knows the public key alone; what another signs is what install.sh verifies.
func TestWorkflowSignsWhatTheInstallerVerifies(t *testing.T) {
	w, p, h := releaseWorkflow(t), publish(t, "v1.2.0"), newHost(t, "v1.2.0", nil)
	private, err := os.ReadFile(p.key)
	if err != nil {
		t.Fatal(err)
	}
	h.env = append(h.env, "KEY="+strings.TrimSpace(string(private)))
	h.perform(t, w.step(t, "settings", "Read the public key"))
	output, err := os.ReadFile(filepath.Join(h.home, "output"))
	if err != nil {
		t.Fatal(err)
	}
	key, _, _ := strings.Cut(strings.TrimPrefix(string(output), "key="), "\n")
	if !strings.Contains(string(output), "\nimage=ghcr.io/owner/weir\n") || !strings.HasPrefix(key, "ssh-ed25519 ") {
		t.Fatalf("the settings are %q", output)
	}
	public := filepath.Join(h.home, "key.pub")
	if err := os.WriteFile(public, []byte(key+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.out, p.key, p.public = filepath.Join(h.dir, "release"), "", public
	h.put(t, "keep", nil)
	for _, to := range parseTargets(allTargets) {
		if err := p.archive(to, fmt.Appendf(nil, pretend, "v1.2.0"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.writeInstallers(); err != nil {
		t.Fatal(err)
	}
	p.seal(t) // without a key: no signature
	h.perform(t, w.step(t, "publish", "Sign"))
	s := httptest.NewServer(http.FileServer(http.Dir(p.out)))
	defer s.Close()
	if out, ok := h.run(t, p, []string{"sh"}, "--from", s.URL); !ok || strings.Contains(out, "not verified") {
		t.Errorf("installed %t:\n%s", ok, out)
	}
	if _, err := os.Stat(filepath.Join(h.home, "key")); !os.IsNotExist(err) {
		t.Errorf("the key is still there: %v", err)
	}
}

// npmPackages puts the npm packages of a version into the release.
func (h *host) npmPackages(t *testing.T, version string) {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	r := &release{root: sources, out: t.TempDir(), version: version, npm: "@owner/weir"}
	for _, to := range parseTargets("linux/amd64,windows/arm64") {
		if err := r.writeNPM(to, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writeMainNPM(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		h.put(t, f.Name(), r.file(t, f.Name()))
	}
}

const (
	skopeo = `while [ $# -gt 0 ]; do [ "$1" != --digestfile ] || echo sha256:0 > "$2"; shift; done`
	npm    = `[ "$1" != config ] || echo https://npm.example/`
)

// decide performs the step that decides what is the latest, and sets its results for the next ones
// as the workflow does.
func (h *host) decide(t *testing.T, w workflow) {
	t.Helper()
	h.perform(t, w.step(t, "publish", "Decide"))
	output, err := os.ReadFile(filepath.Join(h.home, "output"))
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []struct{ step, variable, output string }{{"Publish the image", "LATEST", "latest"},
		{"Publish the npm packages", "NPM_TAG", "npm"}, {"Publish the release", "LATEST", "latest"}} {
		if got := w.step(t, "publish", to.step).Env[to.variable]; got != "${{ steps.decide.outputs."+to.output+" }}" {
			t.Errorf("%s of %q is %q", to.variable, to.step, got)
		}
		_, value, _ := strings.Cut(string(output), to.output+"=")
		value, _, _ = strings.Cut(value, "\n")
		h.env = append(h.env, to.variable+"="+value)
	}
}

// A pre-release is the latest of nothing, nor is a patch of a version before the latest.
func TestHighestReleaseAloneIsTheLatest(t *testing.T) {
	for _, tt := range []struct {
		version, there, npmTag string
		latest, pre            bool
	}{
		{"v1.2.0", "", "latest", true, false},
		{"v1.2.0", "v1.2.0", "latest", true, false}, // a second run
		{"v1.10.0", "v1.9.3 v1.2.0", "latest", true, false},
		{"v1.2.5", "v1.3.0 v1.2.4", "release-1.2", false, false},
		{"v1.9.5", "v1.10.0 v1.9.4", "release-1.9", false, false},
		{"v1.2.0-rc.1", "v1.1.0", "next", false, true},
	} {
		t.Run(tt.version+" after "+tt.there, func(t *testing.T) {
			w := releaseWorkflow(t)
			h := newHost(t, tt.version, map[string]string{"skopeo": skopeo, "npm": npm,
				"gh": "[ $2 != list ] || printf '%s\\n' " + tt.there + `; [ "$2" != view ]`})
			h.npmPackages(t, tt.version)
			h.decide(t, w)
			wantImages := []string{tt.version}
			if tt.latest {
				wantImages = append(wantImages, "latest")
			}
			for _, name := range []string{"Publish the image", "Publish the npm packages", "Publish the release"} {
				h.perform(t, w.step(t, "publish", name))
			}
			var images []string
			for _, call := range h.calls(t, "skopeo copy ") {
				images = append(images, call[strings.LastIndex(call, ":")+1:])
			}
			if !slices.Equal(images, wantImages) {
				t.Errorf("tags of the image are %v, want %v", images, wantImages)
			}
			published := h.calls(t, "npm publish ")
			if len(published) != 3 || !strings.HasSuffix(published[2], "/npm-owner-weir-"+tt.version[1:]+".tgz") {
				t.Errorf("published in this order: %q", published)
			}
			for _, call := range published {
				if !strings.Contains(call, " --tag "+tt.npmTag+" ") {
					t.Errorf("%s", call)
				}
			}
			if call := h.calls(t, "gh release create"); len(call) != 1 || strings.Contains(call[0], " --prerelease ") != tt.pre ||
				!strings.Contains(call[0], fmt.Sprintf(" --latest=%t ", tt.latest)) {
				t.Errorf("%q", call)
			}
		})
	}
}

// A run that failed half-way is started again: what is published is not published a second time.
func TestSecondRunOfTheWorkflowGoesOn(t *testing.T) {
	w := releaseWorkflow(t)
	h := newHost(t, "v1.2.0-rc.1", map[string]string{
		"npm": npm + `; [ "$*" != "view @owner/weir-win32-arm64@1.2.0-rc.1 version" ] || echo 1.2.0-rc.1`, "gh": ""})
	h.npmPackages(t, "v1.2.0-rc.1")
	h.decide(t, w)
	out := h.perform(t, w.step(t, "publish", "Publish the npm packages"))
	published := strings.Join(h.calls(t, "npm publish "), "\n")
	if strings.Contains(published, "win32") || strings.Count(published, "\n") != 1 || !strings.Contains(out, "@owner/weir-win32-arm64@1.2.0-rc.1 is published already") {
		t.Errorf("published\n%s\nand said\n%s", published, out)
	}
	h.perform(t, w.step(t, "publish", "Publish the release"))
	if len(h.calls(t, "gh release create")) > 0 || len(h.calls(t, "gh release upload v1.2.0-rc.1 --clobber release/")) != 1 ||
		len(h.calls(t, "gh release edit v1.2.0-rc.1 --draft=false --latest=false --prerelease")) != 1 {
		t.Errorf("%q", h.calls(t, "gh "))
	}
}
