//go:build linux

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startLimit is how long a program may take to answer /health.
const startLimit = time.Minute

// server is a program of the release that runs.
type server struct {
	cmd        *exec.Cmd
	url, token string
}

// freeAddress returns an address that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a program that listens at an address, and stops it at the end of
// the test.
func start(t *testing.T, cmd *exec.Cmd, address, data string) *server {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	s := &server{cmd: cmd, url: "http://" + address}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
		if err := <-ended; err != nil || t.Failed() {
			t.Errorf("the program ended with %v and printed:\n%s", err, &output)
		}
	})
	for end := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the program ended with %v", err)
		default:
		}
		res, err := http.Get(s.url + "/health")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no answer: %v", err)
		}
	}
	file := filepath.Join(data, "secrets.json")
	var secrets struct {
		Token string `json:"ADMIN_TOKEN"`
	}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &secrets)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets.json: %v, %v", info.Mode(), err)
	}
	s.token = secrets.Token
	return s
}

// call calls the program with a credential and decodes its answer.
func (s *server) call(t *testing.T, path, credential, body string, v any) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode < 300 {
		err = json.Unmarshal(answer, v)
	}
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s: %d %v %s", path, res.StatusCode, err, answer)
	}
}

func TestArchiveServesAChatCallFromAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	for name, content := range released(t).unpack(t, hostTarget()) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"from the upstream"},"finish_reason":"stop"}]}`)
	}))
	defer upstream.Close()

	out, err := exec.Command(filepath.Join(dir, "weir"), "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "weir "+version+" ") {
		t.Errorf("weir version prints %q, %v", out, err)
	}
	address := freeAddress(t)
	cmd := exec.Command("./weir", "serve", "--data", "data", "--listen", address)
	cmd.Dir = dir
	cmd.Env = []string{"ALLOW_PRIVATE_UPSTREAMS=true", "PRICES_URL=off"}
	s := start(t, cmd, address, filepath.Join(dir, "data"))
	var machine struct{ MachineID, APIKey string }
	s.call(t, "/api/machines", s.token, `{"name":"first"}`, &machine)
	connection := fmt.Sprintf(`{"provider":"openai-compatible-de300000","name":"u","apiKey":"k","providerSpecificData":{"baseUrl":"%s/v1","prefix":"u"}}`, upstream.URL)
	s.call(t, "/"+machine.MachineID+"/api/providers", s.token, connection, new(any))
	var chat struct {
		Choices []struct{ Message struct{ Content string } }
	}
	s.call(t, "/v1/chat/completions", machine.APIKey, `{"model":"u/m","messages":[{"role":"user","content":"hello"}]}`, &chat)
	if len(chat.Choices) != 1 || chat.Choices[0].Message.Content != "from the upstream" {
		t.Errorf("the answer is %+v", chat)
	}
}

// A PATH with Go and what every Unix has is enough: neither npm nor Node.js.
func TestServeComesUpWithGoAlone(t *testing.T) {
	root, bin := copySources(t), t.TempDir()
	for _, name := range []string{"bash", "go", "dirname", "mkdir", "chmod"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command("./build.sh", "serve")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+bin, "PORT="+port, "STATE_DIR="+t.TempDir(), "GOFLAGS=-trimpath")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var printed, mistakes strings.Builder
	cmd.Stderr = &mistakes
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // fails if it has ended
		_, _ = io.Copy(&printed, output)                    // until its end
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
			t.Errorf("the command ended with %v and printed:\n%s%s", err, &printed, &mistakes)
		}
	}()
	call := regexp.MustCompile(`curl -s http://\S+?(/\S+) -H 'Authorization: Bearer (\S+)' -H \S+ \S+ -d '(.*)'`)
	lines, calls := bufio.NewScanner(output), 0
	for lines.Scan() && lines.Text() != "Ctrl-C stops it." {
		fmt.Fprintln(&printed, lines.Text())
		if m := call.FindStringSubmatch(lines.Text()); m != nil {
			var answer struct{ Data, Choices []any }
			(&server{url: "http://" + address}).call(t, m[1], m[2], m[3], &answer)
			if calls++; len(answer.Data)+len(answer.Choices) != 1 {
				t.Errorf("%s answers %+v", m[0], answer)
			}
		}
	}
	if calls != 2 {
		t.Errorf("%d calls are printed", calls)
	}
	res, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("npm")) {
		t.Errorf("the page in place of the dashboard: %d %v %s", res.StatusCode, err, body)
	}
}

// confined are ways to run a program with a folder as its root and without
// rights: as root, and as a user who may create namespaces.
func confined(root string) []*syscall.SysProcAttr {
	user := &syscall.Credential{Uid: nonRoot, Gid: nonRoot}
	mapped := []syscall.SysProcIDMap{{ContainerID: nonRoot, HostID: os.Getuid(), Size: 1}}
	groups := []syscall.SysProcIDMap{{ContainerID: nonRoot, HostID: os.Getgid(), Size: 1}}
	return []*syscall.SysProcAttr{
		{Chroot: root, Credential: user},
		{Chroot: root, Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapped, GidMappings: groups},
	}
}

