# The Milvus release in the cluster: what the chart must have made, waiting for it,
# stopping it, and looking at what lies on the log-store nodes.
# shellcheck shell=bash

# Pods of this test itself, which are no part of the release.
NOT_OURS='app.kubernetes.io/name notin (runbook-e2e-tools,runbook-e2e-etcd-restore)'

# get KIND NAME JSONPATH stores the answer in $got.
got=
get() {
	ask got "${KUBECTL[@]}" get "$1" "$2" --ignore-not-found --output "jsonpath=$3"
}

# check_release compares names, labels, mounts and ConfigMap keys with chart.env and
# values-milvus.yaml. A chart that has changed fails here, before anything is seeded.
check_release() {
	local component labels='{.spec.template.metadata.labels.app\.kubernetes\.io/name} {.spec.template.metadata.labels.app\.kubernetes\.io/instance} {.spec.template.metadata.labels.component}'
	local first='.spec.template.spec.containers[0]'

	for component in "${MILVUS_COMPONENTS[@]}"; do
		get deployment "$FULLNAME-$component" "{$first.image} $labels"
		expect "deployment $FULLNAME-$component" "$MILVUS_IMAGE:$MILVUS_VERSION milvus $RELEASE $component" "$got"
	done
	ask got "${KUBECTL[@]}" get deployments --selector "app.kubernetes.io/instance=$RELEASE,component" --output 'jsonpath={.items[*].metadata.labels.component}'
	expect "milvus components" "$(sorted "${MILVUS_COMPONENTS[@]}")" "$(sorted "$got")"

	get statefulset "$WOODPECKER" "{.spec.replicas} {.spec.serviceName} {$first.name} {$first.image} $labels"
	expect "statefulset $WOODPECKER" "$WOODPECKER_REPLICAS $WOODPECKER_SERVICE $WOODPECKER_CONTAINER $WOODPECKER_IMAGE:$WOODPECKER_VERSION milvus $RELEASE woodpecker" "$got"
	get statefulset "$WOODPECKER" "{$first.volumeMounts[*].mountPath}"
	expect_within "statefulset $WOODPECKER mounts" "$WOODPECKER_DATA" "$got"
	get statefulset "$WOODPECKER" "{$first.env[?(@.name==\"ADVERTISE_SERVICE_ADDR\")].value}"
	expect_within "the address that its pods advertise" "$WOODPECKER_SERVICE:$WOODPECKER_PORT" "$got"
	get service "$WOODPECKER_SERVICE" '{.spec.clusterIP}'
	expect "service $WOODPECKER_SERVICE" None "$got"

	# shellcheck disable=SC2016 # variables of the template
	ask got "${KUBECTL[@]}" get configmap "$CONFIG_MAP" --ignore-not-found --output 'go-template={{range $key, $value := .data}}{{$key}} {{end}}'
	for component in "${CONFIG_KEYS[@]}"; do
		expect_within "configmap $CONFIG_MAP has the key" "$component" "$got"
	done
	get configmap "$CONFIG_MAP" '{.data.default\.yaml}'
	got=${got//[\"\']/}
	expect_within "message queue in default.yaml" "type: woodpecker" "$got"
	expect_within "woodpecker's storage in default.yaml" "type: service" "$got"
	expect_within "bucket in default.yaml" "bucketName: $BUCKET" "$got"
	expect_within "object root in default.yaml" "rootPath: $OBJECT_ROOT" "$got"

	get statefulset "$ETCD" "{.spec.replicas} {.spec.serviceName} {$first.name} {$first.securityContext.runAsUser} {.spec.volumeClaimTemplates[*].metadata.name}"
	expect "statefulset $ETCD" "1 $ETCD_SERVICE $ETCD_CONTAINER $ETCD_USER data" "$got"
	get statefulset "$ETCD" "{$first.volumeMounts[*].mountPath}"
	expect_within "statefulset $ETCD mounts" "$ETCD_MOUNT" "$got"
	get service "$ETCD" '{.spec.ports[*].port}'
	expect_within "service $ETCD" "$ETCD_PORT" "$got"

	get deployment "$MINIO" "{$first.image}"
	expect "deployment $MINIO" "$MINIO_IMAGE:$MINIO_VERSION" "$got"
	get service "$MINIO" '{.spec.ports[*].port}'
	expect_within "service $MINIO" "$MINIO_PORT" "$got"
	get service "$FULLNAME" '{.spec.ports[*].port}'
	expect_within "service $FULLNAME" "${PROXY_ADDRESS#*:}" "$got"

	report release
}

sorted() {
	# shellcheck disable=SC2048,SC2086 # words to be split
	printf '%s\n' $* | sort | paste -sd ' ' -
}

wait_ready() {
	local workload component
	for workload in "statefulset/$ETCD" "deployment/$MINIO" "statefulset/$WOODPECKER"; do
		run "${KUBECTL[@]}" rollout status "$workload" --timeout "${READY_TIMEOUT}s"
	done
	for component in "${MILVUS_COMPONENTS[@]}"; do
		run "${KUBECTL[@]}" rollout status "deployment/$FULLNAME-$component" --timeout "${READY_TIMEOUT}s"
	done
}

# The replicas of a stopped workload are where `runbook` itself writes them when it
# stops Milvus, so that its start step finds them.
RECORD=runbook/replicas-before-stop

# stop_milvus scales every Milvus component to 0, as an operator does, and waits
# until pods and sessions are gone. Woodpecker, etcd and MinIO stay up.
stop_milvus() {
	local component workload
	for component in "${MILVUS_COMPONENTS[@]}"; do
		workload=deployment/$FULLNAME-$component
		ask got "${KUBECTL[@]}" get "$workload" --output 'jsonpath={.spec.replicas}'
		if [[ $got == 0 ]]; then continue; fi
		run "${KUBECTL[@]}" annotate "$workload" --overwrite "$RECORD=$got"
		run "${KUBECTL[@]}" scale "$workload" --replicas 0
	done
	for component in "${MILVUS_COMPONENTS[@]}"; do
		run "${KUBECTL[@]}" wait --for delete pod --selector "app.kubernetes.io/instance=$RELEASE,component=$component" --timeout "${STOP_TIMEOUT}s"
	done
	wait_until "no session of Milvus is left in etcd" "$STOP_TIMEOUT" no_session
}

# milvus_runs asks what is wanted, not what is ready. In a dry run it does.
milvus_runs() {
	ask got "${KUBECTL[@]}" get deployments --selector "app.kubernetes.io/instance=$RELEASE,component" --output 'jsonpath={.items[*].spec.replicas}' ||
		fail "the cluster does not answer"
	[[ $DRY_RUN || $got == *[1-9]* ]]
}

# no_session: of the keys below session/, id and version are permanent.
no_session() {
	local keys key
	ask keys "${ETCDCTL[@]}" get --prefix --keys-only "$ROOT_PATH/$META_SUB_PATH/session/" || return 1
	while IFS= read -r key; do
		case $key in
		'' | */session/id | */session/version) ;;
		*) return 1 ;;
		esac
	done <<<"$keys"
}

