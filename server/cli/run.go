package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// addMachine creates a machine and says how to use it.
func (a *app) addMachine(ctx context.Context, in *input) error {
	err := a.make(ctx, in)
	if err == nil && !a.json {
		fmt.Fprintf(a.Stderr, "Next: weir accounts add PROVIDER --machine %s\n", ShellWord(in.args[0]))
	}
	return err
}

// listAccounts lists accounts, and says where to read on if one does not work.
func (a *app) listAccounts(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		rows := array(v, "data")
		var wrong findings
		wrong.accounts(a, rows)
		err := a.print(a.rows(in.op.columns, rows))
		if _, ok := a.terminal(a.Stdout); ok && len(rows) > 0 && len(wrong) > 0 {
			fmt.Fprintln(a.Stderr, "weir status says what is wrong, and what to do.")
		}
		return err
	})
}

// quota lists the accounts that have stated limits.
func (a *app) quota(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		return a.print(a.rows(in.op.columns, v.Get(`data.#(windows.#>0)#`).Array()))
	})
}

// removeMachine deletes a machine and says until when it can be restored.
func (a *app) removeMachine(ctx context.Context, in *input) error {
	if err := a.make(ctx, in); err != nil || in.query.Has("now") {
		return err
	}
	_, id, _ := strings.Cut(in.path, "/api/machines/")
	rows, err := in.client.machines(ctx, url.Values{"q": {id}, "deleted": {"true"}})
	for _, m := range rows {
		if until := m.Get("restoreUntil"); until.Int() > 0 { // an earlier gateway has erased it
			fmt.Fprintf(a.Stderr, "It can be restored until %s: weir machines restore %s\n", when(a, until).text, id)
		}
	}
	return err
}

// addBudget reads the limit of a budget and finds its key.
func (a *app) addBudget(ctx context.Context, in *input) error {
	limit, err := asLimit(a, "", in.args[1])
	if err != nil {
		return err
	}
	for name, v := range limit.(map[string]any) {
		in.body[name] = v
	}
	if err := in.find(ctx, "key", "keyId"); err != nil {
		return err
	}
	return a.make(ctx, in)
}

// invite prints the link of an invitation.
func (a *app) invite(ctx context.Context, in *input) error {
	if err := a.readGrant(in); err != nil {
		return err
	}
	return a.sendInvitation(ctx, in)
}

// renew prints another sign-in link of a person.
func (a *app) renew(ctx context.Context, in *input) error {
	id, err := in.client.find(ctx, in.what, "/api/people", in.args[0])
	if err != nil {
		return err
	}
	in.body = map[string]any{"person": id}
	return a.sendInvitation(ctx, in)
}

// sendInvitation creates an invitation and prints its link.
func (a *app) sendInvitation(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		link := clean(str(v, "link"))
		fmt.Fprintln(a.Stderr, "Send this link to the person alone. It works once, for seven days:")
		_, err := fmt.Fprintln(a.Stdout, link)
		if u, _ := url.Parse(link); u != nil && IsLoopback(u.Hostname()) {
			fmt.Fprintf(a.Stderr, "%s://%s is this computer only. For someone elsewhere,\nput the address that they use in its place. "+
				"--public-url of the server\ndoes so in every link.\n", u.Scheme, u.Host)
		}
		return err
	})
}

// setPerson sets the role of a person.
func (a *app) setPerson(ctx context.Context, in *input) error {
	if err := a.readGrant(in); err != nil {
		return err
	}
	return a.make(ctx, in)
}

// readGrant completes the role and the template of a body.
func (a *app) readGrant(in *input) error {
	if in.body["role"] == nil {
		in.body["role"] = "member"
	}
	text, given := in.values["budget"]
	if !given {
		return nil
	}
	v, err := asLimit(a, "budget", text)
	if err != nil {
		return err
	}
	limit := v.(map[string]any)
	if limit["unit"] != "usd" {
		return Usagef("--budget %s: the budget of a member is in USD, as in 20/month", text)
	}
	in.set("template.budgetUsd", limit["limit"])
	in.set("template.budgetWindow", limit["window"])
	return nil
}

// find sets a field to the id of the key or account that a flag names.
func (in *input) find(ctx context.Context, flag, field string) error {
	name, ok := in.values[flag]
	if !ok {
		return nil
	}
	id, err := in.client.find(ctx, flag, map[string]string{"key": "/api/keys", "account": "/api/providers"}[flag], name)
	if err == nil {
		in.set(field, id)
	}
	return err
}

// models lists the models of a kind. Without an account the list is the catalogue of chat models,
// which is long: what it is stands below it.
func (a *app) models(ctx context.Context, in *input) error {
	kind := in.values["kind"]
	if kind == "" {
		kind = "llm"
	}
	in.path = strings.Replace(in.path, "{}", url.PathEscape(kind), 1)
	if err := a.make(ctx, in); err != nil || a.json || kind != "llm" {
		return err
	}
	accounts, err := in.client.call(ctx, "GET", "/api/providers", nil)
	if err == nil && !accounts.Get(`data.#(status!="inactive")`).Exists() { // a member may not ask
		fmt.Fprintln(a.Stderr, "These are the models that weir knows. To call one, connect an account: weir accounts add PROVIDER")
	}
	return nil
}

