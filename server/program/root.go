package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
		c.Use, c.Short = "completion SHELL", "print the completion script of bash, zsh, fish or powershell"
		c.Annotations = map[string]string{"order": lastOrder}
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(*cobra.Command, []string) error {
			return usagef("completion: name a shell: bash, zsh, fish or powershell")
		}
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(r.stdout, c) })
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		name := commandName(c)
		if name == "plan" { // whose exit code 2 is a difference
			return fmt.Errorf("plan: %s; weir help plan lists the flags", flagMistake(err))
		}
		return usagef("%s: %s; weir help %s lists the flags", name, flagMistake(err), name)
	})
	return root
}

// serverCommand returns row i of commands as a command of cobra.
func (r *run) serverCommand(i int, c command) *cobra.Command {
	f := newFlags(c)
	cmd := &cobra.Command{
		Use: c.name + c.args, Short: c.summary, Long: c.text, GroupID: serverGroup, Args: cobra.ArbitraryArgs,
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
			if err != nil || len(rest) > 0 {
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

// flagMistake returns an error of pflag in the spelling of the help.
func flagMistake(err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "unknown flag: "); ok {
		return "unknown flag " + name
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "the flag " + name + " needs a value"
	}
	return text
}

// printHelp prints a command: its text, its commands and its flags.
func printHelp(w io.Writer, c *cobra.Command) {
	if !c.HasParent() {
		fmt.Fprintf(w, "%s.\n\nUsage: weir COMMAND [flags]\n", c.Short)
	} else {
		usage := strings.TrimSuffix(c.UseLine(), " [flags]")
		if c.HasAvailableFlags() {
			usage += " [flags]"
		}
		fmt.Fprintf(w, "%s%s.\n\nUsage: %s\n", strings.ToUpper(c.Short[:1]), strings.TrimSuffix(c.Short[1:], "."), usage)
	}
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Long))
	}
	printCommands(w, c)
	if !c.HasParent() {
		fmt.Fprint(w, "\nweir help COMMAND lists the flags of a command and their variables. To start:\n\n  weir serve\n")
		return
	}
	printFlags(w, "Flags", c.NonInheritedFlags())
	printFlags(w, "Flags of all commands that use a gateway", c.InheritedFlags())
	if c.Name() != "serve" {
		return
	}
	fmt.Fprint(w, "\nVariables of the environment without a flag:\n")
	for _, v := range variables() {
		name := v.name
		if v.file {
			name += ", " + v.name + "_FILE"
		}
		fmt.Fprintf(w, "  %s\n        %s\n", name, v.help)
	}
}

// printCommands prints the commands of a command by group.
func printCommands(w io.Writer, c *cobra.Command) {
	groups := c.Groups()
	if len(groups) == 0 && c.HasAvailableSubCommands() {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s\n\n", g.Title)
		for _, one := range inOrder(c) {
			if one.GroupID == g.ID && (one.IsAvailableCommand() || one.Name() == "help") {
				fmt.Fprintf(w, "  %-22s %s\n", one.Use, one.Short)
			}
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

func printFlags(w io.Writer, title string, f *pflag.FlagSet) {
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
		fmt.Fprintf(w, "  %s%s%s\n        %s\n", name, value, variable, help)
	})
}
