#!/usr/bin/env bash
# End-to-end tests in workerd.
#
#	scripts/e2e.sh [PATTERN]    the files whose path contains PATTERN, a regular expression
#
# BUILT=1 leaves out the build. SOAK=1 runs the long forms of the tests that have one.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mapfile -t files < <(find test/e2e -name '*.test.mjs' | sort | grep -E -- "${1:-.}")
[ ${#files[@]} -gt 0 ] || die "no end-to-end test matches $1"
need_go
modules
mkdir -p test/out
[ "${BUILT:-}" = 1 ] || scripts/build.sh
scripts/build.sh ./worker/bridgetest test/out/bridge
script --test --test-concurrency=1 \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination=test/out/e2e.tap \
  "${files[@]}"
