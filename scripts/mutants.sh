#!/usr/bin/env bash
# Mutation tests: changes one operator at a time and runs the package's tests,
# which should fail. Prints the killed share of each package and each mutant
# that lived.
#
#	scripts/mutants.sh [PACKAGE…]    packages by the last part of their path; without any,
#	                                 those whose rules matter most
#
# A package's own tests count, and those that tests_of adds. The reports stay in
# test/out/mutants. A mutant that no test covers counts as alive; one that makes
# a test hang counts as killed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- auth routing redact provider accounts machine manage storage rpc tokens
need_go
modules
gremlins=$(tool mutants gremlins)
out=$PWD/test/out/mutants
mkdir -p "$out"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# tests_of prints the packages whose tests count for a package beside its own:
# the parts of the machine object are tested by its operations.
tests_of() {
  case $1 in
    pkg/machine/storage | pkg/machine/rpc | pkg/machine/tokens) echo ./pkg/machine ./pkg/machine/manage ;;
    pkg/machine) echo ./pkg/machine/manage ;;
  esac
}

# prepare copies what the tests of packages need: the tester copies the module
# for each of its workers, and runs all tests that it finds there.
prepare() {
  rm -rf "${copy:?}" && mkdir "$copy"
  git ls-files -z --cached --others --exclude-standard pkg internal go.mod go.sum | xargs -0 cp --parents -t "$copy"
  (
    cd "$copy"
    go list -f '{{.Dir}}' "$@" | sort > .tested
    go list -deps -test -f '{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}' "$@" | sort -u > .needed
    go list -f '{{.Dir}}' ./... | sort > .all
    comm -23 .all .needed | while read -r dir; do rm -f "$dir"/*.go; done
    comm -23 .all .tested | while read -r dir; do rm -f "$dir"/*_test.go; done
  )
}

code=0
for name; do
  path=$(go list -f '{{.Dir}}' ./pkg/... | grep -E "/$name\$" | head -n 1)
  [ -n "$path" ] || die "no package named $name"
  path=${path#"$PWD"/}
  echo "== $path"
  # shellcheck disable=SC2046 # no package or several
  prepare "./$path" $(tests_of "$path")
  (cd "$copy" && "$gremlins" unleash "./$path" --integration --coverpkg "./$path" --silent --workers 2 \
    --timeout-coefficient 5 --exclude-files / \
    --invert-assignments --invert-bitwise --invert-bwassign --invert-logical --invert-loopctrl --remove-self-assignments \
    --output "$out/$name.json" ) || code=1
  script scripts/mutants.mjs "$out/$name.json" "$path"
done
exit "$code"
