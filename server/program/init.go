package program

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"weir/pkg/machine/rpc"
	"weir/server/cli"
)

// initialized is the result of weir init.
type initialized struct {
	Base      string `json:"base"`                // URL of the server, "" if unknown
	SignIn    string `json:"signIn,omitempty"`    // link with a one-time code
	MachineID string `json:"machineId,omitempty"` // of the machine that was created
	APIKey    string `json:"apiKey,omitempty"`
}

const (
	firstMachine = "main"
	initTime     = 30 * time.Second
)

func (r *run) initialize(f *flags) error {
	s, err := r.readSettings(f)
	if err != nil {
		return err
	}
	if len(f.name) > 200 {
		return usagef("--name: it has more than 200 bytes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), initTime)
	defer cancel()
	out, err := initialized{}, errNotRunning
	if s.database == "" {
		out, err = askInit(ctx, s.data, f.name)
	}
	running := err == nil
	if errors.Is(err, errNotRunning) {
		if dir := r.announced(ctx, s); dir != "" {
			at := *s
			at.data = dir
			return fmt.Errorf("a server runs on the data directory %s: %s prints a link to it; --data %s makes another one",
				dir, r.call("init", &at), cli.ShellWord(s.data))
		}
		if s.database == "" && askHealth(ctx, s) == nil {
			return fmt.Errorf("the server at %s has another data directory than %s, so it would refuse a link of this one; "+
				"use the command that its start printed, weir init --data DIRECTORY, or stop it", s.base(nil), s.data)
		}
		out, err = r.initializeStopped(ctx, s, f.name)
	}
	if err != nil {
		return err
	}
	r.printInitialized(out, s, running)
	return nil
}

// askInit asks the running server.
func askInit(ctx context.Context, dir, name string) (out initialized, err error) {
	body, err := json.Marshal(struct{ Name string }{name})
	if err != nil {
		return out, err
	}
	res, err := control(ctx, dir, "POST", "/init", bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return out, nil
}

// initializeStopped opens the data directory itself.
func (r *run) initializeStopped(ctx context.Context, s *settings, name string) (out initialized, err error) {
	k, err := r.open(s, &logger{w: r.stderr, lowest: 1}, nil)
	if err != nil {
		return out, err
	}
	defer func() {
		if closed := k.close(ctx); err == nil {
			err = closed
		}
	}()
	return k.initialize(ctx, name, nil)
}

// initialize creates the first machine, or one of a name, and a sign-in link.
func (k *stack) initialize(ctx context.Context, name string, at net.Addr) (out initialized, err error) {
	any, err := k.hasMachines(ctx, false)
	if err != nil {
		return out, err
	}
	if !any || name != "" {
		name = cmp.Or(name, firstMachine)
		created, err := k.create(ctx, name, false)
		if err != nil {
			return out, err
		}
		out.MachineID, out.APIKey = created.MachineID, created.APIKey
	}
	if out.Base = k.settings.base(at); out.Base != "" {
		code, err := k.codes.create()
		if err != nil {
			return out, err
		}
		out.SignIn = signInLink(out.Base, code)
	}
	return out, nil
}

// create creates a machine. One without a key is for an output that may be a log.
func (k *stack) create(ctx context.Context, name string, withoutKey bool) (created rpc.Created, err error) {
	id, err := rpc.NewMachineID(rand.Reader)
	if err != nil {
		return created, err
	}
	in := struct {
		Name       string `json:"name"`
		WithoutKey bool   `json:"withoutKey,omitempty"`
	}{name, withoutKey}
	if err := k.ask(ctx, id, "create", in, &created); err != nil {
		return created, fmt.Errorf("create a machine: %w", err)
	}
	return created, nil
}

// hasMachines reports whether there are machines, or deleted ones.
func (k *stack) hasMachines(ctx context.Context, deleted bool) (bool, error) {
	var list struct{ Data []json.RawMessage }
	err := k.ask(ctx, rpc.RegistryID, "list", map[string]any{"limit": 1, "deleted": deleted}, &list)
	if err != nil {
		return false, fmt.Errorf("list the machines: %w", err)
	}
	return len(list.Data) > 0, nil
}

// ask calls an object.
func (k *stack) ask(ctx context.Context, id, op string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	status, raw, err := k.objects.Call(ctx, id, op, body)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return rpc.ReadFailure(status, raw)
	}
	return json.Unmarshal(raw, out)
}

func (r *run) printInitialized(out initialized, s *settings, running bool) {
	w := r.stdout
	if out.MachineID != "" {
		fmt.Fprintf(w, "Machine %s was created. Its key, which is shown this once:\n\n%s\n\n", out.MachineID, out.APIKey)
	}
	if out.SignIn != "" {
		fmt.Fprintf(w, "Sign in to the dashboard (the link works once, within an hour):\n\n%s\n\n", out.SignIn)
	} else {
		fmt.Fprint(w, "To have a link to the dashboard, set --public-url to the address of the proxy.\n\n")
	}
	if !running {
		fmt.Fprintf(w, "Start the server, with the same settings: %s\n\n", r.call("serve", s))
	}
	if out.APIKey != "" {
		curl, base := "curl -s", out.Base
		if base == "" {
			curl, base = "curl -s --unix-socket "+s.listen.name, "http://weir"
		}
		fmt.Fprintf(w, "Add a provider in the dashboard, then list its models:\n\n%s %s/v1/models -H 'Authorization: Bearer %s'\n",
			curl, base, out.APIKey)
	} else if s.database == "" { // the first start has created a machine without a key
		fmt.Fprintf(w, "Accounts and keys are added there, or in a terminal:\n\n%s\n%s\n",
			r.call("accounts add PROVIDER", s), r.call("keys add NAME", s))
	}
}
