#!/bin/sh
# Sets up @NAME@ to use a weir gateway.
#
#   WEIR_LEASE=LEASE sh @ID@.sh GATEWAY   creates a key and writes the configuration
#   sh @ID@.sh --undo                     restores the files as they were before
#
# GATEWAY is the address of the gateway. LEASE is a code from its dashboard, valid once
# and for five minutes; other users of this computer could read it as an argument. These
# files are changed, and nothing else:
#
@PATHS@
set -eu
umask 077
LC_ALL=C
export LC_ALL

say() { printf '%s\n' "$*"; }
fail() {
	printf '%s\n' "weir: $*" >&2
	exit 1
}

tool='@ID@'
count=@COUNT@
: "${HOME:?weir: HOME is not set}"
# Not the folder weir: that has the data of a native server.
state="${XDG_STATE_HOME:-$HOME/.local/state}/weir-setup/$tool"

@FILES@
# edit writes file $1 to standard output as it will be.
edit() {
	file=$(path "$1")
	[ -f "$file" ] || file=/dev/null
	edits "$1" >"$work/edits"
	WEIR_URL=$url WEIR_KEY=$key WEIR_MODEL=$model WEIR_SMALL=$small WEIR_NOTES=$work/notes.$1 \
		awk "$(program "$1")" "$work/edits" "$file"
}

# claim exchanges the lease for a key. The lease is sent in a body.
claim() {
	answer=$(printf '{"lease":"%s","tool":"%s"}' "$lease" "$tool" |
		curl -sS --max-time 60 -H 'Content-Type: application/json' --data-binary @- -w '\n%{http_code}' "$url/setup/claim") ||
		fail "Cannot reach $url. Nothing was changed."
	case $answer in
	*'
200') ;;
	*) fail "$(member message). Nothing was changed." ;;
	esac
	key=$(member apiKey) model=$(member model) small=$(member smallModel)
	case $key in
	'' | *[!A-Za-z0-9_-]*) fail "The gateway's answer has no key. Nothing was changed." ;;
	esac
	case $model$small in
	'' | *[!A-Za-z0-9._:/@+~-]*) fail "The gateway's answer has no usable model. Nothing was changed." ;;
	esac
}

# member returns a string of the answer.
member() { printf '%s' "$answer" | sed -n 's/.*"'"$1"'":"\([^"]*[^".]\)[."].*/\1/p'; }

# writable reports whether a file can be written, or created.
writable() {
	if [ -e "$1" ]; then
		[ -f "$1" ] && [ -w "$1" ]
		return
	fi
	folder=${1%/*}
	while [ ! -e "${folder:-/}" ]; do folder=${folder%/*}; done
	[ -d "${folder:-/}" ] && [ -w "${folder:-/}" ]
}

# target follows the links of file $1, which may lead to a file that does not exist yet.
target() {
	file=$1 hops=0
	while [ -L "$file" ] && [ $((hops += 1)) -le 40 ]; do
		next=$(readlink "$file")
		case $next in
		/*) file=$next ;;
		*) file=${file%/*}/$next ;;
		esac
	done
	printf '%s\n' "$file"
}

# record prints where the state of file $1 is kept: a new place if an earlier set-up wrote
# another file, as it does under another CODEX_HOME.
record() {
	n=1
	while [ -e "$state/$n.path" ] && [ "$(cat "$state/$n.path")" != "$1" ]; do n=$((n + 1)); done
	printf '%s\n' "$state/$n"
}

# write replaces file $1, and keeps it as it was before the first set-up.
write() {
	file=$(target "$(path "$1")")
	saved=$(record "$file")
	if [ ! -e "$saved.path" ]; then
		mkdir -p "$state"
		if [ -e "$file" ]; then cp -p "$file" "$saved.before"; fi
		printf '%s\n' "$file" >"$saved.path"
	fi
	mkdir -p "${file%/*}"
	if [ -e "$file" ]; then chmod go-rwx "$file"; fi
	cat "$work/new.$1" >"$file"
	cp "$file" "$saved.after"
	say "$file"
	if [ -s "$work/notes.$1" ]; then cat "$work/notes.$1"; else say "    unchanged"; fi
}

# undo restores every file. Later changes of the user's are kept beside it.
undo() {
	[ -d "$state" ] || fail "Nothing to undo: this script has not set up @NAME@ for this user."
	for record in "$state"/*.path; do
		[ -e "$record" ] || continue
		saved=${record%.path}
		file=$(cat "$record")
		if [ -e "$file" ] && ! cmp -s "$file" "$saved.after"; then
			cp -p "$file" "$file.before-undo"
			say "$file has changed since the set-up. It was saved as $file.before-undo"
		fi
		if [ -e "$saved.before" ]; then
			mkdir -p "${file%/*}"
			cp -p "$saved.before" "$file"
			say "Restored $file"
		else
			rm -f "$file"
			say "Removed $file"
		fi
	done
	rm -rf "$state"
	say "The key that the set-up created still works. Revoke it in the dashboard, under Keys."
}

main() {
	if [ "${1-}" = --undo ]; then
		undo
		return
	fi
	[ $# -eq 1 ] || fail "One argument is needed, the address of the gateway. Copy the whole command from the dashboard."
	url=${1%/} lease=${WEIR_LEASE-}
	case $url in
	http://?* | https://?*) ;;
	*) fail "The address must begin with https:// or http://." ;;
	esac
	case ${url#*://} in
	*[!A-Za-z0-9.:_-]*) fail "The address must be scheme and host only, such as https://weir.example.com." ;;
	esac
	case $lease in
	'' | *[!a-z0-9-]*) fail "The lease is not readable. Copy the whole command from the dashboard." ;;
	esac
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM

	# A file that cannot be edited is found before the lease is used.
	key=check model=check small=check
	writable "$state/1.path" || fail "$state cannot be written. Nothing was changed."
	i=1
	while [ $i -le $count ]; do
		writable "$(path $i)" || fail "$(path $i) cannot be written. Nothing was changed."
		edit $i >/dev/null 2>"$work/why" || fail "$(path $i) cannot be edited: $(cat "$work/why"). Nothing was changed."
		i=$((i + 1))
	done
	claim
	i=1
	while [ $i -le $count ]; do
		rm -f "$work/notes.$i"
		edit $i >"$work/new.$i" || fail "$(path $i) cannot be edited. No file was changed; revoke the new key in the dashboard."
		i=$((i + 1))
	done
	say "Set up @NAME@ for $url:"
	i=1
	while [ $i -le $count ]; do
		write $i
		i=$((i + 1))
	done
	say "The files as they were are in $state. To restore them:"
	say "    curl -fsSL '$url/setup/$tool.sh' | sh -s -- --undo"
@ENDING@}

main "$@"
