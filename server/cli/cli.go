// Package cli has the commands of weir that use a gateway: a server of this computer by its
// data directory, or any gateway by its URL. A command is a row of commands, one call of the
// HTTP API; see docs/guides/command-line.md.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// Host is what the program does for the commands.
type Host struct {
	Env            func(string) (string, bool)
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string
	Now            func() time.Time
	// Local returns a transport to the gateway of a data directory, which lends calls
	// without a credential the operator's. "" is the usual directory. The transport is
	// closed when the command ends.
	Local func(ctx context.Context, data string) (http.RoundTripper, func() error, error)
	// Security examines the server of a data directory, and returns what is not safe and what
	// to do, a line each.
	Security func(ctx context.Context, data string) ([]string, error)
}

// UsageError is a mistake in the command line or in a setting.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// app is one run of a command.
type app struct {
	Host
	gateway, data, machine string // flags of all commands
	json, yes              bool
	empty                  string                 // what a list without rows says
	known                  map[string]string      // names of keys and accounts by id
	lastName               func(id string) string // the name of one that is gone, nil where names are not read
	close                  func() error           // releases the local gateway
}

// op is a command: as a rule one call of the API.
type op struct {
	use, short, long string
	call             string         // method and path; {id} is the row that the first argument names
	args             []string       // where the other arguments go: a field of the body, ?name of the query, name… for all
	fields           []field        // flags
	body             map[string]any // fields that are always sent
	columns          []column       // of the rows of an answer; without them people see its fields
	member           string         // of the answer, which is shown
	wrap             bool           // the last column, in place of cutting it
	ask              bool           // before the call
	done             string         // what the call has done; %s is the first argument. See input.said
	run              func(*app, context.Context, *input) error
}

// group is a command with commands in it. Alone it is the first of them.
type group struct {
	name, what, short string
	ops               []op
}

// input is a command line that was read: the call that it describes.
type input struct {
	op           *op
	what         string // a row: key, account
	args         []string
	client       *client // nil for commands that name no call
	method, path string
	query        url.Values
	body         map[string]any
	values       map[string]string // of the flags that are set, by name
}

// Commands returns the commands in the order of the help.
func Commands(h Host) (all []*cobra.Command) {
	a := &app{Host: h}
	for i, g := range commands() {
		c := a.command(i, g, g.ops[0])
		for j, o := range g.ops {
			if g.short == "" {
				break // a command alone
			}
			c.Use, c.Short, c.Long, c.Example = g.name, g.short, "", ""
			if line := examples[g.name]; line != "" {
				c.Example = "weir " + line
			}
			if g.what != "" {
				c.Aliases = []string{g.what}
			}
			c.AddCommand(a.command(j, g, o))
		}
		f := c.PersistentFlags()
		f.SortFlags = false
		f.StringVar(&a.gateway, "gateway", "", "`NAME` of a gateway of weir login, or its URL with the credential in WEIR_TOKEN (WEIR_GATEWAY)")
		f.StringVar(&a.data, "data", "", "`FOLDER` of the data of a server on this computer (DATA_DIR)")
		f.StringVar(&a.machine, "machine", "", "`NAME` or id of the machine, if there are several (WEIR_MACHINE)")
		f.BoolVar(&a.json, "json", false, "print the answer of the API")
		all = append(all, c)
	}
	return all
}

