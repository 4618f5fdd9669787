#!/usr/bin/env bash
# The tests that take no minutes each; stops at the first part that fails. What can be said without running anything is scripts/check.sh; the long
# tiers are in scripts/tiers.sh.
source "$(dirname "$0")/lib.sh"

[[ -d $target/debug ]] || room 8
run_tests "${WORKSPACE[@]}" --no-fail-fast
say "models in Python agree with themselves and with the golden vectors"
for model in rep3 rep4 dzkp lifts truncations moves proved_moves matrices conversions masked cut codes ot silent psi vole ag_store garbling ag tables; do
  run python3 "vectors/model/$model.py" --check
done
for script in tests/shell/*.sh; do
  run bash "$script"
done
say "all passed. Next: make check before a commit; make tiers lists the long tests; make bench; ARCHITECTURE.md"
