# Everything the scripts share, in one line for each of them.
# shellcheck shell=bash
# shellcheck source=shell.sh
source "$(dirname "${BASH_SOURCE[0]}")/shell.sh"
# shellcheck source=table.sh
source "$E2E/lib/table.sh"
# shellcheck source=profile.sh
source "$E2E/lib/profile.sh"
# shellcheck source=release.sh
source "$E2E/lib/release.sh"
# shellcheck source=tools.sh
source "$E2E/lib/tools.sh"
# shellcheck source=collect.sh
source "$E2E/lib/collect.sh"