ETCDCTL=("${KUBECTL[@]}" exec "$ETCD-0" --container "$ETCD_CONTAINER" -- env ETCDCTL_API=3 etcdctl)

# etcd_revision stores the revision of etcd in $revision.
revision=
etcd_revision() {
	ask revision "${ETCDCTL[@]}" endpoint status --write-out json
	[[ $DRY_RUN ]] || revision=$(grep -o '"revision":[0-9]*' <<<"$revision" | head -n1 | cut -d: -f2)
}

# node_files N UP_TO stores in $files how many files of logs node N holds, and in
# $old_files how many of logs with an id up to UP_TO.
files=0 old_files=0
node_files() {
	local listing
	# A node removes files while find walks: what vanishes under it is no failure.
	ask listing "${KUBECTL[@]}" exec "$WOODPECKER-$1" --container "$WOODPECKER_CONTAINER" -- sh -c "find $WOODPECKER_DATA -type f || true"
	# shellcheck disable=SC2034 # for the caller
	read -r files old_files < <(count_files "$2" <<<"$listing")
}

# count_files UP_TO reads paths ROOT/{log}/{segment}/{file}.
count_files() {
	awk -v root="$WOODPECKER_DATA/$BUCKET/$OBJECT_ROOT/wp/" -v up_to="$1" '
		index($0, root) == 1 {
			n = split(substr($0, length(root) + 1), part, "/")
			if (n == 3 && part[1] ~ /^[0-9]+$/ && part[2] ~ /^[0-9]+$/) { all++; if (part[1] + 0 <= up_to + 0) old++ }
		}
		END { print all + 0, old + 0 }'
}

# list_pods FILE writes name, uid and restarts of every pod of the release.
list_pods() {
	run_to "$1" "${KUBECTL[@]}" get pods --selector "$NOT_OURS" --output 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}'
}

# restarts_since FILE NOW counts restarts: of pods in FILE those since then, of others all.
restarts_since() {
	awk '
		{ n = 0; for (i = 3; i <= NF; i++) n += $i }
		NR == FNR { before[$2] = n; next }
		{ sum += n - before[$2] }
		END { print sum + 0 }' "$1" "$2"
}

# same_pods FILE NOW PREFIX counts the pods with that first part of their name that are in both.
same_pods() {
	awk -v prefix="$3" '
		index($1, prefix) != 1 { next }
		NR == FNR { before[$2]; next }
		$2 in before { same++ }
		END { print same + 0 }' "$1" "$2"
}
