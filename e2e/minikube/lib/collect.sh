# What to keep when something failed.
# shellcheck shell=bash

# collect writes the state of the cluster into a folder of its own. It asks only
# our own profile, and goes on when an answer is missing.
collect() {
	[[ -f $STATE/owner && -f $STATE/kubeconfig ]] || return 0
	local folder pod
	folder=$OUT/failure-$(date -u +%Y%m%dT%H%M%SZ)
	mkdir -p "$folder/pods"
	echo "collecting logs and events into $folder" >&2
	{
		"${KUBECTL[@]}" get all,configmaps,persistentvolumeclaims --output wide >"$folder/objects.txt"
		"${KUBECTL[@]}" get events --sort-by=.lastTimestamp >"$folder/events.txt"
		"${KUBECTL[@]}" describe pods >"$folder/describe.txt"
		"${KUBECTL[@]}" get configmap "$CONFIG_MAP" --output yaml >"$folder/configmap.yaml"
		for pod in $("${KUBECTL[@]}" get pods --output name); do
			"${KUBECTL[@]}" logs "$pod" --all-containers --prefix >"$folder/pods/${pod#pod/}.log"
			"${KUBECTL[@]}" logs "$pod" --all-containers --prefix --previous >"$folder/pods/${pod#pod/}.previous.log"
		done
		minikube logs --profile "$PROFILE" --file "$folder/minikube.log" >/dev/null
		helm status "$RELEASE" --namespace "$NAMESPACE" --kube-context "$PROFILE" >"$folder/helm.txt"
		cp -r "$STATE/record" "$STATE/runs" "$folder/"
	} 2>>"$folder/errors.txt" || true
	find "$folder" -type f -empty -delete
}
