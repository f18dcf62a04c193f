#!/usr/bin/env bash
# The one command of weir: ./build.sh COMMAND runs scripts/COMMAND.sh.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
  cat <<'TEXT'
./build.sh                    install what is missing, compile to build/, print the sizes
./build.sh dev                build, then serve on PORT (8787) with state in STATE_DIR (.wrangler/state);
                              DEMO=0 leaves out the demo machine and the test upstream
./build.sh serve              the same with the native server, and state in .weir/serve; needs only Go,
                              and npm for the dashboard
./build.sh check              format, vet, lint, types, modules, unit tests
./build.sh format             correct the format
./build.sh e2e [PATTERN]      the end-to-end tests in workerd whose path matches;
                              PLATFORM=native runs them against the native server
./build.sh pages [PATTERN]    the tests of the dashboard in a browser whose path matches
./build.sh pictures           make the pictures of docs/images from a machine with a week of use
./build.sh clients [PATTERN]  the tests with the tools that people use, in workerd;
                              PLATFORM=native runs them against the native server
./build.sh cluster [PATTERN]  the tests of several native servers over PostgreSQL whose name matches
./build.sh test               all of the above: what a change must pass
./build.sh soak               the long forms of the tests that have one, and an hour of fuzzing
./build.sh fuzz [PATTERN]     the fuzz tests whose package and name match, FUZZTIME=1m each
./build.sh mutants [PACKAGE]  the share of changes to the code that the tests notice
./build.sh bench              measure both platforms against a worker that passes everything on
./build.sh deploy             set missing secrets, deploy, then examine the gateway; REGION and DOMAIN say
                              where, DRY_RUN=1 stops before uploading
./build.sh doctor URL         examine a gateway from outside, with the operator's ADMIN_TOKEN
./build.sh release [VERSION]  the native server as archives, packages and container images in build/release
./build.sh clean              remove what building and testing left
TEXT
}

command=${1:-build}
case "$command" in
  build | dev | serve | check | format | e2e | pages | pictures | clients | cluster | test | soak | fuzz | mutants | bench | deploy | doctor | release | clean)
    [ $# -eq 0 ] || shift
    exec "scripts/$command.sh" "$@"
    ;;
  help | -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
