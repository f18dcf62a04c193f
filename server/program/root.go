package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"weir/pkg/catalog"
	"weir/server/cli"
)

// The groups of commands in the help.
const (
	serverGroup = "server"
	clientGroup = "client"
)

// lastOrder is the order of the commands of the command line itself.
const lastOrder = "99"

// command parses the command line and runs its command.
func (r *run) command(args []string) error {
	switch args[0] {
	case "-h", "-help":
		args[0] = "--help"
	case "-v", "-version", "--version":
		args[0] = "version"
	}
	root := r.root()
	root.SetArgs(doubleDashes(args))
	return root.ExecuteContext(context.Background())
}

// root returns the tree of commands.
func (r *run) root() *cobra.Command {
	root := &cobra.Command{
		Use: "weir", Short: "weir is an AI gateway: one address and one key for the model providers that you use",
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil // only with -h, which cobra serves
			}
			return cli.UnknownCommand(cmd, args)
		},
	}
	root.SetIn(r.stdin)
	root.SetOut(r.stdout)
	root.SetErr(r.stderr)
	root.AddGroup(&cobra.Group{ID: serverGroup, Title: "Run a server:"}, &cobra.Group{ID: clientGroup, Title: "Use a gateway:"})
	for i, c := range commands() {
		root.AddCommand(r.serverCommand(i, c))
	}
	for _, c := range cli.Commands(cli.Host{
		Env: r.env, Stdin: r.stdin, Stdout: r.stdout, Stderr: r.stderr, Version: r.version(), Now: r.now(), Local: r.local,
		Security: r.security,
	}) {
		c.GroupID = clientGroup
		root.AddCommand(c)
	}
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID(clientGroup)
	root.SetCompletionCommandGroupID(clientGroup)
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Use, c.Short = "completion SHELL", "print the completion script of a shell"
		c.Long = completionText
		c.Annotations = map[string]string{"order": lastOrder}
		for _, shell := range c.Commands() {
			shell.Short = "print the script of " + shell.Name()
		}
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Mistyped("completion", args[0], args[0], shells)
			}
			return usagef("completion: name a shell: bash, zsh, fish or powershell")
		}
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(r.stdout, c, helpWidth(r.stdout)) })
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		name := commandName(c)
		if name == "plan" { // whose exit code 2 is a difference
			return fmt.Errorf("plan: %s weir help plan lists the flags", flagMistake(c, err))
		}
		return usagef("%s: %s weir help %s lists the flags", name, flagMistake(c, err), name)
	})
	return root
}

// shells are those that completion knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

const completionText = "To load it:\n" +
	"  weir completion bash > ~/.local/share/bash-completion/completions/weir\n" +
	"  weir completion zsh > \"${fpath[1]}/_weir\"\n" +
	"  weir completion fish > ~/.config/fish/completions/weir.fish\n" +
	"  weir completion powershell | Out-String | Invoke-Expression"

// serverCommand returns row i of commands as a command of cobra.
func (r *run) serverCommand(i int, c command) *cobra.Command {
	f := newFlags(c)
	cmd := &cobra.Command{
		Use: c.name + c.args, Short: c.summary, Long: c.text, GroupID: serverGroup, Args: cobra.ArbitraryArgs,
		Example:     c.example,
		Annotations: map[string]string{"order": fmt.Sprintf("%02d", i)},
		RunE: func(_ *cobra.Command, args []string) error {
			if c.args == "" && len(args) > 0 {
				return usagef("%s: unexpected argument %q; weir help %s shows how to call it", c.name, args[0], c.name)
			}
			f.args = args
			return c.run(r, f)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(f.FlagSet)
	return cmd
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "print the commands, or the flags of one", Args: cobra.ArbitraryArgs,
		Annotations: map[string]string{"order": lastOrder},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			word := func(r rune) bool { return r == ' ' || r == '|' }
			if err != nil || len(rest) > 0 && !slices.Contains(strings.FieldsFunc(c.Use, word), rest[0]) { // token rotate
				return cli.UnknownCommand(c, rest)
			}
			return c.Help()
		},
	}
}

// commandName returns the words of a command behind the program's name.
func commandName(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// doubleDashes returns arguments with two dashes before the flags of the server's commands,
// which may have one.
func doubleDashes(args []string) []string {
	names := []string{"name", "force", "help"}
	for _, s := range settingTable() {
		names = append(names, s.flag)
	}
	out := slices.Clone(args)
	for i, a := range out {
		if a == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		if strings.HasPrefix(a, "-") && slices.Contains(names, name) {
			out[i] = "-" + a
		}
	}
	return out
}

// flagMistake returns an error of pflag in the spelling of the help, up to the text that follows.
func flagMistake(c *cobra.Command, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "unknown flag: "); ok {
		var known []string
		c.Flags().VisitAll(func(one *pflag.Flag) { known = append(known, "--"+one.Name) })
		if near := catalog.Closest(name, known); near != "" {
			return "unknown flag " + name + "; did you mean " + near + "?"
		}
		return "unknown flag " + name + ";"
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "the flag " + name + " needs a value;"
	}
	if letter, arg, ok := strings.Cut(text, "' in "); ok && strings.HasPrefix(text, "unknown shorthand") {
		if strings.Contains(c.Use, "LIMIT") && unicode.IsDigit(rune(arg[1])) {
			return "LIMIT " + arg + ": the amount must be a number greater than 0;"
		}
		return "unknown flag -" + letter[len(letter)-1:] + ";"
	}
	return text + ";"
}

