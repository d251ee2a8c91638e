# Running and showing commands. Every command that changes anything or asks the
# cluster goes through run, run_to, run_from, ask or status_of, which show it first;
# with --dry-run they only show it. Sourced first by every script.
# shellcheck shell=bash

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
	echo "bash 4.4 or newer is needed, this is $BASH_VERSION" >&2
	exit 2
fi
set -euo pipefail

E2E=e2e/minikube
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

# shellcheck source=../versions.env
source "$E2E/versions.env"
# shellcheck source=../chart.env
source "$E2E/chart.env"

STATE=${E2E_STATE:-$E2E/.state} # what is known about the profile; gone after down
OUT=${E2E_OUT:-$E2E/out}        # tables, output of runbook, and logs after a failure

# absolute PATH prints it as seen from anywhere.
absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s' "$PWD/$1" ;; esac }

# A file of our own: the contexts in the user's are left alone.
KUBECONFIG=$(absolute "$STATE/kubeconfig")
export KUBECONFIG
KUBECTL=(kubectl --context "$PROFILE" --namespace "$NAMESPACE")

DRY_RUN=
QUIET=

usage() {
	printf 'usage: %s [--dry-run]\n\n%s\n' "$0" "$1"
	exit "$2"
}

# start "WHAT THE SCRIPT DOES" "$@" reads the arguments and prepares the folders.
start() {
	local help=$1 word
	shift
	for word; do
		case $word in
		--dry-run) DRY_RUN=yes ;;
		-h | --help) usage "$help" 0 ;;
		*) usage "$help" 2 >&2 ;;
		esac
	done
	if [[ $DRY_RUN ]]; then
		exec 3>&1
	else
		exec 3>&2
		mkdir -p "$STATE" "$OUT"
	fi
	trap finish EXIT
}

# finish collects logs when a script fails; a usage error (2) and a refusal (3) say it all themselves.
finish() {
	local status=$?
	trap - EXIT
	if [[ ! $DRY_RUN && $status -ne 0 && $status -ne 2 && $status -ne 3 ]]; then
		QUIET=yes
		collect || true
	fi
	exit "$status"
}

say() { printf '\n# %s\n' "$*" >&3; }

# refuse "WHY" "HINT"... changes nothing and exits as runbook does when it refuses.
refuse() {
	printf 'refused: %s\n' "$1" >&2
	printf '  hint: %s\n' "${@:2}" >&2
	exit 3
}

fail() {
	printf 'failed: %s\n' "$1" >&2
	(($# < 2)) || printf '  hint: %s\n' "${@:2}" >&2
	exit 1
}

quoted() {
	local word words=()
	for word; do
		if [[ $word =~ ^[A-Za-z0-9_./:=@%+,-]+$ ]]; then words+=("$word"); else words+=("${word@Q}"); fi
	done
	printf '%s' "${words[*]}"
}

show() { [[ $QUIET ]] || printf '+ %s\n' "$*" >&3; }

run() {
	show "$(quoted "$@")"
	[[ $DRY_RUN ]] || "$@"
}

# run_to FILE COMMAND... writes standard output to FILE.
run_to() {
	show "$(quoted "${@:2}") > $(quoted "$1")"
	[[ $DRY_RUN ]] || "${@:2}" >"$1"
}

# run_from FILE COMMAND... reads standard input from FILE.
run_from() {
	show "$(quoted "${@:2}") < $(quoted "$1")"
	[[ $DRY_RUN ]] || "${@:2}" <"$1"
}

# ask NAME COMMAND... stores standard output in the variable NAME; in a dry run,
# where nobody answers, the text "?".
ask() {
	local -n answer=$1
	show "$(quoted "${@:2}")"
	# shellcheck disable=SC2034 # the caller's variable
	if [[ $DRY_RUN ]]; then answer='?'; else answer=$("${@:2}"); fi
}

# status_of FILE COMMAND... stores the exit status in $status and everything printed
# in FILE, showing it as well. In a dry run the status is 0.
status=0
status_of() {
	show "$(quoted "${@:2}") 2>&1 | tee $(quoted "$1")"
	status=0
	[[ $DRY_RUN ]] || "${@:2}" 2>&1 | tee "$1" || status=${PIPESTATUS[0]}
}

# wait_until "WHAT" SECONDS COMMAND... asks again and again; a dry run asks once.
wait_until() {
	local what=$1 seconds=$2 deadline
	shift 2
	deadline=$((SECONDS + seconds))
	show "until ${what}, at most $seconds s:"
	if [[ $DRY_RUN ]]; then
		"$@" || true
		return 0
	fi
	while ! "$@"; do
		QUIET=yes
		((SECONDS < deadline)) || fail "waited $seconds s until $what"
		sleep 2
	done
	QUIET=
}

# field NAME TEXT prints the value of a line NAME=value.
field() {
	local line
	if [[ $DRY_RUN ]]; then
		printf '?'
		return
	fi
	while IFS= read -r line; do
		if [[ $line == "$1="* ]]; then
			printf '%s' "${line#*=}"
			return
		fi
	done <<<"$2"
	fail "no $1 in the answer: $2"
}

# remember NAME VALUE keeps something for a later script, recall NAME [ELSE] gets it.
remember() {
	[[ ! $DRY_RUN ]] || return 0
	local kept=
	[[ ! -f $STATE/record ]] || kept=$(grep -v "^$1=" "$STATE/record" || true)
	printf '%s\n' ${kept:+"$kept"} "$1=$2" >"$STATE/record"
}

recall() {
	local line
	if [[ $DRY_RUN ]]; then
		printf '%s' "${2-?}"
		return
	fi
	if [[ -f $STATE/record ]]; then
		while IFS= read -r line; do
			if [[ $line == "$1="* ]]; then
				printf '%s' "${line#*=}"
				return
			fi
		done <"$STATE/record"
	fi
	(($# > 1)) || fail "nothing is known about $1" "run the earlier steps first: make -C $E2E help"
	printf '%s' "$2"
}

# fill_in FILE replaces each @NAME@ by the variable NAME.
fill_in() {
	local text name
	text=$(<"$1")
	while [[ $text =~ @([A-Z_]+)@ ]]; do
		name=${BASH_REMATCH[1]}
		[[ -v $name ]] || fail "$1 names @$name@, which is not set"
		text=${text//"@$name@"/${!name}}
	done
	printf '%s\n' "$text"
}

# apply_filled FILE applies a manifest with its names filled in.
apply_filled() {
	show "fill in $1 from versions.env and chart.env, and:"
	show "$(quoted "${KUBECTL[@]}" apply --filename -)"
	[[ $DRY_RUN ]] || fill_in "$1" | "${KUBECTL[@]}" apply --filename -
}
