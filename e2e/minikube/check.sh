#!/usr/bin/env bash
# Checks the minikube test without minikube, cluster or network: syntax, shellcheck,
# the commands that a dry run shows, and whole runs against stubs of minikube, helm,
# kubectl, go and runbook, failures and repetitions among them.
#   ./check.sh             the lot
#   ./check.sh --update    write testdata/dry-run.txt anew
#   ./check.sh --every-failure    let every single call fail once, not one in 60
set -euo pipefail
cd "$(dirname "$0")"

update='' stride=60
case ${1-} in
--update) update=yes ;;
--every-failure) stride=1 ;;
'') ;;
*)
	echo "usage: $0 [--update | --every-failure]" >&2
	exit 2
	;;
esac

verbs=(up seed dry-run cold-switch verify cold-restore verify down)
scripts=(*.sh lib/*.sh versions.env chart.env testdata/stubs/*)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
problems=0

problem() {
	printf 'PROBLEM: %s\n' "$*"
	problems=$((problems + 1))
}

title() { printf '%s\n' "- $*"; }

# world makes a folder of its own for a run: state, output and the stubs' world.
world() {
	rm -rf "$work/world"
	mkdir -p "$work/world"
	cp testdata/flags.txt chart.env versions.env "$work/world/"
}

# play SCRIPT [ARGUMENT] runs a script in that world and keeps what it printed.
play() {
	status=0
	env -i PATH="$PWD/testdata/stubs:$PATH" HOME="$work" \
		E2E_STUB="$work/world" E2E_STATE="$work/world/state" E2E_OUT="$work/world/out" \
		bash "./$1.sh" "${@:2}" >"$work/printed" 2>&1 || status=$?
}

# played STATUS SCRIPT... plays scripts in turn, each of which must exit with STATUS.
played() {
	local want=$1 script
	shift
	for script; do
		play "$script"
		if [[ $status != "$want" ]]; then
			problem "$script.sh exits with $status, want $want"
			tail -n 15 "$work/printed"
			return 1
		fi
	done
}

printed() { grep -qF -- "$1" "$work/printed" || problem "not printed: $1 ($(tail -n 3 "$work/printed"))"; }
called() { grep -q -- "$1" "$work/world/calls"; }

title "syntax"
for script in "${scripts[@]}"; do bash -n "$script" || problem "$script: syntax"; done

title "shellcheck"
if command -v shellcheck >/dev/null; then
	shellcheck -x "${scripts[@]}" || problem "shellcheck"
else
	echo "  not installed: left out"
fi

title "a dry run shows every command and runs none"
for script in $(printf '%s\n' "${verbs[@]}" | sort -u); do
	echo "== $script"
	# Nothing but a shell and its tools: whatever else a dry run called would be missing.
	env -i PATH=/usr/bin:/bin HOME="$work" E2E_STATE=STATE E2E_OUT=OUT bash "./$script.sh" --dry-run 2>&1 || echo "exit status $?"
done | sed "s#$(cd ../.. && pwd)#ROOT#g" >"$work/dry-run.txt"
if [[ $update ]]; then cp "$work/dry-run.txt" testdata/dry-run.txt; fi
diff -u testdata/dry-run.txt "$work/dry-run.txt" || problem "the dry run shows other commands; if they are right: $0 --update"
[[ ! -e ../../STATE && ! -e ../../OUT ]] || problem "a dry run made a folder"

title "from up to down"
world
if played 0 "${verbs[@]}"; then
	grep -v -e '^kubectl version' "$work/world/calls" | grep '^kubectl' | grep -v -e '^kubectl --context runbook-e2e --namespace [a-z-]* ' -e '^kubectl --context runbook-e2e apply ' &&
		problem "kubectl was called without the context"
	grep '^helm upgrade' "$work/world/calls" | grep -vq -- '--kube-context runbook-e2e' && problem "helm was called without the context"
	grep '^minikube' "$work/world/calls" | grep -v -e '^minikube version' -e '^minikube profile list' | grep -vq -- '--profile runbook-e2e' &&
		problem "minikube was called without the profile"
	called 'scale statefulset/my-release-milvus-woodpecker' && problem "woodpecker was scaled"
	[[ ! -e $work/world/state ]] || problem "down leaves $(ls "$work/world/state")"
	calls=$(<"$work/world/count")
fi

title "up, down and up again; down twice"
world
played 0 up down down up up down || true

title "a profile of somebody else is left alone"
world
echo runbook-e2e >"$work/world/profile"
for script in up down; do
	played 3 "$script" || true
	printed "was not made by this test"
done
for script in seed dry-run cold-switch cold-restore verify; do
	played 3 "$script" || true
	printed "there is no cluster of this test"
done
called 'minikube start\|minikube delete\|^helm upgrade\|kubectl' && ! grep -q '^kubectl version' "$work/world/calls" && problem "somebody else's profile was touched"

title "a profile whose marker is not ours is left alone"
world
if played 0 up; then
	echo another >"$work/world/marker"
	: >"$work/world/calls"
	for script in seed cold-switch cold-restore verify down; do
		played 3 "$script" || true
		printed "its marker is not the one"
	done
	called 'minikube delete\|annotate\|scale\| exec ' && problem "somebody else's cluster was touched"
fi

title "another chart is found out before anything is seeded, and logs are collected"
world
echo "milvus.yaml " >"$work/world/config_keys"
played 1 up || true
printed "of the lines above are not as expected"
called ' exec ' && problem "something was run in a pod"
compgen -G "$work/world/out/failure-*" >/dev/null || problem "nothing was collected"

title "an old tool is refused"
world
HELM_AT_LEAST=99.0.0
echo "HELM_AT_LEAST=$HELM_AT_LEAST" >>"$work/world/versions.env"
status=0
env -i PATH="$PWD/testdata/stubs:$PATH" HOME="$work" HELM_AT_LEAST=$HELM_AT_LEAST E2E_STUB="$work/world" \
	E2E_STATE="$work/world/state" E2E_OUT="$work/world/out" bash ./up.sh >"$work/printed" 2>&1 || status=$?
[[ $status == 3 ]] || problem "up.sh exits with $status for an old helm, want 3"
printed "99.0.0 or newer is needed"

title "every $stride. call of ${calls-0} fails once: the script fails, is run again, and all goes on"
for ((at = 1; at <= ${calls-0}; at += stride)); do
	world
	echo "$at" >"$work/world/fail_at"
	failed=
	for script in "${verbs[@]}"; do
		play "$script"
		if [[ $status != 0 && ! $failed ]]; then
			failed=$script
			play "$script"
		fi
		if [[ $status != 0 ]]; then
			problem "call $at failed in ${failed:-no script}, and $script.sh then exits with $status: $(tail -n 2 "$work/printed")"
			break
		fi
	done
done

title "the values of the plan are those of the chart"
# shellcheck source=versions.env
source versions.env
# shellcheck source=chart.env
source chart.env
value() { sed -n "s/^$1: *//p" values-plan.yaml | tr -d '"'; }
same() { [[ $(value "$1") == "$2" ]] || problem "values-plan.yaml: $1 is $(value "$1"), chart.env says $2"; }
same kubeNamespace "$NAMESPACE"
same kubeRelease "$RELEASE"
same etcdEndpoints "[$ETCD:$ETCD_PORT]"
same rootPath "$ROOT_PATH"
same objectEndpoint "$MINIO:$MINIO_PORT"
same bucket "$BUCKET"
same objectRoot "$OBJECT_ROOT"
for ((n = 0; n < WOODPECKER_REPLICAS; n++)); do
	grep -qxF -- "  - $WOODPECKER-$n.$WOODPECKER_SERVICE:$WOODPECKER_PORT" values-plan.yaml || problem "values-plan.yaml: nodeSeeds lacks node $n"
done

title "the plans take those values"
if ! grep -q '^  kubeRelease:' ../../plans/cold-switch.yaml; then
	echo "  the plans have no kubeRelease: left out"
elif [[ -x ../../bin/runbook ]]; then
	for plan in cold-switch cold-restore; do
		../../bin/runbook validate "../../plans/$plan.yaml" --values values-plan.yaml || problem "plans/$plan.yaml with values-plan.yaml"
	done
else
	echo "  bin/runbook is not built: left out"
fi

title "the flags exist"
# help TOOL COMMAND prints all help that the installed tool has for a command.
help() {
	case $1 in
	kubectl) if [[ $2 == - ]]; then kubectl options; elif [[ $2 == rollout ]]; then kubectl rollout status --help; else kubectl "$2" --help; fi ;;
	helm) helm "$2" --help ;;
	minikube) if [[ $2 == profile ]]; then minikube profile list --help; else minikube "$2" --help; fi && minikube options ;;
	esac
}
for tool in kubectl helm minikube; do
	if ! command -v "$tool" >/dev/null; then
		echo "  $tool is not installed: left out"
		continue
	fi
	while read -r _ command flag; do
		help "$tool" "$command" >"$work/help" 2>&1 || true
		grep -qE -- "(^|[ ,])$flag([ =]|\$)" "$work/help" || problem "$tool $command has no $flag"
	done < <(grep "^$tool " testdata/flags.txt)
done

((problems == 0)) || {
	echo "$problems problems"
	exit 1
}
echo "the minikube test is in order, as far as can be told without a cluster"
