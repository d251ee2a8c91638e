#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
start "Delete the minikube profile that up made, and everything that is known about it." "$@"

[[ $DRY_RUN ]] || command -v minikube >/dev/null || refuse "minikube is not installed" "see $E2E/README.md, What it needs"
if profile_exists || [[ $DRY_RUN ]]; then
	if [[ ! $DRY_RUN ]]; then require_owner_file; fi
	# A cluster that does not answer has no marker to show; the file here is enough to delete it.
	show "compare the marker in the cluster with $STATE/owner, if the cluster answers"
	if [[ ! $DRY_RUN ]] && marker=$("${READ_MARKER[@]}" 2>/dev/null) && [[ -n $marker && $marker != "$(<"$STATE/owner")" ]]; then
		not_ours "its marker is not the one in $STATE/owner"
	fi
	run minikube delete --profile "$PROFILE"
else
	say "there is no profile $PROFILE"
fi
run rm -rf "$STATE" "$OUT/runbook" "$OUT/seeder" "$OUT/walfill" "$OUT/values-milvus.yaml" "$OUT/pods"
