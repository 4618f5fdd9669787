#!/usr/bin/env bash
# What can be said of the project without running it.
source "$(dirname "$0")/lib.sh"

run cargo fmt --all --check
run cargo clippy "${WORKSPACE[@]}" --all-targets -- -D warnings
run env RUSTDOCFLAGS="-D warnings" cargo doc "${WORKSPACE[@]}" --no-deps --document-private-items --quiet
run cargo xtask layers
scripts/lean.sh
say "tests that are left out say the tier that has them"
of_tier() { grep -rnE '#\[ignore|, ignore' "${@:2}" --include='*.rs' | grep -v "\"tier $1: "; }
if of_tier processes crates/cli | grep -vE 'make test-soak|started by' ||
  of_tier long "${LONG[@]/#/crates/}" || of_tier cores crates/{lab,device-fpga} ||
  of_tier none $(ls -d crates/* | grep -vE "/(cli|lab|device-fpga|$(IFS='|' && echo "${LONG[*]}"))$") | grep -v '```'; then
  echo "error: scripts/tiers.sh would not run the above" >&2
  exit 1
fi
run cargo xtask links
run cargo xtask words
run cargo xtask gen --check
if cargo deny --version >/dev/null 2>&1; then
  run cargo deny --locked check
else
  say "skipped: cargo deny is not installed (cargo install cargo-deny)"
fi
if typos --version >/dev/null 2>&1; then
  run typos
else
  say "skipped: typos is not installed (cargo install typos-cli)"
fi
