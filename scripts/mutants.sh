#!/usr/bin/env bash
# Mutation tests: changes one operator at a time and runs the package's tests,
# which should fail. Prints the killed share of each package and each mutant
# that lived.
#
#	scripts/mutants.sh [PACKAGE…]    packages by the last part of their path; without any,
#	                                 those whose rules matter most
#
# SAMPLE=10 changes a tenth of the lines only, chosen by SEED (1): for a large package.
#
# A package's own tests count, and those that tests_of adds; generated codecs are left as
# they are. The reports stay in test/out/mutants. A mutant that no test covers counts as
# alive; one that makes a test compute for long counts as killed.
#
# Each test program may use ten times the CPU time of the unchanged one, and 5 s more, so
# that the result does not depend on what else the computer does. The wall time is a
# multiple that only a program reaches that waits: such a mutant is neither killed nor
# alive, and is listed apart.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- auth routing redact provider accounts machine manage storage rpc tokens
need_go
modules
gremlins=$(tool mutants gremlins)
out=$PWD/test/out/mutants
mkdir -p "$out"
copy=$(mktemp -d)
CPU_TIMES=$(mktemp -d)
export CPU_TIMES
trap 'rm -rf "$copy" "$CPU_TIMES"' EXIT

# tests_of prints the packages whose tests count for a package beside its own:
# the parts of the machine object are tested by its operations.
tests_of() {
  case $1 in
    pkg/machine/storage | pkg/machine/rpc | pkg/machine/tokens) echo ./pkg/machine ./pkg/machine/manage ;;
    pkg/machine) echo ./pkg/machine/manage ;;
  esac
}

# bound prints a program that runs a test program: the first time it notes its CPU time in
# seconds, later it bounds it.
bound() {
  cat << 'EOF'
#!/usr/bin/env bash
noted=${CPU_TIMES:?}/$(basename "$1")
if [ -s "$noted" ]; then
  ulimit -t $(($(< "$noted") * 10 + 5))
  exec "$@"
fi
TIMEFORMAT='%U %S'
code=0
{ time "$@" 2>&3; } 3>&2 2> "$noted.time" || code=$?
[ "$code" -ne 0 ] || awk '{ printf "%d", $1 + $2 + 1 }' "$noted.time" > "$noted"
exit "$code"
EOF
}

# prepare copies what the tests of packages need, which compare the code with the
# documentation and the dashboard too: the tester copies the module for each of its
# workers, and runs all tests that it finds there.
prepare() {
  rm -rf "${copy:?}" && mkdir "$copy"
  git ls-files -z --cached --others --exclude-standard pkg internal go.mod go.sum docs deploy worker ':!worker/**.go' \
    | xargs -0 cp --parents -t "$copy"
  (
    cd "$copy"
    go list -f '{{.Dir}}' "$@" | sort > .tested
    go list -deps -test -f '{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}' "$@" | sort -u > .needed
    go list -f '{{.Dir}}' ./... | sort > .all
    comm -23 .all .needed | while read -r dir; do rm -f "$dir"/*.go; done
    comm -23 .all .tested | while read -r dir; do rm -f "$dir"/*_test.go; done
  )
}

# sample prints a diff of a package in which a share of its lines is new: the tester asks git
# for one, and changes new lines only. The same seed chooses the same lines.
sample() {
  find "$1" -maxdepth 1 -name '*.go' ! -name '*_test.go' | sort | xargs awk -v share="$SAMPLE" -v x="${SEED:-1}" '
    FNR == 1 { name = FILENAME; sub(".*/", "", name) }
    { x = (x * 69069 + 12345) % 4294967296 }
    x < share / 100 * 4294967296 {
      if (name != "") printf "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n", name, name, name, name
      name = ""
      printf "@@ -%d +%d @@\n-\n+\n", FNR, FNR
    }'
}

diff=()
if [ -n "${SAMPLE:-}" ]; then
  diff=(--diff sample)
  printf '#!/bin/sh\nexec cat "%s/diff"\n' "$CPU_TIMES" > "$CPU_TIMES/git"
  chmod +x "$CPU_TIMES/git"
fi
bound > "$CPU_TIMES/bound"
chmod +x "$CPU_TIMES/bound"
code=0
for name; do
  path=$(go list -f '{{.Dir}}' ./pkg/... | grep -E "/$name\$" | head -n 1)
  [ -n "$path" ] || die "no package named $name"
  path=${path#"$PWD"/}
  echo "== $path"
  # shellcheck disable=SC2046 # no package or several
  prepare "./$path" $(tests_of "$path")
  rm -f "$CPU_TIMES"/*.test*
  [ -z "${SAMPLE:-}" ] || sample "$path" > "$CPU_TIMES/diff"
  (cd "$copy" && PATH=$CPU_TIMES:$PATH GOFLAGS="-vet=off -exec=$CPU_TIMES/bound" "$gremlins" unleash "./$path" \
    --integration --coverpkg "./$path" --silent --workers 2 --timeout-coefficient 100 --exclude-files '/|_easyjson\.go$' \
    --invert-assignments --invert-bitwise --invert-bwassign --invert-logical --invert-loopctrl --remove-self-assignments \
    "${diff[@]}" --output "$out/$name.json" ) || code=1
  script scripts/mutants.mjs "$out/$name.json" "$path"
done
exit "$code"
