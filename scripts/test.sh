#!/usr/bin/env bash
# Every check and every test; stops at the first that fails.
source "$(dirname "$0")/lib.sh"

# Tests of veil-cli and veil-lab start processes that kill, stall and wait for each other. One that fails may do so for want of a processor: it is
# repeated alone, and said to have failed. Everything else has one chance.
tests() {
  local log status=0
  log=$(mktemp)
  run cargo test --workspace --all-features --locked --no-fail-fast 2>&1 | tee "$log" || status=$?
  # As cargo names what failed, in the end: `-p PACKAGE --test NAME`.
  local targets names again=()
  targets=$(sed -nE 's/^ +`(-p [^`]+)`$/\1/p; s/^error: .*to rerun pass `(-p [^`]+)`$/\1/p' "$log" | sort -u)
  names=$(sed -nE 's/^test (.+) \.\.\. FAILED$/\1/p' "$log" | sort -u)
  rm "$log"
  ((status == 0)) && return
  [[ -n $targets ]] && ! grep -qvE '^-p veil-(cli|lab) --test [a-z_]+$' <<<"$targets" || return "$status"
  mapfile -t again < <(grep -oE -- '--test [a-z_]+' <<<"$targets" | tr ' ' '\n')
  say "failed once, and has a second chance alone:" $names
  run cargo test --workspace --all-features --locked "${again[@]}" -- --test-threads 1 --exact $names
  say "passed when repeated, and needs repair all the same:" $names
}

# Lint, proofs and bench of the hardware need no cargo, and tests of processes that wait for each other leave room for them.
hardware() {
  local script
  nice scripts/test-rtl.sh short
  for script in tests/rtl/*.sh; do
    nice bash "$script"
  done
}

[[ -d $target/debug ]] || room 8
scripts/check.sh
log=$(mktemp)
hardware >"$log" 2>&1 &
beside=$!
trap 'rm "$log"' EXIT
say "beside the tests: scripts/test-rtl.sh short," tests/rtl/*.sh
tests
status=0
wait "$beside" || status=$?
cat "$log"
((status == 0))
run cargo xtask counts --check
scripts/cuda.sh
for script in tests/shell/*.sh; do
  run bash "$script"
done
say "all passed. Next: make demo, make bench, or read ARCHITECTURE.md"
