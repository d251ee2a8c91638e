#!/usr/bin/env bash
# shellcheck source=lib/all.sh
source "$(dirname "$0")/lib/all.sh"
start "Fill a collection through the Milvus SDK, and all three tiers of the WAL through woodpecker's client." "$@"
require_profile
milvus_runs || refuse "Milvus is stopped" "finish what was begun: make -C $E2E cold-switch, or cold-restore"

say "the programs"
build_runbook
install_tools

say "rows: insert, flush, load, read back"
seeder seed -rows "$SEED_ROWS"
remember rows "$(field rows "$told")"
remember digest "$(field digest "$told")"
remember asked "$(field asked "$told")"
remember neighbours "$(field neighbours "$told")"

say "logs with data on all three tiers; Milvus alone may leave the object store empty"
fill runbook-e2e "$FILL_LOGS"
look_before seed
