package llm

import (
	"strings"

	"github.com/tidwall/gjson"
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

const patchAbout = `Creates, updates or deletes one file. The diff of create_file is the new file with "+" before each line. ` +
	`The diff of update_file is one or more sections: a line "@@" (or "@@ " and the class or function that the section is in), then ` +
	`lines of the file, with " " before those that stay, "-" before those that go and "+" before those that come. Give about three lines ` +
	`of context before and after a change. There are no line numbers and no file headers.`

// commandsTool reads a shell tool. It returns false for one that runs in the
// vendor's container.
func commandsTool(v gjson.Result) (tool, bool) {
	env := v.Get("environment")
	if kind := str(env.Get("type")); kind != "" && kind != "local" {
		return tool{}, false
	}
	var about strings.Builder
	about.WriteString("Runs commands in a shell on the user's machine and returns what they print and how they end.")
	forEach(env.Get("skills"), func(_, s gjson.Result) bool {
		about.WriteString("\n- Skill " + str(s.Get("name")) + ", described in " + str(s.Get("path")) + "/SKILL.md: " + str(s.Get("description")))
		return true
	})
	return tool{name: builtinNames[builtinCommands], built: builtinCommands, description: about.String(), schema: commandsSchema}, true
}

// openCall begins the item of a call.
func openCall(d *doc, kind, id, call, status string) {
	d.b = append(d.b, '{')
	d.str("id", id)
	d.str("type", kind)
	d.str("status", status)
	d.str("call_id", call)
}

// parseArgs parses the arguments of a call; invalid ones are empty.
func parseArgs(args string) (v gjson.Result) {
	if json, ok := object(args); ok {
		v = gjson.Parse(json)
	}
	return v
}

// writeCommandsCall writes a shell_call; args are not escaped.
func writeCommandsCall(d *doc, id, call, args, status string) {
	openCall(d, "shell_call", id, call, status)
	v := parseArgs(args)
	d.open("action", '{')
	d.open("commands", '[')
	if c := v.Get("commands"); c.IsArray() {
		forEach(c, func(_, x gjson.Result) bool { d.str("", x.String()); return true })
	} else if s := str(c); s != "" {
		d.str("", s)
	}
	d.close(']')
	for _, name := range [...]string{"timeout_ms", "max_output_length"} {
		if n := v.Get(name); n.Type == gjson.Number {
			d.raw(name, n.Raw)
		} else {
			d.null(name)
		}
	}
	d.close('}')
	d.raw("environment", `{"type":"local"}`)
	d.close('}')
}

// writePatchCall writes an apply_patch_call; args are not escaped.
func writePatchCall(d *doc, id, call, args, status string) {
	openCall(d, "apply_patch_call", id, call, status)
	v := parseArgs(args)
	d.open("operation", '{')
	kind := str(v.Get("type"))
	if kind != "create_file" && kind != "delete_file" {
		kind = "update_file"
	}
	d.str("type", kind)
	d.str("path", str(v.Get("path")))
	if kind != "delete_file" {
		d.str("diff", str(v.Get("diff")))
	}
	d.close('}')
	d.close('}')
}

// shellCall reads the action of a shell call as arguments.
func shellCall(action gjson.Result) string {
	if !action.IsObject() {
		return ""
	}
	return members(action, func(name string, v gjson.Result) (string, bool) {
		return v.Raw, name != "type" && v.Type != gjson.Null
	})
}

// writeShellCall writes a local_shell_call; args are not escaped.
func writeShellCall(d *doc, id, call, args, status string) {
	openCall(d, "local_shell_call", id, call, status)
	v := parseArgs(args)
	d.open("action", '{')
	d.str("type", "exec")
	d.open("command", '[')
	if c := v.Get("command"); c.IsArray() {
		forEach(c, func(_, x gjson.Result) bool { d.str("", x.String()); return true })
	} else if s := str(c); s != "" {
		d.str("", "sh")
		d.str("", "-c")
		d.str("", s)
	}
	d.close(']')
	env := `{}`
	if e := v.Get("env"); e.IsObject() {
		env = e.Raw
	}
	d.raw("env", oneLine(env))
	if n := v.Get("timeout_ms"); n.Type == gjson.Number {
		d.raw("timeout_ms", n.Raw)
	}
	d.opt("working_directory", str(v.Get("working_directory")))
	d.opt("user", str(v.Get("user")))
	d.close('}')
	d.close('}')
}

// writeSearchCall writes a tool_search_call; args are not escaped.
func writeSearchCall(d *doc, id, call, args, status string) {
	args, ok := object(args)
	if !ok {
		args = "{}"
	}
	openCall(d, "tool_search_call", id, call, status)
	d.str("execution", "client")
	d.raw("arguments", oneLine(args))
	d.close('}')
}

// builtinOutput reads the output of a shell_call, a list of
// {stdout, stderr, outcome}, or of an apply_patch_call, a text.
func builtinOutput(v gjson.Result) block {
	b := block{kind: toolResultBlock, id: str(v.Get("call_id")), failed: str(v.Get("status")) == "failed"}
	out := v.Get("output")
	text := out.Str
	if out.IsArray() || out.IsObject() {
		text = oneLine(out.Raw)
	} else if text == "" {
		if text = "Done."; b.failed {
			text = "Failed."
		}
	}
	b.parts = []block{{text: text}}
	return b
}

// foundTools returns the result of a tool search for the model. The request
// contains the definitions of the tools.
func foundTools(list []tool) string {
	if len(list) == 0 {
		return "No tools were found."
	}
	var b strings.Builder
	b.WriteString("These tools were found and can be called now:")
	for i := range list {
		b.WriteString("\n- ")
		if list[i].space != "" {
			b.WriteString(list[i].space + ": ")
		}
		b.WriteString(list[i].name)
	}
	return b.String()
}
