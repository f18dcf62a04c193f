package ir

// Builtin is a tool of the Responses dialect that the client runs and that has
// its own item types. Its calls have the arguments of the function that
// replaces it.
type Builtin uint8

// The built-in tools.
const (
	BuiltinShell    Builtin = 1 + iota // local_shell, one program with its arguments
	BuiltinSearch                      // tool_search, run by the client
	BuiltinCommands                    // shell, a list of commands
	BuiltinPatch                       // apply_patch, a change of one file
)

// BuiltinNames are the types of the built-in tools.
var BuiltinNames = [...]string{BuiltinShell: "local_shell", BuiltinSearch: "tool_search", BuiltinCommands: "shell",
	BuiltinPatch: "apply_patch"}

// BuiltinNamed returns the tool of a type that is named in tool_choice, or 0.
func BuiltinNamed(kind string) Builtin {
	for b := BuiltinShell; int(b) < len(BuiltinNames); b++ {
		if BuiltinNames[b] == kind && b != BuiltinSearch {
			return b
		}
	}
	return 0
}