// command returns the command of an op, which is number i of its list. Ctrl-C ends its context.
func (a *app) command(i int, g group, o op) *cobra.Command {
	words := strings.Fields(o.use)
	full := strings.TrimSpace(g.name + " " + words[0])
	c := &cobra.Command{Use: o.use, Short: o.short, Long: o.long, Args: cobra.ArbitraryArgs,
		Aliases:     aliases[words[0]],
		Annotations: map[string]string{"order": fmt.Sprintf("%02d", i)}}
	if line := examples[full]; line != "" {
		c.Example = "weir " + line
	}
	c.Flags().SortFlags = false
	for _, f := range o.fields {
		f.add(c, full)
	}
	if o.ask {
		c.Flags().BoolVar(&a.yes, "yes", false, "ask nothing")
	}
	least, most := 0, 0
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "[") {
			least++
		}
		if most++; strings.HasSuffix(word, "…") {
			most = 1 << 20
		}
	}
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		name := path(c)
		if name == "plan" { // whose exit code 2 is a difference
			defer func() {
				if errors.As(err, new(*UsageError)) {
					err = errors.New(err.Error())
				}
			}()
		}
		a.empty = nothing(c)
		switch {
		case len(args) > most && c.HasSubCommands():
			return UnknownCommand(c, args)
		case len(args) < least:
			return Usagef("%s: it takes %s; weir help %[1]s shows how to call it", name, strings.Join(words[1:], " "))
		case len(args) > most:
			return Usagef("%s: unexpected argument %q; weir help %[1]s shows how to call it", name, args[most])
		}
		for i, word := range words[1:] {
			if values := choiceOf(full, word); values != nil && i < len(args) {
				if err := values.check(word, args[i]); err != nil {
					return err
				}
			}
		}
		for _, f := range o.fields {
			if err := f.check(c, full); err != nil {
				return err
			}
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
		defer stop()
		defer func() {
			if a.close != nil {
				err = errors.Join(err, a.close())
			}
		}()
		in, err := a.read(ctx, c, &o, g.what, args)
		if err != nil {
			return err
		}
		if o.run != nil {
			return o.run(a, ctx, in)
		}
		return a.make(ctx, in)
	}
	if of := completions[o.use[strings.LastIndexByte(o.use, ' ')+1:]]; strings.Contains(o.call, "{id}") || of != "" {
		c.ValidArgsFunction = a.complete(of, o.call)
	}
	return c
}

// aliases are the words that other command lines have for a command.
var aliases = map[string][]string{
	"ls": {"list"}, "add": {"create"}, "rm": {"delete", "remove"}, "revoke": {"rm", "delete", "remove"}, "show": {"get"},
	"set": {"update"},
}

// elsewhere are the words that other programs have for a command.
var elsewhere = map[string]string{
	"start": "serve", "run": "serve", "up": "serve", "link": "init", "dashboard": "init", "providers": "accounts providers",
	"log": "requests -f", "logs": "requests -f", "config": "settings", "install": "service install", "uninstall": "service uninstall",
	"update": "upgrade", "connect": "setup", "tools": "setup", "users": "people", "team": "people", "cost": "usage", "spend": "usage",
}

// UnknownCommand returns the error of a word that is no command of c.
func UnknownCommand(c *cobra.Command, args []string) error {
	c.SuggestionsMinimumDistance = 2
	of, name := "", strings.Join(args, " ")
	if c.HasParent() {
		of = " " + path(c)
		name = path(c) + " " + args[0]
	}
	if other := elsewhere[args[0]]; other != "" && of == "" {
		return Usagef("unknown command %q; did you mean weir %s?", name, other)
	}
	near := c.SuggestionsFor(args[0])
	if of == "" { // of which cobra leaves out its own
		help := &cobra.Command{SuggestionsMinimumDistance: 2}
		help.AddCommand(&cobra.Command{Use: "help", Run: func(*cobra.Command, []string) {}})
		near = append(near, help.SuggestionsFor(args[0])...)
	}
	if len(near) > 0 {
		return Usagef("unknown command %q; did you mean weir%s %s?", name, of, strings.Join(near, " or "))
	}
	if of != "" {
		return Usagef("unknown command %q; weir help%s lists the commands", name, of)
	}
	return Usagef("unknown command %q; weir help lists the commands", name)
}

// empties are what lists without rows say, where that is more than their name.
var empties = map[string]string{
	"accounts outages":   "No provider of the accounts has a status page that weir reads.",
	"captures":           "No captures. To store prompts and answers: weir settings set capturePercent=100",
	"accounts quota":     "No account has stated its limits yet: providers state them in their answers.",
	"identity-providers": "No identity providers. weir identity-providers add NAME ISSUER CLIENT adds one.",
	"gateways":           "No gateways. To add one: weir login URL",
	"keys networks":      "The key was used from no network yet.",
	"models":             "No models of this kind. To get some: weir accounts add PROVIDER",
}