// disableModels disables models of a prefix that accounts or providers have.
func (a *app) disableModels(ctx context.Context, in *input) error {
	all, err := in.client.call(ctx, "GET", "/api/providers", nil)
	if err != nil {
		return err
	}
	var known []string
	for _, row := range array(all, "data") {
		known = append(known, str(row, "providerSpecificData.prefix"), str(row, "provider"))
	}
	for _, d := range provider.All() {
		known = append(known, d.Alias, d.ID)
	}
	if near := closest(in.args[0], known); near != "" && !slices.Contains(known, in.args[0]) {
		return Usagef("PREFIX %s: %sweir models lists models by their prefix", in.args[0], maybe(near))
	}
	return a.make(ctx, in)
}

// setSettings reads NAME=VALUE.
func (a *app) setSettings(ctx context.Context, in *input) error {
	all := reflect.TypeFor[FileSettings]()
	for _, one := range in.args {
		name, value, ok := strings.Cut(one, "=")
		if !ok {
			return Usagef("settings set %s: write NAME=VALUE; NAME= is the default", one)
		}
		if values := enumOf(all, name); values != nil && value != "" && !slices.Contains(values, value) {
			return Mistyped(name, value, value, values)
		}
		in.body[name] = value
		if v := gjson.Parse(value); value == "" {
			in.body[name] = nil
		} else if gjson.Valid(value) && (v.Type == gjson.Number || v.IsObject() || v.IsArray()) {
			in.body[name] = v.Value()
		}
	}
	v, err := in.send(ctx)
	if e := (*apiError)(nil); errors.As(err, &e) {
		if _, sent := in.body[e.param()]; sent && fieldOf(all, e.param()) == nil {
			return fmt.Errorf("%s is not a setting; %s", e.param(), fieldsLike(all, e.param()))
		}
	}
	if err != nil {
		return err
	}
	if err := a.warnSaved(ctx, in); err != nil {
		return err
	}
	return a.show(v, func() error { return a.stored(in.said(v), v) })
}

// setAccount changes an account.
func (a *app) setAccount(ctx context.Context, in *input) error {
	if err := in.free(ctx, "/api/providers", "an account is called %s already; choose another --name"); err != nil {
		return err
	}
	if err := in.keepsCredential(ctx); err != nil {
		return err
	}
	return a.make(ctx, in)
}

// keepsCredential returns an error if the base URL has another host, where the gateway would remove the
// credential, and no flag brings another one.
func (in *input) keepsCredential(ctx context.Context) error {
	data, _ := in.body["providerSpecificData"].(map[string]any)
	base, _ := data["baseUrl"].(string)
	_, host, ok := strings.Cut(provider.Origin(strings.TrimSpace(base)), "://")
	if !ok || slices.ContainsFunc(credentials, func(f field) bool { return in.values[f.flag] != "" }) {
		return nil // without a scheme the gateway refuses it
	}
	account, err := in.client.call(ctx, "GET", in.path, nil)
	if err != nil {
		return err
	}
	was := str(account, "providerSpecificData.baseUrl")
	if d := provider.Lookup(str(account, "provider")); was == "" && d != nil && d.Rebase {
		was = d.BaseURL
	}
	if !is(account, "hasKey") || was == "" || strings.EqualFold(provider.Origin(was), provider.Origin(strings.TrimSpace(base))) {
		return nil
	}
	return fmt.Errorf("nothing is changed: the credential of %s is for %s and is not sent to %s; add the new one, as in "+
		"--api-key env:NAME, or --api-key none for a server without keys",
		clean(cmp.Or(str(account, "name"), in.args[0])), clean(provider.Origin(was)), clean(host))
}

// free returns an error with a text if another row of a list has the name that a row gets: commands and weir.yaml
// could not tell them apart.
func (in *input) free(ctx context.Context, list, text string) error {
	name, _ := in.body["name"].(string)
	if name = strings.TrimSpace(name); name == "" {
		return nil
	}
	all, err := in.client.call(ctx, "GET", list, nil)
	if err != nil {
		return err
	}
	for _, row := range array(all, "data") {
		itself := strings.HasSuffix(in.path, "/"+str(row, "id"))
		if taken := str(row, "name"); !itself && strings.EqualFold(taken, name) {
			return fmt.Errorf(text, clean(taken))
		}
	}
	return nil
}

// addKey creates a key.
func (a *app) addKey(ctx context.Context, in *input) error {
	if err := in.free(ctx, "/api/keys", "a key is called %s already; choose another NAME, or weir keys rotate replaces that key"); err != nil {
		return err
	}
	return a.make(ctx, in)
}

