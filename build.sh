#!/usr/bin/env bash
# The one command of weir. Run ./build.sh help for what it does.
set -euo pipefail
cd "$(dirname "$0")"

out=build
export WRANGLER_SEND_METRICS=false CLOUDFLARE_CF_FETCH_ENABLED=false WRANGLER_HIDE_BANNER=true
export NO_UPDATE_NOTIFIER=1 DO_NOT_TRACK=1

usage() {
  cat <<'EOF'
./build.sh          install what is missing, compile to build/, print the sizes
                    (./build.sh build quick leaves out what makes the program small)
./build.sh dev      build, then serve on PORT (8787) with state in STATE_DIR (.wrangler/state)
                    DEMO=0 leaves out the demo machine and the test upstream
./build.sh test     vet, unit tests, build, end-to-end tests in workerd,
                    the dashboard in a browser
./build.sh bench    measure the gateway against a bare pass-through worker
./build.sh deploy   set missing secrets, then deploy; DRY_RUN=1 stops before uploading
./build.sh clean    remove build/ and test/out/
EOF
}

die() { echo "build.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is needed: $2"; }

# modules installs the npm packages of the lock file, once for each lock file.
# Their install scripts are not run: none of them is needed.
modules() {
  need npm "install Node.js 20 or newer with npm"
  cmp -s package-lock.json node_modules/.weir-lock && return
  echo "installing npm packages of package-lock.json"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.weir-lock
}

# new_enough tells whether a node is one that wrangler runs on.
new_enough() {
  "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || a === 22 && b >= 12 ? 0 : 1)' 2>/dev/null
}

# node_path gives the Node that came from npm, or the system's where npm has
# none for the platform.
node_path() {
  local bin=$PWD/node_modules/.bin/node
  if ! new_enough "$bin"; then
    bin=$(type -P node || true)
    if [ -z "$bin" ] || ! new_enough "$bin"; then die "Node.js 22.12 or newer is needed on this platform"; fi
  fi
  echo "$bin"
}

# script runs a script with that Node; its children find the same one.
script() {
  local bin
  bin=$(node_path)
  PATH="$(dirname "$bin"):$PATH" "$bin" "$@"
}

# need_chromium gives the path of a browser for tests, from Debian's package.
need_chromium() {
  local bin
  bin=$(type -P chromium || true)
  if [ -z "$bin" ]; then
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2
    bin=$(type -P chromium) || die "chromium could not be installed"
  fi
  echo "$bin"
}

