package setup

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed script/setup.sh
var shell string

//go:embed script/setup.ps1
var powerShell string

//go:embed script/edits.awk
var editsProgram string

//go:embed script/json.awk
var jsonProgram string

//go:embed script/toml.awk
var tomlProgram string

//go:embed script/yaml.awk
var yamlProgram string

//go:embed script/env.awk
var envProgram string

// program returns the awk program that edits a format, without edits.awk, which
// precedes it.
func (f Format) program() string {
	switch f {
	case JSON:
		return jsonProgram
	case TOML:
		return tomlProgram
	case YAML:
		return yamlProgram
	}
	return envProgram
}

// Script returns the set-up script with a name, "codex.sh" or "codex.ps1", or "". A
// script has no address, key or machine: those are its arguments.
func Script(name string) string {
	id, extension, _ := strings.Cut(name, ".")
	t := Lookup(id)
	if t == nil || len(t.Files) == 0 {
		return ""
	}
	switch extension {
	case "sh":
		return t.render(shell, t.shellFiles())
	case "ps1":
		return t.render(powerShell, t.powerShellFiles())
	}
	return ""
}

func (t *Tool) render(script, files string) string {
	var paths, ending strings.Builder
	for i := range t.Files {
		paths.WriteString("#   " + t.Files[i].Path() + "\n")
	}
	for _, name := range t.Unset {
		fmt.Fprintf(&ending, "\t[ -z \"${%s-}\" ] || say \"Unset the environment variable %[1]s: %s would use it too.\"\n",
			name, t.Name)
	}
	return strings.NewReplacer(
		"@ID@", t.ID, "@NAME@", t.Name, "@COUNT@", fmt.Sprint(len(t.Files)), "@PATHS@\n", paths.String(), "@FILES@\n", files,
		"@ENDING@", ending.String(),
	).Replace(script)
}

// line returns an edit as the scripts have it.
func (e *Edit) line() string {
	return string(e.Op) + "\t" + e.Path + "\t" + e.Match + "\t" + strings.ReplaceAll(e.Value, "\n", `\n`)
}

// shellFiles returns the functions path, edits and program of a shell script.
func (t *Tool) shellFiles() string {
	var paths, edits, choice, texts strings.Builder
	texts.WriteString("edits_awk='" + editsProgram + "'\n")
	seen := map[Format]bool{}
	for i := range t.Files {
		f := &t.Files[i]
		home := "$HOME"
		if f.Home != "" {
			home += "/" + f.Home
		}
		if f.Root != "" {
			home = "${" + f.Root + ":-" + home + "}"
		}
		fmt.Fprintf(&paths, "\t%d)\n\t\tbase=\"%s\"\n\t\tname='%s'\n", i+1, home, f.Name)
		if f.Or != "" {
			fmt.Fprintf(&paths, "\t\tif [ -e \"$base/%s\" ]; then name='%[1]s'; fi\n", f.Or)
		}
		paths.WriteString("\t\t;;\n")
		fmt.Fprintf(&edits, "\t%d)\n\t\tcat <<'END'\n", i+1)
		for j := range f.Edits {
			edits.WriteString(f.Edits[j].line() + "\n")
		}
		edits.WriteString("END\n\t\t;;\n")
		fmt.Fprintf(&choice, "\t%d) printf '%%s' \"$edits_awk$%s_awk\" ;;\n", i+1, f.Format)
		if !seen[f.Format] {
			seen[f.Format] = true
			fmt.Fprintf(&texts, "%s_awk='%s'\n", f.Format, f.Format.program())
		}
	}
	return "# path returns the path of file $1.\npath() {\n\tcase $1 in\n" + paths.String() +
		"\tesac\n\tprintf '%s\\n' \"$base/$name\"\n}\n\n" +
		"# edits returns the edits of file $1: operation, path, match and value.\nedits() {\n\tcase $1 in\n" +
		edits.String() + "\tesac\n}\n\n" +
		"# program returns the awk program that edits file $1.\nprogram() {\n\tcase $1 in\n" + choice.String() +
		"\tesac\n}\n" + texts.String() + "\n"
}

// powerShellFiles returns the entries of $files.
func (t *Tool) powerShellFiles() string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	var b strings.Builder
	for i := range t.Files {
		f := &t.Files[i]
		fmt.Fprintf(&b, "  @{\n    Path = (Under %s %s %s %s)\n    Format = '%s'\n    Edits = @(\n", quote(f.Root),
			quote(f.Home), quote(f.Name), quote(f.Or), f.Format)
		for j := range f.Edits {
			b.WriteString("      " + quote(f.Edits[j].line()))
			if j+1 < len(f.Edits) {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString("    )\n  }")
		if i+1 < len(t.Files) {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Command is a one-line command that runs a set-up script.
type Command struct {
	Shell      string `json:"sh"`
	PowerShell string `json:"ps1"`
}

// CommandOf returns the command of a tool. The address is one of IsOrigin, the lease
// one of the gateway's.
func CommandOf(tool, url, lease string) Command {
	return Command{
		Shell:      fmt.Sprintf("curl -fsSL '%s/setup/%s.sh' | WEIR_LEASE='%[3]s' sh -s -- '%[1]s'", url, tool, lease),
		PowerShell: fmt.Sprintf("& ([scriptblock]::Create((irm '%s/setup/%s.ps1'))) '%[1]s' '%[3]s'", url, tool, lease),
	}
}
