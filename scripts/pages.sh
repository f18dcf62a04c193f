#!/usr/bin/env bash
# Tests of the dashboard in a browser. Its pictures stay in test/out/dashboard.
# PLATFORM=native runs them against the native server instead of workerd.
#
#	scripts/pages.sh [PATTERN]    the files whose path contains PATTERN, a regular expression
#
# The browser is the one that CHROMIUM names, else chromium-headless-shell, which takes half the time,
# or chromium; with CI=1 a missing one is installed. BUILT=1 leaves out the build.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# chromium prints the path of the browser.
chromium() {
  local bin=${CHROMIUM:-}
  if [ -n "$bin" ]; then
    [ -x "$bin" ] || die "CHROMIUM is $bin, which is not a program"
  else
    bin=$(type -P chromium-headless-shell || true)
    if [ -z "$bin" ] && debian chromium-headless-shell; then bin=$(type -P chromium-headless-shell || true); fi
    [ -n "$bin" ] || bin=$(type -P chromium || true)
    if [ -z "$bin" ] && debian chromium; then bin=$(type -P chromium || true); fi
    [ -n "$bin" ] || die "the dashboard's tests need Chromium: install it (apt-get install chromium-headless-shell), or set CHROMIUM to its path"
  fi
  echo "$bin"
}

mapfile -t files < <(find test/dashboard -name '*.test.mjs' | sort | grep -E -- "${1:-.}")
[ ${#files[@]} -gt 0 ] || die "no dashboard test matches $1"
CHROMIUM=$(chromium)
export CHROMIUM
need_go
modules
mkdir -p test/out
case "${PLATFORM:=workerd}" in
  workerd)
    out=dashboard
    [ "${BUILT:-}" = 1 ] || scripts/build.sh
    ;;
  native)
    out=dashboard-native
    dashboard
    go build -o test/out/weir-test ./test/native
    ;;
  *) die "PLATFORM is workerd or native, not $PLATFORM" ;;
esac
export PLATFORM
script --test --test-timeout=900000 --test-concurrency=2 \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination="test/out/$out.tap" \
  "${files[@]}"
