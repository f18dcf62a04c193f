package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// parts are what status and doctor read of a machine.
var parts = []struct{ name, path string }{
	{"health", "/api/health"}, {"accounts", "/api/providers"}, {"keys", "/api/keys"}, {"budgets", "/api/budgets"},
	{"recent", "/api/usage/recent"}, {"destinations", "/api/destinations"},
}

// readParts reads the parts of a machine, as one object, without those that an older gateway
// does not have.
func (c *client) readParts(ctx context.Context) (gjson.Result, error) {
	var all []string
	for _, one := range parts {
		v, err := c.call(ctx, "GET", one.path, nil)
		if e := (*apiError)(nil); errors.As(err, &e) && e.status == http.StatusNotFound {
			continue
		}
		if err != nil {
			return gjson.Result{}, err
		}
		all = append(all, fmt.Sprintf("%q:%s", one.name, strings.TrimSpace(v.Raw)))
	}
	return gjson.Parse("{" + strings.Join(all, ",") + "}"), nil
}

// countAccounts returns the number of accounts of each health: 2 ready, 1 limited, 1 paused.
func countAccounts(rows []gjson.Result) string {
	counts, order := map[string]int{}, []string{}
	for _, r := range rows {
		w := stateOf(r)
		if counts[w]++; counts[w] == 1 {
			order = append(order, w)
		}
	}
	for i, w := range order {
		order[i] = fmt.Sprintf("%d %s", counts[w], strings.ReplaceAll(w, "_", " "))
	}
	if len(order) == 0 {
		return "none"
	}
	return strings.Join(order, ", ")
}

// stateOf returns the state of an account: paused, what it lacks, or what its last call or test found.
func stateOf(account gjson.Result) string {
	switch status := str(account, "status"); {
	case status == "inactive":
		return "paused"
	case strings.HasPrefix(status, "needs_"):
		return status
	}
	return str(account, "health")
}

// finding is a result of an examination.
type finding struct{ word, text cell }

var (
	well    = cell{"ok", green}
	warning = cell{"warn", yellow}
	failure = cell{"FAIL", red}
)

// findings collects results.
type findings []finding

func (f *findings) add(word cell, format string, args ...any) {
	*f = append(*f, finding{word, plain(fmt.Sprintf(format, args...))})
}

// nearly is the share of a limit that is worth a warning.
const nearly = 0.9

// judge examines the parts of a machine.
func (a *app) judge(s gjson.Result) (out findings) {
	health := s.Get("health")
	if file := health.Get("file"); str(file, "state") == "failed" {
		out.add(failure, "the configuration file is not applied; correct it, and weir applies it again: %s", clean(str(file, "error")))
	}
	if n := num(health, "replica.failures"); n > 0 {
		out.add(warning, "the configuration was not published %d times, so calls may use an earlier one; weir tries again, and its log says why", n)
	}
	if n := num(health, "alerts.failing"); n > 0 {
		out.add(warning, "%d alerts cannot be sent; weir destinations test NAME says why, and weir budgets set NAME --webhook-url URL changes that of a budget", n)
	}
	if m := health.Get("configuration.maxBytes").Float(); m > 0 && health.Get("configuration.bytes").Float() > nearly*m {
		out.add(warning, "the configuration is nearly as large as it may be; delete what is not used, such as weir keys rm NAME")
	}
	out.credentials(health.Get("credentials"))
	out.accounts(a, array(s, "accounts.data"))
	out.keys(a, array(s, "keys.data"))
	for _, d := range array(s, "destinations.data") {
		switch str(d, "status") {
		case "disabled":
			out.add(warning, "destination %s is disabled: %s; weir destinations test %s enables it again", d.Get("name"),
				strings.TrimSuffix(str(d, "disabledReason"), "."), ShellWord(str(d, "name")))
		case "failing":
			out.add(warning, "destination %s fails: %s; weir destinations test %s sends a test", d.Get("name"),
				strings.TrimSuffix(str(d, "lastError"), "."), ShellWord(str(d, "name")))
		}
	}
	for _, b := range array(s, "budgets.data") {
		raise := "weir budgets set " + ShellWord(str(b, "name")) + " --limit NUMBER raises it"
		if spent, limit := b.Get("spent").Float(), b.Get("limit").Float(); is(b, "exhausted") || limit > 0 && spent >= limit {
			out.add(warning, "budget %s is used up; %s", b.Get("name"), raise)
		} else if limit > 0 && spent > nearly*limit {
			out.add(warning, "budget %s is used to %.0f%%; %s", b.Get("name"), 100*spent/limit, raise)
		}
		if n := num(b, "unpricedCalls"); n > 0 && str(b, "unpriced") == "pass" {
			out.add(warning, "budget %s does not count calls without a price, %d so far; weir settings set modelPrices=… sets prices, "+
				"weir budgets set %s --unpriced refuse refuses such calls", b.Get("name"), n, ShellWord(str(b, "name")))
		}
	}
	return out
}

// credentials examines which keys of CREDENTIALS_KEY have sealed the secrets of a machine.
func (f *findings) credentials(r gjson.Result) {
	if n := num(r, "unreadable"); n > 0 {
		f.add(failure, "accounts and destinations whose credentials CREDENTIALS_KEY does not open: %d; set the key that sealed them, "+
			"alone or as new,old, and restart, or replace them: weir accounts rotate NAME, weir destinations set NAME --secret", n)
	}
	if earlier := r.Get("earlier"); earlier.Int() > 0 {
		f.add(warning, "accounts and destinations whose credentials the earlier CREDENTIALS_KEY has sealed: %d; keep both keys: "+
			"weir seals them again within an hour while it runs", earlier.Int())
	} else if earlier.Exists() {
		f.add(well, "no credential is sealed with the earlier CREDENTIALS_KEY; once weir status says so of every machine, set the new one alone")
	}
}

