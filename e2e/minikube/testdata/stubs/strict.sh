# What the stubs have in common: every call is written down, a flag that is not in
# flags.txt is refused, and one chosen call fails. Sourced, with the call's arguments.
# shellcheck shell=bash disable=SC2034 # for the stub that sources this
set -euo pipefail
: "${E2E_STUB:?the folder of the stubbed world}"

tool=${0##*/}
{
	printf '%s' "$tool"
	printf ' %q' "$@"
	printf '\n'
} >>"$E2E_STUB/calls"

# The first word is the command; the kubectl flags before it are global.
command='' words=() flags=()
while (($#)); do
	case $1 in
	--) break ;;
	--context | --namespace | --request-timeout)
		[[ $command ]] && scope=$command || scope=-
		flags+=("$scope $1")
		shift
		;;
	--*) flags+=("${command:--} ${1%%=*}") ;;
	*)
		if [[ ! $command ]]; then command=$1; else words+=("$1"); fi
		;;
	esac
	shift
done
inside=("$@") # from "--" on
known=$'\n'$(<"$E2E_STUB/flags.txt")$'\n'
for flag in "${flags[@]}"; do
	[[ $known == *$'\n'"$tool $flag"$'\n'* ]] || {
		echo "stub $tool: unknown flag: $flag" >&2
		exit 64
	}
done

# The world is a file for each thing that changes.
# get NAME [ELSE] prints what is known; put NAME VALUE changes it.
get() { if [[ -f $E2E_STUB/$1 ]]; then printf '%s\n' "$(<"$E2E_STUB/$1")"; else printf '%s' "${2-}"; fi; }
put() { printf '%s\n' "$2" >"$E2E_STUB/$1"; }

# fail_at holds the number of the call that fails, once.
n=$(($(get count 0) + 1))
put count "$n"
if [[ $(get fail_at) == "$n" ]]; then
	echo "stub $tool: this call was chosen to fail" >&2
	exit 1
fi
