#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
start "Show that runbook refuses a running release, stop Milvus, show that the dry run changes nothing." "$@"
require_profile
plan=plans/cold-switch.yaml

if milvus_runs; then
	say "a running release is refused"
	runbook dry-run-while-running.txt apply $plan
	expect "exit status while Milvus runs" 3 "$status"
fi

say "stop Milvus; woodpecker, etcd and MinIO stay up"
stop_milvus

say "the dry run"
etcd_revision
walfill count
revision_before=$revision tiers_before=$told
runbook dry-run.txt apply $plan
expect "exit status of the dry run" 0 "$status"
etcd_revision
expect "revision of etcd afterwards" "$revision_before" "$revision"
walfill count
if [[ $told == "$tiers_before" ]]; then told="as before"; fi
expect "counts in etcd and object store afterwards" "as before" "$told"
for ((n = 0; n < WOODPECKER_REPLICAS; n++)); do
	node_files "$n" 0
	expect_at_least "files of the WAL on node $n" 1 "$files"
done
report dry-run
