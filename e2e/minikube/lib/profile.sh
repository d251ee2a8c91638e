# The minikube profile, and whether it is ours. Ours has a random id in two places:
# in a file here and in a ConfigMap in the cluster. Nothing is done to a profile
# that has not both.
# shellcheck shell=bash

MARKER=runbook-e2e-owner

require_tools() {
	local tool
	for tool in minikube helm kubectl go; do
		[[ $DRY_RUN ]] || command -v "$tool" >/dev/null || refuse "$tool is not installed" "see $E2E/README.md, What it needs"
	done
	require_version minikube "$MINIKUBE_AT_LEAST" minikube version --short
	require_version helm "$HELM_AT_LEAST" helm version --short
	require_version kubectl "$KUBECTL_AT_LEAST" kubectl version --client --output=yaml
}

# require_version TOOL OLDEST COMMAND... takes the first vX.Y.Z of the answer.
require_version() {
	local tool=$1 oldest=$2 text version
	shift 2
	ask text "$@"
	[[ ! $DRY_RUN ]] || return 0
	[[ $text =~ v([0-9]+\.[0-9]+\.[0-9]+) ]] || fail "$(quoted "$@") names no version: $text"
	version=${BASH_REMATCH[1]}
	[[ $(printf '%s\n' "$oldest" "$version" | sort -V | head -n1) == "$oldest" ]] ||
		refuse "$tool is $version, $oldest or newer is needed" "install a newer $tool"
}

# profile_exists asks minikube; without any profile it answers with an error, which is no.
profile_exists() {
	local profiles
	ask profiles minikube profile list --output json 2>/dev/null || true
	[[ ! $DRY_RUN && $profiles =~ \"Name\":\ *\"$PROFILE\" ]]
}

READ_MARKER=(kubectl --context "$PROFILE" --namespace kube-system --request-timeout 10s get configmap "$MARKER" --ignore-not-found --output 'jsonpath={.data.id}')

# claim_profile starts the profile, or takes up the one that an earlier run made.
claim_profile() {
	local id marker
	if profile_exists; then
		require_owner_file
		id=$(<"$STATE/owner")
		start_profile
		ask marker "${READ_MARKER[@]}"
		# Empty: an earlier run was stopped between the start and the marker.
		[[ -z $marker || $marker == "$id" ]] || not_ours "its marker is not the one in $STATE/owner"
	else
		id=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
		# Written before the start: a start that is interrupted leaves a profile that is ours.
		show "write a random id to $STATE/owner"
		[[ $DRY_RUN ]] || printf '%s\n' "$id" >"$STATE/owner"
		start_profile
	fi
	show "put the id into the cluster as kube-system/$MARKER:"
	show "$(quoted kubectl --context "$PROFILE" apply --filename -)"
	[[ $DRY_RUN ]] || marker_manifest "$id" | kubectl --context "$PROFILE" apply --filename -
}

marker_manifest() {
	printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: kube-system}\ndata: {id: "%s"}\n' "$MARKER" "$1"
}

start_profile() {
	run minikube start --profile "$PROFILE" --driver "$MINIKUBE_DRIVER" --kubernetes-version "$KUBERNETES_VERSION" \
		--cpus "$MINIKUBE_CPUS" --memory "$MINIKUBE_MEMORY" --disk-size "$MINIKUBE_DISK" --wait all
}

require_owner_file() {
	[[ -s $STATE/owner ]] || not_ours "there is no $STATE/owner"
}

not_ours() {
	refuse "minikube profile $PROFILE was not made by this test: $1" \
		"look at it: minikube status --profile $PROFILE" \
		"if nobody needs it, delete it by hand: minikube delete --profile $PROFILE"
}

# require_profile refuses unless our own profile runs.
require_profile() {
	local marker
	if [[ ! $DRY_RUN ]]; then
		[[ -s $STATE/owner && -s $STATE/kubeconfig ]] || refuse "there is no cluster of this test" "make one: make -C $E2E up"
	fi
	ask marker "${READ_MARKER[@]}"
	[[ $DRY_RUN || $marker == "$(<"$STATE/owner")" ]] || not_ours "its marker is not the one in $STATE/owner"
}
