package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const js = "../../js/"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestContractForJavaScriptIsCurrent(t *testing.T) {
	want, err := generate("../contract.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal([]byte(read(t, js+"contract.mjs")), want) {
		t.Error("worker/js/contract.mjs is stale: run go generate ./worker/contract")
	}
}

func TestCapitals(t *testing.T) {
	for name, want := range map[string]string{"OK": "OK", "NoTLS": "NO_TLS", "TooLarge": "TOO_LARGE", "TLSFailed": "TLS_FAILED", "EndOfBody": "END_OF_BODY"} {
		if got := capitals(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// names returns the first submatch of every match in the files, sorted.
func names(t *testing.T, pattern string, files ...string) (out []string) {
	t.Helper()
	for _, file := range files {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sources returns the files of a folder whose name ends with suffix.
func sources(t *testing.T, dir, suffix string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			out = append(out, dir+e.Name())
		}
	}
	return out
}

// The engine checks the names of imports when the program boots, and those of
// exports when they are first called.
func TestHostFunctionsHaveBothHalves(t *testing.T) {
	program, script := sources(t, "../../bridge/", ".go"), sources(t, js, ".mjs")
	imported := names(t, `//go:wasmimport host (\w+)`, program...)
	provided := names(t, `(?m)^    (\w+)\([^)]*\) \{$`, js+"imports.mjs")
	if len(imported) < 20 || !slices.Equal(imported, provided) {
		t.Errorf("imports of Go\n%s\nfunctions of worker/js/imports.mjs\n%s", imported, provided)
	}
	exported := names(t, `//go:wasmexport (weir_\w+)`, program...)
	called := names(t, `\b(weir_\w+)`, script...)
	if len(exported) < 10 || !slices.Equal(exported, called) {
		t.Errorf("exports of Go\n%s\nfunctions that worker/js calls\n%s", exported, called)
	}
}
