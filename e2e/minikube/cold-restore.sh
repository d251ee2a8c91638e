#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"

back_up() {
	milvus_runs || refuse "Milvus is stopped" "finish what was begun: make -C $E2E cold-switch verify"
	say "the programs"
	build_runbook
	install_tools

	say "back etcd up"
	run "${ETCDCTL[@]}" snapshot save "$ETCD_SNAPSHOT"
	walfill count
	remember backup_counter "$(field counter "$told")"

	say "write after the backup: rows, and logs whose ids the backup does not know"
	write_rows
	remember lost_from "$from"
	remember lost_to "$to"
	fill "runbook-e2e-after-backup-$from" "$FILL_LOGS"

	say "stop Milvus"
	stop_milvus
	look_before before-cold-restore
}

put_back() {
	say "put the backup in the place of etcd's data"
	# shellcheck disable=SC2034 # both are filled in
	ETCD_PEER_URL=http://$ETCD-0.$ETCD_SERVICE.$NAMESPACE.svc.cluster.local:$ETCD_PEER_PORT
	ask ETCD_RUNNING_IMAGE "${KUBECTL[@]}" get statefulset "$ETCD" --output 'jsonpath={.spec.template.spec.containers[0].image}'
	run "${KUBECTL[@]}" scale "statefulset/$ETCD" --replicas 0
	run "${KUBECTL[@]}" wait --for delete "pod/$ETCD-0" --timeout "${STOP_TIMEOUT}s"
	run "${KUBECTL[@]}" delete job runbook-e2e-etcd-restore --ignore-not-found --wait
	apply_filled "$E2E/manifests/etcd-restore.yaml"
	run "${KUBECTL[@]}" wait --for condition=Complete job/runbook-e2e-etcd-restore --timeout "${COMMAND_TIMEOUT}s"
	run "${KUBECTL[@]}" delete job runbook-e2e-etcd-restore --wait
	run "${KUBECTL[@]}" scale "statefulset/$ETCD" --replicas 1
	run "${KUBECTL[@]}" rollout status "statefulset/$ETCD" --timeout "${READY_TIMEOUT}s"

	say "the log id counter has gone back below ids that are in use"
	walfill count
	expect "log id counter after the restore" "$(recall backup_counter)" "$(field counter "$told")"
	expect "highest log id in the object store" "$(recall counter)" "$(field highest_object_log "$told")"
	report restored

	say "the sessions in the backup have leases; they run out by themselves"
	wait_until "no session of Milvus is left in etcd" "$STOP_TIMEOUT" no_session
}

start "Restore an etcd backup that is older than the WAL, reset with plans/cold-restore.yaml, start Milvus again." "$@"
require_profile
ETCD_SNAPSHOT=$ETCD_MOUNT/runbook-e2e.snapshot

# Each part can be run again by itself, but not after the next has begun.
phase=$(recall restore_phase finished)
if [[ $phase == finished ]]; then
	back_up
	remember restore_phase put-back
	phase=put-back
fi
if [[ $phase == put-back ]]; then
	put_back
	remember restore_phase reset
fi

say "do it"
runbook cold-restore-dry-run.txt apply plans/cold-restore.yaml
expect "exit status of the dry run" 0 "$status"
runbook cold-restore.txt apply plans/cold-restore.yaml --run --yes
expect "exit status" 0 "$status"
report cold-restore
remember restore_phase finished
remember scenario cold-restore
