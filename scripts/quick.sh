#!/usr/bin/env bash
# Unit tests, golden vectors, and one job of all parties as processes over TLS: what to run after each change. Built as the demo is, so that after
# `make demo` no library is built again.
source "$(dirname "$0")/lib.sh"

packages=()
for crate in math session sandbox circuit prss link share device job program protocol engine node runtime; do
  packages+=(--package "veil-$crate")
done
# One choice of packages: another one would build libraries with other features. Those that take seconds each are for `make test`.
slow=(--skip conformance::tests::every_instruction_set --skip ot_cache::tests::a_copy_of --skip planner::pool::)
run cargo test --profile demo --no-default-features --locked "${packages[@]}" --lib --test golden -- "${slow[@]}"
folder=$target/pay-gap
run cargo build --profile demo --no-default-features --locked --package veil-cli --package pay-gap
[[ -e $folder/job.toml ]] || run "$target/demo/pay-gap-generate" "$folder"
run "$target/demo/veil" stats "$folder/job.toml" --processes --check --out "$folder/results-processes"
say "all passed. Next: make test"
