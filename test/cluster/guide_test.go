//go:build unix

package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guide has the blocks of commands of docs/guides/several-servers.md, and runs them in a folder where
// weir is the server under test, and the programs of Docker and Kubernetes note their arguments.
type guide struct {
	*testing.T
	dir    string
	blocks []string
	env    []string
}

func newGuide(t *testing.T, env []string) *guide {
	t.Helper()
	g := &guide{T: t, dir: t.TempDir()}
	text, err := os.ReadFile("../../docs/guides/several-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		g.blocks = append(g.blocks, m[1])
	}
	if err := os.Symlink(binary, g.path("weir")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docker", "kubectl", "helm"} {
		g.write(name, "#!/bin/sh\necho "+name+" \"$@\" >> "+g.path("noted")+"\n")
	}
	g.env = append(env, "PATH="+g.dir+":"+os.Getenv("PATH"))
	return g
}

func (g *guide) path(name string) string { return filepath.Join(g.dir, name) }

func (g *guide) write(name, text string) string {
	g.Helper()
	if err := os.WriteFile(g.path(name), []byte(text), 0o700); err != nil {
		g.Fatal(err)
	}
	return g.path(name)
}

// block returns the block that has a text, with others in place of some.
func (g *guide) block(has string, replaced ...string) string {
	g.Helper()
	for _, b := range g.blocks {
		if strings.Contains(b, has) {
			for i := 0; i < len(replaced); i += 2 {
				if !strings.Contains(b, replaced[i]) {
					g.Errorf("no %q in %s", replaced[i], b)
				}
				b = strings.Replace(b, replaced[i], replaced[i+1], 1)
			}
			return b
		}
	}
	g.Fatalf("no block has %q", has)
	return ""
}

// shell returns the command that runs a block.
func (g *guide) shell(block string, env ...string) *exec.Cmd {
	c := exec.Command("sh", "-ec", block)
	c.Dir, c.Env = g.dir, append(append([]string{}, g.env...), env...)
	return c
}

// run runs a block and returns its output.
func (g *guide) run(block string, env ...string) string {
	g.Helper()
	out, err := g.shell(block, env...).CombinedOutput()
	if err != nil {
		g.Fatalf("%s: %v: %s", block, err, out)
	}
	return string(out)
}

// The commands of the guide move a server to a database, serve its machines there, and take a backup
// that can be restored; those for Docker and Kubernetes are commands of a shell.
func TestCommandsOfTheGuideWork(t *testing.T) {
	url := databases.New(t)
	g := newGuide(t, []string{"HOME=" + t.TempDir(), "PRICES_URL=off"})
	out := g.run("weir init --data data")
	key := regexp.MustCompile(`sk-[a-z0-9]+-[a-z0-9-]+`).FindString(out)
	if key == "" {
		t.Fatalf("init: %s", out)
	}
	var secrets map[string]string
	raw, err := os.ReadFile(g.path("data/secrets.json"))
	if err == nil {
		err = json.Unmarshal(raw, &secrets)
	}
	if err != nil {
		t.Fatal(err)
	}
	move := g.block("weir migrate", "/var/lib/weir", "data")
	if out := g.run(move, "DATABASE_URL="+url); !strings.Contains(out, "copied and compared: 1") {
		t.Errorf("migrate: %s", out)
	}

	serve := g.block("weir serve", "/run/secrets/weir-database", g.write("url", url), ":8787", "127.0.0.1:0",
		"ADMIN_TOKEN_FILE=…", "ADMIN_TOKEN_FILE="+g.write("a", secrets["ADMIN_TOKEN"]),
		"API_KEY_SECRET_FILE=…", "API_KEY_SECRET_FILE="+g.write("b", secrets["API_KEY_SECRET"]),
		"CREDENTIALS_KEY_FILE=…", "CREDENTIALS_KEY_FILE="+g.write("c", secrets["CREDENTIALS_KEY"]))
	p := &process{world: &world{T: t}, out: &lines{}, cmd: g.shell(serve)}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); p.cmd.Wait() }()
	p.until(30*time.Second, "the server", func() bool {
		m := isOn.FindStringSubmatch(p.out.String())
		if m != nil {
			p.base = m[1]
		}
		return m != nil
	})
	if a := p.do("GET", "/v1/models", "", "Authorization", "Bearer "+key); a.status != 200 {
		t.Errorf("the key of the moved machine: %d %s: %s", a.status, a.body, p.out)
	}
	g.run("weir backup saved && mkdir restored && cp saved restored/weir.db", "DATABASE_URL="+url,
		"ADMIN_TOKEN="+secrets["ADMIN_TOKEN"], "API_KEY_SECRET="+secrets["API_KEY_SECRET"], "CREDENTIALS_KEY="+secrets["CREDENTIALS_KEY"])
	restore := g.block("weir migrate", "/var/lib/weir", "restored")
	if out := g.run(restore, "DATABASE_URL="+databases.New(t)); !strings.Contains(out, "copied and compared: 1") {
		t.Errorf("restore: %s", out)
	}

	g.run(g.block("docker compose"))
	g.run(g.block("helm install"))
	noted, _ := os.ReadFile(g.path("noted"))
	for _, line := range []string{"docker compose -f compose-several.yaml up -d --no-deps --wait weir-1\n",
		"kubectl create secret generic weir --from-file=admin-token --from-file=api-key-secret --from-file=credentials-key\n",
		"helm install weir deploy/helm/weir --set image.repository="} {
		if !strings.Contains(string(noted), line) {
			t.Errorf("no %q in %s", line, noted)
		}
	}
	for _, name := range []string{"admin-token", "api-key-secret", "credentials-key"} {
		if raw, _ := os.ReadFile(g.path(name)); !regexp.MustCompile(`^[0-9a-f]{64}$`).Match(raw) {
			t.Errorf("the secret %s is %q", name, raw)
		}
	}
	if n := len(g.blocks); n != 4 {
		t.Errorf("the guide has %d blocks of commands, 4 are run", n)
	}
}
