#!/bin/sh
# Installs weir, or a newer version over an older one. See --help.
set -eu

releases='' # their address, which the release sets
signer=''   # public key that signs SHA256SUMS; empty for a release without a signature

usage() {
  cat <<'TEXT'
install.sh [--version VERSION] [--dir FOLDER] [--from ADDRESS] [--serve | --uninstall]

Downloads weir for this system, compares it with the signed checksums of the release, and puts it
into FOLDER: ~/.local/bin, or /usr/local/bin as root. It needs no root and changes nothing else.

  --version    default: the latest
  --from       where the files of the release are, for a mirror or a server of your own
  --serve      starts weir when it is installed
  --uninstall  removes the program and leaves your data

curl is used, or wget; behind a proxy set https_proxy.
TEXT
}

die() { echo "install.sh: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# fetch ADDRESS FILE downloads a file. An https address never leads to another protocol.
fetch() {
  protocols='=https'
  case $1 in http:*) protocols='=http,https' ;; esac
  if has curl; then
    curl -fsSL --retry 2 --proto "$protocols" -o "$2" "$1"
  elif has wget; then
    wget -q -O "$2" "$1"
  else
    die "curl or wget is needed"
  fi || die "$1 cannot be downloaded. Behind a proxy, set https_proxy"
}

# system prints OS-ARCH as the archives name it.
system() {
  os=$(uname -s) arch=$(uname -m)
  case $os in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) die "there is no program for $os. Build it with Go: go build ./server" ;;
  esac
  case $arch in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) die "there is no program for $os on $arch. Build it with Go: go build ./server" ;;
  esac
  # A shell under Rosetta calls an Apple processor x86_64.
  if [ "$os-$arch" = darwin-amd64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then arch=arm64; fi
  echo "$os-$arch"
}

# digest FILE prints its SHA-256.
digest() {
  if has sha256sum; then sha256sum "$1"
  elif has shasum; then shasum -a 256 "$1"
  elif has openssl; then openssl dgst -sha256 -r "$1"
  else die "sha256sum, shasum or openssl is needed"
  fi | cut -d ' ' -f 1
}

# verify checks the signature of SHA256SUMS.
verify() {
  [ -n "$signer" ] || return 0
  if ! has ssh-keygen; then
    echo "install.sh: without ssh-keygen the signature of the release is not verified, only the checksum, which comes" >&2
    echo "from the same server. To verify both, install ssh-keygen (openssh-client) and run this again." >&2
    return 0
  fi
  fetch "$from/SHA256SUMS.sig" "$work/SHA256SUMS.sig"
  echo "weir $signer" > "$work/signers"
  ssh-keygen -Y verify -f "$work/signers" -I weir -n weir-release -s "$work/SHA256SUMS.sig" \
    < "$work/SHA256SUMS" >/dev/null 2>&1 || die "the signature of SHA256SUMS is not that of weir. Nothing was installed"
}

