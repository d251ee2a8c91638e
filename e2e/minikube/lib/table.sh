# Tables of what was expected and what was seen.
# shellcheck shell=bash

TABLE=()
MISSED=0
SEPARATOR=$'\x1f' # between the cells of a row; unlike a tab it keeps empty ones

# row "WHAT" EXPECTED SEEN ok|MISSED
row() {
	TABLE+=("$1$SEPARATOR${2//$'\n'/ }$SEPARATOR${3//$'\n'/ }$SEPARATOR$4")
	[[ $4 == ok ]] || MISSED=$((MISSED + 1))
}

expect() {
	if [[ $2 == "$3" ]]; then row "$1" "$2" "$3" ok; else row "$1" "$2" "$3" MISSED; fi
}

expect_at_least() {
	if [[ $3 =~ ^[0-9]+$ && $2 =~ ^[0-9]+$ ]] && ((10#$3 >= 10#$2)); then row "$1" "at least $2" "$3" ok; else row "$1" "at least $2" "$3" MISSED; fi
}

# expect_within "WHAT" PART WHOLE is about a word or a text in a longer one.
expect_within() {
	if [[ $3 == *"$2"* ]]; then row "$1" "$2" "$2" ok; else row "$1" "$2" "not in: ${3:0:60}" MISSED; fi
}

# report NAME prints the table, keeps it in the output folder, and fails when
# anything was not as expected. A dry run shows what would be compared.
report() {
	local line what expected seen verdict
	if [[ $DRY_RUN ]]; then
		for line in "${TABLE[@]}"; do
			IFS=$SEPARATOR read -r what expected seen verdict <<<"$line"
			show "expect: $what: $expected"
		done
		TABLE=() MISSED=0
		return
	fi
	{
		table_line "$1" expected seen ''
		for line in "${TABLE[@]}"; do
			IFS=$SEPARATOR read -r what expected seen verdict <<<"$line"
			table_line "$what" "$expected" "$seen" "$verdict"
		done
	} | tee "$OUT/$1.txt"
	[[ -z ${GITHUB_STEP_SUMMARY-} ]] || table_markdown "$1" >>"$GITHUB_STEP_SUMMARY"
	local missed=$MISSED
	TABLE=() MISSED=0
	((missed == 0)) || fail "$missed of the lines above are not as expected" "the table is in $OUT/$1.txt"
}

table_line() { printf '%-52s %-44s %-44s %s\n' "$@"; }

table_markdown() {
	local line what expected seen verdict
	printf '\n| %s | expected | seen | |\n| --- | --- | --- | --- |\n' "$1"
	for line in "${TABLE[@]}"; do
		IFS=$SEPARATOR read -r what expected seen verdict <<<"$line"
		printf '| %s | %s | %s | %s |\n' "$what" "$expected" "$seen" "$verdict"
	done
}
