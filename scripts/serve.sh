#!/usr/bin/env bash
# Builds the native server, then serves on PORT (8787) with data in STATE_DIR
# (.weir/serve). DEMO=0 leaves out the demo machine and its test upstream. Without
# npm the dashboard is a plain page that says so.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

free_port "${PORT:-8787}"
need_go
if command -v npm >/dev/null; then dashboard; fi
echo "compiling the server, which takes minutes the first time"
go build -ldflags "-X main.version=$(described)" -o build/weir ./server
state=${STATE_DIR:-.weir/serve}
export LISTEN=127.0.0.1:${PORT:-8787} DATA_DIR=$state/data PRICES_URL=${PRICES_URL:-off}
# The demo's upstream is at a private address.
[ "${DEMO:-}" = 0 ] || export ALLOW_PRIVATE_UPSTREAMS=true
demo "$state" "$DATA_DIR/secrets.json" build/weir serve
