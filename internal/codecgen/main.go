// Command codecgen writes the file codec_easyjson.go of each folder: code that reads
// and writes the types marked with //easyjson:json. It is easyjson's, without the
// import of easyjson's own package, which needs net/http.
//
//	codecgen FOLDER…
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

var unused = regexp.MustCompile(`(?m)^\s*(easyjson "github.com/mailru/easyjson"|_ easyjson\.Marshaler)\n`)

func main() {
	for _, folder := range os.Args[1:] {
		if err := generate(folder); err != nil {
			fmt.Fprintf(os.Stderr, "codecgen: %s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

func generate(folder string) error {
	const name = "codec_easyjson.go"
	var out bytes.Buffer
	c := exec.Command("go", "tool", "easyjson", "-pkg", "-no_std_marshalers", "-output_filename", name, ".")
	c.Dir, c.Stdout, c.Stderr = folder, &out, &out
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	file := filepath.Join(folder, name)
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, unused.ReplaceAll(code, nil), 0o644)
}
