#!/usr/bin/env bash
# Tests with the tools that people use: those that npm carries run against the gateway,
# the conversations of others are played.
#
#	scripts/clients.sh [PATTERN]    the files of test/clients whose path contains PATTERN
#
# PLATFORM=native runs them against the native server instead of workerd. BUILT=1
# leaves out the build of the worker. SOAK=1 runs every tool over every family of
# upstreams; with GOLDEN=update the results are written to docs/compatibility.md.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export PLATFORM=${PLATFORM:-workerd}
mapfile -t files < <(find test/clients -maxdepth 1 -name '*.test.mjs' | sort | grep -E -- "${1:-.}")
[ ${#files[@]} -gt 0 ] || die "no test with tools matches $1"
need_go
modules
mkdir -p test/out
out=clients-$PLATFORM

# installed installs the tools of test/clients/cli, once for each lock file, in the
# versions of that file. "npm ci" refuses it where a registry lacks optional packages
# for other systems. Their install scripts are not run: none of them is needed.
installed() {
  local folder=test/clients/cli
  cmp -s $folder/package-lock.json $folder/node_modules/.weir-lock && return
  echo "installing the tools of $folder/package-lock.json"
  rm -rf $folder/node_modules
  npm install --prefix $folder --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  cp $folder/package-lock.json $folder/node_modules/.weir-lock
}

# The tools run in a network that has the loopback interface alone, which Linux can
# make for root and, where that is permitted, for others.
loopback=()
if [ "$(uname)" = Linux ]; then
  go build -o test/out/loopback ./test/loopback
  export LOOPBACK_NAMES=$PWD/test/out/$out.names
  : > "$LOOPBACK_NAMES"
  if test/out/loopback "$LOOPBACK_NAMES" true; then
    loopback=(test/out/loopback "$LOOPBACK_NAMES")
  else
    echo "no tool is run, conversations are played only: a network of their own needs root, in a container with --privileged"
  fi
fi
if [ ${#loopback[@]} -gt 0 ]; then installed; else unset LOOPBACK_NAMES; fi

case "$PLATFORM" in
  workerd) [ "${BUILT:-}" = 1 ] || scripts/build.sh ;;
  native) go build -o test/out/weir-test ./test/native ;;
  *) die "PLATFORM is workerd or native, not $PLATFORM" ;;
esac
export CLIENTS_RESULTS=$PWD/test/out/$out.jsonl
rm -f "$CLIENTS_RESULTS"
bin=$(node_path)
PATH="$(dirname "$bin"):$PATH" "${loopback[@]}" "$bin" --test --test-timeout=900000 --test-concurrency=1 \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination="test/out/$out.tap" \
  "${files[@]}"
script test/clients/compatibility.mjs