// addAccount asks for the API key of an account that needs one and has no credential. The id
// of a provider of one's own ends with random digits, since there may be several.
func (a *app) addAccount(ctx context.Context, in *input) error {
	if err := in.completeServer(ctx); err != nil {
		return err
	}
	if strings.HasSuffix(in.args[0], "-compatible") {
		in.body["provider"] = fmt.Sprintf("%s-%08x", in.args[0], rand.Uint32())
	}
	if err := in.free(ctx, "/api/providers", "an account is called %s already; choose another --name"); err != nil {
		return err
	}
	given := slices.ContainsFunc(credentials, func(f field) bool { return in.body[f.name] != nil })
	catalog, err := in.client.call(ctx, "GET", "/api/catalog/providers", nil)
	if err != nil {
		return err
	}
	for _, p := range array(catalog, "data") {
		auth := str(p, "auth")
		switch {
		case str(p, "id") != in.args[0] || given || auth == "none" || is(p, "keyFree"):
		case auth == "aws":
			return Usagef("accounts add: name the keys by --access-key-id and --secret-access-key")
		case auth == "google":
			return Usagef("accounts add: name the file of the service account by --service-account file:PATH")
		default:
			if at := clean(str(p, "keyUrl")); at != "" {
				if _, ok := a.terminal(a.Stdin); ok {
					fmt.Fprintln(a.Stderr, "Keys are created at "+at)
				}
			}
			if in.body["apiKey"], err = a.secret("API key of " + clean(str(p, "name"))); err != nil {
				return err
			}
		}
	}
	v, err := in.send(ctx) // which names an unknown provider
	if err != nil {
		return err
	}
	name := clean(cmp.Or(str(v, "name"), str(v, "id")))
	err = a.show(v, func() error {
		return a.stored(in.said(v), v)
	})
	if err != nil || in.values["no-test"] != "" {
		return err
	}
	return a.tryAccount(ctx, in, v, name)
}

// providers lists the providers, and the servers of one's own that weir knows the addresses of.
func (a *app) providers(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		rows := array(v, "data")
		for _, s := range gjson.ParseBytes(serversJSON).Array() {
			rows = append(rows, gjson.Parse(fmt.Sprintf(`{"id":%q,"name":%q,"auth":"optional","kinds":["llm"]}`, str(s, "id"), str(s, "name"))))
		}
		return a.print(a.rows(providerColumns, rows))
	})
}

//go:embed servers.json
var serversJSON []byte

// completeServer puts the usual address of a server of one's own, such as vllm, in the body of its account, and
// a name and a prefix that are free. The dashboard has the servers from the same file.
func (in *input) completeServer(ctx context.Context) error {
	i := slices.IndexFunc(gjson.ParseBytes(serversJSON).Array(), func(s gjson.Result) bool {
		return strings.EqualFold(str(s, "id"), in.args[0]) || strings.EqualFold(str(s, "name"), in.args[0])
	})
	if i < 0 {
		return nil
	}
	server := gjson.ParseBytes(serversJSON).Array()[i]
	accounts, err := in.client.call(ctx, "GET", "/api/providers", nil)
	if err != nil {
		return err
	}
	name, prefix, end := str(server, "name"), str(server, "prefix"), ""
	taken := func(r gjson.Result) bool {
		return strings.EqualFold(str(r, "name"), name+end) || strings.EqualFold(str(r, "providerSpecificData.prefix"), prefix+end)
	}
	for n := 2; slices.ContainsFunc(array(accounts, "data"), taken); n++ {
		end = fmt.Sprintf("-%d", n)
	}
	in.args[0] = "openai-compatible"
	data, _ := in.body["providerSpecificData"].(map[string]any)
	for field, v := range map[string]string{"baseUrl": str(server, "baseUrl"), "prefix": prefix + end} {
		if data[field] == nil {
			in.set("providerSpecificData."+field, v)
		}
	}
	if in.body["name"] == nil {
		in.body["name"] = name + end
	}
	return nil
}

// tryAccount tests an account that was added. One that does not work stays.
func (a *app) tryAccount(ctx context.Context, in *input, account gjson.Result, name string) error {
	untested := func(err error) error {
		fmt.Fprintf(a.Stderr, "It is not tested: %v. To test it: weir accounts test %s\n", err, ShellWord(name))
		return nil
	}
	if err := in.client.needServer(ctx); err != nil {
		return untested(err)
	}
	v, err := in.client.call(ctx, "POST", "/api/providers/"+url.PathEscape(str(account, "id"))+"/test", nil)
	if err != nil { // too many tests
		return untested(err)
	}
	if str(v, "error") == "unsupported" {
		return untested(errors.New(strings.TrimSuffix(str(v, "message"), ".")))
	}
	if !a.json {
		a.printTest(v)
	}
	if !is(v, "ok") {
		return fmt.Errorf("the account is stored, and does not work; %s", remedy(str(v, "error"), account, name))
	}
	if d := provider.Lookup(str(account, "provider")); d != nil && slices.Contains(d.Kinds, catalog.LLM) {
		fmt.Fprintf(a.Stderr, "Ask a model: weir call %s Hello\n", ShellWord(clean(cmp.Or(str(v, "model"), "MODEL"))))
	}
	return nil
}

// printTest prints the result of a test of an account.
func (a *app) printTest(v gjson.Result) {
	if is(v, "ok") {
		fmt.Fprintf(a.Stdout, "ok, %s %s\n", clean(str(v, "model")), seconds(a, v.Get("latencyMs")).text)
	} else {
		fmt.Fprintf(a.Stdout, "%s (%s)\n", clean(str(v, "message")), clean(str(v, "error")))
	}
}

