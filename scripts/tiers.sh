#!/usr/bin/env bash
# The long tiers of tests: each has inputs, and a digest of these at its last pass in .ci/passes. Without a name: which of them would run.
#   scripts/tiers.sh                 lists the tiers
#   scripts/tiers.sh NAME…           runs these, and records their passes
#   scripts/tiers.sh --changed MIN   runs those whose inputs changed since their recorded pass, while MIN minutes last
source "$(dirname "$0")/lib.sh"

# The test programs of a crate, a line each, of the build that all tests have, with simulated cores where SIMULATED is set.
programs_of() {
  cargo test "${WORKSPACE[@]}" ${SIMULATED:+--features veil-lab/simulated} --no-run --message-format json-render-diagnostics |
    python3 -c '
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if said.get("executable") and "/crates/%s/tests/" % sys.argv[1] in said["target"]["src_path"]:
        print(said["executable"])
' "$1"
}
# All tests of these crates, or those that `make test` leaves out.
all_of() {
  local crate program programs
  [[ -n ${only+set} ]] || local -a only=()
  for crate in "$@"; do
    programs=$(programs_of "$crate")
    [[ -n $programs ]] || { echo "error: veil-$crate has no test program" >&2; return 1; }
    for program in $programs; do
      (cd "crates/$crate" && CARGO_MANIFEST_DIR=$PWD run_program "$program" "${only[@]}")
    done
  done
}
# The soak is a tier of its own, and one test is started by another.
ignored_of() {
  local -a only=(--ignored --skip soak:: --skip plans_unconfined)
  all_of "$@"
}

readonly PASSES=.ci/passes
# What all tests of the workspace depend on.
readonly SOURCES="Cargo.toml Cargo.lock rust-toolchain.toml crates xtask circuits vectors"
# Minutes that a tier takes on two cores, what is in it, then the paths of its inputs. The function of the same name runs it.
declare -A MINUTES=([book]=6 [processes]=15 [long]=17 [cores]=25 [portable]=25 [rtl]=60 [cuda]=10 [fuzz]=20 [soak]=14 [counts]=4 [python]=12)
declare -A WHAT=(
  [book]="the documentation as a book, without a warning"
  [processes]="participants that are killed, stall, lie and wait for each other"
  [long]="tests that compute for longer than some seconds"
  [counts]="instructions of the hot loops against those recorded"
  [cores]="lint and proofs of the hardware, short benches, and parties on simulated cores"
  [portable]="tests of kernels and protocols in a build without vector instructions"
  [rtl]="long benches of the cores"
  [cuda]="kernels under sanitizers, and the bundle for GPUs"
  [fuzz]="half a minute of each fuzz target"
  [soak]="two hostile members against a party for ten minutes"
  [python]="the Python package against pandas, its types, and its wheel in an environment of its own"
)
declare -A INPUTS=(
  [book]="docs README.md ARCHITECTURE.md CONTRIBUTING.md"
  [processes]="$SOURCES"
  [long]="$SOURCES"
  [counts]="$SOURCES"
  [cores]="$SOURCES rtl tests/rtl"
  [portable]="$SOURCES"
  [rtl]="rtl tests/rtl scripts/lint-rtl.sh scripts/prove-rtl.sh scripts/test-rtl.sh crates/device-fpga"
  [cuda]="kernels crates/device-cuda crates/device scripts/cuda.sh scripts/emulate-sanitized.sh scripts/gpu-bundle.sh"
  [fuzz]="$SOURCES fuzz"
  [soak]="$SOURCES"
  [python]="$SOURCES python pyproject.toml scripts/wheel.sh"
)
# Those that find most in the least time first, so that a short time reaches most of them.
readonly ORDER=(counts book processes python long cores cuda soak fuzz portable rtl)

