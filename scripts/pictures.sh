#!/usr/bin/env bash
# The pictures and the recording of docs/images, which README.md and the documentation show.
#
#	scripts/pictures.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"

GOLDEN=update PLATFORM=native scripts/pages.sh 'pictures'