// nothing returns what a list without rows says, and how to add one.
func nothing(c *cobra.Command) string {
	if text := empties[strings.TrimSuffix(path(c), " ls")]; text != "" {
		return text
	}
	list := c
	if c.HasSubCommands() {
		list, _, _ = c.Find([]string{"ls"})
	}
	what, ok := strings.CutPrefix(list.Short, "list ")
	if !ok {
		return "There is nothing to show."
	}
	what, _, _ = strings.Cut(what, ", and why")
	if list.Name() != "ls" || !list.HasParent() {
		return "No " + strings.TrimPrefix(what, "the ") + "."
	}
	text := "No " + strings.ReplaceAll(list.Parent().Name(), "-", " ") + "."
	for _, one := range list.Parent().Commands() {
		if name := one.Name(); name == "add" || name == "invite" {
			text += " To " + name + " one: weir " + list.Parent().Name() + " " + one.Use
		}
	}
	return text
}

// path returns the words of a command behind the program's name.
func path(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// read reads the command line into the call that it describes.
func (a *app) read(ctx context.Context, c *cobra.Command, o *op, what string, args []string) (in *input, err error) {
	in = &input{op: o, what: what, args: args, query: url.Values{}, body: map[string]any{}, values: map[string]string{}}
	for k, v := range o.body {
		in.body[k] = v
	}
	for _, f := range o.fields {
		if err := f.read(a, c, in); err != nil {
			return nil, err
		}
	}
	if o.call == "" {
		return in, nil
	}
	if in.client, err = a.open(ctx); err != nil {
		return nil, err
	}
	in.method, in.path, _ = strings.Cut(o.call, " ")
	if before, after, ok := strings.Cut(in.path, "{id}"); ok {
		id, err := in.client.find(ctx, what, strings.TrimSuffix(before, "/"), args[0])
		if err != nil {
			return nil, err
		}
		in.path, args = before+url.PathEscape(id)+after, args[1:]
	} else if before, after, ok := strings.Cut(in.path, "{}"); ok && len(args) > 0 {
		in.path, args = before+url.PathEscape(args[0])+after, args[1:]
	}
	for i, name := range o.args {
		if list, ok := strings.CutSuffix(name, "…"); ok {
			in.body[list] = args[i:]
		} else if i < len(args) {
			in.set(name, args[i])
		}
	}
	return in, nil
}

// set sets a field of the body, or of one object in it, or ?name of the query.
func (in *input) set(name string, v any) {
	if q, ok := strings.CutPrefix(name, "?"); ok {
		in.query.Set(q, fmt.Sprint(v))
		return
	}
	to := in.body
	if outer, inner, nested := strings.Cut(name, "."); nested {
		if _, ok := to[outer].(map[string]any); !ok {
			to[outer] = map[string]any{}
		}
		to, name = to[outer].(map[string]any), inner
	}
	to[name] = v
}

// send makes the call of an input.
func (in *input) send(ctx context.Context) (gjson.Result, error) {
	path := in.path
	if len(in.query) > 0 {
		path += "?" + in.query.Encode()
	}
	var body any
	if in.method != "GET" && in.method != "DELETE" && (len(in.body) > 0 || in.method != "POST") {
		body = in.body
	}
	v, err := in.client.call(ctx, in.method, path, body)
	if e := (*apiError)(nil); errors.As(err, &e) {
		e.op = in.op
	}
	return v, err
}

// make makes the call of an input and prints the answer.
func (a *app) make(ctx context.Context, in *input) error {
	if in.method == "PUT" && len(in.op.fields) > 0 && len(in.body) == 0 {
		return Usagef("name a field to change; weir help lists the flags of a command")
	}
	if in.op.ask {
		question, more, _ := strings.Cut(in.op.short, ": ")
		if len(in.args) > 0 {
			named := strings.Join(in.args, " ")
			before, after, ok := strings.Cut(strings.Replace(question, " an ", " a ", 1), " a "+in.what)
			if question += ": " + named; ok {
				question = before + " the " + in.what + " " + named + after
			}
		}
		if question += "?"; more != "" {
			question += " " + capital(more) + "."
		}
		if err := a.confirm(capital(question)); err != nil {
			return err
		}
	}
	if in.op.call == "GET /api/machines" && !a.json { // all pages
		rows, err := in.client.machines(ctx, in.query)
		if err != nil {
			return err
		}
		columns := in.op.columns
		if in.query.Has("deleted") {
			columns, a.empty = deletedColumns, "No deleted machines that can be restored."
		}
		return a.print(a.rows(columns, rows))
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	if err := a.warnSaved(ctx, in); err != nil {
		return err
	}
	if a.known != nil {
		a.learnPeople(v)
	}
	return a.show(v, func() error {
		switch {
		case in.op.columns != nil:
			t := a.rows(in.op.columns, v.Get(cmp.Or(in.op.member, "data")).Array())
			t.wrap = in.op.wrap
			return a.print(t)
		case described[in.what] && strings.HasPrefix(in.op.use, "show "):
			return a.describe(ctx, in.client, v)
		case in.method == "GET" && in.op.member != "":
			return a.record(v.Get(in.op.member))
		case in.method == "GET":
			return a.record(v)
		}
		return a.stored(in.said(v), v)
	})
}

// capital returns a text that begins with a capital.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// participles say what a command has done, by its first word.
var participles = map[string]string{"set": "changed", "rename": "renamed", "rotate": "rotated", "pause": "paused",
	"resume": "resumed", "restore": "restored", "rm": "deleted", "revoke": "revoked", "add": "created",
	"account add": "connected", "account sign-in": "connected", "identity-provider add": "added", "model add": "stored"}

// said returns what a call has done: The key laptop (id) is paused.
func (in *input) said(v gjson.Result) string {
	if in.op.done != "" {
		return strings.Replace(in.op.done, "%s", strings.Join(in.args[:min(len(in.args), 1)], ""), 1)
	}
	verb, _, _ := strings.Cut(in.op.use, " ")
	name := rowName(v)
	if verb == "add" && strings.HasPrefix(name, "(") && len(in.args) > 0 { // the answer has no name
		name = in.args[0] + " " + name
	}
	return fmt.Sprintf("The %s %s is %s.", in.what, cmp.Or(name, strings.Join(in.args, "/")),
		cmp.Or(participles[in.what+" "+verb], participles[verb], "stored"))
}

// rowName returns the name and the id of a row, "" without an id.
func rowName(v gjson.Result) string {
	id := cmp.Or(str(v, "id"), str(v, "machineId"))
	if id == "" {
		return ""
	}
	return strings.TrimSpace(clean(str(v, "name")) + " (" + id + ")")
}

// show prints an answer of the API with --json, else calls people.
func (a *app) show(v gjson.Result, people func() error) error {
	if !a.json || v.Raw == "" {
		return people()
	}
	_, err := fmt.Fprintln(a.Stdout, strings.TrimSpace(v.Raw))
	return err
}

// stored prints what a change has done, and what it has stored: secrets, which are shown once, on the standard
// output, and the rest on the other.
func (a *app) stored(said string, v gjson.Result) error {
	if w := str(v, "warning"); w != "" {
		fmt.Fprintln(a.Stderr, "weir: warning: "+clean(w))
	}
	fmt.Fprintln(a.Stderr, said)
	for _, one := range [...][2]string{{"apiKey", "The key"}, {"webhookSecret", "Its secret"}} {
		if s := str(v, one[0]); s != "" {
			fmt.Fprintln(a.Stderr, one[1]+", which is shown this once:")
			fmt.Fprintln(a.Stdout, s)
		}
	}
	return nil
}

// completions are the lists by which an argument is completed, by its name in the usage.
var completions = map[string]string{
	"PROVIDER": "/api/catalog/providers", "MODEL": "/api/models/list/llm", "[PROMPT]": "/api/models/list/llm", "[TOOL]": "/api/setup",
}

// complete returns a function that completes the first argument by the ids of a list, or by
// the names of the rows of a call.
func (a *app) complete(list, call string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		c, err := a.open(ctx)
		if a.close != nil {
			defer a.close()
		}
		if err != nil || len(args) > 0 {
			return nil, none
		}
		field := "id"
		if list == "" {
			_, list, _ = strings.Cut(call, " ")
			list, _, _ = strings.Cut(list, "/{id}")
			field = "name"
		}
		v, _ := c.call(ctx, "GET", list, nil) // without an answer nothing is completed
		for _, r := range array(v, "data") {
			out = append(out, clean(str(r, field)))
		}
		return slices.Compact(out), none
	}
}
