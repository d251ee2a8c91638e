# Building and running the programs: runbook on this machine, seeder and walfill in
# a pod of the cluster.
# shellcheck shell=bash

TOOLS=runbook-e2e-tools

# What the shipped plans read the object store's keys from.
export MINIO_ACCESS_KEY=$ACCESS_KEY MINIO_SECRET_KEY=$SECRET_KEY

build_runbook() { run env CGO_ENABLED=0 go build -trimpath -o "$OUT/runbook" ./cmd/runbook; }

# install_tools builds the two programs for the cluster's machine and puts them into the pod.
install_tools() {
	local arch program
	ask arch "${KUBECTL[@]}" get nodes --output 'jsonpath={.items[0].status.nodeInfo.architecture}'
	for program in seeder walfill; do
		run env CGO_ENABLED=0 GOOS=linux "GOARCH=$arch" go build -C "$E2E/$program" -trimpath -ldflags '-s -w' -o "$(absolute "$OUT/$program")" .
	done
	apply_filled "$E2E/manifests/tools.yaml"
	run "${KUBECTL[@]}" wait --for condition=Ready "pod/$TOOLS" --timeout "${READY_TIMEOUT}s"
	for program in seeder walfill; do
		# shellcheck disable=SC2016 # expanded in the pod
		run_from "$OUT/$program" "${KUBECTL[@]}" exec --stdin "$TOOLS" -- sh -c 'cat > "/tmp/$1" && chmod +x "/tmp/$1"' sh "$program"
	done
}

# seeder and walfill COMMAND FLAGS... run in the pod; what they print goes to $told.
told=
seeder() {
	ask told "${KUBECTL[@]}" exec "$TOOLS" -- /tmp/seeder "$1" -address "$PROXY_ADDRESS" -timeout "${COMMAND_TIMEOUT}s" "${@:2}"
}

walfill() {
	ask told "${KUBECTL[@]}" exec "$TOOLS" -- /tmp/walfill "$1" -etcd "$ETCD:$ETCD_PORT" -root "$ROOT_PATH" -meta-prefix "$META_PREFIX" \
		-objects "$MINIO:$MINIO_PORT" -bucket "$BUCKET" -object-root "$OBJECT_ROOT" -timeout "${COMMAND_TIMEOUT}s" "${@:2}"
}

# fill NAME_OF_LOGS LOGS writes logs with data on all three tiers.
fill() {
	local n seeds=
	for ((n = 0; n < WOODPECKER_REPLICAS; n++)); do
		seeds+=${seeds:+,}$WOODPECKER-$n.$WOODPECKER_SERVICE:$WOODPECKER_PORT
	done
	walfill fill -seeds "$seeds" -name "$1" -logs "$2" -segments "$FILL_SEGMENTS"
}

# write_rows inserts EXTRA_ROWS rows that no earlier run has written, $from to $to.
from=0 to=0
write_rows() {
	from=$(recall next_row 1000000)
	to=$((from + EXTRA_ROWS))
	remember next_row "$to"
	seeder write -from "$from" -to "$to"
}

# runbook OUTPUT ARGUMENTS... keeps what is printed in OUTPUT and the exit status in $status.
runbook() {
	status_of "$OUT/$1" "$OUT/runbook" "${@:2}" --values "$E2E/values-plan.yaml" --state-dir "$STATE/runs"
}

# look_before NAME writes down what the verification compares with: the log id counter,
# the pods, and how much lies on each tier. It reports under NAME.
look_before() {
	local n total=0
	walfill count
	remember counter "$(field counter "$told")"
	remember other_objects "$(field other_objects "$told")"
	list_pods "$STATE/pods"
	expect_at_least "logs in etcd" 1 "$(field logs "$told")"
	expect_at_least "objects of the WAL" 1 "$(field objects "$told")"
	expect "keys of an old woodpecker" 0 "$(field legacy_keys "$told")"
	for ((n = 0; n < WOODPECKER_REPLICAS; n++)); do
		node_files "$n" 0
		# shellcheck disable=SC2154 # set by node_files
		expect_at_least "files of the WAL on node $n" 1 "$files"
		[[ $DRY_RUN ]] || total=$((total + files))
	done
	remember files "$total"
	remember objects "$(field objects "$told")"
	report "$1"
}
