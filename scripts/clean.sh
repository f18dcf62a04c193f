#!/usr/bin/env bash
# Removes what building and testing left.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
rm -rf build test/out test/clients/cli/node_modules
find server/dashboard/files -mindepth 1 ! -name .gitignore -delete