// The image has nothing but the program: no shell, no users, no certificates.
func TestImageRunsFromItsRootWithoutRights(t *testing.T) {
	i := imageOf(t, platformTar())
	c := i.config.Config
	if c.User != "65532:65532" || c.WorkingDir != "/data" || c.Volumes["/data"] != struct{}{} || len(c.Volumes) != 1 || c.Labels["org.opencontainers.image.version"] != version {
		t.Errorf("configuration is %+v", c)
	}
	root := rootOf(t, i)
	address := freeAddress(t)
	env := append(c.Env, "LISTEN="+address) // the image's port may be in use here
	command := func(attr *syscall.SysProcAttr, args ...string) *exec.Cmd {
		return &exec.Cmd{Path: args[0], Args: args, Dir: c.WorkingDir, Env: env, SysProcAttr: attr}
	}
	var attr *syscall.SysProcAttr
	for _, a := range confined(root) {
		err := command(a, append(c.Entrypoint, "version")...).Run()
		if err == nil {
			attr = a
			break
		}
		t.Logf("with %+v: %v", a, err)
	}
	if attr == nil {
		t.Skip("this system permits neither chroot nor user namespaces")
	}
	s := start(t, command(attr, append(c.Entrypoint, c.Cmd...)...), address, filepath.Join(root, "data"))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if uid := fmt.Sprintf("\nUid:\t%d\t", nonRoot); err != nil || attr.Cloneflags == 0 && !bytes.Contains(status, []byte(uid)) {
		t.Errorf("the program runs as another user than %d: %v\n%s", nonRoot, err, status)
	}
	check := c.Healthcheck.Test
	if len(check) == 0 || check[0] != "CMD" {
		t.Fatalf("health check is %q", check)
	}
	if out, err := command(attr, check[1:]...).CombinedOutput(); err != nil {
		t.Errorf("health check: %v %s", err, out)
	}
	stopped := command(attr, check[1:]...)
	stopped.Env = append(stopped.Env, "LISTEN="+freeAddress(t))
	if err := stopped.Run(); err == nil {
		t.Error("the health check succeeds without a server")
	}
}

// A supervisor stops the command of the npm package, and the program stops with it.
func TestNPMPackagePassesTheStopOn(t *testing.T) {
	dir, address := npmInstalled(t), freeAddress(t)
	cmd := exec.Command("node", "node_modules/weir/bin/weir.js", "serve", "--data", "data", "--listen", address)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PRICES_URL=off")
	t.Cleanup(func() { // after the stop of start
		if res, err := http.Get("http://" + address + "/health"); err == nil {
			res.Body.Close()
			t.Error("the program still answers")
		}
	})
	start(t, cmd, address, filepath.Join(dir, "data"))
}

// bareRoot returns a folder with the tools of busybox alone, as the smallest containers have them: no
// curl, no ssh-keygen, no libraries.
func bareRoot(t *testing.T) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox-static is not installed")
	}
	if file, err := elf.Open(busybox); err != nil || slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Skip("busybox needs libraries: install busybox-static")
	}
	if os.Getuid() != 0 {
		t.Skip("only root may make a device and change the root folder")
	}
	root := t.TempDir()
	for _, err := range []error{os.Chmod(root, 0o755), os.MkdirAll(filepath.Join(root, "home/me"), 0o755),
		os.Chown(filepath.Join(root, "home/me"), nonRoot, nonRoot), os.Mkdir(filepath.Join(root, "dev"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	null := filepath.Join(root, "dev/null")
	if err := errors.Join(syscall.Mknod(null, syscall.S_IFCHR, 1<<8|3), os.Chmod(null, 0o666), os.WriteFile(null, nil, 0)); err != nil {
		t.Skip("root may make no device here: ", err)
	}
	copyFile(t, busybox, filepath.Join(root, "bin/busybox"))
	tools, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(tools)) {
		if name != "busybox" {
			if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestInstallLineServesOnABareComputer(t *testing.T) {
	root, address := bareRoot(t), freeAddress(t)
	script := func(r *release, url string, args ...string) *exec.Cmd {
		return &exec.Cmd{Path: "/bin/sh", Args: append([]string{"sh", "-s", "--", "--from", url}, args...), Dir: "/",
			Env:   []string{"PATH=/bin", "HOME=/home/me", "LISTEN=" + address, "PRICES_URL=off"},
			Stdin: bytes.NewReader(r.file(t, "install.sh")), SysProcAttr: confined(root)[0]}
	}
	signed := publish(t, "v0.0.0-alpha")
	out, err := script(signed.release, signed.url).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("To verify both, install ssh-keygen (openssh-client)")) || !bytes.Contains(out, []byte("Installed weir v0.0.0-alpha test in /home/me/.local/bin")) {
		t.Fatalf("%v\n%s", err, out)
	}
	r := released(t)
	s := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer s.Close()
	start(t, script(r, s.URL, "--serve"), address, filepath.Join(root, "home/me/.local/state/weir"))
}

// The image has no certificates of the system.
func TestRootsOfTLSArePartOfTheProgram(t *testing.T) {
	if sbom := released(t).file(t, "weir-"+version+".cdx.json"); !bytes.Contains(sbom, []byte("golang.org/x/crypto/x509roots/fallback")) {
		t.Error("the program has no fallback roots")
	}
}
