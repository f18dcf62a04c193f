// Command pack makes a Go program's wasm a seventh smaller.
//
//	pack app.wasm
//
// A Go program's memory image is sparse: pointers and lengths take eight bytes
// each and use three. The linker writes it as 100,000 data segments (the most
// that an engine takes), and a third of the section is their headers. pack
// writes it as one passive segment of gaps and runs, and adds a start function
// that lays them out. It also takes out the tables of file names and line
// numbers, which only stack traces read; those then name functions alone.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack app.wasm")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	module, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	packed, err := pack(module)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, packed, 0o644)
}
