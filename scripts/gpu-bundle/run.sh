#!/usr/bin/env bash
# Checks and measures the first GPU of this machine, and writes what comes of it to results/ beside this file, or to the folder that is named.
#   run.sh [--emulator] [--out FOLDER]
# With --emulator it does what can be done without a GPU. Exits with 0 if all is right, 1 if something is not, 3 if there is no GPU.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$here/results
emulator=
while (($#)); do
  case $1 in
    --emulator) emulator=1 ;;
    --out) out=${2:?--out takes a folder}; shift ;;
    *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$out" || exit 1
bin=$here/bin
failed=()

say() { printf '==> %s\n' "$*"; }
# Runs a command, whose output goes to a file; says whether it went well.
step() {
  local name=$1
  shift
  say "$name: $*"
  if "$@" >"$out/$name.txt" 2>&1; then
    say "$name: right"
  else
    say "$name: WRONG (status $?), see $out/$name.txt"
    tail -n 20 "$out/$name.txt"
    failed+=("$name")
  fi
}

{
  date --utc --iso-8601=seconds
  uname -srm
  getconf GNU_LIBC_VERSION
  if command -v nvidia-smi >/dev/null; then nvidia-smi; fi
} >"$out/machine.txt" 2>&1

if [[ $emulator ]]; then
  say "without a GPU: kernels are emulated, and rates mean nothing"
  export VEIL_GPU_EMULATOR=1
  export VEIL_GPU_CASES=5
  step suite "$bin/gpu"
  on=(--emulator)
else
  on=()
  look=$("$bin/on_gpu" --look 2>&1)
  status=$?
  if ((status == 3)); then
    say "there is no GPU that this can run on: $look"
    say "what can be done without one: $0 --emulator"
    exit 3
  fi
  # One test after the other: all of them have the same GPU.
  VEIL_GPU_REQUIRED=1 VEIL_GPU_CASES=100 step suite "$bin/gpu" --test-threads 1
  sanitizer=$here/sanitizer/compute-sanitizer
  [[ -x $sanitizer ]] || sanitizer=$(command -v compute-sanitizer)
  if [[ $sanitizer ]]; then
    for tool in memcheck racecheck; do
      VEIL_GPU_REQUIRED=1 VEIL_GPU_CASES=3 step "$tool" "$sanitizer" --tool "$tool" --error-exitcode 9 "$bin/gpu" --test-threads 1
    done
  else
    say "left out: compute-sanitizer is neither in this bundle nor in PATH"
  fi
fi
step protocols "$bin/on_gpu" "${on[@]}" --json "$out/rates.jsonl"
cat "$out/protocols.txt"
if ((${#failed[@]})); then
  say "wrong: ${failed[*]}; all of it is in $out"
  exit 1
fi
say "all is right; results are in $out"