// remedy returns what to do with an account, by the error of its test or by its state.
func remedy(cause string, account gjson.Result, name string) string {
	word := ShellWord(name)
	switch cause {
	case "unauthorized", "no_credentials", "key_refused", "key_unavailable", "needs_credential", "needs_reauth":
		if str(account, "authType") == "oauth" {
			return "sign in again on its page, or by weir accounts sign-in " + ShellWord(str(account, "provider"))
		}
		return "weir accounts rotate " + word + " replaces its credential"
	case "connection_failed", "timeout", "not_found", "invalid_answer", "unreachable":
		if str(account, "providerSpecificData.baseUrl") != "" {
			return "weir accounts set " + word + " --base-url URL changes its address"
		}
	case "out_of_credit":
		return "add credit at the provider, then weir accounts test " + word
	case "limited":
		return "weir accounts quota shows what is left of its limits"
	}
	return "weir accounts test " + word + " tests it again"
}

// rotateAccount replaces a credential.
func (a *app) rotateAccount(ctx context.Context, in *input) (err error) {
	if len(in.body) == 0 {
		if in.body["apiKey"], err = a.secret("New API key"); err != nil {
			return err
		}
	}
	if _, err := in.send(ctx); err != nil {
		return err
	}
	if err := in.client.needServer(ctx); err != nil {
		return fmt.Errorf("the credential is stored and not tested: %w", err)
	}
	in.method, in.path, in.body = "POST", in.path+"/test", nil
	return a.test(ctx, in)
}

// test prints the result of a test of an account.
func (a *app) test(ctx context.Context, in *input) error {
	if err := in.client.needServer(ctx); err != nil {
		return err
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	err = a.show(v, func() error { a.printTest(v); return nil })
	if err == nil && !is(v, "ok") {
		account, _ := in.client.call(ctx, "GET", strings.TrimSuffix(in.path, "/test"), nil) // whose address is of use
		err = fmt.Errorf("the account does not work; %s", remedy(str(v, "error"), account, in.args[0]))
	}
	return err
}

// testIdentityProvider prints what a provider lacks.
func (a *app) testIdentityProvider(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	err = a.show(v, func() error {
		for _, finding := range array(v, "findings") {
			fmt.Fprintln(a.Stdout, clean(finding.String()))
		}
		if is(v, "ok") {
			fmt.Fprintln(a.Stdout, "The provider can be used.")
		}
		return nil
	})
	if err == nil && !is(v, "ok") {
		err = fmt.Errorf("the provider cannot be used: %s", clean(str(v, "reason")))
	}
	return err
}

// testDestination prints the result of a test.
func (a *app) testDestination(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	if !is(v, "delivered") {
		err = fmt.Errorf("the test was not delivered: %s", clean(str(v, "error")))
	}
	return errors.Join(a.show(v, func() error {
		if err == nil {
			fmt.Fprintln(a.Stdout, "The test was delivered.")
		}
		return nil
	}), err)
}

// timeline prints what attempts found, by account unless a flag says otherwise.
func (a *app) timeline(ctx context.Context, in *input) error {
	in.set("?groupBy", groupBy(cmp.Or(in.values["by"], "account")))
	return a.listNamed(ctx, in)
}

// listNamed lists rows that show keys, accounts and people by their names.
func (a *app) listNamed(ctx context.Context, in *input) error {
	if err := a.learnNames(ctx, in.client); err != nil {
		return err
	}
	return a.make(ctx, in)
}

// groupBy returns the words of --by as the API has them: its accounts are connections.
func groupBy(by string) string {
	words := strings.Split(by, ",")
	for i, w := range words {
		switch w {
		case "account":
			words[i] = "connection"
		case "person":
			words[i] = "tag:person"
		}
	}
	return strings.Join(words, ",")
}

// signIn shows the code of a sign-in and polls until it has ended.
func (a *app) signIn(ctx context.Context, in *input) error {
	device, err := in.send(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "Open %s and enter the code %s. Waiting for the sign-in; Ctrl-C cancels it.\n",
		clean(str(device, "verificationUri")), clean(str(device, "userCode")))
	base := strings.TrimSuffix(in.path, "/device")
	for wait := num(device, "intervalMs"); ; {
		if !pause(ctx, time.Duration(max(wait, 1))*time.Millisecond) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, err := in.client.call(ctx, "POST", base+"/cancel", map[string]any{})
			return errors.Join(errors.New("the sign-in was canceled"), err)
		}
		v, err := in.client.call(ctx, "POST", base+"/poll", map[string]any{})
		if err != nil {
			return err
		}
		if str(v, "status") != "pending" {
			return a.show(v, func() error { return a.stored(in.said(v.Get("connection")), v.Get("connection")) })
		}
		wait = num(v, "waitMs")
	}
}

// pause waits, and reports false if the command is interrupted meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// usageBy are the words of --by and their columns.
var usageBy = map[string]column{
	"key":      {title: "KEY", path: "keyId", show: named, none: "no key"},
	"account":  {title: "ACCOUNT", path: "connectionId", show: named, none: "no account"},
	"model":    {title: "MODEL", path: "model", none: "unknown model"},
	"provider": {title: "PROVIDER", show: providerOf, none: "no provider"},
	"endpoint": {title: "ENDPOINT", path: "endpoint", none: "other"},
	"month":    {title: "MONTH", path: "month"}, "day": {title: "DAY", path: "day"}, "hour": {title: "HOUR", path: "hour"},
	"tool":   {title: "TOOL", path: "tool", none: "unknown tool"},
	"person": {title: "PERSON", path: "tag", show: personOf, none: "no person"},
}

