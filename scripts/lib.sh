# For the other scripts: where they run, where cargo builds, what they print.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
# Shows a command, runs it, and says how long it took if that is worth a line.
run() {
  local began=$SECONDS status=0
  say "$*"
  "$@" || status=$?
  ((SECONDS - began < 5)) || say "$((SECONDS - began)) s: $1 ${2:-} ${3:-}"
  return "$status"
}
# What all builds for tests have in common: another choice of packages or features builds libraries anew. Simulated cores, which Verilator takes
# minutes to make, are not among it: the tier "cores" has them.
FEATURES=$(sed -n 's/^every = .*--features \([^ ]*\) .*/\1/p' .cargo/config.toml)
readonly FEATURES
readonly WORKSPACE=(--workspace --no-default-features --features "$FEATURES" --locked)
# Packages with tests of the tier "long" (crates/cli has those of "processes", crates/lab and crates/device-fpga those of "cores").
readonly LONG=(testkit protocol circuit query numeric)
# Builds the program as the tests do, which is nothing after them.
build_veil() { cargo test --quiet "${WORKSPACE[@]}" --no-run; }

# Skips that any machine may have: no GPU, no folder of netlists or circuits that are no part of this project.
readonly EXPECTED='^skipped: (VEIL_(NETLISTS|CIRCUITS) names no folder|cuda +absent|.* is not there$)'
# Shows what tests print that passed: their skips alone. A skip that was not expected fails.
shown() {
  local log status=0
  log=$(mktemp)
  "$@" 2>&1 | tee "$log" |
    awk '/^successes:$/ { quiet = 1 } /^failures:$/ { quiet = 0 } /^test result:/ { quiet = 0 } !quiet || /^skipped:/ { print; fflush() }' || status=$?
  if grep -E '^skipped:' "$log" | grep -vE "$EXPECTED"; then
    echo "error: the above was skipped, and this machine should have what it takes (make tools installs it)" >&2
    status=1
  fi
  rm "$log"
  return "$status"
}
# Tests by `cargo test` with these arguments; by a test program with these.
run_tests() { shown run cargo test "$@" -- --show-output; }
run_program() { shown run "$1" --show-output "${@:2}"; }
# Stops where fewer than so many GiB are free for what cargo builds: a linker without room fails with half a sentence.
room() {
  local free
  mkdir -p "$target"
  free=$(df --output=avail -BG "$target" | tr -dc 0-9)
  ((free >= $1)) && return
  echo "error: $target has $free GiB free, and this takes up to $1: make room, or name another folder in CARGO_TARGET_DIR" >&2
  return 1
}
# Code for GPUs for whatever is built after this: made where the tools for it are there or can be had, or what was made of the same kernels before
# ("made"). A program that is built without says that it has none; nothing else differs.
with_gpus() {
  scripts/cuda.sh "--${1:-fatbin}"
  if [[ -e $target/cuda/built ]]; then
    export VEIL_CUDA_FATBIN=$target/cuda/kernels.fatbin
  else
    unset VEIL_CUDA_FATBIN
    say "this build is without code for GPUs"
  fi
}