// accounts examines accounts.
func (f *findings) accounts(a *app, rows []gjson.Result) {
	working, paused := 0, 0
	for _, r := range rows {
		state := stateOf(r)
		switch {
		case state == "paused":
			paused++
			continue
		case state == "ready" || state == "untested":
			working++
			continue
		case state == "failing" || state == "limited": // calls try it again
			working++
		}
		name := cmp.Or(str(r, "name"), str(r, "id"))
		text := strings.ReplaceAll(state, "_", " ")
		if at := num(r, "healthAt"); at > 0 && state == str(r, "health") {
			text += ", seen " + rough(a.Now().Sub(time.UnixMilli(at))) + " ago"
		}
		if e := strings.TrimSuffix(str(r, "lastError"), "."); e != "" && state != "key_unavailable" {
			text += ": " + e
		}
		f.add(warning, "account %s (%s): %s; %s", name, providerName(str(r, "provider")), text, remedy(state, r, name))
	}
	if len(rows) == 0 {
		f.add(failure, "there is no account; weir accounts add PROVIDER connects one")
	} else if paused == len(rows) {
		f.add(failure, "every account is paused; weir accounts resume NAME resumes one")
	} else if working == 0 {
		f.add(failure, "no account works; weir accounts test NAME says why")
	}
}

// keys examines keys.
func (f *findings) keys(a *app, rows []gjson.Result) {
	const week = 7 * 24 * 60 * 60 * 1000
	usable, now := 0, a.Now().UnixMilli()
	var invalid []string
	for _, k := range rows {
		if is(k, "invalid") {
			invalid = append(invalid, clean(cmp.Or(str(k, "name"), str(k, "id"))))
		}
		if strings.Contains(k.Get("scopes").Raw, `"data"`) && keyState(a, k).text == "ok" {
			usable++
		}
		if at := num(k, "expiresAt"); at > now && at < now+week && at > num(k, "createdAt")+week {
			f.add(warning, "key %s expires at %s; weir keys set %s --expires 30d keeps it for longer", k.Get("name"),
				when(a, k.Get("expiresAt")).text, ShellWord(str(k, "name")))
		}
	}
	if n := len(invalid); n > 0 {
		f.add(failure, "keys that calls cannot use, since API_KEY_SECRET is not the one by which they were created: %d (%s); set that one "+
			"and restart, or replace each: weir keys rotate NAME", n, firstOf(invalid))
	}
	if usable == 0 {
		f.add(warning, "no key may call models; weir keys add NAME creates one")
	}
}

// doctor prints what is found, and fails if anything does not work.
func (a *app) doctor(ctx context.Context, in *input) error {
	examine, bad, problem := a.examine, failure, errBad
	if in.values["security"] != "" {
		examine, bad, problem = a.examineSecurity, warning, errors.New("not everything is safe")
	}
	t := table{columns: []column{{}, {}}, wrap: true}
	var err error
	for _, f := range examine(ctx) {
		if f.word == bad || f.word == failure {
			err = problem
		}
		t.add(f.word, f.text)
	}
	_, failed := a.Stdout.Write(a.render(t, false))
	return errors.Join(failed, err)
}

// maxSkew is how far the clocks of a gateway and this computer may be apart: providers
// refuse signatures of times that are minutes off.
const maxSkew = 30 * time.Second

// examine examines a gateway, from its address to its budgets. It ends where the rest
// cannot work.
func (a *app) examine(ctx context.Context) (out findings) {
	c, err := a.open(ctx)
	if err != nil {
		out.add(failure, "%v", err)
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := c.send(ctx, "GET", "/health", nil)
	if err != nil {
		out.add(failure, "%v", err)
		return out
	}
	res.Body.Close()
	answers := finding{well, plain(c.name + " answers")}
	if c.token == "" {
		if _, err := c.call(ctx, "GET", "/server", nil); isStopped(err) {
			answers = finding{failure, plain(c.name + " is stopped; weir serve starts it")}
		}
	}
	out = append(out, answers)
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil && a.Now().Sub(at).Abs() > maxSkew {
		out.add(failure, "the clocks of the gateway and of this computer differ by %s; correct the wrong one",
			a.Now().Sub(at).Abs().Round(time.Second))
	}
	if c.operator() {
		v, err := c.call(ctx, "GET", "/api/version", nil)
		if err != nil {
			out.add(failure, "%v", err)
			return out
		}
		if theirs := str(v, "version"); theirs != a.Version {
			out.add(warning, "the gateway has version %s, this program %s; weir upgrade replaces the older one", theirs, a.Version)
		}
		if e := str(v, "prices.error"); e != "" {
			out.add(warning, "prices are not refreshed: %s; weir tries again, and PRICES_URL names another source", strings.TrimSuffix(e, "."))
		}
	}
	s, err := c.readParts(ctx)
	if err != nil {
		out.add(failure, "%v", err)
		return out
	}
	out.add(well, "the credential is accepted")
	machine := a.judge(s)
	if !slices.ContainsFunc(machine, func(f finding) bool { return f.word != well }) {
		out.add(well, "accounts, keys, budgets and destinations")
	}
	return append(out, machine...)
}
