# For the other scripts: where they run, where cargo builds, what they print.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
# Shows a command, then runs it.
run() { say "$*"; "$@"; }
# Builds the program as the tests do, which is nothing after them: another choice of packages has other features, and builds all anew.
build_veil() { cargo test --quiet --workspace --all-features --locked --no-run; }
