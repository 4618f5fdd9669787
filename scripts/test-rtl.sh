#!/usr/bin/env bash
# Lint, proofs and benches of the hardware. With "short": what takes less than a minute, and nothing where the tools are missing.
source "$(dirname "$0")/lib.sh"

for tool in verilator yosys yosys-smtbmc z3; do
  command -v "$tool" >/dev/null 2>&1 && continue
  say "skipped: hardware, as $tool is not installed (apt-get install --no-install-recommends verilator yosys z3)"
  [[ ${1:-} == short ]] && exit 0
  exit 1
done

if [[ ${1:-} == short ]]; then
  run scripts/lint-rtl.sh
  run scripts/prove-rtl.sh
  exit 0
fi
run scripts/lint-rtl.sh long
run scripts/prove-rtl.sh
run bash tests/rtl/card.sh "1:1 2 4:4:2:1 8" 200
run bash tests/rtl/share.sh --long
run bash tests/rtl/gcm.sh "1 2 3 4 5" 1500
run bash tests/rtl/lookaside.sh "$(seq -s ' ' 20)" 100 --long
# Netlists that are no part of this project are run where VEIL_CIRCUITS names their folder.
VEIL_RTL_ROWS=1,2,3,4,8 run cargo test "${WORKSPACE[@]}" --features veil-lab/simulated --test tests -- --nocapture loops:: device:: ordered:: offset::
# AES at three nodes.
VEIL_NODE_CIRCUITS=aes128 run cargo test "${WORKSPACE[@]}" --features veil-lab/simulated --test tests -- node::circuit
# Other latencies, other beats.
VEIL_RTL_ROWS=2:4:1 run cargo test "${WORKSPACE[@]}" --features veil-lab/simulated --test tests -- loops:: device::
