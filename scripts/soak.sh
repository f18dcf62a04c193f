#!/usr/bin/env bash
# The long forms of the tests that have one, those that read the variable SOAK, every
# test in workerd, the short forms over other versions of PostgreSQL, and an hour of fuzzing.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export SOAK=1
need_go
modules
mapfile -t packages < <(grep -rl --include='*_test.go' '"SOAK"' pkg server | xargs -n 1 dirname | sort -u)
code=0
go test -count=1 -timeout=30m "${packages[@]/#/./}" || code=1
go -C scripts/tools test -count=1 -timeout=30m ./release || code=1
files=$(grep -rl --include='*.test.mjs' 'env\.SOAK' test/e2e | sort | paste -sd '|')
scripts/e2e.sh || code=1
PLATFORM=native scripts/e2e.sh "^(${files//./\\.})\$" || code=1
scripts/clients.sh || code=1
PLATFORM=native scripts/clients.sh || code=1
scripts/pages.sh || code=1
PLATFORM=native RACE=1 scripts/e2e.sh platform/race || code=1
scripts/cluster.sh || code=1
with() { POSTGRES_BIN=$bin SOAK='' "$@" || code=1; }
if [ "$(uname)" = Linux ]; then
  for version in 14.23.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 18.4.0-beta.17; do
    bin=$(postgres_bin "$version")
    with go test -count=1 ./server/postgres
    with scripts/cluster.sh
    ENGINE=postgres PLATFORM=native with scripts/e2e.sh 'accounts/refresh\.|management/|faults/'
  done
fi
scripts/fuzz.sh || code=1
exit "$code"
