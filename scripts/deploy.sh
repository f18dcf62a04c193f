#!/usr/bin/env bash
# Builds and deploys to Cloudflare, then examines what answers; docs/deploying.md
# describes it.
#
#	scripts/deploy.sh
#
# REGION is where the worker runs, DOMAIN its own domain; both are remembered, and
# asked for on a terminal. Secrets that are missing are created, or set to those of
# the environment. DRY_RUN=1 stops before uploading, BUILT=1 leaves out the build.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_go
modules
script test/dev/deploy.mjs "$@"
