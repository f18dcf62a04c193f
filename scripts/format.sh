#!/usr/bin/env bash
# Corrects the format of Go, JavaScript and TypeScript.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_go
modules
gofmt -w worker server pkg internal test scripts
script node_modules/@biomejs/biome/bin/biome format --write .
