#!/usr/bin/env bash
# Measures the gateway against a worker that passes everything on.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
scripts/build.sh
script test/bench/bench.mjs
