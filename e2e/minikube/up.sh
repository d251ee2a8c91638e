#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
start "Start a minikube profile of its own, install Milvus with woodpecker as a service, check what the chart made." "$@"

say "the tools"
require_tools

say "the cluster"
claim_profile

say "the release"
show "fill in $E2E/values-milvus.yaml into $OUT/values-milvus.yaml"
[[ $DRY_RUN ]] || fill_in "$E2E/values-milvus.yaml" >"$OUT/values-milvus.yaml"
run helm upgrade "$RELEASE" milvus --install --repo "$MILVUS_CHART_REPO" --version "$MILVUS_CHART_VERSION" \
	--kube-context "$PROFILE" --namespace "$NAMESPACE" --create-namespace --values "$OUT/values-milvus.yaml" --timeout 10m

say "is it the release that the scripts were written for?"
check_release

say "wait for it; most of the time goes into pulling images"
wait_ready
