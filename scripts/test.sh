#!/usr/bin/env bash
# Every check and the tests that take no minutes; stops at the first that fails. The long tiers are in scripts/tiers.sh.
source "$(dirname "$0")/lib.sh"

[[ -d $target/debug ]] || room 8
scripts/check.sh
run_tests "${WORKSPACE[@]}" --no-fail-fast
run cargo xtask counts --check
scripts/cuda.sh
for script in tests/shell/*.sh; do
  run bash "$script"
done
say "all passed. Next: make tiers lists the long tests; make demo, make bench, or read ARCHITECTURE.md"