# choose sets sum, file and version to the archive in SHA256SUMS that is for this system.
choose() {
  sum='' file=''
  while read -r line name; do
    case $name in
      weir-"$version-$system.tar.gz" | weir-v"$version-$system.tar.gz") ;;
      weir-*-"$system.tar.gz") [ -z "$version" ] || continue ;;
      *) continue ;;
    esac
    [ -z "$file" ] || die "$from has several versions. Choose one with --version"
    sum=$line file=$name
  done < "$work/SHA256SUMS"
  case $file in
    '') die "$from has no program for $system${version:+ of version $version}" ;;
    */*) die "$from names a file outside of its folder" ;;
  esac
  version=${file#weir-}
  version=${version%-"$system.tar.gz"}
}

# newer A B reports whether version A is above B, of which a pre-release is below the release.
newer() {
  above=${1#v} below=${2#v}
  case $above in *-*) ;; *) above=$above-zz ;; esac
  case $below in *-*) ;; *) below=$below-zz ;; esac
  [ "$above" != "$below" ] && [ "$(printf '%s\n' "$below" "$above" | sort -V 2>/dev/null | tail -n 1)" = "$above" ]
}

# check_older refuses to replace a newer version by an older one, which only --version asks for.
check_older() {
  [ -z "$asked" ] || return 0
  before=$("$dir/weir" version 2>/dev/null </dev/null | cut -d ' ' -f 2)
  case $before in [0-9]*.*.* | v[0-9]*.*.*) ;; *) return 0 ;; esac
  ! newer "$before" "$version" ||
    die "$dir has weir $before, which is newer than $version. To install the older one: --version $version"
}

# absolute prints the path of the folder from the root on, which is what PATH needs.
absolute() { CDPATH='' cd -- "$dir" && pwd; }

# prepare makes the folder, and in it another one for what is downloaded, which is removed at the
# end. Other users cannot write there, also if they can write the folder around it.
prepare() {
  work=''
  trap '[ -z "$work" ] || rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  { mkdir -p "$dir" && whole=$(absolute) && work=$(mktemp -d "$whole/.weir.XXXXXX"); } 2>/dev/null ||
    die "$dir cannot be written. Choose another folder: --dir ~/bin"
  dir=$whole
  [ ! -d "$dir/weir" ] || die "$dir/weir is a folder. Choose another place for the program: --dir ~/bin"
}

# place puts the program into its folder. A program that runs cannot be overwritten, but its
# name can be given to another file.
place() {
  chmod 755 "$1"
  "$1" version >/dev/null 2>&1 </dev/null ||
    die "the program does not run on this computer, or not from $dir. Nothing was installed"
  mv -f "$1" "$dir/weir"
}

install() {
  system=$(system)
  if [ -z "$from" ]; then
    [ -n "$releases" ] || die "this release does not name its address. Add it: sh -s -- --from ADDRESS"
    from=$releases/latest/download
    [ -z "$version" ] || from=$releases/download/v${version#v}
  fi
  prepare
  asked=$version
  fetch "$from/SHA256SUMS" "$work/SHA256SUMS"
  verify
  choose
  check_older
  echo "Downloading $file"
  fetch "$from/$file" "$work/$file"
  [ "$(digest "$work/$file")" = "$sum" ] || die "the checksum of $file is not that of the release. Nothing was installed"
  tar -xzf "$work/$file" -C "$work"
  place "$work/${file%.tar.gz}/weir"
  rm -rf "$work"
  work=''

  echo "Installed $("$dir/weir" version) in $dir"
  found=$(command -v weir || true) run=weir
  if [ -z "$found" ]; then
    run=$dir/weir
    echo "$dir is not in your PATH. To add it: export PATH=\"$dir:\$PATH\""
  elif [ "$found" != "$dir/weir" ]; then
    run=$dir/weir
    echo "Another weir comes first in your PATH: $found"
  fi
  echo
  if [ -n "$serve" ]; then
    exec "$dir/weir" serve
  fi
  echo "Start it: $run serve"
}

# service prints the file by which this system starts the program, if weir service has made one.
service() {
  for unit in /etc/systemd/system/weir.service "${XDG_CONFIG_HOME:-${HOME:-}/.config}/systemd/user/weir.service" \
    "${HOME:-}/Library/LaunchAgents/weir.plist"; do
    ! grep -qsF "$dir/weir" "$unit" || echo "$unit"
  done
}

uninstall() {
  [ -e "$dir/weir" ] || die "there is no $dir/weir"
  dir=$(absolute)
  unit=$(service)
  [ -z "$unit" ] || die "$dir/weir is a service ($unit). Remove that first: $dir/weir service uninstall"
  rm -f "$dir/weir" "$dir/weir.old" || die "$dir/weir cannot be removed"
  echo "Removed $dir/weir. Its data stays, in ~/.local/state/weir unless you chose another folder."
}

main() {
  version='' dir='' from='' serve='' action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --version | --dir | --from)
        [ -n "${2:-}" ] || die "$1 needs a value"
        case $1 in
          --version) version=$2 ;;
          --dir) dir=$2 ;;
          --from) from=${2%/} ;;
        esac
        shift
        ;;
      --serve) serve=yes ;;
      --uninstall) action=uninstall ;;
      -h | --help) usage; exit 0 ;;
      *) die "unknown option $1. --help lists them" ;;
    esac
    shift
  done
  if [ -z "$dir" ]; then
    if [ "$(id -u)" = 0 ]; then dir=/usr/local/bin; else dir=${HOME:?}/.local/bin; fi
  fi
  $action
}

main "$@"
