#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
start "Empty the WAL with plans/cold-switch.yaml and start Milvus again." "$@"
require_profile

say "stop Milvus, unless it is stopped"
stop_milvus

# A run that failed half-way has emptied a part: what to compare with was written
# down before it.
if [[ $(recall switch_phase none) != begun ]]; then
	say "what there is to empty"
	look_before before-cold-switch
	remember switch_phase begun
fi

say "do it"
runbook cold-switch.txt apply plans/cold-switch.yaml --run --yes
expect "exit status" 0 "$status"
report cold-switch
remember switch_phase finished
remember scenario cold-switch
