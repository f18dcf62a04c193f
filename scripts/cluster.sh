#!/usr/bin/env bash
# Tests of several native servers over one PostgreSQL server of the system.
#
#	scripts/cluster.sh [PATTERN]    those whose name matches, a regular expression
#
# SOAK=1 runs the long forms. Without PostgreSQL they are skipped, unless CI=1.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_go
postgresql
mkdir -p test/out
CLUSTER=1 go test -count=1 -timeout=120m -json -run "${1:-.}" ./test/cluster > test/out/cluster.json || true
cat test/out/cluster.json >> test/out/unit.json
script test/report.mjs unit test/out/cluster.json