// usage prints usage and its sum.
func (a *app) usage(ctx context.Context, in *input) error {
	by := in.values["by"]
	if by == "" {
		by = "model"
	}
	columns, rows := []column{}, "groups"
	form, example := time.DateOnly, "a day such as 2026-11-01"
	for _, g := range strings.Split(by, ",") {
		c := usageBy[g]
		if tag, isTag := strings.CutPrefix(g, "tag:"); isTag {
			c = column{title: strings.ToUpper(tag), path: "tag", none: "no " + tag}
		}
		if columns = append(columns, c); g == "month" || g == "day" || g == "hour" {
			rows = "data"
		}
		if g == "hour" {
			form, example = "2006-01-02T15", "an hour such as 2026-11-01T19, for --by hour"
		}
	}
	for _, flag := range [...]string{"from", "to"} {
		if text := in.values[flag]; text != "" {
			if _, err := time.Parse(form, text); err != nil {
				return Usagef("--%s %s: write %s", flag, text, example)
			}
		}
	}
	in.set("?groupBy", groupBy(by))
	if month := in.values["month"]; month != "" {
		t, err := time.Parse("2006-01", month)
		if err != nil || in.query.Has("from") || in.query.Has("to") {
			return Usagef("usage --month %s: write 2026-11, without --from and --to", month)
		}
		in.set("?from", t.Format(time.DateOnly))
		in.set("?to", t.AddDate(0, 1, -1).Format(time.DateOnly))
	}
	if in.values["csv"] != "" {
		return a.csv(ctx, in)
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		if err := a.learnNames(ctx, in.client); err != nil {
			return err
		}
		a.learnPeople(v)
		groups := len(columns)
		columns = append(columns, usageColumns...)
		if !v.Get(rows).Exists() {
			rows = "data"
		}
		list := v.Get(rows).Array()
		t := a.rows(columns, list)
		if _, ok := a.terminal(a.Stdout); ok {
			fmt.Fprintf(a.Stderr, "%s to %s (UTC)\n", clean(str(v, "from")), clean(str(v, "to")))
		}
		sum := a.rows(columns, []gjson.Result{v.Get("total")}).rows[0]
		clear(sum[:groups])
		sum[0].text = "total"
		t.add(sum...)
		return a.print(t)
	})
}

// csv prints the CSV file of a list.
func (a *app) csv(ctx context.Context, in *input) error {
	v, err := in.client.bytes(ctx, "GET", in.path+".csv?"+in.query.Encode(), nil)
	if err == nil {
		_, err = a.Stdout.Write(v)
	}
	return err
}

// learnPeople takes the names of people from an answer.
func (a *app) learnPeople(v gjson.Result) {
	for id, name := range v.Get("people").Map() {
		a.known[id] = name.String()
	}
}

// learnNames reads the names of keys and accounts. A server of one's own is named after its first account too,
// since there may be several.
func (a *app) learnNames(ctx context.Context, c *client) error {
	a.known = map[string]string{}
	servers := map[string][]string{} // the names of their accounts
	for _, path := range []string{"/api/keys", "/api/providers"} {
		v, err := c.call(ctx, "GET", path, nil)
		if err != nil {
			return err
		}
		for _, row := range array(v, "data") {
			name := str(row, "name")
			a.known[str(row, "id")] = name
			id := str(row, "provider")
			if d := provider.Lookup(id); d != nil && d.Compatible {
				servers[id] = append(servers[id], name)
			}
		}
	}
	for id, names := range servers {
		if name := cmp.Or(names...); name != "" {
			if n := len(names) - 1; n > 0 {
				name += fmt.Sprintf(" and %d more", n)
			}
			a.known[id] = name + " (" + provider.Lookup(id).Name + ")"
		}
	}
	gone := map[string]string{}
	a.lastName = func(id string) string {
		name, asked := gone[id]
		if !asked && len(gone) < maxGone {
			name = c.lastName(ctx, id)
			gone[id] = name
		}
		return name
	}
	return nil
}

// maxGone is the number of names that are looked up in the audit log.
const maxGone = 10

// lastName returns the last name of a key or account that is gone, "" for none: a name is not worth an error.
func (c *client) lastName(ctx context.Context, id string) string {
	v, _ := c.call(ctx, "GET", "/api/audit?limit=1&q="+url.QueryEscape(id), nil)
	target, end := str(v, "data.0.target"), " (deleted)" // a key is masked there
	if strings.Contains(str(v, "data.0.action"), "/api/keys") {
		end = " (revoked)"
	}
	names := v.Get("names").Map()
	if name := cmp.Or(names[id].Str, names[target].Str); name != "" {
		return name + end
	}
	return ""
}

// tailTime is the time between two calls of a tail. Requests are listed about two seconds
// after their end.
const tailTime = 2 * time.Second

// requests prints requests, the oldest first, and with -f further ones as they end.
func (a *app) requests(ctx context.Context, in *input) error {
	if err := errors.Join(in.find(ctx, "key", "?key"), in.find(ctx, "account", "?connection")); err != nil {
		return err
	}
	if in.values["csv"] != "" {
		in.query.Del("limit")
		return a.csv(ctx, in)
	}
	if !in.query.Has("limit") {
		in.set("?limit", 20)
	}
	if err := a.learnNames(ctx, in.client); err != nil {
		return err
	}
	for titles := true; ; titles = false {
		v, err := in.send(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil && !titles:
			return nil
		case titles:
			return err
		default: // the next call may be answered
			fmt.Fprintf(a.Stderr, "weir: warning: %v\n", err)
		}
		rows := array(v, "data")
		slices.Reverse(rows)
		if in.values["follow"] == "" {
			return a.show(v, func() error { return a.print(a.rows(requestColumns, rows)) })
		}
		for _, r := range rows {
			in.set("?after", r.Get("seq"))
			in.set("?limit", 200)
			if a.json {
				fmt.Fprintln(a.Stdout, r.Raw)
			}
		}
		if !a.json {
			a.Stdout.Write(a.render(a.rows(requestColumns, rows), titles))
		}
		if !pause(ctx, tailTime) {
			return nil
		}
	}
}

