#!/usr/bin/env bash
# Fuzzing: every parser that has a fuzz test, one after the other.
#
#	scripts/fuzz.sh [PATTERN]    those whose package and name, "pkg/wire/sse FuzzReader",
#	                             match PATTERN, a regular expression
#
# FUZZTIME is how long each takes, 1m without it: about an hour in all. An input that
# fails is stored in testdata/fuzz of its package; go test runs it from then on.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_go
mapfile -t targets < <(grep -rho --include='*_test.go' --with-filename '^func Fuzz[A-Za-z0-9_]*' pkg server |
  sed -E 's|/[^/]*:func | |' | sort -u | grep -E -- "${1:-.}")
[ ${#targets[@]} -gt 0 ] || die "no fuzz test matches $1"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=()
for target in "${targets[@]}"; do
  read -r package name <<< "$target"
  if go test "./$package" -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-1m}" > "$out" 2>&1; then
    echo "$target: $(grep -o 'execs: [0-9]*' "$out" | tail -n 1)"
  elif grep -q 'context deadline exceeded' "$out" && ! grep -q 'Failing input' "$out"; then
    echo "$target: the time was over within an input" # of a busy computer, not a failure
  else
    cat "$out"
    failed+=("$target")
  fi
done
[ ${#failed[@]} -eq 0 ] || die "$(printf '%s\n' "fuzz tests that failed:" "${failed[@]}")"
