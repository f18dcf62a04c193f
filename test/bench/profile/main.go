// Command profile is the program weir with the profiler of net/http/pprof at the
// address in PPROF:
//
//	go build -o test/out/weir-profile ./test/bench/profile
//	PPROF=127.0.0.1:6060 test/out/weir-profile serve
//	go tool pprof 'http://127.0.0.1:6060/debug/pprof/profile?seconds=20'
package main

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"

	"weir/server/program"
)

func main() {
	if address := os.Getenv("PPROF"); address != "" {
		go func() { fmt.Fprintln(os.Stderr, http.ListenAndServe(address, nil)) }()
	}
	os.Exit(program.Main(program.Options{Version: "profile"}))
}
