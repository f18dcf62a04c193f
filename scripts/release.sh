#!/usr/bin/env bash
# Builds the release of the native server to build/release: archives for linux,
# darwin and windows on amd64 and arm64, container images, the list of modules
# and checksums. The same sources, version and release of Go make the same bytes.
#
#	scripts/release.sh [VERSION]    by default the version of package.json and the commit
set -euo pipefail
. "$(dirname "$0")/lib.sh"

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

need_go
dashboard
rm -rf build/release
go -C scripts/tools run ./release -root "$PWD" -out "$PWD/build/release" -version "${1:-$(described)}"
(cd build/release && ls -sh1)