// audit prints the audit log, and says whether it was changed if that was asked.
func (a *app) audit(ctx context.Context, in *input) error {
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	a.known = maps.Clone(auditWords.Actors)
	a.learnPeople(v)
	for id, name := range v.Get("names").Map() {
		a.known[strings.TrimPrefix(id, "person:")], a.known["key:"+id] = name.String(), "key "+name.String()
	}
	rows := array(v, "data")
	if n, _ := strconv.Atoi(in.values["limit"]); n > 0 && n < len(rows) { // of sign-ins, whose pages have one length
		rows = rows[:n]
		raw, _ := sjson.SetRaw(v.Raw, "data", v.Get(fmt.Sprintf("data.#(seq>=%d)#", num(rows[n-1], "seq"))).Raw)
		raw, _ = sjson.Set(raw, "next", num(rows[n-1], "seq"))
		v = gjson.Parse(raw)
	}
	err = a.show(v, func() error { return a.print(a.rows(in.op.columns, rows)) })
	switch chain := v.Get("chain"); {
	case err != nil || !chain.Exists():
	case is(chain, "ok"):
		fmt.Fprintln(a.Stderr, "The digests of all records match.")
	default:
		err = fmt.Errorf("the audit log was damaged or altered at record %d", num(chain, "brokenAt"))
	}
	return err
}

// explain prints the plan of a request.
func (a *app) explain(ctx context.Context, in *input) error {
	if in.body["path"] == nil {
		in.body["path"] = "/v1/chat/completions"
	}
	body := map[string]any{"model": in.args[0], "messages": []any{map[string]any{"role": "user", "content": "Hello"}}}
	if most := in.body["max_tokens"]; most != nil {
		limit := "max_tokens"
		if strings.HasSuffix(in.body["path"].(string), "/responses") {
			limit = "max_output_tokens"
		}
		delete(in.body, "max_tokens")
		body[limit] = most
	}
	in.body["body"] = body
	if err := in.find(ctx, "key", "keyId"); err != nil {
		return err
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error { return a.print(a.rows(planColumns, array(v, "plan"))) })
}

// chat asks a model.
func (a *app) chat(ctx context.Context, in *input) (err error) {
	if err := in.client.needServer(ctx); err != nil {
		return err
	}
	messages := []any{}
	if system := in.values["system"]; system != "" {
		messages = append(messages, map[string]any{"role": "system", "content": system})
	}
	prompt := ""
	if len(in.args) == 2 {
		prompt = in.args[1]
	} else {
		if prompt, err = a.readPrompt(ctx); err != nil {
			return err
		}
	}
	c := *in.client
	send := func(key string) (*http.Response, error) {
		c.token = key
		return c.send(ctx, in.method, in.path, map[string]any{
			"model": in.args[0], "stream": !a.json, "messages": append(messages, map[string]any{"role": "user", "content": prompt})})
	}
	var res *http.Response
	if key, ok := in.body["key"].(string); ok || !c.operator() {
		res, err = send(cmp.Or(key, c.token))
	} else {
		var temporary string
		res, temporary, err = a.callAsOperator(ctx, in.client, send)
		if temporary != "" {
			defer func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
				defer cancel()
				_, removed := in.client.call(ctx, "DELETE", "/api/keys/"+url.PathEscape(temporary), nil)
				err = errors.Join(err, removed)
			}()
		}
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if a.json {
		_, err = io.Copy(a.Stdout, res.Body)
		return err
	}
	return a.printStream(ctx, res)
}

// readPrompt reads the standard input, until Ctrl-C.
func (a *app) readPrompt(ctx context.Context) (string, error) {
	if _, ok := a.terminal(a.Stdin); ok {
		fmt.Fprintln(a.Stderr, "Type the prompt, then Ctrl-D at the start of a line:")
	}
	var raw []byte
	var err error
	done := make(chan struct{})
	go func() { raw, err = io.ReadAll(a.Stdin); close(done) }() // it goes on after Ctrl-C, which ends the program
	select {
	case <-done:
		return string(raw), err
	case <-ctx.Done():
		return "", errors.New("interrupted")
	}
}

// callLife is how long a key of weir call is valid.
const callLife = time.Hour

// callKey is its name.
const callKey = "weir call"

