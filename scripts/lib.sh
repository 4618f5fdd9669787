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
# Builds the program as the tests do, which is nothing after them: another choice of packages has other features, and builds all anew.
build_veil() { cargo test --quiet --workspace --all-features --locked --no-run; }
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
