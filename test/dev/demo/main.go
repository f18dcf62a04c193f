// Command demo runs a gateway with a demo machine, whose provider runs in this
// process, so that everything that it prints works offline.
//
//	demo [-url URL] [-state FOLDER] [-secrets FILE] [-alone] COMMAND [ARGUMENT…]
//
// COMMAND is the gateway. demo passes signals on to it and ends with it. -secrets
// names the file that has the gateway's ADMIN_TOKEN, in JSON or as NAME=VALUE
// lines. -alone leaves out the demo machine and its provider.
//
// FOLDER/demo.json (mode 600) remembers the demo machine between runs;
// .weir/dev.json tells tools of the server that was started last. FOLDER/start.log has what
// the gateway prints before it answers, which is shown only if it does not start.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/test/dev/demo/upstream"
)

const (
	startLimit = 60 * time.Second
	noteFile   = ".weir/dev.json"
)

type gateway struct {
	url, state, secrets string
	token               string // of the operator
	code                string // signs in to the dashboard
	own                 string // the link's part for the machine main, which the native server creates; "" without one
	out                 *startOutput
}

// startOutput is the output of the gateway: a file until it has started, then ours.
type startOutput struct {
	mu   sync.Mutex
	file *os.File
	to   io.Writer
}

func newStartOutput(name string) (*startOutput, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return &startOutput{file: file, to: file}, err
}

func (o *startOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}

// started passes on what is printed from now on.
func (o *startOutput) started() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = os.Stderr
}

// show prints what was printed before the gateway had started, if it has not.
func (o *startOutput) show(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == o.file {
		o.to = w
		_, _ = io.Copy(w, io.NewSectionReader(o.file, 0, 1<<20))
	}
}

// machine is what demo.json holds.
type machine struct {
	MachineID     string   `json:"machineId"`
	APIKey        string   `json:"apiKey"`
	ConnectionIDs []string `json:"connectionIds"`
	UpstreamPort  int      `json:"upstreamPort"`
}

func main() {
	var g gateway
	flag.StringVar(&g.url, "url", "http://127.0.0.1:8787", "address of the gateway")
	flag.StringVar(&g.state, "state", ".", "folder for demo.json")
	flag.StringVar(&g.secrets, "secrets", ".dev.vars", "file with ADMIN_TOKEN")
	alone := flag.Bool("alone", false, "no demo machine")
	flag.Parse()
	code, err := g.run(flag.Args(), *alone)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

// run returns the exit code.
func (g *gateway) run(command []string, alone bool) (int, error) {
	if len(command) == 0 {
		return 2, errors.New("no command to start the gateway with")
	}
	if err := g.unused(); err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var err error
	if g.out, err = newStartOutput(filepath.Join(g.state, "start.log")); err != nil {
		return 1, err
	}
	child := exec.Command(command[0], command[1:]...)
	child.Stdout, child.Stderr = g.out, g.out
	ownGroup(child)
	if err := child.Start(); err != nil {
		return 1, err
	}
	ended := make(chan struct{})
	go func() {
		_ = child.Wait() // ProcessState has the result
		close(ended)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- g.start(ctx, command[0], alone) }()

	code := 0
	for {
		select {
		case s := <-signals:
			code = 128 + int(s.(syscall.Signal))
			cancel()
			_ = child.Process.Signal(syscall.SIGTERM) // fails if it has ended
		case err := <-ready:
			if err == nil || ctx.Err() != nil {
				continue
			}
			_ = child.Process.Signal(syscall.SIGTERM)
			<-ended
			g.out.show(os.Stderr)
			return 1, err
		case <-ended:
			if code == 0 {
				g.out.show(os.Stderr)
				code = child.ProcessState.ExitCode()
			}
			if code < 0 { // a signal ended it
				code = 1
			}
			return code, nil
		}
	}
}

// unused fails if another program has the gateway's address: what follows would
// change that program's machines.
func (g *gateway) unused() error {
	u, err := url.Parse(g.url)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", u.Host)
	if err != nil {
		return fmt.Errorf("%s cannot be used: %w; stop the program that has it, or choose another port: PORT=8788 ./build.sh …", u.Host, err)
	}
	return l.Close()
}

// start waits for the gateway, creates the demo machine and prints how to call it.
func (g *gateway) start(ctx context.Context, program string, alone bool) error {
	if err := g.healthy(ctx); err != nil {
		return err
	}
	text, err := os.ReadFile(g.secrets)
	if err != nil {
		return err
	}
	token := regexp.MustCompile(`(?m)^\s*"?ADMIN_TOKEN"?\s*[=:]\s*"?([^"\s]+)`).FindSubmatch(text)
	if token == nil {
		return fmt.Errorf("%s has no ADMIN_TOKEN: delete it if nothing else needs it, and start again", g.secrets)
	}
	g.token = string(token[1])
	g.code = g.token
	if g.native() {
		if g.code, err = onceCode(ctx, program); err != nil {
			return err
		}
	}
	var list struct {
		Data []struct{ MachineID, Name string }
	}
	if err := g.call(ctx, http.MethodGet, "/api/machines?q=main", nil, &list); err != nil {
		return err
	}
	for _, m := range list.Data {
		if m.Name == "main" {
			g.own = "/" + m.MachineID
		}
	}
	note := struct {
		AdminToken string  `json:"adminToken"`
		MachineID  *string `json:"machineId"`
		APIKey     *string `json:"apiKey"`
		BaseURL    string  `json:"baseUrl"`
	}{AdminToken: g.token, BaseURL: g.url}
	if !alone {
		m, err := g.demo(ctx)
		if err != nil {
			return err
		}
		note.MachineID, note.APIKey = &m.MachineID, &m.APIKey
	}
	if err := writePrivate(noteFile, note); err != nil {
		return err
	}
	g.out.started()
	fmt.Print(g.greeting(note.APIKey))
	return nil
}

// greeting returns what is printed when the gateway answers. key is that of the demo machine,
// nil without one.
func (g *gateway) greeting(key *string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "weir is running at %s\nData: %s\n\n", g.url, g.data())
	use := "signs you in as the operator, so keep it to yourself"
	if g.native() {
		use = "works once, within an hour (build/weir init --data " + filepath.Dir(g.secrets) + " prints another)"
	}
	fmt.Fprintf(&b, "Open the dashboard; the link %s:\n\n%s/#/sign-in/%s%s\n\n", use, g.url, g.code, g.own)
	if key == nil {
		b.WriteString("Add a provider there, then connect a tool.\n")
	} else {
		b.WriteString("Or call the demo machine, whose provider is a test upstream on this computer:\n\n")
		for _, call := range [][2]string{
			{"chat/completions", `{"model":"demo/test-chat","messages":[{"role":"user","content":"hello"}]}`},
			{"embeddings", `{"model":"demo/test-embed","input":"hello"}`},
		} {
			fmt.Fprintf(&b, "curl -s %s/v1/%s -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '%s'\n\n",
				g.url, call[0], *key, call[1])
		}
		b.WriteString("Next: add a provider of your own in the dashboard, then connect a tool.\n")
	}
	if g.native() {
		fmt.Fprintf(&b, "In a second terminal here: export PATH=$PWD/build:$PATH DATA_DIR=%s WEIR_MACHINE=main; weir accounts add openai\n",
			g.data())
	}
	return b.String() + "Ctrl-C stops it.\n"
}