// callAsOperator calls a model with a key that is created for the calls of an hour, since the
// operator token calls none. It is stored with the gateways; where it cannot be, its id is
// returned, and it is to be removed.
func (a *app) callAsOperator(ctx context.Context, c *client, send func(key string) (*http.Response, error)) (
	res *http.Response, temporary string, err error) {
	prefix, err := c.machinePrefix(ctx)
	if err != nil {
		return nil, "", err
	}
	stored, unreadable := a.readGateways()
	place := c.base + prefix
	if old := stored.Calls[place]; old != "" {
		res, err := send(old)
		if e := (*apiError)(nil); !errors.As(err, &e) || e.code() != "invalid_api_key" {
			return res, "", err // the provider's 401 is account_key_refused
		}
		if parts := strings.Split(old, "-"); len(parts) == 4 { // sk-MACHINE-KEY-CHECK
			_, _ = c.call(ctx, "DELETE", "/api/keys/"+url.PathEscape(parts[2]), nil) // it may be gone
		}
	}
	v, err := c.call(ctx, "POST", "/api/keys", map[string]any{
		"name": callKey, "scopes": []string{"data"}, "expiresAt": a.Now().Add(callLife).UnixMilli()})
	if err != nil {
		return nil, "", err
	}
	key := str(v, "apiKey")
	if stored.Calls == nil {
		stored.Calls = map[string]string{}
	}
	stored.Calls[place] = key
	if unreadable != nil || a.writeGateways(stored) != nil {
		temporary = str(v, "id")
	}
	res, err = send(key)
	return res, temporary, err
}

// printStream prints the texts of a stream of chat completions.
func (a *app) printStream(ctx context.Context, res *http.Response) error {
	defer fmt.Fprintln(a.Stdout)
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); !ok {
			continue
		} else if data == "[DONE]" {
			return nil
		}
		v := gjson.Parse(data)
		if has(v, "error") {
			return &apiError{status: res.StatusCode, body: []byte(data)}
		}
		fmt.Fprint(a.Stdout, printable(str(v, "choices.0.delta.content")))
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return fmt.Errorf("the answer of request %s breaks off", res.Header.Get("X-Request-Id"))
}

// setup prints what sets up a tool.
func (a *app) setup(ctx context.Context, in *input) error {
	list, err := in.client.call(ctx, "GET", in.path, nil)
	if err != nil {
		return err
	}
	if len(in.args) == 0 {
		return a.show(list, func() error { return a.print(a.rows(toolColumns, array(list, "data"))) })
	}
	var tools []string
	for _, t := range array(list, "data") {
		tools = append(tools, str(t, "id"))
		if str(t, "id") != in.args[0] || is(t, "script") {
			continue
		}
		return a.show(t, func() error { return a.toolTexts(ctx, in, t) })
	}
	if !slices.Contains(tools, in.args[0]) {
		return fmt.Errorf("no tool is called %q; %sweir setup lists them", in.args[0], maybe(closest(in.args[0], tools)))
	}
	v, err := in.send(ctx)
	if e := (*apiError)(nil); errors.As(err, &e) && in.body["model"] == nil && e.param() == "model" {
		return fmt.Errorf("%w Name one of weir models: weir setup %s --model MODEL", err, in.args[0])
	}
	if err != nil {
		return err
	}
	for _, field := range []string{"model", "smallModel"} {
		if name, _ := in.body[field].(string); strings.Contains(name, "/") {
			if err := a.warnUnlisted(ctx, in, "llm", name); err != nil {
				return err
			}
		}
	}
	shell := "sh"
	if runtime.GOOS == "windows" {
		shell = "ps1"
	}
	return a.show(v, func() error {
		if _, ok := a.terminal(a.Stdout); ok {
			fmt.Fprintln(a.Stderr, "Run this within five minutes on the computer of the tool:")
		}
		_, err := fmt.Fprintln(a.Stdout, v.Get("command."+shell))
		return err
	})
}

// toolTexts prints the settings of a tool without a script, with the address, the models and a new key.
func (a *app) toolTexts(ctx context.Context, in *input, tool gjson.Result) error {
	known := map[string]string{"URL": in.client.base}
	if in.client.token == "" { // a server of this computer, which may be stopped
		v, _ := in.client.call(ctx, "GET", "/server", nil)
		known["URL"] = str(v, "address")
	}
	s, _ := in.client.call(ctx, "GET", "/api/settings", nil) // which a member may not read
	known["MODEL"] = cmp.Or(in.values["model"], str(s, "defaultModel"))
	if known["MODEL"] == "" { // as the dashboard does; a machine without accounts lists the whole catalogue
		accounts, _ := in.client.call(ctx, "GET", "/api/providers", nil)
		if accounts.Get("data.#(isActive==true)").Exists() {
			list, _ := in.client.call(ctx, "GET", "/api/models/list/llm", nil)
			known["MODEL"] = str(list, "data.0.id")
		}
	}
	known["SMALL"] = cmp.Or(in.values["small-model"], str(s, "smallModel"), known["MODEL"])
	name := str(tool, "name")
	at, err := url.Parse(known["URL"])
	if is(tool, "public") && (err != nil || at.Scheme != "https" || IsLoopback(at.Hostname())) {
		fmt.Fprintf(a.Stderr, "weir: warning: %s's servers make the calls, and cannot reach %s: the gateway needs a public https:// address, such as that of a tunnel\n",
			clean(name), clean(known["URL"]))
	}
	keys, err := in.client.call(ctx, "GET", "/api/keys", nil)
	if err != nil {
		return err
	}
	next := fmt.Sprintf("There is a key %s already: weir keys rotate %s prints another text of it.", clean(name), ShellWord(name))
	if !slices.ContainsFunc(array(keys, "data"), func(k gjson.Result) bool { return str(k, "name") == name }) {
		made, err := in.client.call(ctx, "POST", "/api/keys", map[string]any{"name": name})
		if err != nil {
			return err
		}
		known["KEY"], next = str(made, "apiKey"), fmt.Sprintf("The key %s is created. It is shown this once.", clean(name))
	}
	if known["MODEL"] == "" {
		next += " weir models lists what stands for PROVIDER/MODEL."
	}
	fill := strings.NewReplacer("__URL__", known["URL"], "__KEY__", cmp.Or(known["KEY"], "YOUR_KEY"),
		"__MODEL__", cmp.Or(known["MODEL"], "PROVIDER/MODEL"), "__SMALL__", cmp.Or(known["SMALL"], "PROVIDER/MODEL"))
	for _, text := range array(tool, "texts") {
		fmt.Fprintf(a.Stderr, "%s:\n", clean(str(text, "where")))
		fmt.Fprintf(a.Stdout, "%s\n", printable(fill.Replace(str(text, "text"))))
	}
	fmt.Fprintln(a.Stderr, next)
	return nil
}

