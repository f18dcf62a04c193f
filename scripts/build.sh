#!/usr/bin/env bash
# Compiles the program and the dashboard to build/.
#
#	scripts/build.sh                   to build/
#	scripts/build.sh PACKAGE FOLDER    another main package, without the dashboard
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# program compiles a Go program and adds the JavaScript that runs it.
program() {
  local package=$1 dir=$2
  mkdir -p "$(dirname "$dir")"
  GOOS=js GOARCH=wasm go build -trimpath -ldflags="-s -w -X main.version=$(described)" -o "$dir.wasm" "$package"
  go run github.com/syumai/workers/cmd/workers-assets-gen -mode=go -o "$dir" # empties the folder first
  rm "$dir/worker.mjs" "$dir/runtime.mjs" # of the template; weir's come next
  mv "$dir.wasm" "$dir/app.wasm"
  cp worker/js/*.mjs "$dir/"
  described > "$dir/VERSION" # for the doctor; it is not uploaded
  # Go's maps take their hash seed from here: at boot the platform has no randomness.
  printf 'export const SEED = [%s];\n' "$(od -An -v -tu1 -N32 /dev/urandom | tr -s ' \n' ',' | sed 's/^,//; s/,$//')" > "$dir/seed.mjs"
}

sizes() {
  local raw gzipped
  raw=$(wc -c < build/app.wasm)
  gzipped=$(gzip -9 -c build/app.wasm | wc -c)
  awk -v r="$raw" -v g="$gzipped" 'BEGIN { printf "build/app.wasm  %.2f MB, gzipped %.2f MB\n", r/1048576, g/1048576 }'
}

need_go
modules
case "${1:-quick}" in
  quick) # "quick" is an alias: there is one build
    program ./worker build
    static
    sizes
    ;;
  *) program "$1" "$2" ;;
esac
