#!/usr/bin/env bash
# Builds the release of the native server to build/release: archives for linux,
# darwin and windows on amd64 and arm64, container images, the list of modules
# and checksums. The same sources, version and release of Go make the same bytes.
#
#	scripts/release.sh [VERSION]    by default the version of package.json and the commit
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_go
dashboard
rm -rf build/release
go -C scripts/tools run ./release -root "$PWD" -out "$PWD/build/release" -version "${1:-$(described)}"
(cd build/release && ls -sh1)