// helpWidth returns the width of help: that of the terminal, without one 80.
func helpWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return min(max(width, 40), 100)
		}
	}
	return 80
}

// indented returns a text in lines of a width, each behind spaces.
func indented(text string, indent, width int) string {
	return strings.Join(cli.Lines(text, width-indent), "\n"+strings.Repeat(" ", indent))
}

// filled returns a text whose lines have a width, without those that begin with a space, such as commands.
func filled(text string, width int) string {
	verbatim := func(line string) bool { return line == "" || line[0] == ' ' || line[0] == '\t' }
	var all []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if last := len(all) - 1; last < 0 || verbatim(line) || verbatim(all[last]) {
			all = append(all, line)
		} else {
			all[last] += " " + line
		}
	}
	for i, line := range all {
		if !verbatim(line) {
			all[i] = indented(line, 0, width)
		}
	}
	return strings.Join(all, "\n")
}

// printHelp prints a command: its text, its commands and its flags.
func printHelp(w io.Writer, c *cobra.Command, width int) {
	if !c.HasParent() {
		fmt.Fprintf(w, "%s\n\nUsage: weir COMMAND [flags]\n", filled(c.Short+".", width))
	} else {
		usage := strings.TrimSuffix(c.UseLine(), " [flags]")
		if c.HasAvailableSubCommands() {
			usage += " [COMMAND]"
		}
		if c.HasAvailableFlags() {
			usage += " [flags]"
		}
		short := strings.ToUpper(c.Short[:1]) + strings.TrimSuffix(c.Short[1:], ".") + "."
		fmt.Fprintf(w, "%s\n\nUsage: %s\n", filled(short, width), indented(usage, len("Usage: "), width))
	}
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", filled(c.Long, width))
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\nExample:\n\n  %s\n", c.Example)
	}
	printCommands(w, c, width)
	if !c.HasParent() {
		fmt.Fprintf(w, "\n%s\n\n  weir serve\n",
			filled("weir help COMMAND lists the flags of a command and their variables. To start:", width))
		return
	}
	own, common := pflag.NewFlagSet("", 0), pflag.NewFlagSet("", 0)
	own.SortFlags, common.SortFlags = false, false
	ofAll := c.PersistentFlags() // of a command in a group those of the group
	if c.HasInheritedFlags() {
		ofAll = c.Parent().PersistentFlags()
	}
	ofAll.VisitAll(common.AddFlag)
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if ofAll.Lookup(f.Name) == nil {
			own.AddFlag(f)
		}
	})
	printFlags(w, "Flags", own, width)
	printFlags(w, "Flags of all commands that use a gateway", common, width)
	if c.Name() != "serve" {
		return
	}
	fmt.Fprint(w, "\nVariables of the environment without a flag:\n")
	names, list := "", variables()
	for i, v := range list { // those with the same text are one entry
		if names += v.name; v.file {
			names += ", " + v.name + "_FILE"
		}
		if i+1 < len(list) && list[i+1].help == v.help {
			names += ", "
			continue
		}
		fmt.Fprintf(w, "  %s\n        %s\n", indented(names, 2, width), indented(v.help, 8, width))
		names = ""
	}
}

// printCommands prints the commands of a command by group.
func printCommands(w io.Writer, c *cobra.Command, width int) {
	groups := c.Groups()
	if len(groups) == 0 && c.HasAvailableSubCommands() {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s\n\n", g.Title)
		for _, one := range inOrder(c) {
			if one.GroupID != g.ID || !one.IsAvailableCommand() && one.Name() != "help" {
				continue
			}
			use := one.Use
			if len(use) > 22 {
				use += "\n" + strings.Repeat(" ", 24)
			}
			fmt.Fprintf(w, "  %-22s %s\n", use, indented(one.Short, 25, width))
		}
	}
}

// inOrder returns the commands of a command by their annotation order, which cobra sorts by name.
func inOrder(c *cobra.Command) []*cobra.Command {
	list := slices.Clone(c.Commands())
	slices.SortStableFunc(list, func(x, y *cobra.Command) int {
		return strings.Compare(x.Annotations["order"], y.Annotations["order"])
	})
	return list
}

func printFlags(w io.Writer, title string, f *pflag.FlagSet, width int) {
	titled := false
	f.VisitAll(func(one *pflag.Flag) {
		if one.Hidden || one.Name == "help" {
			return
		}
		if !titled {
			fmt.Fprintf(w, "\n%s:\n", title)
			titled = true
		}
		value, help := pflag.UnquoteUsage(one)
		variable := ""
		if s := one.Annotations["setting"]; len(s) == 2 {
			if value = s[0]; s[1] != "" {
				variable = " (" + s[1] + ")"
			}
		}
		if value != "" {
			value = " " + value
		}
		name := "--" + one.Name
		if one.Shorthand != "" {
			name = "-" + one.Shorthand + ", " + name
		}
		fmt.Fprintf(w, "  %s%s%s\n        %s\n", name, value, variable, indented(help, 8, width))
	})
}
