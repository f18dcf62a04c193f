#!/usr/bin/env bash
# Everything that needs neither workerd nor a browser: format, vet, lint,
# types, modules, unit tests. The steps run at the same time.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

gofmt_clean() {
  local bad
  bad=$(gofmt -l worker server pkg internal test scripts)
  [ -z "$bad" ] || { echo "not formatted (run gofmt -w):"; echo "$bad"; return 1; }
}

# biome checks format and lint of JavaScript and TypeScript.
biome_clean() {
  script node_modules/@biomejs/biome/bin/biome check --error-on-warnings . || {
    echo "./build.sh format corrects the format"
    return 1
  }
}

types() { script node_modules/typescript/bin/tsc -p worker/dashboard; }

vet() {
  go vet ./...
  go -C test/clients vet ./...
  go -C test/telemetry vet ./...
  go -C test/oidc vet ./...
  GOOS=js GOARCH=wasm go vet -trimpath ./worker/... # compiled as scripts/build.sh does
}

# lint runs staticcheck with the rules of staticcheck.conf. It does not know
# that functions under go:wasmexport are used.
lint() {
  local bin
  bin=$(tool tools staticcheck)
  "$bin" ./...
  GOFLAGS="${GOFLAGS-} -trimpath" GOOS=js GOARCH=wasm "$bin" -checks all,-U1000 ./worker/...
}

# compatibility fails if docs/compatibility.md is not that of the tests' tables.
compatibility() { script test/clients/compatibility.mjs; }

# used fails for exported names that only tests use.
used() {
  local bin
  bin=$(tool tools exports)
  "$bin" -dead
}

shell() {
  if ! command -v shellcheck >/dev/null && ! debian shellcheck; then
    echo "skipped, it is not installed (apt-get install shellcheck)"
    return
  fi
  shellcheck build.sh scripts/*.sh .ci/run deploy/*.sh
}

go_modules() {
  local m
  go mod verify >/dev/null
  for m in . test/clients test/oidc test/telemetry test/helm scripts/tools scripts/mutants; do go -C "$m" mod tidy -diff; done
}

# unit runs the unit tests, and those with OpenAI's client for Go and with the libraries of
# OpenTelemetry, modules of their own so that these are no dependencies of the program.
unit() {
  postgresql
  go test -json ./... > test/out/unit.json || true
  go -C test/clients test -json ./... >> test/out/unit.json || true
  go -C test/telemetry test -json ./... >> test/out/unit.json || true
  go -C test/oidc test -json ./... >> test/out/unit.json || true
  script test/report.mjs unit test/out/unit.json
}

need_go
modules
mkdir -p test/out
rm -f test/out/unit.json
step "unit tests" unit
step "staticcheck" lint
step "vet, native and wasm" vet
step "exported names are used" used
step "biome" biome_clean
step "types of the dashboard" types
step "compatibility page" compatibility
step "gofmt" gofmt_clean
step "go modules" go_modules
step "shellcheck" shell
finish
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
