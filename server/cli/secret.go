package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// maxSecret bounds a secret, in bytes; a service account's file is the longest.
const maxSecret = 64 << 10

// secret reads a secret: from the terminal without echo, else the standard input.
func (a *app) secret(what string) (string, error) {
	var raw []byte
	var err error
	if f, ok := a.terminal(a.Stdin); ok {
		raw, err = a.typed(f, what)
	} else {
		raw, err = io.ReadAll(io.LimitReader(a.Stdin, maxSecret))
	}
	text := strings.TrimSpace(string(raw))
	if err == nil && text == "" {
		err = errors.New("it is empty; type it, or pass it on the standard input")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return text, nil
}

// typed reads a line from the terminal. The echo is off before the prompt is shown: what is typed or pasted
// at once would be visible otherwise.
func (a *app) typed(f *os.File, what string) (line []byte, err error) {
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, term.Restore(int(f.Fd()), before)) }()
	text, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, a.Stderr}, "").ReadPassword(what + ": ")
	if errors.Is(err, io.EOF) { // Ctrl-C and Ctrl-D, as no signal comes of them
		err = errors.New("interrupted")
	}
	return []byte(text), err
}

// refer returns the secret that an argument refers to: env:NAME, file:PATH, or - for the
// terminal or the standard input. The secret itself is refused: other users of the computer
// can read the arguments of a process.
func (a *app) refer(what, ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch {
	case ref == "-":
		return a.secret(what)
	case kind == "env":
		if v := strings.TrimSpace(a.variable(name)); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("%s: the variable %s is not set", what, name)
	case kind == "file":
		raw, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		return strings.TrimSpace(string(raw)), nil
	}
	return "", Usagef("%s: write env:NAME, file:PATH or - in place of the secret, which others could read here", what)
}

// confirm asks before something is deleted. Without a terminal --yes must stand instead.
func (a *app) confirm(question string) error {
	if a.yes {
		return nil
	}
	if _, ok := a.terminal(a.Stdin); !ok {
		return Usagef("%s --yes confirms it where there is no terminal", question)
	}
	fmt.Fprintf(a.Stderr, "%s [y/N] ", question)
	line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// terminal returns an input or output if it is a terminal.
func (a *app) terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}
