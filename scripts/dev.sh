#!/usr/bin/env bash
# Builds, then serves on PORT (8787) with state in STATE_DIR (.wrangler/state).
# DEMO=0 leaves out the demo machine and the test upstream.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# secrets adds to .dev.vars what it lacks.
secrets() {
  local name
  (umask 077 && touch .dev.vars)
  chmod 600 .dev.vars
  [ -z "$(tail -c 1 .dev.vars)" ] || echo >> .dev.vars
  for name in ADMIN_TOKEN API_KEY_SECRET CREDENTIALS_KEY; do
    grep -q "^$name *=" .dev.vars || echo "$name=$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')" >> .dev.vars
  done
  grep -q '^ALLOW_PRIVATE_UPSTREAMS *=' .dev.vars || echo 'ALLOW_PRIVATE_UPSTREAMS=true' >> .dev.vars
  grep -q '^PRICES_URL *=' .dev.vars || echo 'PRICES_URL=off' >> .dev.vars
}

free_port "${PORT:-8787}"
scripts/build.sh
secrets
port=${PORT:-8787} state=${STATE_DIR:-.wrangler/state}
bin=$(node_path)
# The storage explorer is served on the gateway's own port without authentication.
export X_LOCAL_EXPLORER=false PATH="${bin%/*}:$PATH"
demo "$state" .dev.vars "$bin" node_modules/wrangler/bin/wrangler.js dev --ip 127.0.0.1 --port "$port" \
  --var "PUBLIC_URL:http://127.0.0.1:$port" \
  --persist-to "$state" --show-interactive-dev-session=false
