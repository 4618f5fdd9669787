#!/usr/bin/env bash
# The cores of replicated sharing, in simulation: the vectors that the CPU device computes too, random commands with random stalls, cycles
# that do not depend on values, and that nothing is left after a scrub. With --long: more cores, more commands.
source "$(dirname "$0")/../../scripts/lib.sh"

if ! command -v verilator >/dev/null; then
    say "skipped: Verilator is not here (apt-get install verilator), and the cores of shares are not simulated"
    exit 0
fi
run python3 rtl/share/dv/bench.py "$target/rtl" "$@"
