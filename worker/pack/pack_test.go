package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program compiles a Go program to wasm as build.sh does.
func program(t *testing.T, source string) (dir, wasm string) {
	t.Helper()
	dir = t.TempDir()
	wasm = filepath.Join(dir, "app.wasm")
	for name, text := range map[string]string{"go.mod": "module app\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", wasm)
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir, wasm
}

const crashing = `package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

type shape interface{ area() int }
type square struct{ side int }

func (s square) area() int { return s.side * s.side }

func deep(n int) int {
	if n == 0 {
		runtime.GC()
		return 0
	}
	var room [64]int
	room[n%64] = n
	return deep(n-1) + room[n%64]
}

func fails(m map[string]int) (err any) {
	defer func() { err = recover() }()
	m["x"]++ // nil
	return nil
}

func main() {
	words := map[string]shape{"a": square{2}, "b": square{3}}
	live := make([][]byte, 0, 100)
	for i := range 2000 { // collections, with pointers on the stack
		live = append(live[:i%100], []byte(strings.Repeat("z", i)))
	}
	fmt.Println(words["a"].area()+words["b"].area(), deep(3000), len(live), fails(nil))
	if len(os.Args) > 1 {
		panic("as asked")
	}
}
`

// A packed program is smaller and does the same; a stack trace keeps names.
func TestPackedProgramRunsTheSame(t *testing.T) {
	dir, wasm := program(t, crashing)
	node := filepath.Join("..", "..", "node_modules", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			t.Skip("no Node.js to run the program with")
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	glue := filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js")
	script := filepath.Join(dir, "run.cjs")
	if err := os.WriteFile(script, []byte(`
require(process.argv[2]);
const go = new Go();
go.argv = ["app", ...process.argv.slice(4)];
go.exit = (code) => process.exit(code); // a timer of the program may be left
WebAssembly.instantiate(require("node:fs").readFileSync(process.argv[3]), go.importObject).then((r) => go.run(r.instance));
`), 0o600); err != nil {
		t.Fatal(err)
	}
	runs := func(args ...string) string {
		out, _ := exec.Command(node, append([]string{script, glue, wasm}, args...)...).CombinedOutput()
		return string(out)
	}
	before, crash := runs(), runs("crash")
	if !strings.Contains(before, "13 4501500 100 assignment to entry in nil map") || !strings.Contains(crash, "main.go:") {
		t.Fatalf("the program itself: %q\n%s", before, crash)
	}
	size, err := os.Stat(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(wasm); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Stat(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if packed.Size() > size.Size()*9/10 {
		t.Errorf("packed %d bytes to %d", size.Size(), packed.Size())
	}
	if got := runs(); got != before {
		t.Errorf("packed program printed %q, want %q", got, before)
	}
	got := runs("crash")
	if !strings.Contains(got, "panic: as asked") || !strings.Contains(got, "main.main") || strings.Contains(got, "main.go:") {
		t.Errorf("packed program's panic:\n%s", got)
	}
}

// The parts that the start function reads give the image back.
func TestSparse(t *testing.T) {
	long := bytes.Repeat([]byte{7}, 300)
	tests := map[string][]byte{
		"empty":            nil,
		"no zeros":         []byte("abc"),
		"starts with zero": {0, 0, 0, 0, 1},
		"short gap kept":   {1, 0, 0, 2},
		"long gap left":    {1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3},
		"many bytes":       append(append(bytes.Clone(long), make([]byte, 500)...), long...),
	}
	for name, mem := range tests {
		t.Run(name, func(t *testing.T) {
			lengths, runs := sparse(mem)
			if got := unpack(lengths, runs); !bytes.Equal(got, mem) {
				t.Errorf("got %v, want %v", got, mem)
			}
		})
	}
	if lengths, runs := sparse([]byte{1, 0, 0, 2}); len(lengths) != 2 || len(runs) != 4 {
		t.Errorf("a short gap made a run of its own: %v %v", lengths, runs)
	}
}

func unpack(lengths, runs []byte) []byte {
	var mem []byte
	for r, b := (reader{b: lengths}), (reader{b: runs}); len(r.b) > 0; {
		mem = append(mem, make([]byte, r.uint())...)
		mem = append(mem, b.take(int(r.uint()))...)
	}
	return mem
}

// What is not a module of the Go linker is refused, never written over.
func TestPackRefuses(t *testing.T) {
	tests := map[string][]byte{
		"nothing":      nil,
		"not wasm":     []byte("hello, world"),
		"cut":          append(bytes.Clone(magic), 1, 50, 0),
		"no sections":  magic,
		"no functions": join([]section{{1, []byte{0}}, {3, []byte{0}}, {5, []byte{1, 0, 1}}, {10, []byte{0}}, {11, []byte{1, 0, 0x41, 0, 0x0b, 1, 'x'}}}),
	}
	for name, module := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := pack(module); err == nil {
				t.Errorf("packed to %d bytes", len(got))
			}
		})
	}
}

func TestSignedNumbers(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 8191, 1 << 20, -1 << 31, 1<<31 - 1} {
		r := reader{b: appendInt(nil, v)}
		if got := r.int(); got != v || len(r.b) != 0 || r.bad {
			t.Errorf("got %d, %d bytes left, want %d", got, len(r.b), v)
		}
	}
	if b := binary.AppendUvarint(nil, 300); len(b) != 2 {
		t.Errorf("unsigned numbers are not LEB128: %v", b)
	}
}
