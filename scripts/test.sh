#!/usr/bin/env bash
# Everything that a change must pass. The last line is the total:
# "N passed, N failed".
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# part runs a script to its end, remembers a failure and says how long it took.
failed=() took=()
part() {
  local name=$1 start=$EPOCHSECONDS
  shift
  echo "== $name"
  "$@" || { failed+=("$name"); echo "== $name FAILED"; }
  took+=("$((EPOCHSECONDS - start)) s $name")
}

# release_tests counts its tests with the unit tests.
release_tests() {
  # install.sh downloads and verifies with the first two, and runs in a root of busybox; the workflow of
  # the release reads packages with jq.
  { command -v ssh-keygen && command -v curl && command -v busybox && command -v jq && command -v rpm; } >/dev/null ||
    debian openssh-client curl busybox-static jq rpm || true
  go -C scripts/tools test -json -timeout=30m ./release > test/out/release.json || true
  go -C test/helm test -json ./... >> test/out/release.json || true # the chart
  cat test/out/release.json >> test/out/unit.json
  script test/report.mjs unit test/out/release.json
}

# race_tests runs the tests of what outlives a request, from many goroutines.
race_tests() {
  grep -rl 'func Test.*Concurrent' --include='*_test.go' pkg test/api | xargs -n 1 dirname | sort -u | sed 's|^|./|' |
    xargs go test -race -run Concurrent
}

# What runs end to end under the race detector: calls of many machines at once, streams,
# uploads, refreshes.
race='platform/race|accounts/refresh\.|faults/streams|media/media'

# What runs end to end over PostgreSQL too: the truth that servers share.
database='accounts/(refresh\.|oauth|affinity|fallback)|management/(keys|routes|costs|rotation|reports)|media/creations|security/management'

need_go
modules
mkdir -p test/out
rm -f test/out/unit.json test/out/*.tap
part "check" scripts/check.sh
part "unit tests, under the race detector" race_tests
part "build" scripts/build.sh
export BUILT=1
part "end to end, in workerd" scripts/e2e.sh
PLATFORM=native part "end to end, native" scripts/e2e.sh
ENGINE=postgres PLATFORM=native part "end to end, over PostgreSQL" scripts/e2e.sh "$database"
PLATFORM=native RACE=1 part "end to end, under the race detector" scripts/e2e.sh "$race"
part "clients, in workerd" scripts/clients.sh
PLATFORM=native part "clients, native" scripts/clients.sh
PLATFORM=native part "dashboard, in a browser" scripts/pages.sh
part "dashboard in workerd, in a browser" scripts/pages.sh 'shell|newcomer|oauth|passkeys'
part "several servers" scripts/cluster.sh
part "release" release_tests
printf '%s\n' "${took[@]}"
[ ${#failed[@]} -eq 0 ] || printf 'failed: %s\n' "${failed[@]}"
script test/report.mjs total "${#failed[@]}" \
  unit=test/out/unit.json "end to end, in workerd=test/out/e2e-workerd.tap" \
  "end to end, native=test/out/e2e-native.tap" "over PostgreSQL=test/out/e2e-postgres.tap" "race detector=test/out/e2e-race.tap" \
  "clients, in workerd=test/out/clients-workerd.tap" "clients, native=test/out/clients-native.tap" \
  dashboard=test/out/dashboard.tap "dashboard, native=test/out/dashboard-native.tap"