// warnSaved warns of models of what was saved that the server of a compatible account does not list.
func (a *app) warnSaved(ctx context.Context, in *input) error {
	names, _ := in.body["models"].([]string)
	prices, _ := in.body["modelPrices"].(map[string]any)
	if names = append(slices.Sorted(maps.Keys(prices)), names...); len(names) == 0 {
		return nil
	}
	return a.warnUnlisted(ctx, in, "all", names...)
}

// warnUnlisted warns of models that no account lists: of the kind all, of those of servers that have listed
// theirs. The API refuses names that are wrong whatever the accounts have, but providers may have models that
// they do not list.
func (a *app) warnUnlisted(ctx context.Context, in *input, kind string, names ...string) error {
	list, err := in.client.call(ctx, "GET", "/api/models/list/"+kind, nil)
	if err != nil {
		return err
	}
	var models, complete []string
	for _, m := range array(list, "data") {
		models = append(models, str(m, "id"))
	}
	for _, prefix := range array(list, "complete") {
		complete = append(complete, prefix.Str)
	}
	for _, name := range names {
		prefix, _, _ := strings.Cut(name, "/")
		unsure := kind == "all" && !slices.Contains(complete, prefix) || strings.HasSuffix(name, "*")
		if !unsure && !slices.Contains(models, name) {
			fmt.Fprintf(a.Stderr, "weir: warning: weir models does not list %s; %sweir call %[1]s Hello tries it\n",
				name, maybe(catalog.Closest(name, models)))
		}
	}
	return nil
}

// maybe returns a question for a name that may be meant, "" without one.
func maybe(name string) string {
	if name == "" {
		return ""
	}
	return "did you mean " + name + "? "
}

// export writes the configuration to a file or the standard output.
func (a *app) export(ctx context.Context, in *input) (err error) {
	if in.values["sealed"] != "" && in.body["passphrase"] == nil {
		if in.body["passphrase"], err = a.secret("Passphrase"); err != nil {
			return err
		}
	}
	if len(in.body) > 0 {
		in.method = "POST"
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.writeFile(cmp.Or(in.args...), in, []byte(v.Raw+"\n"))
}

// importFile sends the configuration of a file.
func (a *app) importFile(ctx context.Context, in *input) error {
	raw, err := a.readFile(in.args[0])
	if err != nil {
		return err
	}
	doc := gjson.ParseBytes(raw)
	if !gjson.ValidBytes(raw) || !doc.IsObject() {
		return fmt.Errorf("%s: it is not a document of weir export", in.args[0])
	}
	in.body["document"] = doc.Value()
	if has(doc, "ciphertext") && in.body["passphrase"] == nil {
		if in.body["passphrase"], err = a.secret("Passphrase"); err != nil {
			return err
		}
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		if changes := v.Get("changes"); changes.Exists() {
			return a.printSteps(a.Stdout, previewed(changes), "")
		}
		return a.record(v)
	})
}

// previewed returns the changes that an import would make as steps.
func previewed(changes gjson.Result) (steps []step) {
	for _, kind := range array(changes, "@keys") {
		for _, of := range []struct{ action, list string }{{"create", "added"}, {"change", "changed"}, {"delete", "deleted"}} {
			for _, name := range changes.Get(kind.Str + "." + of.list).Array() {
				steps = append(steps, step{Action: of.action, Kind: kind.Str, Name: name.String()})
			}
		}
	}
	return steps
}

// readFile reads a file, or the standard input for -.
func (a *app) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(a.Stdin)
	}
	return os.ReadFile(path)
}

// api makes any call.
func (a *app) api(ctx context.Context, in *input) error {
	if !strings.HasPrefix(in.args[1], "/") {
		return Usagef("api: %q is not a path; write one as /api/keys", in.args[1])
	}
	var body any
	if name := in.values["body"]; name != "" {
		raw, err := a.readFile(name)
		if err != nil {
			return err
		}
		body = raw
	}
	c, err := a.open(ctx)
	if err != nil {
		return err
	}
	raw, err := c.bytes(ctx, strings.ToUpper(in.args[0]), in.args[1], body)
	if err == nil && len(raw) > 0 {
		_, err = fmt.Fprintf(a.Stdout, "%s\n", bytes.TrimRight(raw, "\n"))
	}
	return err
}
