#!/usr/bin/env bash
# Compiles the program and the dashboard to build/.
#
#	scripts/build.sh                   to build/
#	scripts/build.sh PACKAGE FOLDER    another main package, without the dashboard
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# program compiles a Go program and adds the JavaScript that runs it. The files are built
# elsewhere and each replaces its predecessor at once: wrangler ends if it reloads while one
# is missing.
program() {
  local package=$1 dir=$2 new old
  mkdir -p test/out "$dir"
  new=$(mktemp -d test/out/build.XXXXXX)
  go run github.com/syumai/workers/cmd/workers-assets-gen -mode=go -o "$new"
  rm "$new/worker.mjs" "$new/runtime.mjs" # of the template; weir's come next
  GOOS=js GOARCH=wasm go build -trimpath -ldflags="-s -w -X main.version=$(described)" -o "$new/app.wasm" "$package"
  cp worker/js/*.mjs "$new/"
  described > "$new/VERSION" # for the doctor; it is not uploaded
  # Go's maps take their hash seed from here: at boot the platform has no randomness.
  printf 'export const SEED = [%s];\n' "$(od -An -v -tu1 -N32 /dev/urandom | tr -s ' \n' ',' | sed 's/^,//; s/,$//')" > "$new/seed.mjs"
  for old in "$dir"/*.mjs; do
    [ -e "$new/${old##*/}" ] || rm -f "$old"
  done
  mv -f "$new"/* "$dir/"
  rmdir "$new"
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
