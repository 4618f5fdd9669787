#!/usr/bin/env bash
# Checks and measures the first GPU of this machine, and writes what comes of it to results/ beside this file, or to the folder that is named.
#   run.sh [--emulator] [--out FOLDER]
# With --emulator it does what can be done without a GPU. Exits with 0 if all is right, 1 if something is not, 3 if there is no GPU. A step that takes
# longer than VEIL_GPU_STEP seconds [default: 900] is ended, and what it has written stays.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$here/results
emulator=
while (($#)); do
  case $1 in
    --emulator) emulator=1 ;;
    --out) out=${2:?--out takes a folder}; shift ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$out" || exit 1
bin=$here/bin
failed=()

say() { printf '==> %s\n' "$*"; }
# Runs a command, whose output goes to a file; says whether it went well, here and in steps.txt, as soon as it has ended.
step() {
  local name=$1 status=0 began=$SECONDS said
  shift
  say "$name: $*"
  # What does not end when it is told to, as a process that waits for a GPU may, is killed half a minute later.
  timeout --kill-after=30 "${VEIL_GPU_STEP:-900}" "$@" >"$out/$name.txt" 2>&1 || status=$?
  case $status in
    0) said=right ;;
    124 | 137) said="ENDED after $((SECONDS - began)) s" ;;
    *) said="WRONG (status $status)" ;;
  esac
  say "$name: $said, see $out/$name.txt"
  echo "$name: $said, $((SECONDS - began)) s" >>"$out/steps.txt"
  ((status == 0)) && return
  tail -n 20 "$out/$name.txt"
  failed+=("$name")
}

rm -f "$out/steps.txt" "$out/rates.jsonl"
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
  on=(--emulator) jobs=(cuda-sim "$out" 16384)
else
  on=() jobs=(cuda "$out")
  # It launches the kernel that needs most of a GPU, and says what this one has.
  timeout --kill-after=30 120 "$bin/on_gpu" --look >"$out/look.txt" 2>&1
  status=$?
  cat "$out/look.txt"
  if ((status == 3)); then
    say "there is no GPU that this can run on"
    say "what can be done without one: $0 --emulator"
    exit 3
  fi
  ((status == 0)) || { say "a first launch failed (status $status): nothing else is tried"; exit 1; }
  # One test after the other: all of them have the same GPU.
  VEIL_GPU_REQUIRED=1 VEIL_GPU_CASES=100 step suite "$bin/gpu" --test-threads 1
fi
step protocols "$bin/on_gpu" "${on[@]}" --json "$out/rates.jsonl"
cat "$out/protocols.txt"
step jobs "$here/jobs.sh" "${jobs[@]}"
cat "$out/jobs.txt"
if [[ ! $emulator ]]; then
  # One that is installed fits the driver; that of the bundle is newer. Instrumented kernels need more registers, so their blocks have fewer threads.
  sanitizer=$(command -v compute-sanitizer) || sanitizer=$here/sanitizer/compute-sanitizer
  if [[ -x $sanitizer ]]; then
    for tool in memcheck racecheck; do
      VEIL_GPU_THREADS=256 VEIL_GPU_REQUIRED=1 VEIL_GPU_CASES=3 step "$tool" "$sanitizer" --tool "$tool" --error-exitcode 9 "$bin/gpu" --test-threads 1
    done
  else
    say "left out: compute-sanitizer is neither in PATH nor in this bundle"
  fi
fi
if ((${#failed[@]})); then
  say "wrong: ${failed[*]}; all of it is in $out"
  exit 1
fi
say "all is right; results are in $out"
