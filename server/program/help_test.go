package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command that takes arguments has an example in its help, which is a command line that weir takes.
func TestCommandsHaveExamples(t *testing.T) {
	var all func(c *cobra.Command)
	examples := 0
	all = func(c *cobra.Command) {
		for _, one := range c.Commands() {
			all(one)
		}
		if !strings.HasPrefix(c.Example, "weir ") {
			if !c.HasSubCommands() && c.HasParent() && strings.Contains(c.Use, " ") && c.Name() != "help" {
				t.Errorf("weir help %s has no example", commandName(c))
			}
			return
		}
		examples++
		found, rest, err := c.Root().Find(strings.Fields(c.Example)[1:])
		if err != nil || found != c {
			t.Fatalf("%s is no command line of %s", c.Example, commandName(c))
		}
		if err := c.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", c.Example, err)
		}
		var out bytes.Buffer
		if printHelp(&out, c, 80); !strings.Contains(out.String(), "\nExample:\n\n  "+c.Example+"\n") {
			t.Errorf("%s: %s", commandName(c), out.String())
		}
	}
	all((&run{}).root())
	if examples < 60 {
		t.Errorf("only %d commands have an example", examples)
	}
}
