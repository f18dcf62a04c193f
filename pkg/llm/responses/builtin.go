package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

const shellSchema = `{"type":"object","properties":{` +
	`"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments."},` +
	`"working_directory":{"type":"string","description":"The directory to run it in."},` +
	`"timeout_ms":{"type":"integer","description":"The time limit in milliseconds."},` +
	`"env":{"type":"object","description":"Further environment variables.","additionalProperties":{"type":"string"}},` +
	`"user":{"type":"string","description":"The user to run it as."}},"required":["command"]}`

const commandsSchema = `{"type":"object","properties":{` +
	`"commands":{"type":"array","items":{"type":"string"},"description":"The commands, each a line for the shell. Those of one call may run at the same time."},` +
	`"timeout_ms":{"type":"integer","description":"The time limit in milliseconds."},` +
	`"max_output_length":{"type":"integer","description":"The most characters of output to return for each command."}},"required":["commands"]}`

const patchSchema = `{"type":"object","properties":{` +
	`"type":{"type":"string","enum":["create_file","update_file","delete_file"]},` +
	`"path":{"type":"string","description":"The file, relative to the working directory."},` +
	`"diff":{"type":"string","description":"The change in the V4A format. Not for delete_file."}},"required":["type","path"]}`

const patchDescription = `Creates, updates or deletes one file. The diff of create_file is the new file with "+" before each line. ` +
	`The diff of update_file is one or more sections: a line "@@" (or "@@ " and the class or function that the section is in), then ` +
	`lines of the file, with " " before those that stay, "-" before those that go and "+" before those that come. Give about three lines ` +
	`of context before and after a change. There are no line numbers and no file headers.`

// commandsTool reads a shell tool. It returns false for one that runs in the
// vendor's container.
func commandsTool(v gjson.Result) (ir.Tool, bool) {
	env := v.Get("environment")
	if kind := ir.Str(env.Get("type")); kind != "" && kind != "local" {
		return ir.Tool{}, false
	}
	var about strings.Builder
	about.WriteString("Runs commands in a shell on the user's machine and returns what they print and how they end.")
	ir.Each(env.Get("skills"), func(_, s gjson.Result) bool {
		about.WriteString("\n- Skill " + ir.Str(s.Get("name")) + ", described in " + ir.Str(s.Get("path")) + "/SKILL.md: " +
			ir.Str(s.Get("description")))
		return true
	})
	return ir.Tool{Name: ir.BuiltinNames[ir.BuiltinCommands], Builtin: ir.BuiltinCommands, Description: about.String(),
		Schema: commandsSchema}, true
}

// openCall begins the item of a call.
func openCall(d *ir.Writer, kind, id, call, status string) {
	d.Buf = append(d.Buf, '{')
	d.Str("id", id)
	d.Str("type", kind)
	d.Str("status", status)
	d.Str("call_id", call)
}

// parseArgs parses the arguments of a call; invalid ones are empty.
func parseArgs(args string) (v gjson.Result) {
	if json, ok := ir.Object(args); ok {
		v = gjson.Parse(json)
	}
	return v
}

// writeCommandsCall writes a shell_call; args are not escaped.
func writeCommandsCall(d *ir.Writer, id, call, args, status string) {
	openCall(d, "shell_call", id, call, status)
	v := parseArgs(args)
	d.Open("action", '{')
	d.Open("commands", '[')
	if c := v.Get("commands"); c.IsArray() {
		ir.Each(c, func(_, x gjson.Result) bool { d.Str("", x.String()); return true })
	} else if s := ir.Str(c); s != "" {
		d.Str("", s)
	}
	d.Close(']')
	for _, name := range [...]string{"timeout_ms", "max_output_length"} {
		if n := v.Get(name); n.Type == gjson.Number {
			d.Raw(name, n.Raw)
		} else {
			d.Null(name)
		}
	}
	d.Close('}')
	d.Raw("environment", `{"type":"local"}`)
	d.Close('}')
}

// writePatchCall writes an apply_patch_call; args are not escaped.
func writePatchCall(d *ir.Writer, id, call, args, status string) {
	openCall(d, "apply_patch_call", id, call, status)
	v := parseArgs(args)
	d.Open("operation", '{')
	kind := ir.Str(v.Get("type"))
	if kind != "create_file" && kind != "delete_file" {
		kind = "update_file"
	}
	d.Str("type", kind)
	d.Str("path", ir.Str(v.Get("path")))
	if kind != "delete_file" {
		d.Str("diff", ir.Str(v.Get("diff")))
	}
	d.Close('}')
	d.Close('}')
}

// shellCall reads the action of a shell call as arguments.
func shellCall(action gjson.Result) string {
	if !action.IsObject() {
		return ""
	}
	return ir.MapMembers(action, func(name string, v gjson.Result) (string, bool) {
		return v.Raw, name != "type" && v.Type != gjson.Null
	})
}

// writeShellCall writes a local_shell_call; args are not escaped.
func writeShellCall(d *ir.Writer, id, call, args, status string) {
	openCall(d, "local_shell_call", id, call, status)
	v := parseArgs(args)
	d.Open("action", '{')
	d.Str("type", "exec")
	d.Open("command", '[')
	if c := v.Get("command"); c.IsArray() {
		ir.Each(c, func(_, x gjson.Result) bool { d.Str("", x.String()); return true })
	} else if s := ir.Str(c); s != "" {
		d.Str("", "sh")
		d.Str("", "-c")
		d.Str("", s)
	}
	d.Close(']')
	env := `{}`
	if e := v.Get("env"); e.IsObject() {
		env = e.Raw
	}
	d.Raw("env", ir.OneLine(env))
	if n := v.Get("timeout_ms"); n.Type == gjson.Number {
		d.Raw("timeout_ms", n.Raw)
	}
	d.OptStr("working_directory", ir.Str(v.Get("working_directory")))
	d.OptStr("user", ir.Str(v.Get("user")))
	d.Close('}')
	d.Close('}')
}

// writeSearchCall writes a tool_search_call; args are not escaped.
func writeSearchCall(d *ir.Writer, id, call, args, status string) {
	args, ok := ir.Object(args)
	if !ok {
		args = "{}"
	}
	openCall(d, "tool_search_call", id, call, status)
	d.Str("execution", "client")
	d.Raw("arguments", ir.OneLine(args))
	d.Close('}')
}

// builtinOutput reads the output of a shell_call, a list of
// {stdout, stderr, outcome}, or of an apply_patch_call, a text.
func builtinOutput(v gjson.Result) ir.Block {
	b := ir.Block{Kind: ir.ToolResultBlock, ID: ir.Str(v.Get("call_id")), IsError: ir.Str(v.Get("status")) == "failed"}
	out := v.Get("output")
	text := out.Str
	if out.IsArray() || out.IsObject() {
		text = ir.OneLine(out.Raw)
	} else if text == "" {
		if text = "Done."; b.IsError {
			text = "Failed."
		}
	}
	b.Parts = []ir.Block{{Text: text}}
	return b
}

// loadedTools returns the result of a tool search for the model. The request
// contains the definitions of the tools.
func loadedTools(list []ir.Tool) string {
	if len(list) == 0 {
		return "No tools were found."
	}
	var b strings.Builder
	b.WriteString("These tools were found and can be called now:")
	for i := range list {
		b.WriteString("\n- ")
		if list[i].Namespace != "" {
			b.WriteString(list[i].Namespace + ": ")
		}
		b.WriteString(list[i].Name)
	}
	return b.String()
}
