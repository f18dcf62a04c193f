#!/usr/bin/env bash
# Builds the release of the native server to build/release: archives for linux,
# darwin and windows on amd64 and arm64, packages for Debian, RPM and npm, the formula of
# Homebrew, container images, the list of modules and checksums. The same sources, settings and release of Go make the
# same bytes.
#
#	REPOSITORY     where the releases are published, such as https://github.com/owner/weir, for
#	               install.sh, weir upgrade and the formula
#	IMAGE          name of the container image in a registry, such as ghcr.io/owner/weir, for
#	               compose.yaml; without it the image is loaded from the files of the release
#	SIGNING_KEY    file of an Ed25519 key of ssh-keygen that signs the checksums
#	PUBLIC_KEY     file of its public part alone, if the checksums are signed elsewhere or compared
#	NPM_NAME       name of the npm package, weir by default, such as @owner/weir
#
#	scripts/release.sh [VERSION]    by default the version of package.json and the commit
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_go
VERSION=${1:-$(described)} dashboard
rm -rf build/release
go -C scripts/tools run ./release -root "$PWD" -out "$PWD/build/release" -version "${1:-$(described)}" \
  -repository "${REPOSITORY:-}" -image "${IMAGE:-weir}" -key "${SIGNING_KEY:-}" -public "${PUBLIC_KEY:-}" -npm "${NPM_NAME:-weir}"
(cd build/release && ls -sh1)