# program compiles a Go program and lays the glue beside it.
#
#	program ./worker build
program() {
  local package=$1 dir=$2
  mkdir -p "$(dirname "$dir")"
  local flags
  flags=$(small)
  # shellcheck disable=SC2086
  GOOS=js GOARCH=wasm go build -trimpath -ldflags="-s -w" $flags -o "$dir.wasm" "$package"
  go run github.com/syumai/workers/cmd/workers-assets-gen -mode=go -o "$dir" # empties it first
  rm "$dir/worker.mjs" "$dir/runtime.mjs" # of the template; ours come next
  mv "$dir.wasm" "$dir/app.wasm"
  cp worker/js/*.mjs "$dir/"
  # Go's maps get their hash seed from here: at boot the platform has no randomness.
  printf 'export const SEED = [%s];\n' "$(od -An -v -tu1 -N32 /dev/urandom | tr -s ' \n' ',' | sed 's/^,//; s/,$//')" > "$dir/seed.mjs"
}

# small gives the flags that keep the packages small which no embeddings call
# passes through: inlining would make the program a sixth larger.
small() {
  local p
  for p in audio bedrock catalog chat connect dialog eventstream gcpauth images machine manage media messages models \
    moderations multipart oauth params provider redact rerank responses routing search session sigv4 snapshot store translate usage \
    videos web; do
    if [ -d "pkg/$p" ]; then printf -- '-gcflags=weir/pkg/%s=-l ' "$p"; fi
  done
}

# shrink lets binaryen take out what the Go compiler leaves in, and packs the
# program's data; once for each state of the program, as it takes most of a
# minute.
shrink() {
  local sum kept
  sum=$(cat "$1" build.sh worker/pack/*.go | sha256sum | cut -d' ' -f1)
  kept="node_modules/.cache/weir/$sum.wasm"
  if [ ! -f "$kept" ]; then
    rm -rf node_modules/.cache/weir
    mkdir -p node_modules/.cache/weir
    script node_modules/binaryen/bin/wasm-opt -Os --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int \
      --enable-mutable-globals "$1" -o "$kept.part"
    go run ./worker/pack "$kept.part"
    mv "$kept.part" "$kept"
  fi
  cp "$kept" "$1"
}

sizes() {
  raw=$(wc -c < "$out/app.wasm")
  gzipped=$(gzip -9 -c "$out/app.wasm" | wc -c)
  awk -v r="$raw" -v g="$gzipped" 'BEGIN { printf "build/app.wasm  %.2f MB, gzipped %.2f MB\n", r/1048576, g/1048576 }'
}

build() {
  need go "install Go 1.26 or newer"
  modules
  program ./worker "$out"
  [ "${1:-}" = quick ] || shrink "$out/app.wasm"
  dashboard
  sizes
}

# dashboard builds the pages that are served at /, beside the program.
dashboard() { script node_modules/vite/bin/vite.js build worker/dashboard --logLevel warn; }

# step runs one part of the tests to its first failing command, and remembers
# a failure. (In a condition the shell would ignore failures inside the part.)
failed=()
step() {
  local name=$1 code
  shift
  echo "== $name"
  set +e
  (set -e; "$@")
  code=$?
  set -e
  [ "$code" -eq 0 ] || { failed+=("$name"); echo "== $name FAILED"; }
}

formatted() {
  local bad
  bad=$(gofmt -l worker pkg test)
  [ -z "$bad" ] || { echo "not formatted:"; echo "$bad"; return 1; }
}

types() { script node_modules/typescript/bin/tsc -p worker/dashboard; }

# unit runs the unit tests, and those with OpenAI's client for Go: a module of
# their own, so that the client is no dependency of the program.
unit() {
  go test -json ./... > test/out/unit.json || true
  (cd test/clients && go test -json ./...) >> test/out/unit.json || true
  script test/report.mjs unit test/out/unit.json
}

e2e() {
  program ./worker/bridgetest test/out/bridge
  script --test --test-concurrency=1 \
    --test-reporter=spec --test-reporter-destination=stdout \
    --test-reporter=tap --test-reporter-destination=test/out/e2e.tap \
    "test/e2e/**/*.test.mjs"
}

# pages tests the dashboard in a browser; its pictures stay in test/out/dashboard.
pages() {
  CHROMIUM=$(need_chromium)
  export CHROMIUM
  script --test --test-concurrency=2 \
    --test-reporter=spec --test-reporter-destination=stdout \
    --test-reporter=tap --test-reporter-destination=test/out/dashboard.tap \
    "test/dashboard/*.test.mjs"
}

run_tests() {
  need go "install Go 1.26 or newer"
  modules
  mkdir -p test/out
  rm -f test/out/unit.json test/out/*.tap
  step "gofmt" formatted
  step "vet" go vet ./...
  step "vet of the tests with OpenAI's client" go -C test/clients vet ./...
  step "vet for wasm" env GOOS=js GOARCH=wasm go vet ./worker/...
  step "types of the dashboard" types
  step "unit tests" unit
  step "build" build
  step "end to end, in workerd" e2e
  step "dashboard, in a browser" pages
  [ ${#failed[@]} -eq 0 ] || printf 'failed: %s\n' "${failed[@]}"
  script test/report.mjs total test/out/unit.json test/out/e2e.tap test/out/dashboard.tap "${#failed[@]}"
}

case "${1:-build}" in
  build) build "${2:-}" ;;
  dev)
    build quick
    bin=$(node_path)
    PATH="$(dirname "$bin"):$PATH" exec "$bin" test/dev/dev.mjs # gets the signals itself
    ;;
  test) run_tests ;;
  bench) build; script test/bench/bench.mjs ;;
  deploy) build; script test/dev/deploy.mjs ;;
  clean) rm -rf build test/out ;;
  help | -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
