#!/usr/bin/env bash
# Every check and every test; stops at the first that fails.
source "$(dirname "$0")/lib.sh"

scripts/check.sh
run cargo test --workspace --all-features --locked
run cargo xtask counts --check
for script in tests/shell/*.sh; do
  run bash "$script"
done
say "all passed. Next: make demo, make bench, or read ARCHITECTURE.md"
