#!/usr/bin/env bash
# Runs what the scripts ask of and do to a cluster against a real Kubernetes API
# server with look-alikes of the release: the real kubectl, the real jsonpath, the
# real controllers. No container runs there, so nothing is asked inside a pod.
#   ./check-cluster.sh [PATH OF runbook-kubelab]
set -euo pipefail
kubelab=$(realpath "${1-$(dirname "$0")/../kubelab/bin/runbook-kubelab}")
cluster=$(mktemp -d)
export E2E_STATE=$cluster/state E2E_OUT=$cluster/out
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
mkdir -p "$STATE" "$OUT"
exec 3>/dev/null # the commands are known; only what comes out matters
READY_TIMEOUT=60 STOP_TIMEOUT=60

cleanup() {
	"$kubelab" down --dir "$cluster/kubelab" || true
	rm -rf "$cluster"
}
trap cleanup EXIT
problem() {
	echo "PROBLEM: $*"
	exit 1
}
title() { printf '%s\n' "- $*"; }

"$kubelab" up --detach --dir "$cluster/kubelab" >/dev/null
cp "$cluster/kubelab/kubeconfig" "$KUBECONFIG"
kubectl config rename-context "$(kubectl config current-context)" "$PROFILE" >/dev/null
kubectl create namespace "$NAMESPACE" --dry-run=client --output yaml | kubectl apply --filename - >/dev/null

title "the marker"
echo 0123456789abcdef >"$STATE/owner"
kubectl --context "$PROFILE" apply --filename - >/dev/null <<<"$(marker_manifest 0123456789abcdef)"
require_profile
[[ $("${READ_MARKER[@]}") == 0123456789abcdef ]] || problem "the marker reads $("${READ_MARKER[@]}")"

title "the release is what chart.env says"
{
	fill_in "$E2E/testdata/release.yaml"
	for COMPONENT in "${MILVUS_COMPONENTS[@]}"; do fill_in "$E2E/testdata/component.yaml"; done
} | "${KUBECTL[@]}" apply --validate=strict --filename - >/dev/null
check_release

title "a release that differs is found out"
"${KUBECTL[@]}" patch configmap "$CONFIG_MAP" --type=json --patch '[{"op": "move", "from": "/data/user.yaml", "path": "/data/milvus.yaml"}]' >/dev/null
(check_release >/dev/null 2>&1) && problem "a ConfigMap without user.yaml passes"
"${KUBECTL[@]}" patch configmap "$CONFIG_MAP" --type=json --patch '[{"op": "move", "from": "/data/milvus.yaml", "path": "/data/user.yaml"}]' >/dev/null
# shellcheck disable=SC2034 # filled in
COMPONENT=cdc
fill_in "$E2E/testdata/component.yaml" | "${KUBECTL[@]}" apply --filename - >/dev/null
(check_release >/dev/null 2>&1) && problem "a component that the scripts do not know passes"
"${KUBECTL[@]}" delete deployment "$FULLNAME-cdc" >/dev/null

title "ready, and running"
wait_ready >/dev/null
milvus_runs || problem "milvus does not run"
list_pods "$STATE/pods"
[[ $(wc -l <"$STATE/pods") == $((${#MILVUS_COMPONENTS[@]} + WOODPECKER_REPLICAS + 2)) ]] || problem "pods: $(<"$STATE/pods")"

title "stop: only milvus goes, and its replicas are written down"
no_session() { true; } # etcdctl runs in a pod
stop_milvus >/dev/null
if milvus_runs; then problem "milvus still runs"; fi
list_pods "$OUT/pods"
[[ $(wc -l <"$OUT/pods") == $((WOODPECKER_REPLICAS + 2)) ]] || problem "pods: $(<"$OUT/pods")"
[[ $(same_pods "$STATE/pods" "$OUT/pods" "$WOODPECKER-") == "$WOODPECKER_REPLICAS" ]] || problem "woodpecker's pods are not the same"
[[ $(restarts_since "$STATE/pods" "$OUT/pods") == 0 ]] || problem "restarts: $(<"$OUT/pods")"
for component in "${MILVUS_COMPONENTS[@]}"; do
	get deployment "$FULLNAME-$component" '{.metadata.annotations.runbook/replicas-before-stop} {.spec.replicas}'
	[[ $got == "1 0" ]] || problem "$component: recorded and wanted replicas are $got"
done
stop_milvus >/dev/null
get deployment "$FULLNAME-proxy" '{.metadata.annotations.runbook/replicas-before-stop}'
[[ $got == 1 ]] || problem "a second stop changes the record to $got"

title "the manifests, as the server takes them"
# shellcheck disable=SC2034 # filled in
ETCD_SNAPSHOT=$ETCD_MOUNT/x ETCD_PEER_URL=http://x:2380 ETCD_RUNNING_IMAGE=milvusdb/etcd:3.5.25-r1
for manifest in tools etcd-restore; do
	fill_in "$E2E/manifests/$manifest.yaml" | "${KUBECTL[@]}" apply --dry-run=server --validate=strict --filename - >/dev/null || problem "manifests/$manifest.yaml"
done
fill_in "$E2E/manifests/tools.yaml" | "${KUBECTL[@]}" apply --filename - >/dev/null
"${KUBECTL[@]}" wait --for condition=Ready pod/runbook-e2e-tools --timeout 60s >/dev/null
list_pods "$OUT/pods"
grep -q runbook-e2e "$OUT/pods" && problem "the tools' pod counts as one of the release"

title "what is collected after a failure"
: >"$STATE/record"
mkdir -p "$STATE/runs"
collect 2>/dev/null
folder=$(compgen -G "$OUT/failure-*") || problem "nothing was collected"
for file in objects.txt events.txt describe.txt configmap.yaml; do
	[[ -s $folder/$file ]] || problem "$file was not collected: $(cat "$folder/errors.txt")"
done

echo "the scripts' questions and changes fit a real API server"
