package llm

// builtin is a tool of Responses that the client runs and that has its own item
// types. Its calls have the arguments of the function that replaces it.
type builtin uint8

const (
	builtinShell    builtin = 1 + iota // local_shell, one program with its arguments
	builtinSearch                      // tool_search, run by the client
	builtinCommands                    // shell, a list of commands
	builtinPatch                       // apply_patch, a change of one file
)

var builtinNames = [...]string{builtinShell: "local_shell", builtinSearch: "tool_search", builtinCommands: "shell", builtinPatch: "apply_patch"}

// builtinOf returns the tool of a type that is named in tool_choice, or 0.
func builtinOf(kind string) builtin {
	for b := builtinShell; int(b) < len(builtinNames); b++ {
		if builtinNames[b] == kind && b != builtinSearch {
			return b
		}
	}
	return 0
}
