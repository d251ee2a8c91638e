#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
start "Check that the old WAL is gone on every tier, that the log id counter never went down, and that Milvus reads and writes." "$@"
require_profile
milvus_runs || refuse "Milvus is stopped" "finish what was begun: make -C $E2E cold-switch, or cold-restore"
wait_ready
counter=$(recall counter)
next='?'
[[ $DRY_RUN ]] || next=$((counter + 1))

say "the old WAL is gone"
walfill count -up-to "$counter"
expect "old logs in etcd" 0 "$(field logs_up_to "$told")"
expect "parked logs in etcd" 0 "$(field parked "$told")"
expect "objects of old logs" 0 "$(field objects_up_to "$told")"
for ((n = 0; n < WOODPECKER_REPLICAS; n++)); do
	node_files "$n" "$counter"
	expect "files of old logs on node $n" 0 "$old_files"
done

say "the counter held, and goes on above it"
expect_at_least "log id counter after the start" "$next" "$(field counter "$told")"
expect_at_least "lowest id of a new log" "$next" "$(field lowest_log "$told")"

say "nothing else was touched"
expect_at_least "objects of Milvus itself" "$(recall other_objects)" "$(field other_objects "$told")"
ask claims "${ETCDCTL[@]}" get --prefix --keys-only "$ROOT_PATH/runbook/"
expect "locks and markers of runbook in etcd" none "${claims:-none}"
list_pods "$OUT/pods"
restarts='?' same='?'
if [[ ! $DRY_RUN ]]; then
	restarts=$(restarts_since "$STATE/pods" "$OUT/pods")
	same=$(same_pods "$STATE/pods" "$OUT/pods" "$WOODPECKER-")
fi
expect "restarts of containers" 0 "$restarts"
expect "log-store pods that are still the same" "$WOODPECKER_REPLICAS" "$same"

say "old rows are read, new rows are written"
seeder check -rows "$SEED_ROWS"
for name in rows digest asked neighbours; do
	expect "$name" "$(recall "$name")" "$(field "$name" "$told")"
done
if [[ $DRY_RUN || $(recall scenario) == cold-restore ]]; then
	seeder count -from "$(recall lost_from)" -to "$(recall lost_to)"
	expect "rows written after the backup" 0 "$(field rows "$told")"
fi
write_rows
expect "new rows, read back" "$EXTRA_ROWS" "$(field rows "$told")"

report "verify-$(recall scenario after)"
