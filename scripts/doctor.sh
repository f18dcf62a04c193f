#!/usr/bin/env bash
# Examines the gateway at a URL from outside; docs/deploying.md has what it checks.
#
#	scripts/doctor.sh URL
#
# ADMIN_TOKEN is the operator's token, which is asked for on a terminal. With WEIR_API_KEY,
# and MODEL, one embeddings call is sent with an account of that key's machine.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

if [ $# -eq 1 ] && [ -z "${ADMIN_TOKEN+set}" ] && [ -t 0 ] && [ -t 1 ] && ! grep -qsF "\"${1%/}\"" .weir/dev.json; then
  read -rsp "Operator token (empty leaves out what needs it): " ADMIN_TOKEN
  echo
  export ADMIN_TOKEN
fi
script test/dev/doctor.mjs "$@"
