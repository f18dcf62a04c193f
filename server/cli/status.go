package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// maxGlance is the number of machines that status shows.
const maxGlance = 20

// status prints the server and its machines, a line each, and what is wrong with them, and fails if
// something does not work. With --json it prints the parts of one machine.
func (a *app) status(ctx context.Context, in *input) error {
	c, err := a.open(ctx)
	if err != nil {
		return err
	}
	if a.json {
		s, err := c.readParts(ctx)
		if err != nil {
			return err
		}
		return a.show(s, nil)
	}
	t := table{columns: []column{{}, {}}, wrap: true}
	var bad error
	if !a.serverStatus(ctx, c, &t) {
		bad = errBad
	}
	machines, err := c.glance(ctx)
	if err != nil {
		return err
	}
	if len(machines) == 0 {
		t.add(plain("Machines"), plain("none; weir init creates one"))
	}
	var wrong findings
	for i, m := range machines {
		if i == maxGlance {
			t.add(plain(""), plain(fmt.Sprintf("and %d more: --machine NAME shows one", len(machines)-i)))
			break
		}
		c.prefix = &m.prefix
		s, err := c.readParts(ctx)
		if err != nil {
			return err
		}
		hour := s.Get("recent.total")
		noun := "requests"
		if num(hour, "requests") == 1 {
			noun = "request"
		}
		t.add(plain(m.name), plain(fmt.Sprintf("accounts: %s; keys: %d; last hour: %d %s, %d failed, %d refused, cost %s",
			countAccounts(array(s, "accounts.data")), num(s, "keys.data.#"), num(hour, "requests"), noun,
			unserved(hour), num(hour, "refused"), cost(a, hour).text)))
		for _, f := range a.judge(s) {
			if len(machines) > 1 {
				f.text = plain(m.name + ": " + f.text.text)
			}
			wrong = append(wrong, f)
		}
	}
	for _, f := range wrong {
		if f.word == failure {
			bad = errBad
		}
		t.add(f.word, f.text)
	}
	_, err = a.Stdout.Write(a.render(t, false))
	return errors.Join(err, bad)
}

// errBad ends a command that has found something that does not work.
var errBad = errors.New("not everything works")

// serverStatus adds where a gateway is, its version and for how long it runs, as far as the
// credential may know, and reports whether it runs.
func (a *app) serverStatus(ctx context.Context, c *client, t *table) (runs bool) {
	runs = true
	if c.token == "" {
		v, err := c.call(ctx, "GET", "/server", nil)
		if isStopped(err) {
			runs = false
			t.add(plain("Server"), cell{"stopped; weir serve starts it", yellow})
		} else if err == nil {
			up := a.Now().Sub(time.UnixMilli(num(v, "startedMs")))
			t.add(plain("Server"), plain(fmt.Sprintf("%s, version %s, running for %s", v.Get("address"), v.Get("version"), rough(up))))
		}
	} else {
		t.add(plain("Gateway"), plain(c.name))
	}
	if !c.operator() {
		return runs
	}
	if v, err := c.call(ctx, "GET", "/api/version", nil); err == nil && str(v, "newer") != "" {
		t.add(plain("Upgrade"), plain(str(v, "newer")+" is available: weir upgrade"))
	}
	return runs
}

// isStopped reports whether GET /server failed because the command has opened the data directory
// itself, where no server runs.
func isStopped(err error) bool {
	e := (*apiError)(nil)
	return errors.As(err, &e) && e.status == http.StatusNotFound
}

// needServer returns an error if the command has opened the data directory itself: a call of a
// provider would have the settings of the shell, not of the server.
func (c *client) needServer(ctx context.Context) error {
	if c.token != "" {
		return nil
	}
	if _, err := c.call(ctx, "GET", "/server", nil); isStopped(err) {
		return errors.New("no server runs to call providers; weir serve starts it")
	}
	return nil
}

// glanced is a machine: its name, and the path before /api.
type glanced struct{ name, prefix string }

// glance returns the machines that a credential may read, or the one that was named.
func (c *client) glance(ctx context.Context) ([]glanced, error) {
	if !c.operator() {
		return []glanced{{"Machine", ""}}, nil
	}
	rows, err := c.machines(ctx, url.Values{"q": {c.machine}})
	if err != nil {
		return nil, err
	}
	if c.machine != "" {
		id, err := match("machine", c.machine, rows, "/api/machines")
		if err != nil {
			return nil, err
		}
		rows = gjson.Parse(fmt.Sprintf(`[{"machineId":%q,"name":%q}]`, id, c.machine)).Array()
	}
	var all []glanced
	for _, m := range rows {
		id := str(m, "machineId")
		name := strings.TrimSpace(clean(str(m, "name")))
		if name == "" {
			name = id
		}
		all = append(all, glanced{name, "/" + id})
	}
	return all, nil
}

// rough returns a duration in its largest unit.
func rough(d time.Duration) string {
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int(d / unit.d); n == 1 {
			return "1 " + unit.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "less than a minute"
}