book() {
  mdbook --version >/dev/null 2>&1 || run cargo install mdbook --version 0.5.4 --locked
  run mdbook build docs --dest-dir "$target/book" 2>&1 | tee "$target/book.log"
  ! grep -E 'WARN|ERROR' "$target/book.log"
}
counts() { run cargo xtask counts --check; }
# Where tests of each tier are; they say so themselves: #[ignore = "tier NAME: …"] (scripts/check.sh compares).
processes() { ignored_of cli; }
long() {
  local model
  for model in dzkp codes ot silent vole ag ag_store; do
    run python3 "vectors/model/$model.py" --escapes
  done
  run python3 vectors/model/psi.py --asked
  run cargo xtask curves --check
  ignored_of "${LONG[@]}"
}
cores() {
  scripts/test-rtl.sh short
  local script
  for script in tests/rtl/*.sh; do
    run bash "$script"
  done
  SIMULATED=1
  run cargo clippy "${WORKSPACE[@]}" --features veil-lab/simulated --all-targets -- -D warnings
  run cargo test "${WORKSPACE[@]}" --features veil-lab/simulated --lib a_wipe_leaves_no_key
  all_of device-fpga
  ignored_of lab
}

portable() {
  # Kernels are chosen at run time: in this build there are those for any processor alone, and AES has no instructions either.
  run env RUSTFLAGS='--cfg veil_portable --cfg aes_backend="soft"' CARGO_TARGET_DIR="$target/portable" \
    cargo test --no-fail-fast --locked -p veil-circuit -p veil-device -p veil-engine -p veil-link -p veil-program -p veil-protocol -p veil-prss -p veil-share \
    -p veil-store -p veil-testkit
}
rtl() { scripts/test-rtl.sh; }
cuda() {
  scripts/cuda.sh
  scripts/emulate-sanitized.sh
  scripts/gpu-bundle.sh --try
}
fuzz() { scripts/fuzz.sh 30; }
soak() { scripts/soak.sh; }
python() {
  run python3 scripts/python-api.py --check
  local venv=$target/python
  [[ -x $venv/bin/python ]] || run python3 -m venv "$venv"
  run "$venv/bin/pip" install --quiet --requirement python/tests/requirements.txt
  run cargo build --locked --package veil-py --features veil-py/extension-module --package veil-cli
  # Beside the package's own text, as an editable install would have it.
  cp "$target/debug/lib_veil.so" python/veilworks/_veil.abi3.so
  run env VEIL="$target/debug/veil" PYTHONPATH=python "$venv/bin/python" -m pytest python/tests
  PATH=$venv/bin:$PATH scripts/wheel.sh
}

# Of the files that git knows, as they are.
digest() {
  local -a paths
  read -ra paths <<<"${INPUTS[$1]}"
  git ls-files -z -- "${paths[@]}" scripts/tiers.sh | sort -z | xargs -0 sha256sum -- | sha256sum | cut -d' ' -f1
}

recorded() { [[ ! -e $PASSES ]] || awk -v name="$1" '$1 == name { print $2 }' "$PASSES"; }

record() {
  local rest=""
  [[ ! -e $PASSES ]] || rest=$(awk -v name="$1" '$1 != name' "$PASSES")
  { [[ -z $rest ]] || echo "$rest"; echo "$1 $(digest "$1")"; } | sort >"$PASSES.new"
  mv "$PASSES.new" "$PASSES"
}

# Runs a tier.
tier() {
  local began=$SECONDS status=0
  say "tier $1: ${WHAT[$1]}"
  # Not in a list with ||, where a command that fails would end nothing.
  set +e
  (set -e; "$1")
  status=$?
  set -e
  say "tier $1: $((SECONDS - began)) s, $([[ $status == 0 ]] && echo passed || echo FAILED)"
  [[ $status != 0 ]] || record "$1"
  return "$status"
}

if [[ $# == 0 ]]; then
  for name in "${ORDER[@]}"; do
    state="inputs changed since its last pass"
    [[ -n $(recorded "$name") ]] || state="no pass is recorded"
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
  elif [[ -z $(recorded "$name") ]]; then
    # A person runs it first, and records its pass.
    left+=("$name (no pass is recorded)")
  elif ((SECONDS + MINUTES[$name] * 60 > until)); then
    left+=("$name (${MINUTES[$name]} min)")
  else
    # A machine that is slower than the minutes say does not keep the others waiting.
    ended=0
    timeout --kill-after 10 $((until + 180 - SECONDS)) "$0" "$name" || ended=$?
    case $ended in
      0) ;;
      124 | 137) left+=("$name (not done when the time was over)") ;;
      *) status=1 ;;
    esac
  fi
done
[[ ${#left[@]} == 0 ]] || say "left: ${left[*]}; run scripts/tiers.sh with their names"
exit "$status"
