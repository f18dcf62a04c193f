#!/usr/bin/env bash
# Measures the gateway, in workerd and natively, against a worker that passes everything on.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
scripts/build.sh
scripts/build.sh ./worker/bridgetest test/out/bridge
go build -trimpath -ldflags="-s -w" -o build/weir ./server
postgresql
go build -o test/out/weir-test ./test/native
script test/bench/bench.mjs
