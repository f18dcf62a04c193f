#!/usr/bin/env bash
# Mutation tests: changes one operator at a time and runs the package's tests,
# which should fail. Prints the killed share of each package and each mutant
# that lived.
#
#	scripts/mutants.sh [PACKAGE…]    packages by the last part of their path; without any,
#	                                 those whose rules matter most
#
# The reports stay in test/out/mutants. A mutant that no test covers counts as
# alive; one that makes a test hang counts as killed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- auth routing redact provider accounts machine
need_go
modules
gremlins=$(tool mutants gremlins)
out=$PWD/test/out/mutants
mkdir -p "$out"
# The tester copies the module for each of its workers, so it gets a copy that
# has nothing but Go.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard pkg internal go.mod go.sum | xargs -0 cp --parents -t "$copy"

code=0
for name; do
  path=$(cd "$copy" && go list -f '{{.Dir}}' ./pkg/... | grep -E "/$name\$" | head -n 1)
  [ -n "$path" ] || die "no package named $name"
  path=${path#"$copy"/}
  echo "== $path"
  (cd "$copy" && "$gremlins" unleash "./$path" --silent --workers 2 --timeout-coefficient 10 --exclude-files / \
    --invert-assignments --invert-bitwise --invert-bwassign --invert-logical --invert-loopctrl --remove-self-assignments \
    --output "$out/$name.json" ) || code=1
  script scripts/mutants.mjs "$out/$name.json" "$path"
done
exit "$code"
