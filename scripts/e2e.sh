#!/usr/bin/env bash
# End-to-end tests.
#
#	scripts/e2e.sh [PATTERN]    the files whose path contains PATTERN, a regular expression
#
# PLATFORM=native runs them against the native server instead of workerd. BUILT=1
# leaves out the build of the worker. RACE=1 builds the native server with the race
# detector; ENGINE=postgres keeps its machines in PostgreSQL. SOAK=1 runs the long forms of the tests that have one.
#
# Without a pattern, workerd leaves out the files that say "workerd: soak": they prove
# what pkg/ does, which the native server shows in a tenth of the time. SOAK=1 runs all.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export PLATFORM=${PLATFORM:-workerd}
mapfile -t files < <(find test/e2e -name '*.test.mjs' | sort | grep -E -- "${1:-.}")
if [ $# -eq 0 ] && [ "$PLATFORM" = workerd ] && [ "${SOAK:-}" != 1 ]; then
  mapfile -t files < <(grep -L '^// workerd: soak$' "${files[@]}")
fi
[ ${#files[@]} -gt 0 ] || die "no end-to-end test matches $1"
need_go
modules
mkdir -p test/out
out=e2e-$PLATFORM
# The dashboards and alert rules of deploy/observability run against a real Prometheus.
if [[ " ${files[*]} " = *observability* ]]; then
  command -v prometheus >/dev/null || debian prometheus ||
    echo "no query of a dashboard is tested, Prometheus is not installed (apt-get install prometheus)"
fi
case "$PLATFORM" in
  workerd)
    [ "${BUILT:-}" = 1 ] || scripts/build.sh
    scripts/build.sh ./worker/bridgetest test/out/bridge
    at_once=2 # some wait for time limits while others work
    ;;
  native)
    at_once=2
    if [ "${RACE:-}" = 1 ]; then
      out=e2e-race
      at_once=1
      go build -race -o test/out/weir-test-race ./test/native
    else
      go build -o test/out/weir-test ./test/native
    fi
    ;;
  *) die "PLATFORM is workerd or native, not $PLATFORM" ;;
esac
if [ "${ENGINE:-}" = postgres ]; then
  [ "$PLATFORM" = native ] || die "ENGINE=postgres needs PLATFORM=native"
  postgresql
  out=e2e-postgres
  coproc database { exec test/out/weir-test postgres; } # ends with this script
  if ! read -r POSTGRES <&"${database[0]}"; then
    [ "${CI:-}" != 1 ] || die "PostgreSQL does not start"
    echo "skipped: PostgreSQL does not start"
    exit
  fi
  export POSTGRES
fi
script --test --test-timeout=900000 --test-concurrency="$at_once" \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination="test/out/$out.tap" \
  "${files[@]}"
