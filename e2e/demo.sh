#!/usr/bin/env bash
# The main job from end to end on a lab of real servers: a WAL with data on all
# three tiers is emptied, and proved empty by a program that shares no code with
# the one that emptied it. `make demo` builds both programs and runs this.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/bin:$PATH"

work=$(mktemp -d)
export RUNBOOK_LAB_DIR="$work/lab" XDG_STATE_HOME="$work/state"
cleanup() {
	runbook-lab down >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap cleanup EXIT

bold='' plain=''
if [[ -t 1 && -z "${NO_COLOR:-}" ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() {
	printf '%s$ %s%s\n' "$bold" "$*" "$plain"
	"$@"
}

say "a lab: etcd, an S3 server and three woodpecker nodes on 127.0.0.1"
show runbook-lab up --detach --ports auto
eval "$(runbook-lab env)"
runbook-lab values >"$work/values.yaml"

say "seed a stopped instance: 16 logs with data on all three tiers"
show runbook-lab seed --milvus
show runbook-lab status

say "check the plan: no connection is made"
show runbook validate plans/cold-switch.yaml --values "$work/values.yaml"

say "the dry run: reads only"
show runbook apply plans/cold-switch.yaml --values "$work/values.yaml"

say "do it"
show runbook apply plans/cold-switch.yaml --values "$work/values.yaml" --run --yes

say "an independent look"
show runbook-lab verify --counter 16
show runbook-lab verify-positions --target woodpecker

say "write through a new woodpecker client: the first new log id is counter + 1"
show runbook-lab write-first
