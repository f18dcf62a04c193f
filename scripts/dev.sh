#!/usr/bin/env bash
# Builds, then serves on PORT (8787) with state in STATE_DIR (.wrangler/state).
# DEMO=0 leaves out the demo machine and the test upstream.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
scripts/build.sh
bin=$(node_path)
PATH="$(dirname "$bin"):$PATH" exec "$bin" test/dev/dev.mjs # receives the signals itself
