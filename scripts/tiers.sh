#!/usr/bin/env bash
# The long tiers of tests: each has inputs, and a digest of these at its last pass in .ci/passes. Without a name: which of them would run.
#   scripts/tiers.sh                 lists the tiers
#   scripts/tiers.sh NAME…           runs these, and records their passes
#   scripts/tiers.sh --changed MIN   runs those whose inputs changed since their recorded pass, while MIN minutes last
source "$(dirname "$0")/lib.sh"

readonly PASSES=.ci/passes
# What all tests of the workspace depend on.
readonly WORKSPACE=(Cargo.toml Cargo.lock rust-toolchain.toml crates xtask)
# Minutes that a tier takes on two cores, what is in it, then the paths of its inputs. The function of the same name runs it.
declare -A MINUTES=([portable]=25 [rtl]=60 [cuda]=8 [fuzz]=12 [soak]=12)
declare -A WHAT=(
  [portable]="tests of kernels and protocols in a build without vector instructions"
  [rtl]="lint, proofs and long benches of the cores"
  [cuda]="kernels under sanitizers, and the bundle for GPUs"
  [fuzz]="a minute of each fuzz target"
  [soak]="two hostile members against a party for ten minutes"
)
declare -A INPUTS=(
  [portable]="${WORKSPACE[*]} circuits vectors"
  [rtl]="rtl tests/rtl scripts/lint-rtl.sh scripts/prove-rtl.sh scripts/test-rtl.sh crates/device-fpga"
  [cuda]="kernels crates/device-cuda crates/device scripts/cuda.sh scripts/emulate-sanitized.sh scripts/gpu-bundle.sh"
  [fuzz]="${WORKSPACE[*]} fuzz"
  [soak]="${WORKSPACE[*]}"
)
# The cheapest first, so that a short time reaches most of them.
readonly ORDER=(cuda soak fuzz portable rtl)

portable() {
  # Kernels are chosen at run time: in this build there are those for any processor alone, and AES has no instructions either.
  run env RUSTFLAGS='--cfg veil_portable --cfg aes_backend="soft"' CARGO_TARGET_DIR="$target/portable" \
    cargo test --locked -p veil-circuit -p veil-device -p veil-engine -p veil-link -p veil-program -p veil-protocol -p veil-prss -p veil-share \
    -p veil-store -p veil-testkit
}
rtl() { scripts/test-rtl.sh; }
cuda() {
  scripts/emulate-sanitized.sh
  scripts/gpu-bundle.sh --try
}
fuzz() { scripts/fuzz.sh 60; }
soak() { scripts/soak.sh; }

# Of the files that git knows, as they are.
digest() {
  local -a paths
  read -ra paths <<<"${INPUTS[$1]}"
  git ls-files -z -- "${paths[@]}" scripts/tiers.sh | sort -z | xargs -0 sha256sum -- | sha256sum | cut -d' ' -f1
}

recorded() { [[ -e $PASSES ]] && awk -v name="$1" '$1 == name { print $2 }' "$PASSES"; }

record() {
  local rest=""
  [[ ! -e $PASSES ]] || rest=$(awk -v name="$1" '$1 != name' "$PASSES")
  { [[ -z $rest ]] || echo "$rest"; echo "$1 $(digest "$1")"; } | sort >"$PASSES.new"
  mv "$PASSES.new" "$PASSES"
}

# Runs a tier; a skip that is not expected fails where all its tools should be there.
tier() {
  local began=$SECONDS status=0
  say "tier $1: ${WHAT[$1]}"
  (set -e; "$1") || status=$?
  say "tier $1: $((SECONDS - began)) s, $([[ $status == 0 ]] && echo passed || echo FAILED)"
  [[ $status != 0 ]] || record "$1"
  return "$status"
}

if [[ $# == 0 ]]; then
  for name in "${ORDER[@]}"; do
    state="inputs changed since its last pass"
    [[ $(recorded "$name") != "$(digest "$name")" ]] || state="passed with these inputs"
    printf '%-9s %3d min  %s: %s\n' "$name" "${MINUTES[$name]}" "${WHAT[$name]}" "$state"
  done
  exit
fi

if [[ $1 != --changed ]]; then
  for name in "$@"; do
    [[ -n ${WHAT[$name]:-} ]] || { echo "error: no tier $name; there are ${ORDER[*]}" >&2; exit 2; }
  done
  for name in "$@"; do tier "$name"; done
  exit
fi

status=0 left=() until=$((SECONDS + $2 * 60))
for name in "${ORDER[@]}"; do
  if [[ $(recorded "$name") == "$(digest "$name")" ]]; then
    say "tier $name: nothing changed since its recorded pass"
  elif ((SECONDS + MINUTES[$name] * 60 > until)); then
    left+=("$name (${MINUTES[$name]} min)")
  else
    tier "$name" || status=$?
  fi
done
[[ ${#left[@]} == 0 ]] || say "left for want of time: ${left[*]}; run scripts/tiers.sh with their names"
exit "$status"