// data returns the folder that commands name.
func (g *gateway) data() string {
	if g.native() {
		return filepath.Dir(g.secrets)
	}
	return g.state
}

// native reports whether the gateway is the native server.
func (g *gateway) native() bool { return filepath.Base(g.secrets) == "secrets.json" }

// onceCode returns the code of a link of the native server, which works once.
func onceCode(ctx context.Context, program string) (string, error) {
	text, err := exec.CommandContext(ctx, program, "init").Output()
	if err != nil {
		return "", fmt.Errorf("%s init: %w", program, err)
	}
	code := regexp.MustCompile(`/#/sign-in/(once-\S+)`).FindSubmatch(text)
	if code == nil {
		return "", fmt.Errorf("%s init prints no sign-in link", program)
	}
	return string(code[1]), nil
}

// healthy waits for the gateway.
func (g *gateway) healthy(ctx context.Context) error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/health", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		} else if ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%s/health did not answer in %v", g.url, startLimit)
}

// demo returns the demo machine of this state: the earlier one, with its
// connections changed to the upstream's present address, or a new one.
func (g *gateway) demo(ctx context.Context) (*machine, error) {
	m, file := &machine{}, filepath.Join(g.state, "demo.json")
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, m) != nil {
		return nil, fmt.Errorf("%s is damaged: delete it to get another demo machine", file)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.UpstreamPort))
	if err != nil { // another program has that port now
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	go http.Serve(listener, upstream.Handler()) // until the process ends
	port := listener.Addr().(*net.TCPAddr).Port
	address := "http://" + listener.Addr().String()
	connections := []any{
		object{
			"provider": "openai-compatible-de300000", "name": "test upstream", "apiKey": "demo-upstream-key",
			"providerSpecificData": object{"baseUrl": address + "/v1", "prefix": "demo"},
		},
		object{"provider": "searxng", "name": "test search", "providerSpecificData": object{"baseUrl": address}},
	}
	if m.MachineID != "" && m.UpstreamPort != port {
		m.UpstreamPort = 0 // until every connection has the new one
		if err := writePrivate(file, m); err != nil {
			return nil, err
		}
	}
	if m.MachineID == "" {
		if err := g.call(ctx, http.MethodPost, "/api/machines", object{"name": "demo"}, m); err != nil {
			return nil, err
		}
	}
	for i, c := range connections {
		path := "/" + m.MachineID + "/api/providers"
		if i >= len(m.ConnectionIDs) {
			var made struct{ ID string }
			if err := g.call(ctx, http.MethodPost, path, c, &made); err != nil {
				return nil, err
			}
			m.ConnectionIDs = append(m.ConnectionIDs, made.ID)
		} else if m.UpstreamPort != port {
			if err := g.call(ctx, http.MethodPut, path+"/"+m.ConnectionIDs[i], c, nil); err != nil {
				return nil, err
			}
		}
	}
	m.UpstreamPort = port
	return m, writePrivate(file, m)
}

type object = map[string]any

// call calls the management API as the operator and decodes the answer into v,
// unless that is nil.
func (g *gateway) call(ctx context.Context, method, path string, body, v any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s answered %d: %s", method, path, res.StatusCode, answer)
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(answer, v)
}

// writePrivate writes a file that only its owner can read.
func writePrivate(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Chmod(file, 0o600) // it may have existed
}
