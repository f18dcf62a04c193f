#!/usr/bin/env bash
# Sets missing secrets, then deploys. DRY_RUN=1 stops before uploading.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
scripts/build.sh
script test/dev/deploy.mjs
