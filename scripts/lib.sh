# For the other scripts: where they run, what they print.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
# Shows a command, then runs it.
run() { say "$*"; "$@"; }
